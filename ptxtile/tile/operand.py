"""Tensor operands of a tile operation: their axes, owners, registers and places, checked and tabulated.

An operand's axes are (*group, *repeat, *atom). Layout terms never mix dimensions, so what a coordinate contributes to
an axis is a sum of one table entry a dimension: all checks and maps here are exact and need no symbolic proof.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ptxtile.builder import ranges
from ptxtile.builder.ranges import Extent
from ptxtile.builder.storage import Layout, Registers
from ptxtile.builder.tensors import Tensor
from ptxtile.builder.trace import Trace
from ptxtile.errors import TileError
from ptxtile.ir.operand import Register
from ptxtile.layout import ComposeLayout, Swizzle
from ptxtile.tile.scope import Group

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """The parts of an operand's shape."""

    group: Shape
    repeat: Shape
    atom: Shape

    @property
    def issues(self) -> int:
        """How many instructions the repeats are."""
        return math.prod(self.repeat)


def split(what: str, tensor: Tensor, group: Group, atom: Shape) -> Split:
    """`tensor.shape` as (*group, *repeat, *atom); TileError where it is not."""
    shape = tensor.static_shape
    count, tail = len(group.extents), len(atom)
    if len(shape) < count + tail:
        raise TileError(f"{what} has shape {shape}; it needs {_needs(group, atom)}")
    if shape[:count] != group.extents:
        raise TileError(
            f"{what} has shape {shape}; at {group.scope} scope the leading axes are {group.extents}, the threads "
            "active here"
        )
    if tail and shape[len(shape) - tail :] != atom:
        rest, each = math.prod(shape[count:]), math.prod(atom)
        made = ", ".join(map(str, (*group.extents, rest // each, *atom)))
        raise TileError(
            f"{what} has shape {shape}; its trailing axes are the instruction's registers, {atom}"
            + ("" if rest % each else f"; view({made}) makes {rest // each} repeats of them")
        )
    return Split(group.extents, shape[count : len(shape) - tail], atom)


def _needs(group: Group, atom: Shape) -> str:
    words = [f"the group axes {group.extents}"] if group.extents else []
    words += ["any repeats"] + ([f"the atom {atom}"] if atom else [])
    return " and then ".join(words)


@lru_cache(maxsize=4096)
def tables(layout: Layout, shape: Shape) -> dict[str, tuple[int, tuple[tuple[int, ...], ...]]]:
    """For each axis the layout names, and m: its offset, and for each dimension what each coordinate contributes."""
    tile = layout.base if isinstance(layout, ComposeLayout) else layout
    found: dict[str, list[list[int]]] = {}
    for term in tile.plan(shape):
        rows = found.setdefault(term.axis.name, [[0] * extent for extent in shape])
        row = rows[term.dim]
        for at in range(len(row)):
            digit = at // term.div
            row[at] += (digit if term.mod is None else digit % term.mod) * term.stride
    offsets = {axis.name: 0 for axis in tile.axes} | {"m": 0}
    for step in tile.offset:
        offsets[step.axis.name] = offsets.get(step.axis.name, 0) + step.amount
    zero = [[0] * extent for extent in shape]
    return {name: (offset, tuple(map(tuple, found.get(name, zero)))) for name, offset in offsets.items()}


@lru_cache(maxsize=4096)
def _own(layout: Layout, shape: Shape, group: Group) -> str:
    """Why the executing thread does not own its elements; empty if it does."""
    count = len(group.extents)
    for axis, (offset, rows) in tables(layout, shape).items():
        if axis == "m":
            if any(any(row) for row in rows[:count]):
                return (
                    "its registers are not divided among the threads: the layout puts the group axes on m; give them "
                    f"owner axes ({_suggestion(group)})"
                )
            continue
        if any(len(set(row)) > 1 for row in rows[count:]):
            return (
                f"incorrect {axis} owner: it changes along the repeats or the atom, which one thread executes"
            )
        still = offset + sum(row[0] for row in rows[count:])
        for coordinate in itertools.product(*map(range, group.extents)):
            value = still + sum(row[at] for row, at in zip(rows, coordinate))
            due = group.owners(coordinate).get(axis)
            if due is None and (value != 0 or axis in ("TLane", "TCol")):
                return f"owner axis {axis} does not fit: {group.scope} scope does not tell the executing thread's"
            if due is not None and value != due:
                whose = f"belongs to {axis} {value} and is executed by {due}"
                return f"incorrect {axis} owner: the element at {coordinate} {whose}"
    missing = [axis for axis, extent in _needed(group) if extent > 1 and axis not in _named(layout, axis)]
    return f"the layout names no {missing[0]}: {_suggestion(group)}" if missing else ""


def _needed(group: Group) -> list[tuple[str, int]]:
    found = []
    if group.scope in ("cta", "cluster") and group.warps is not None:
        found.append(("warpid", group.warps.count))
    if group.lanes is not None:
        found.append(("laneid", group.lanes.count))
    return found


_STANDS_FOR = {"warpid": ("warpid", "tx", "wgid"), "laneid": ("laneid", "tx", "tid_in_wg")}


def _named(layout: Layout, axis: str) -> tuple[str, ...]:
    return (axis,) if any(named.name in _STANDS_FOR[axis] for named in layout.axes) else ()


def _suggestion(group: Group) -> str:
    owners = ["1 @ warpid"] if group.warps is not None and group.scope != "warp" else []
    return ", ".join([*owners, "1 @ laneid"])


def check_owner(what: str, tensor: Tensor, group: Group) -> None:
    """TileError unless each register element belongs to the thread that executes it."""
    assert tensor.layout is not None
    why = _own(tensor.layout, tensor.static_shape, group)
    if why:
        raise TileError(f"{what}: {why}")


def issue_registers(tensor: Tensor, parts: Split) -> list[tuple[Register, ...]]:
    """For each repeat, row-major: the registers of its atom, in order."""
    storage = tensor.bound
    assert isinstance(storage, Registers) and tensor.layout is not None
    bases, atom = _bases(tensor, parts)
    swizzle = tensor.layout.swizzle if isinstance(tensor.layout, ComposeLayout) else None
    return gathered(storage.registers, bases, atom, swizzle)


def gathered(
    held: tuple[Register, ...], bases: Sequence[int], steps: Sequence[int], swizzle: Swizzle | None
) -> list[tuple[Register, ...]]:
    """For each base, the registers at `base + step` for each step."""
    if swizzle is not None:
        return [tuple([held[swizzle.apply(base + step)] for step in steps]) for base in bases]
    first, count = steps[0], len(steps)
    if list(steps) == list(range(first, first + count)):  # as nearly always
        return [held[base + first : base + first + count] for base in bases]
    return [tuple([held[base + step] for step in steps]) for base in bases]


def issue_places(tensor: Tensor, parts: Split) -> list[int]:
    """For each repeat: the constant part of its atom's place on `m`, the group coordinate being 0."""
    bases, atom = _bases(tensor, parts)
    return [base + atom[0] for base in bases] if atom[0] else bases


def surely_distinct(tensor: Tensor, parts: Split) -> bool:
    """Whether it is plain that no two elements of the repeats are one register: runs that end before the next."""
    bases, atom = _bases(tensor, parts)
    count = len(atom)
    return (
        not isinstance(tensor.layout, ComposeLayout)
        and atom == list(range(atom[0], atom[0] + count))
        and len(set(bases)) == len(bases)
        and (count == 1 or len({base % count for base in bases}) == 1)
    )


def _bases(tensor: Tensor, parts: Split) -> tuple[list[int], list[int]]:
    """The place of each repeat, row-major, and what each element of the atom adds to it."""
    assert tensor.layout is not None
    offset, rows = tables(tensor.layout, tensor.static_shape)["m"]
    count, repeats = len(parts.group), len(parts.repeat)
    start = offset + sum(row[0] for row in rows[:count])
    if _in_registers(tensor):
        start += tensor.origin.known or 0
    bases = [start]
    for row in rows[count : count + repeats]:
        bases = [base + value for base in bases for value in row]
    atom = [0]
    for row in rows[count + repeats :]:
        atom = [base + value for base in atom for value in row]
    return bases, atom


def _in_registers(tensor: Tensor) -> bool:
    return isinstance(tensor.bound, Registers)


def group_place(tensor: Tensor, group_coordinate: Sequence[Extent]) -> Extent:
    """The run-time part of the place: the tensor's origin and what the group coordinate adds."""
    total = tensor.origin
    if tensor.layout is None:
        for at, stride in zip(group_coordinate, tensor.strides):
            total = total.plus(at.times(stride))
        return total
    tile = tensor.layout.base if isinstance(tensor.layout, ComposeLayout) else tensor.layout
    count = len(group_coordinate)
    for term in tile.plan(tensor.static_shape):
        if term.axis.name == "m" and term.dim < count:
            digit = ranges.quotient(group_coordinate[term.dim], term.div)
            if term.mod is not None:
                digit = ranges.remainder(digit, term.mod)
            total = total.plus(digit, term.stride)
    return total


def strided_places(tensor: Tensor, parts: Split) -> list[Extent]:
    """For each repeat: what it adds to the place of a tensor with run-time strides (atom element 0)."""
    count = len(parts.group)
    result = []
    for coordinate in itertools.product(*map(range, parts.repeat)):
        total = ranges.constant(0)
        for at, stride in zip(coordinate, tensor.strides[count:]):
            total = total.plus(stride.times(at))
        result.append(total)
    return result


def prove_claims(trace: Trace, what: str, tensor: Tensor, extra: Sequence[object] = ()) -> None:
    """TileError unless a region with run-time starts is proven to lie inside its tensor."""
    if not tensor.claims:
        return
    facts = [fact for known in (*trace.facts(), *extra) for fact in ranges.facts_of(known)]
    for claim in tensor.claims:
        if not ranges.nonnegative(claim, facts):
            raise TileError(
                f"{what}: the region is not proven to lie inside its tensor: {claim} >= 0 does not follow from the "
                "ranges known here; enclose it in pt.if_, or state it with pt.assume"
            )
