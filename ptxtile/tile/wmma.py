"""wmma.load, wmma.store and wmma.mma over tiles (PTX ISA 9.7.14.4), above thread scope.

A fragment is what the manual leaves unsaid, so it has no layout of a matrix: a register tensor (*warps, 32, *repeats,
N) of the registers that the form lists, good for the next wmma instruction of the same shape, and for elementwise
work on two fragments alike. Matrices in memory are (*warps, *repeats, rows, columns): M x K of a, K x N of b, M x N of
c and d; four-bit and single-bit elements are uint32 words along K. Operands in PTX order, without the stride, which
comes from the tensor:
    load     registers, memory
    store    memory, registers
    mma      d, a, b, c
.row wants neighbours along columns side by side in memory, .col those along rows; each row or column starts at a
multiple of the bytes of a fragment, or of its own where it has fewer (9.7.14.4.2).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ptxtile.builder import addresses, ranges
from ptxtile.builder.ranges import Extent
from ptxtile.builder.tensors import Tensor
from ptxtile.errors import LayoutError, OperandError, TileError
from ptxtile.ir.operand import Operand, Vector
from ptxtile.isa import type_bits
from ptxtile.isa.form import Form, Operand as Slot
from ptxtile.layout import ComposeLayout
from ptxtile.tile import collective, operand, overlap, places, predicate, registers
from ptxtile.tile.family import Call, Family
from ptxtile.tile.operand import Split
from ptxtile.tile.places import Region
from ptxtile.tile.scope import coordinate

_SHAPE = re.compile(r"\.m(\d+)n(\d+)k(\d+)")
_WORD = 32


@dataclass(frozen=True, slots=True)
class Matrix:
    """The memory operand of a form: its atom in elements of the tensor, and elements of the form in one of those."""

    rows: int
    columns: int
    bits: int
    packed: int
    by_row: bool


def matrix_of(form: Form) -> Matrix:
    """The matrix of a wmma.load or wmma.store."""
    m, n, k = next(map(int, found.groups()) for word in form.modifiers if (found := _SHAPE.fullmatch(word)))
    which = next(word[1] for word in form.modifiers if word in (".a", ".b", ".c", ".d"))
    bits = type_bits(form.modifiers[-1])
    rows, columns = {"a": (m, k), "b": (k, n)}.get(which, (m, n))
    packed = _WORD // bits if bits < 8 else 1
    if which == "a":
        columns //= packed
    elif which == "b":
        rows //= packed
    return Matrix(rows, columns, max(bits, _WORD) if packed > 1 else bits, packed, ".row" in form.modifiers)


def issue(call: Call) -> None:
    """See the module's docstring."""
    form = call.form
    collective.warps(form.spelling, call.group)
    if ".mma" in form.modifiers:
        registers.apply(call.trace, form, call.operands, call.group, call.pred, call.preserve_dst)
        return
    loads = ".load" in form.modifiers
    given = call.take(2, "registers, memory" if loads else "memory, registers")
    predicate.check_preserve(form.spelling, call.preserve_dst, call.pred, loads)
    slots = next(each for each in form.signatures if len(each.operands) == 3).operands
    held, repeat = _fragments(call, slots[0 if loads else 1], given[0 if loads else 1])
    width = 8 if ".f64" in form.modifiers else 4
    alignment = slots[0 if loads else 1].length * width
    found, stride, parts = _memory(
        call, slots[1 if loads else 0], given[1 if loads else 0], alignment, not loads
    )
    if parts.repeat != repeat:
        raise TileError(
            f"{form.spelling}: operand r has repeats {repeat}, and p has {parts.repeat}: both repeat alike"
        )
    words: list[Operand] = [Vector(row) for row in held]
    columns: list[Sequence[Operand]] = [words, found] if loads else [found, words]
    columns.append([stride] * len(words))
    guards = predicate.guards(call.trace, form.spelling, call.pred, call.group, repeat, len(words))
    registers.emit(call.trace, form, columns, guards)


def _fragments(
    call: Call, slot: Slot, given: object
) -> tuple[Sequence[tuple[Operand, ...]], tuple[int, ...]]:
    """The registers of each repeat, and the repeats."""
    form = call.form
    what = f"{form.spelling}: operand r"
    if not isinstance(given, Tensor):
        raise OperandError(f"{what} takes a register tensor (…, 32, *repeats, {slot.length})")
    why = registers.tensor_why_not(slot, given)
    if why:
        raise OperandError(f"{form.spelling}: {why}")
    parts = operand.split(what, given, call.group, (slot.length,))
    operand.check_owner(what, given, call.group)
    held = operand.issue_registers(given, parts)
    if slot.role != "in":
        overlap.check_distinct(what, held)
    return held, parts.repeat


def _memory(
    call: Call, slot: Slot, given: object, alignment: int, writes: bool
) -> tuple[Sequence[Operand], Operand, Split]:
    """The address of each repeat, the stride, and the parts of the shape."""
    form, trace = call.form, call.trace
    what, space = f"{form.spelling}: operand p", slot.space or ""
    made = matrix_of(form)
    tensor = places.memory_tensor(what, given, space, ", ".join(s.name for s in form.signatures[0].operands))
    if tensor.dtype.itemsize * 8 != made.bits:
        raise OperandError(
            f"{what}: the form takes {'words' if made.packed > 1 else 'elements'} of {made.bits} bits and the tensor's "
            f"are {tensor.dtype.name}; view(…) it as a dtype of {made.bits} bits"
        )
    group = replace(collective.warps(form.spelling, call.group), lanes=None)
    parts = operand.split(what, tensor, group, (made.rows, made.columns))
    if not made.by_row:  # lines are columns: the same with the last two axes exchanged
        axes = list(range(tensor.ndim))
        axes[-2:] = axes[-1], axes[-2]
        tensor = tensor.permute(*axes)
        parts = Split(parts.group, parts.repeat, (made.columns, made.rows))
    due = min(alignment, parts.atom[1] * tensor.dtype.itemsize)
    region = Region(what, tensor, space, parts.atom[1], due)
    stride = _distance(what, made, tensor)
    places.check(trace, region, call.pred)
    if writes:
        places.check_store(region)
    found = places.of_repeats(trace, region, parts, coordinate(group))
    return found, addresses.lower(trace, stride.times(made.packed), 32), parts


def _distance(what: str, made: Matrix, tensor: Tensor) -> Extent:
    """How far apart lines are, in elements of the tensor. LayoutError unless it is the same for all."""
    if tensor.layout is None:
        return tensor.strides[-2]
    if isinstance(tensor.layout, ComposeLayout):
        raise LayoutError(f"{what}: wmma reads lines at one distance, and this layout is swizzled")
    lines = operand.tables(tensor.layout, tensor.static_shape)["m"][1][-2]
    step = lines[1] - lines[0]
    if any(place - lines[0] != at * step for at, place in enumerate(lines)) or step < 0:
        word = "rows" if made.by_row else "columns"
        raise LayoutError(f"{what}: wmma reads {word} at one distance, and this layout puts them at several")
    return ranges.constant(step)


FAMILY = Family(
    name="wmma",
    section="9.7.14.4",
    starts=("wmma.",),
    operands=("load: registers, memory", "store: memory, registers", "mma: d, a, b, c"),
    atoms="registers (N,), as they are; memory (M, K) of a, (K, N) of b, (M, N) of c and d",
    carriers="registers of 32 bits (uint32, float32), float64; memory of the form's width, uint32 words below 8 bits",
    scopes="warp and above",
    judges=("ptxas", "emulator", "H200"),
    issue=issue,
)
