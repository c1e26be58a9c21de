"""What a whole warp does together: group axes without lanes, and register tensors that are fragments.

A fragment's atom axes are words of a matrix; its lanes come from the layout's owner axes, which must put each word
where the instruction has it. The group axes are the warps of the scope: none at warp scope, (warp,) above.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from ptxtile.builder import convert
from ptxtile.builder.storage import Layout, Registers
from ptxtile.builder.tensors import Tensor
from ptxtile.errors import OperandError, TileError
from ptxtile.ir.operand import Register
from ptxtile.layout import ComposeLayout
from ptxtile.layout.mma_fragment import Fragment
from ptxtile.tile import operand
from ptxtile.tile.operand import Shape
from ptxtile.tile.scope import WARP, Group


@dataclass(frozen=True, slots=True)
class Held:
    """A register tensor of fragments: its repeats, and the registers of each in the instruction's order."""

    repeat: Shape
    issues: list[tuple[Register, ...]]

    def at(self, *coordinate: int) -> tuple[Register, ...]:
        """The registers of one repeat."""
        index = 0
        for extent, value in zip(self.repeat, coordinate):
            index = index * extent + value
        return self.issues[index]


def warps(what: str, group: Group) -> Group:
    """The group without its lanes. TileError unless whole warps are active."""
    if group.scope == "thread" or group.lanes is None:
        raise TileError(f'{what} is done by a whole warp: scope="warp", "warpgroup", "cta" or "cluster"')
    require_whole(what, group)
    return replace(group, extents=group.extents[:-1])


def require_whole(what: str, group: Group) -> None:
    """TileError unless all 32 lanes of each warp are active."""
    lanes = group.lanes
    if lanes is not None and (lanes.count, lanes.first, lanes.step) != (WARP, 0, 1):
        raise TileError(
            f"{what} requires all 32 lanes of a warp to be active; active here are {lanes.count} from lane "
            f"{lanes.first}"
        )


def held(what: str, given: object, group: Group, fragment: Fragment, bits: int) -> Held:
    """A register tensor (*warps, *repeat, *fragment.shape). OperandError, TileError if it is another thing.

    group  of warps
    bits   of a register: 32 or 64
    """
    if not isinstance(given, Tensor) or not isinstance(given.bound, Registers):
        found = f"a tensor in {given.space} memory" if isinstance(given, Tensor) else convert.given(given)
        raise OperandError(f"{what} takes a register tensor, not {found}")
    if given.dtype.itemsize * 8 != bits:
        raise OperandError(
            f"{what} takes registers of {bits} bits and the tensor's elements are {given.dtype.name}; view(…) it as a "
            f"dtype of {bits} bits"
        )
    assert given.layout is not None
    parts = operand.split(what, given, group, fragment.shape)
    places, why = _places(given.layout, given.static_shape, group, fragment)
    if why:
        raise TileError(f"{what}: {why}")
    offset, rows = operand.tables(given.layout, given.static_shape)["m"]
    count = len(parts.group)
    start = offset + (given.origin.known or 0)
    bases = [start]
    for row in rows[count : count + len(parts.repeat)]:
        bases = [base + value for base in bases for value in row]
    swizzle = given.layout.swizzle if isinstance(given.layout, ComposeLayout) else None
    return Held(parts.repeat, operand.gathered(given.bound.registers, bases, places, swizzle))


@lru_cache(maxsize=1024)
def _places(layout: Layout, shape: Shape, group: Group, fragment: Fragment) -> tuple[tuple[int, ...], str]:
    """The place on `m` of each register of the first repeat; and why the layout is not the fragment's, else empty."""
    tables = operand.tables(layout, shape)
    count, tail = len(group.extents), len(fragment.shape)
    first = len(shape) - tail
    help_ = f"the instruction's own is ptxtile.layout.mma_fragment.{fragment.name}"
    words = [
        (at, fragment.layout.apply(*at, shape=fragment.shape))
        for at in itertools.product(*map(range, fragment.shape))
    ]
    why = _owners(tables, group, count, first, words, help_)
    if why:
        return (), why
    rows = tables["m"][1]
    if any(any(row) for row in rows[:count]):
        return (), "the layout puts the group axes on m: registers are each warp's own; give them 1 @ warpid"
    places: dict[int, int] = {}
    for at, owner in words:
        place = sum(row[digit] for row, digit in zip(rows[first:], at))
        if places.setdefault(owner["m"], place) != place:
            return (), (
                f"word {at} of the fragment is register {owner['m']} of lane {owner['laneid']}, and the layout has "
                f"that register elsewhere in other lanes; {help_}"
            )
    return tuple(places[number] for number in range(len(places))), ""


Tables = dict[str, tuple[int, tuple[tuple[int, ...], ...]]]
Words = Sequence[tuple[tuple[int, ...], dict[str, int]]]


def _owners(tables: Tables, group: Group, count: int, first: int, words: Words, help_: str) -> str:
    """Why a thread does not own its words; empty if it does."""
    named = [axis for axis in tables if axis != "m"]
    lanes = {"laneid", "tx", "tid_in_wg"} & set(named)
    if not lanes:
        return f"the layout names no laneid: a fragment is spread over the lanes; {help_}"
    for axis in named:
        offset, rows = tables[axis]
        if any(any(value != row[0] for value in row) for row in rows[count:first]):
            return f"incorrect {axis} owner: it changes along the repeats, which one warp executes"
        still = offset + sum(row[0] for row in rows[count:first])
        for coordinate in itertools.product(*map(range, group.extents)):
            part = still + sum(row[at] for row, at in zip(rows, coordinate))
            for at, word in words:
                due = group.owners((*coordinate, word["laneid"])).get(axis)
                value = part + sum(row[digit] for row, digit in zip(rows[first:], at))
                if due is None and value != 0 and axis in ("warpid", "wid_in_wg"):
                    own = "wid_in_wg" if axis == "warpid" else "warpid"
                    return (
                        f"owner axis {axis} does not fit: {group.scope} scope does not tell the executing warp's; "
                        f"name its warps by {own}"
                    )
                if value != (due or 0) or (due is None and axis in ("TLane", "TCol")):
                    return (
                        f"incorrect {axis} owner: word {at} of the fragment belongs to {axis} {due or 0} and the "
                        f"layout puts it on {value}; {help_}"
                    )
    missing = group.scope in ("cta", "cluster") and group.warps is not None and group.warps.count > 1
    if missing and not {"warpid", "tx", "wgid"} & set(named):
        return "the layout names no warpid: 1 @ warpid"
    return ""
