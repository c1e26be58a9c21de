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
from ptxtile.emulator.rendezvous import Arrival, Meeting
from ptxtile.emulator.step import Control
from ptxtile.emulator.widths import Bits

LANES: NDArray[np.int64] = np.arange(32, dtype=np.int64)
Compute = Callable[[list[Bits]], list[Bits]]
Deliver = Callable[[Lanes, list[Bits], NDArray[np.bool_]], None]


def by_warp(site: Site, reads: Sequence[Read], compute: Compute, deliver: Deliver) -> Control:
    """A collective of whole warps.

    compute   from the sources, (warps, 32) each, to the results, (warps, 32) each
    deliver   gets the results of some threads, and which of them depend on bits that were never written
    """

    def meet(meeting: Meeting) -> tuple[Bits, ...]:
        return tuple(_tainted(compute, list(meeting.sources)))

    def hand(lanes: Lanes, results: tuple[Bits, ...]) -> None:
        deliver(lanes, list(results[:-1]), results[-1])

    def run(group: Group, lanes: Lanes) -> None:
        fall_through(group, lanes)
        if not lanes.count:
            return
        sources, tainted = _read(reads, lanes)
        if whole_warps(lanes):
            laid = [source.reshape(-1, 32) for source in (*sources, tainted)]
            results = _tainted(compute, laid)
            hand(lanes, tuple(result.reshape(-1) for result in results))
            lanes.wave.pool.add(group.at(site.number + 1, lanes.threads))
            return
        mask = np.full(lanes.count, 0xFFFFFFFF, np.uint32)
        everything = (*sources, tainted)
        lanes.wave.rendezvous.arrive(
            Arrival(group, lanes, site, lanes.threads, mask, everything, meet, hand, orders=False)
        )

    return run


def whole_warps(lanes: Lanes) -> bool:
    """Whether these threads are complete warps of 32."""
    if lanes.count % 32:
        return False
    return bool((lanes.wave.lane[lanes.where].reshape(-1, 32) == LANES).all())


def _read(reads: Sequence[Read], lanes: Lanes) -> tuple[list[Bits], NDArray[np.bool_]]:
    sources = []
    tainted: NDArray[np.bool_] = np.zeros(lanes.count, np.bool_)
    for read in reads:
        value, shadow = read(lanes)
        sources.append(np.ascontiguousarray(value))
        if shadow is not None:
            tainted = tainted | (shadow != 0)
    return sources, tainted


def _tainted(compute: Compute, laid: list[Bits]) -> list[Bits]:
    """The results, and which threads' are undefined: those of a warp with an undefined source."""
    *sources, tainted = laid
    lost: NDArray[np.bool_] = np.any(tainted, axis=1, keepdims=True)
    spread = np.repeat(lost, 32, axis=1)
    return [*compute(sources), spread]
