"""Tensors in tensor memory as operands: their lanes and columns, checked, and their addresses.

An address is the allocation's plus (lane << 16) + column: one base register and constants.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from ptxtile.builder import addresses, convert, ranges
from ptxtile.builder.ranges import Extent
from ptxtile.builder.storage import Memory
from ptxtile.builder.tensors import Tensor
from ptxtile.builder.trace import Trace
from ptxtile.errors import OperandError, TileError
from ptxtile.ir.operand import Address, addresses_from
from ptxtile.layout import ComposeLayout
from ptxtile.tile import operand
from ptxtile.tile.operand import Split
from ptxtile.tile.scope import Group

_LANE = 1 << 16
Tables = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Places:
    """What each coordinate of each dimension adds to the lane and to the column, and the offsets."""

    lanes: Tables
    columns: Tables
    lane: int
    column: int

    def at(self, coordinate: Sequence[int]) -> tuple[int, int]:
        """(lane, column) of an element."""
        return (
            self.lane + sum(row[digit] for row, digit in zip(self.lanes, coordinate)),
            self.column + sum(row[digit] for row, digit in zip(self.columns, coordinate)),
        )


def tensor_memory(what: str, given: object) -> Tensor:
    """`given`, which must lie in tensor memory. OperandError otherwise."""
    if not isinstance(given, Tensor) or not isinstance(given.bound, Memory) or given.space != "tensor":
        found = f"a tensor in {given.space}" if isinstance(given, Tensor) else convert.given(given)
        raise OperandError(
            f"{what} takes a tensor in tensor memory, pt.tensor_memory(…).tensor(…), not {found}"
        )
    return given


def places_of(tensor: Tensor) -> Places:
    """The lanes and columns of a tensor."""
    assert tensor.layout is not None
    shape = tensor.static_shape
    found = operand.tables(tensor.layout, shape)
    none = (0, tuple((0,) * extent for extent in shape))
    lane, lanes = found.get("TLane", none)
    column, columns = found.get("TCol", none)
    return Places(lanes, columns, lane, column)


def check_atom(what: str, places: Places, parts: Split, lanes: Tables, columns: Tables) -> None:
    """TileError unless each coordinate of each of the atom's dimensions adds these lanes and columns."""
    first = len(parts.group) + len(parts.repeat)
    for dimension, due in enumerate(zip(lanes, columns)):
        found = places.lanes[first + dimension], places.columns[first + dimension]
        for at, wanted in enumerate(zip(*due)):
            moved = found[0][at] - found[0][0], found[1][at] - found[1][0]
            if moved != wanted:
                element = tuple(at if each == dimension else 0 for each in range(len(lanes)))
                raise TileError(
                    f"{what}: element {element} of the atom must lie {wanted[0]} lanes and {wanted[1]} columns from "
                    f"the first, and the layout puts it {moved[0]} and {moved[1]} away"
                )


def check_slab(what: str, places: Places, parts: Split, group: Group, rows: int) -> None:
    """TileError unless each warp moves rows of its own 32 lanes."""
    if group.scope != "thread" and group.warps is None:
        raise TileError(
            f"{what}: a warp reaches lanes 32 (warp % 4) on of tensor memory alone, so which warps are active must be "
            'known: guard with pt.if_(pt.warp_id() == …), or use scope="warpgroup" or "cta"'
        )
    count, repeats = len(parts.group), len(parts.repeat)
    start = places.lane + sum(row[0] for row in places.lanes[count + repeats :])
    steps = {sum(row) for row in itertools.product(*map(set, places.lanes[count : count + repeats]))}
    for coordinate in itertools.product(*map(range, group.extents)):
        warp = group.owners((*coordinate, 0))["wid_in_wg"]
        first = start + sum(row[at] for row, at in zip(places.lanes, coordinate))
        for lane in sorted(first + step for step in steps):
            if lane // 32 != warp or lane % 32 % 16 or lane % 32 + rows > 32:
                raise TileError(
                    f"{what}: warp {warp} of a warpgroup reaches lanes {32 * warp} to {32 * warp + 31} of tensor "
                    f"memory, 16 or 32 at a time, and {rows} lanes from {lane} are asked for"
                )


def issue_addresses(
    trace: Trace, tensor: Tensor, places: Places, parts: Split, group: Sequence[Extent]
) -> list[Address]:
    """The address of each repeat's first element, for a thread at a group coordinate."""
    start = _moving(tensor, group)
    count, repeats = len(parts.group), parts.repeat
    lane, column = places.at((0,) * (count + len(repeats) + len(parts.atom)))
    steps = [lane * _LANE + column]
    for at in range(count, count + len(repeats)):
        pairs = list(zip(places.lanes[at], places.columns[at]))
        moved = [(down - pairs[0][0]) * _LANE + across - pairs[0][1] for down, across in pairs]
        steps = [step + more for step in steps for more in moved]
    storage = tensor.bound
    assert isinstance(storage, Memory)
    first = addresses.address(trace, storage, start.plus(steps[0]), 1)
    return addresses_from(first.base, [first.offset + step - steps[0] for step in steps])


def _moving(tensor: Tensor, group: Sequence[Extent]) -> Extent:
    """What the group coordinate adds to the address."""
    assert tensor.layout is not None and not isinstance(tensor.layout, ComposeLayout)
    total = ranges.constant(0)
    for term in tensor.layout.plan(tensor.static_shape):
        if term.dim >= len(group) or term.axis.name not in ("TLane", "TCol"):
            continue
        digit = ranges.quotient(group[term.dim], term.div)
        if term.mod is not None:
            digit = ranges.remainder(digit, term.mod)
        total = total.plus(digit, term.stride * (_LANE if term.axis.name == "TLane" else 1))
    return total
