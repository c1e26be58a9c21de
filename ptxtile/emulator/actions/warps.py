"""What all threads of a warp do together: sources laid out by warp and lane, results handed back to each thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.actions.control import fall_through
from ptxtile.emulator.group import Group
from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.operands import Read
from ptxtile.emulator.program import Site
from ptxtile.emulator.registers import undefined
from ptxtile.emulator.rendezvous import Arrival, Meeting
from ptxtile.emulator.step import Control
from ptxtile.emulator.widths import Bits

LANES: NDArray[np.int64] = np.arange(32, dtype=np.int64)
Compute = Callable[[list[Bits]], list[Bits]]
Lost = Callable[[list[Bits], list[Bits]], list[Bits]]
Deliver = Callable[[Lanes, list[Bits], "list[Bits] | None"], None]


def whole_warp(shadows: list[Bits], results: list[Bits]) -> list[Bits]:
    """The results' shadows, where a warp with an undefined source has nothing but undefined results."""
    tainted: NDArray[np.bool_] = np.zeros(len(shadows[0]), np.bool_)
    for shadow in shadows:
        tainted = tainted | np.any(shadow != 0, axis=1)
    return [
        np.where(tainted[:, None], undefined(result.dtype), result.dtype.type(0)).astype(result.dtype)
        + np.zeros_like(result)
        for result in results
    ]


def by_warp(
    site: Site, reads: Sequence[Read], compute: Compute, deliver: Deliver, lost: Lost = whole_warp
) -> Control:
    """A collective of whole warps.

    compute   from the sources, (warps, 32) each, to the results, (warps, 32) each
    lost      from the sources' shadows and the results to the results' shadows, where any bit is undefined
    deliver   gets the results of some threads, and their shadows if any bit is undefined
    """

    def execute(laid: list[Bits]) -> tuple[Bits, ...]:
        sources, shadows = laid[: len(reads)], laid[len(reads) :]
        results = compute(sources)
        if any(shadow.any() for shadow in shadows):
            return (*results, *lost(shadows, results))
        return (*results, *(np.zeros_like(result) for result in results)) if shadows else tuple(results)

    def meet(meeting: Meeting) -> tuple[Bits, ...]:
        return execute(list(meeting.sources))

    def hand(lanes: Lanes, results: tuple[Bits, ...], shadowed: bool = True) -> None:
        count = len(results) // 2 if shadowed else len(results)
        shadows = list(results[count:])
        deliver(lanes, list(results[:count]), shadows if any(s.any() for s in shadows) else None)

    def run(group: Group, lanes: Lanes) -> None:
        fall_through(group, lanes)
        if not lanes.count:
            return
        sources, shadows = _read(reads, lanes)
        if whole_warps(lanes):
            laid = [source.reshape(-1, 32) for source in (*sources, *shadows)]
            hand(lanes, tuple(result.reshape(-1) for result in execute(laid)), bool(shadows))
            lanes.wave.pool.add(group.at(site.number + 1, lanes.threads))
            return
        mask = np.full(lanes.count, 0xFFFFFFFF, np.uint32)
        everything = (*sources, *(shadows or [np.zeros_like(source) for source in sources]))
        lanes.wave.rendezvous.arrive(
            Arrival(group, lanes, site, lanes.threads, mask, everything, meet, hand, orders=False)
        )

    return run


def whole_warps(lanes: Lanes) -> bool:
    """Whether these threads are complete warps of 32."""
    if lanes.count % 32:
        return False
    return bool((lanes.wave.lane[lanes.where].reshape(-1, 32) == LANES).all())


def _read(reads: Sequence[Read], lanes: Lanes) -> tuple[list[Bits], list[Bits]]:
    """The sources, and their shadows: none at all if every bit is defined."""
    sources, shadows = [], []
    for read in reads:
        value, shadow = read(lanes)
        sources.append(np.ascontiguousarray(value))
        shadows.append(shadow)
    if all(shadow is None for shadow in shadows):
        return sources, []
    return sources, [
        np.zeros_like(v) if s is None else np.ascontiguousarray(s) for v, s in zip(sources, shadows)
    ]
