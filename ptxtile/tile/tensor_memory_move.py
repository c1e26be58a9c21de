"""tcgen05.ld and tcgen05.st over tiles (PTX ISA 9.7.16.8).

Operands in PTX order, above thread scope, by warps that are known, each in its own 32 lanes:
    registers        (*repeats, *fragment): (32, N) of .32x32b, (16, 2 N) .16x64b, (16, 4 N) .16x128b,
                     (16, 8 N) .16x256b, (2, 16, N) .16x32bx2
    tensor memory    the same; with .pack::16b or .unpack::16b one more axis, (…, 2): two columns a word
tcgen05.ld.red has a third operand between them, one word of every lane, (*repeats, 32): what the lane's words are
reduced to. The half_split_off of .16x32bx2 is the distance of its two regions in columns. tcgen05.wait is the caller's.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxtile.errors import TileError
from ptxtile.ir.operand import Integer, Operand, Vector
from ptxtile.isa.form import Form
from ptxtile.layout.mma_fragment import Fragment, per_lane
from ptxtile.layout.tensor_memory import tensor_memory_fragment
from ptxtile.tile import collective, operand, overlap, predicate, registers, tensor_memory_region as region
from ptxtile.tile.collective import Held
from ptxtile.tile.family import Call, Family
from ptxtile.tile.scope import Group, coordinate

_SHAPES = ("32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2")


def fragment(form: Form) -> Fragment:
    """The registers of a tcgen05.ld or .st."""
    shape = next(word[1:] for word in form.modifiers if word[1:] in _SHAPES)
    count = next(int(word[2:]) for word in form.modifiers if word[:2] == ".x" and word[2:].isdigit())
    return tensor_memory_fragment(shape, count)


def issue(call: Call) -> None:
    """tcgen05.ld and tcgen05.st."""
    form, trace = call.form, call.trace
    loads, reduces = ".ld" in form.modifiers, ".red" in form.modifiers
    order = "registers, tensor memory" if loads else "tensor memory, registers"
    given = list(call.take(3, "registers, reduced, tensor memory") if reduces else call.take(2, order))
    reduced = given.pop(1) if reduces else None
    group = collective.warps(form.spelling, call.group)
    predicate.check_preserve(form.spelling, call.preserve_dst, call.pred, loads)
    words = fragment(form)
    at = 0 if loads else 1
    what, where = f"{form.spelling}: operand r", f"{form.spelling}: operand taddr"
    held = collective.held(what, given[at], group, words, 32)
    tensor = region.tensor_memory(where, given[1 - at])
    packed = any("pack::16b" in word for word in form.modifiers)
    shape = (*words.shape, 2) if packed else words.shape
    parts = operand.split(where, tensor, group, shape)
    places = region.places_of(tensor)
    half = _half(where, places, len(parts.group) + len(parts.repeat)) if len(words.shape) == 3 else None
    region.check_atom(where, places, parts, *_atom(words.shape, packed, half or 0))
    region.check_slab(where, places, parts, group, words.shape[-2])
    if parts.repeat != held.repeat:
        raise TileError(f"{where} has repeats {parts.repeat}, and r has {held.repeat}: both repeat alike")
    if loads:
        overlap.check_distinct(what, held.issues)
    totals = _totals(call, reduced, group, held) if reduces else None
    values: list[Operand] = [Vector(row) for row in held.issues]
    addresses = region.issue_addresses(trace, tensor, places, parts, coordinate(call.group)[:-1])
    columns: list[Sequence[Operand]] = [values, addresses] if loads else [addresses, values]
    if half is not None:
        columns.insert(2 if loads else 1, [Integer(half)] * len(values))
    if totals is not None:
        columns.insert(1, totals)
    guards = predicate.guards(trace, form.spelling, call.pred, call.group, parts.repeat, parts.issues)
    registers.emit(trace, form, columns, guards)


def _totals(call: Call, given: object, group: Group, held: Held) -> list[Operand]:
    """The register of each repeat that tcgen05.ld.red reduces to."""
    what = f"{call.form.spelling}: operand redval"
    made = collective.held(what, given, group, per_lane(), 32)
    if made.repeat != held.repeat:
        raise TileError(f"{what} has repeats {made.repeat}, and r has {held.repeat}: both repeat alike")
    overlap.check_distinct(what, [(*one, *other) for one, other in zip(held.issues, made.issues)])
    return [row[0] for row in made.issues]


def _half(what: str, places: region.Places, first: int) -> int:
    """The distance in columns of the two regions of .16x32bx2."""
    if places.lanes[first][1] != places.lanes[first][0]:
        raise TileError(f"{what}: the two regions of .16x32bx2 lie in the same lanes, so many columns apart")
    return places.columns[first][1] - places.columns[first][0]


def _atom(shape: tuple[int, ...], packed: bool, half: int) -> tuple[region.Tables, region.Tables]:
    """What each coordinate of the atom adds to the lane, and to the column."""
    *front, rows, columns = shape
    lanes = [(0,) * extent for extent in front] + [tuple(range(rows)), (0,) * columns]
    step = 2 if packed else 1
    across = [tuple(half * at for at in range(extent)) for extent in front]
    across += [(0,) * rows, tuple(range(0, step * columns, step))]
    if packed:
        lanes.append((0, 0))
        across.append((0, 1))
    return tuple(lanes), tuple(across)


FAMILY = Family(
    name="tcgen05.ld, tcgen05.st",
    section="9.7.16.8",
    starts=("tcgen05.ld.sync.", "tcgen05.ld.red.sync.", "tcgen05.st.sync."),
    operands=(
        "ld: registers, tensor memory",
        "ld.red: registers, reduced, tensor memory",
        "st: tensor memory, registers",
    ),
    atoms="(32, N) .32x32b, (16, 2 N) .16x64b, (16, 4 N) .16x128b, (16, 8 N) .16x256b, (2, 16, N) .16x32bx2",
    carriers="words of 32 bits",
    scopes="warp and above",
    judges=("ptxas", "emulator"),
    issue=issue,
)
