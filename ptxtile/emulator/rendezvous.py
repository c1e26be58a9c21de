"""Warp collectives: threads named by a member mask meet, whatever instruction each of them stands at.

A thread that executes a `.sync` collective waits until every living thread in its mask has come to a collective of the
same spelling with the same mask. Sources are then laid out by warp and lane, the collective is computed once for all
warps that are complete, and each thread gets its result in its own registers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.group import Group
from ptxtile.emulator.lanes import Lanes, Threads
from ptxtile.emulator.program import Site
from ptxtile.emulator.report import at_line, stop
from ptxtile.emulator.widths import Bits

if TYPE_CHECKING:
    from ptxtile.emulator.machine import Wave

Mask = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Meeting:
    """The warps that execute a collective now; every array is (warps, 32).

    present   which lanes take part     sources   their operands; 0 where a lane is absent
    """

    present: NDArray[np.bool_]
    sources: tuple[Bits, ...]


Compute = Callable[[Meeting], tuple[Bits, ...]]
Deliver = Callable[[Lanes, tuple[Bits, ...]], None]


@dataclass(slots=True, eq=False)
class Arrival:
    """Threads of one group at one collective; `sources` and `mask` by thread."""

    group: Group
    lanes: Lanes
    site: Site
    threads: Threads
    mask: Mask
    sources: tuple[Bits, ...]
    compute: Compute
    deliver: Deliver
    orders: bool


class Rendezvous:
    """Who waits at collectives, in a wave."""

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        self.waiting: list[Arrival] = []

    def arrive(self, arrival: Arrival) -> None:
        """Threads come to a collective; the warps whose members are all there execute it."""
        own = np.uint32(1) << self.wave.lane[arrival.threads].astype(np.uint32)
        outside = (arrival.mask & own) == 0
        if outside.any():
            position = int(np.flatnonzero(outside)[0])
            text = (
                f"the member mask {int(arrival.mask[position]):#x} does not name the thread that executes it"
            )
            raise stop("barrier", text, arrival.site, self.wave.thread_name(int(arrival.threads[position])))
        self.waiting.append(arrival)
        self._meet()

    def recount(self, threads: Threads) -> None:
        """These threads have ended: nobody waits for them any more."""
        if self.waiting:
            self._meet()

    def _meet(self) -> None:
        for arrival in list(self.waiting):
            if arrival not in self.waiting:
                continue
            alike = [a for a in self.waiting if a.site.instruction.form is arrival.site.instruction.form]
            self._meet_alike(alike)

    def _meet_alike(self, alike: list[Arrival]) -> None:
        wave = self.wave
        warps = np.unique(np.concatenate([wave.warp[a.threads] for a in alike]))
        place = np.searchsorted(warps, wave.warp)
        place[place == len(warps)] = 0
        known = warps[place] == wave.warp
        living: NDArray[np.bool_] = np.zeros((len(warps), 32), np.bool_)
        living[place[known], wave.lane[known]] = wave.live[known]
        masks: NDArray[np.uint32] = np.zeros((len(warps), 32), np.uint32)
        present: NDArray[np.bool_] = np.zeros((len(warps), 32), np.bool_)
        for a in alike:
            rows = np.searchsorted(warps, wave.warp[a.threads])
            masks[rows, wave.lane[a.threads]] = a.mask
            present[rows, wave.lane[a.threads]] = True
        ready = _complete(masks, present, living)
        if ready.any():
            self._execute(alike, warps, ready, masks)

    def _execute(self, alike: list[Arrival], warps: Threads, ready: NDArray[np.bool_], masks: Mask) -> None:
        wave = self.wave
        shape = ready.shape
        sources = [np.zeros(shape, source.dtype) for source in alike[0].sources]
        chosen = []
        for a in alike:
            rows, columns = np.searchsorted(warps, wave.warp[a.threads]), wave.lane[a.threads]
            mine = np.flatnonzero(ready[rows, columns])
            chosen.append((a, mine, rows[mine], columns[mine]))
            for target, source in zip(sources, a.sources):
                target[rows[mine], columns[mine]] = source[mine]
        results = self._by_mask(alike[0].compute, ready, masks, sources)
        if alike[0].orders and wave.machine.ordering is not None:
            together = np.concatenate([a.threads[mine] for a, mine, _, _ in chosen])
            named = np.concatenate([a.mask[mine] for a, mine, _, _ in chosen])
            for mask in np.unique(named):
                wave.machine.ordering.warp_sync(together[named == mask])
        wave.happened()
        for a, mine, rows, columns in chosen:
            if not len(mine):
                continue
            a.deliver(a.lanes.at(mine), tuple(result[rows, columns] for result in results))
            wave.pool.add(a.group.at(a.site.number + 1, a.threads[mine]))
        self.waiting = [a for a in self.waiting if a not in alike] + [
            part for a, mine, _, _ in chosen if len(mine) < len(a.threads) for part in [_rest(a, mine)]
        ]

    def _by_mask(
        self, compute: Compute, ready: NDArray[np.bool_], masks: Mask, sources: list[Bits]
    ) -> tuple[Bits, ...]:
        """Compute, apart for each member mask where one warp has several at once."""
        first = np.where(ready, masks, 0).max(axis=1, keepdims=True)
        if (np.where(ready, masks, first) == first).all():
            return compute(Meeting(ready, tuple(sources)))
        results: tuple[Bits, ...] | None = None
        for mask in np.unique(masks[ready]):
            present = ready & (masks == mask)
            part = compute(Meeting(present, tuple(sources)))
            if results is None:
                results = tuple(result.copy() for result in part)
            else:
                for result, new in zip(results, part):
                    result[present] = new[present]
        assert results is not None
        return results

    def first_site(self) -> Site | None:
        """The instruction of the first thread that waits, if any does."""
        return self.waiting[0].site if self.waiting else None

    def explain(self) -> list[str]:
        """Who waits at which collective, and for which lanes."""
        wave = self.wave
        lines = []
        for a in self.waiting[:8]:
            warp = int(wave.warp[a.threads[0]])
            mine = a.threads[wave.warp[a.threads] == warp]
            lanes = sum(1 << int(lane) for lane in wave.lane[mine])
            cta = wave.thread_name(int(mine[0])).partition(" of ")[2]
            lines.append(
                f"{cta}: lanes {lanes:#x} of warp {warp % wave.warps} wait for member mask {int(a.mask[0]):#x} at "
                f"{at_line(a.site)}"
            )
        return lines


def _complete(masks: Mask, present: NDArray[np.bool_], living: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Lanes whose whole member mask is present with the same mask; lanes that have ended are not waited for."""
    bit = np.uint32(1) << np.arange(32, dtype=np.uint32)
    first = np.where(present, masks, 0).max(axis=1, keepdims=True)
    if (np.where(present, masks, first) == first).all():
        named = (first & bit) != 0
        missing = (named & living & ~present).any(axis=1, keepdims=True)
        ready: NDArray[np.bool_] = present & ~missing
        return ready
    same = masks[:, :, None] == masks[:, None, :]
    named = (masks[:, :, None] & bit) != 0
    missing = (named & living[:, None, :] & ~(present[:, None, :] & same)).any(axis=2)
    found: NDArray[np.bool_] = present & ~missing
    return found


def _rest(arrival: Arrival, gone: NDArray[np.intp]) -> Arrival:
    keep = np.setdiff1d(np.arange(len(arrival.threads)), gone, assume_unique=True)
    return Arrival(
        arrival.group,
        arrival.lanes.at(keep),
        arrival.site,
        arrival.threads[keep],
        arrival.mask[keep],
        tuple(source[keep] for source in arrival.sources),
        arrival.compute,
        arrival.deliver,
        arrival.orders,
    )
