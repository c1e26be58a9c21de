"""ldmatrix, stmatrix and movmatrix over tiles (PTX ISA 9.7.14.5.15 to 9.7.14.5.17).

Operands in PTX order, above thread scope; the axes before the atom are the warps of the scope and repeats:
    registers    (*repeats, count, 8, 4) words of 32 bits, (*repeats, count, 16, 4) for .m16n16: the fragment
    shared       (*repeats, count, 8, 16 bytes), (*repeats, count, 16, 16 bytes) for .m16n16: rows as they are stored
Lane i gives the address of row i % rows of matrix i / rows. Rows are 16 bytes, consecutive and aligned; they may lie
anywhere. With .trans the registers hold the transposed matrix. movmatrix moves registers (8, 4) to registers (8, 4).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ptxtile.builder import ranges
from ptxtile.builder.ranges import Extent
from ptxtile.builder.tensors import Tensor
from ptxtile.errors import TileError
from ptxtile.ir.operand import Address, Operand, Vector
from ptxtile.isa.form import Form
from ptxtile.layout.mma_fragment import Fragment, ldmatrix, stmatrix
from ptxtile.tile import collective, operand, overlap, places, predicate, registers
from ptxtile.tile.family import Call, Family
from ptxtile.tile.operand import Split
from ptxtile.tile.places import Region
from ptxtile.tile.scope import Group, coordinate

_ROW = 16  # bytes


def fragment(form: Form) -> Fragment:
    """The register operand of a form."""
    if form.opcode == "movmatrix":
        return Fragment((8, 4), ldmatrix("m8n8", 1).layout, "ldmatrix('m8n8', 1)")
    shape = next(
        word[1:] for word in form.modifiers if word[1:2] == "m" and "n" in word and word[2:3].isdigit()
    )
    count = next(int(word[2:]) for word in form.modifiers if word in (".x1", ".x2", ".x4"))
    return (ldmatrix if form.opcode == "ldmatrix" else stmatrix)(shape, count)


def issue(call: Call) -> None:
    """ldmatrix and stmatrix; see the module's docstring."""
    form, trace = call.form, call.trace
    loads = form.opcode == "ldmatrix"
    order = "registers, shared memory" if loads else "shared memory, registers"
    given = call.take(2, order)
    group = collective.warps(form.spelling, call.group)
    predicate.check_preserve(form.spelling, call.preserve_dst, call.pred, loads)
    slots = form.signatures[0].operands
    at = 0 if loads else 1
    what = f"{form.spelling}: operand {slots[at].name}"
    found = fragment(form)
    held = collective.held(what, given[at], group, found, 32)
    region, parts = _region(call, given[1 - at], order, group, found)
    if parts.repeat != held.repeat:
        raise TileError(
            f"{what} has repeats {held.repeat}, and {slots[1 - at].name} has {parts.repeat}: both repeat alike"
        )
    if loads:
        overlap.check_distinct(what, held.issues)
    else:
        places.check_store(region)
    words: list[Operand] = [Vector(row) for row in held.issues]
    addresses = _addresses(call, region, parts)
    guards = predicate.guards(trace, form.spelling, call.pred, call.group, parts.repeat, parts.issues)
    columns: list[Sequence[Operand]] = [words, addresses] if loads else [addresses, words]
    registers.emit(trace, form, columns, guards)


def _rows(form: Form) -> int:
    """Rows of a matrix as they are stored: .m16n8 is stored by columns."""
    return 16 if ".m16n16" in form.modifiers else 8


def _region(call: Call, given: object, order: str, group: Group, found: Fragment) -> tuple[Region, Split]:
    """The memory operand, checked."""
    form = call.form
    slot = form.signatures[0].operands[1 if form.opcode == "ldmatrix" else 0]
    what = f"{form.spelling}: operand {slot.name}"
    tensor: Tensor = places.memory_tensor(what, given, slot.space or "", order)
    unit = tensor.dtype.itemsize
    atom = (found.shape[0], _rows(form), _ROW // unit)
    parts = operand.split(what, tensor, group, atom)
    if tensor.space != "shared":
        raise TileError(f"{what} takes shared memory, not {tensor.space}")
    region = Region(what, tensor, slot.space or "", _ROW // unit, _ROW)
    places.check(call.trace, region, call.pred)
    return region, parts


def _addresses(call: Call, region: Region, parts: Split) -> list[Address]:
    """Each lane's row, for each repeat."""
    tensor = region.tensor
    count, rows, _ = parts.atom
    whole = coordinate(call.group)
    lane = whole[-1]
    matrix: Extent = ranges.constant(0)
    if count > 1:
        matrix = ranges.quotient(lane, rows)
        if count * rows < 32:
            matrix = ranges.remainder(matrix, count)
    still = [ranges.constant(0)] * len(parts.repeat)
    start = tensor.place([*whole[:-1], *still, matrix, ranges.remainder(lane, rows), ranges.constant(0)])
    assert tensor.layout is not None
    _, tables = operand.tables(tensor.layout, tensor.static_shape)["m"]
    first = len(parts.group)
    repeats = tables[first : first + len(parts.repeat)]
    return places.of_places(call.trace, region, start, [sum(row) for row in itertools.product(*repeats)])


def move(call: Call) -> None:
    """movmatrix: registers to registers."""
    form = call.form
    d, a = call.take(2, "d, a")
    group = collective.warps(form.spelling, call.group)
    predicate.check_preserve(form.spelling, call.preserve_dst, call.pred, True)
    words = fragment(form)
    to = collective.held(f"{form.spelling}: operand d", d, group, words, 32)
    source = collective.held(f"{form.spelling}: operand a", a, group, words, 32)
    if to.repeat != source.repeat:
        raise TileError(
            f"{form.spelling}: d has repeats {to.repeat} and a {source.repeat}: both repeat alike"
        )
    columns: list[Sequence[Operand]] = [[row[0] for row in each.issues] for each in (to, source)]
    guards = predicate.guards(call.trace, form.spelling, call.pred, call.group, to.repeat, len(to.issues))
    overlap.check(
        form.spelling,
        [(f"{form.spelling}: operand d", to.issues)],
        [("a", columns[1]), *overlap.guarded(guards)],
    )
    registers.emit(call.trace, form, columns, guards)


FAMILY = Family(
    name="ldmatrix, stmatrix",
    section="9.7.14.5.15 and 9.7.14.5.16",
    starts=("ldmatrix.", "stmatrix."),
    operands=("ldmatrix: registers, shared", "stmatrix: shared, registers"),
    atoms="registers (count, 8, 4) words, .m16n16 (count, 16, 4); shared (count, rows, 16 bytes)",
    carriers="registers of 32 bits; shared memory of any dtype whose elements fill 16 bytes",
    scopes="warp and above",
    judges=("ptxas", "emulator", "H200"),
    issue=issue,
)

MOVMATRIX = Family(
    name="movmatrix",
    section="9.7.14.5.17",
    starts=("movmatrix.",),
    operands=("d, a",),
    atoms="(8, 4) words",
    carriers="registers of 32 bits",
    scopes="warp and above",
    judges=("ptxas", "emulator", "H200"),
    issue=move,
)
