"""CTA barriers 0 to 15 (PTX ISA 9.7.13.1): who has arrived, who waits, when a barrier is complete.

A barrier without a count waits for all threads of the CTA that have not ended. One with a count waits for that many
threads; a warp counts as 32 even where it has fewer, as on the hardware. An `.aligned` barrier wants all living threads
of a warp at the same instruction: they are awaited, and it is an error when they come to another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.flow import Flow
from ptxtile.emulator.group import Group
from ptxtile.emulator.lanes import Threads
from ptxtile.emulator.program import Site
from ptxtile.emulator.report import at_line, count_of, stop

if TYPE_CHECKING:
    from collections.abc import Callable

    from ptxtile.emulator.machine import Wave

COUNT = 16
WHOLE = 0


@dataclass(slots=True, eq=False)
class Waiting:
    """Threads of one group at one barrier instruction.

    barrier   by thread: barrier number     wanted   by thread: the count operand, WHOLE for none
    blocks    whether they wait, or only arrived
    resume    called with positions (into `threads`) of those that may go on, and for bar.red with the reduction's value
    vote      by thread: the predicate of bar.red
    """

    group: Group
    site: Site
    threads: Threads
    barrier: NDArray[np.int64]
    wanted: NDArray[np.int64]
    aligned: bool
    blocks: bool
    time: int
    resume: Callable[[NDArray[np.intp], NDArray[np.int64]], None] | None = None
    vote: NDArray[np.bool_] | None = None


class Barriers:
    """The barriers of all CTAs of a wave."""

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        self.waiting: list[Waiting] = []
        self.live = np.full(wave.ctas, wave.block, np.int64)
        self.split = False

    def arrive(self, waiting: Waiting) -> None:
        """Threads come to a barrier; every barrier that is now complete lets its threads go."""
        outside = (waiting.barrier < 0) | (waiting.barrier >= COUNT)
        if outside.any():
            position = int(np.flatnonzero(outside)[0])
            raise self._error(
                f"barrier {int(waiting.barrier[position])} does not exist: 0 to 15 do", waiting, position
            )
        self._check_count(waiting)
        if waiting.aligned and waiting.blocks:
            self.split = self.split or bool(self._incomplete(waiting).any())
        for part in self._in_turn(waiting):
            self.waiting.append(part)
            keys = self.wave.cta[part.threads] * COUNT + part.barrier
            self._complete(np.unique(keys))

    def _in_turn(self, waiting: Waiting) -> list[Waiting]:
        """The same arrivals, warp after warp where they are more than a barrier's count: those left over wait on."""
        if not (waiting.wanted > 0).any():
            return [waiting]
        wave = self.wave
        keys = wave.cta[waiting.threads] * COUNT + waiting.barrier
        self.waiting.append(waiting)
        there = self._padded(wave.ctas * COUNT)[keys]
        self.waiting.pop()
        if (there <= waiting.wanted).all():
            return [waiting]
        warps = wave.tid[waiting.threads] // 32
        return [_part(waiting, np.flatnonzero(warps == warp)) for warp in np.unique(warps).tolist()]

    def _incomplete(self, waiting: Waiting) -> NDArray[np.bool_]:
        """By thread that waits: whether living threads of its warp are not among them."""
        wave = self.wave
        size = wave.ctas * wave.warps
        here = np.bincount(wave.warp[waiting.threads], minlength=size)
        living = np.bincount(wave.warp[wave.live], minlength=size)
        found: NDArray[np.bool_] = (here < living)[wave.warp[waiting.threads]]
        return found

    def check_passed(self, group: Group) -> None:
        """A group comes to where all that goes through a barrier must come: nobody of it may have left that out.

        Called while `split`: some warp waits in part at an `.aligned` barrier.
        """
        wave = self.wave
        flow = wave.machine.decoded.codes[group.frame.name].flow
        self.split = False
        for waiting in self.waiting:
            if not (waiting.aligned and waiting.blocks):
                continue
            parted = self._incomplete(waiting)
            if not parted.any():
                continue
            self.split = True
            if waiting.group.frame is not group.frame or group.number not in after(flow, waiting.site.number):
                continue
            warps = wave.warp[waiting.threads[parted]]
            passed = np.flatnonzero(np.isin(wave.warp[group.threads], warps))
            if len(passed):
                thread = int(group.threads[passed[0]])
                stays = int(np.flatnonzero(wave.warp[waiting.threads] == wave.warp[thread])[0])
                text = (
                    f"divergent barrier: {waiting.site.instruction.form.spelling} is .aligned, so that all threads of "
                    "a warp must execute it, but some of a warp have passed it by"
                )
                raise self._error(text, waiting, stays, f"the other: {wave.thread_name(thread)}")

    def recount(self, threads: Threads) -> None:
        """These threads have ended: barriers that waited for them may be complete."""
        ended = np.bincount(self.wave.cta[threads], minlength=self.wave.ctas)
        self.live -= ended
        if self.waiting:
            ctas = np.flatnonzero(ended)
            self._complete((ctas[:, None] * COUNT + np.arange(COUNT)).reshape(-1))

    def _check_count(self, waiting: Waiting) -> None:
        bad = (waiting.wanted % 32 != 0) | (waiting.wanted < 0)
        if bad.any():
            position = int(np.flatnonzero(bad)[0])
            text = f"a barrier's thread count must be a positive multiple of 32, not {int(waiting.wanted[position])}"
            raise self._error(text, waiting, position)

    def _complete(self, keys: NDArray[np.int64]) -> None:
        slots = self.wave.ctas * COUNT
        arrived: NDArray[np.int64] = np.zeros(slots, np.int64)
        wanted: NDArray[np.int64] = np.full(slots, -1, np.int64)
        blocking: NDArray[np.int64] = np.zeros(slots, np.int64)
        for waiting in self.waiting:
            own = self.wave.cta[waiting.threads] * COUNT + waiting.barrier
            arrived += np.bincount(own, minlength=slots)
            if waiting.blocks:
                blocking += np.bincount(own, minlength=slots)
            self._agree(waiting, own, wanted)
        expected = np.where(wanted > 0, wanted, np.repeat(self.live, COUNT))
        enough = arrived >= expected
        if (wanted > 0).any():
            padded = self._padded(slots)
            enough = np.where(wanted > 0, padded >= wanted, enough)
        full = (arrived > 0) & enough
        full[np.setdiff1d(np.arange(slots), keys, assume_unique=True)] = False
        if full.any():
            self._release(full)

    def _padded(self, slots: int) -> NDArray[np.int64]:
        """Arrivals by barrier, where a warp whose living threads are all there counts as 32."""
        wave = self.wave
        there: NDArray[np.int64] = np.zeros((slots, wave.warps), np.int64)
        for waiting in self.waiting:
            own = wave.cta[waiting.threads] * COUNT + waiting.barrier
            np.add.at(there, (own, wave.tid[waiting.threads] // 32), 1)
        living: NDArray[np.int64] = np.zeros((wave.ctas, wave.warps), np.int64)
        np.add.at(living, (wave.cta, wave.tid // 32), wave.live.astype(np.int64))
        living = np.repeat(living, COUNT, axis=0)
        padded: NDArray[np.int64] = np.where((there == living) & (there > 0), 32, there).sum(axis=1)
        return padded

    def _agree(self, waiting: Waiting, own: NDArray[np.int64], wanted: NDArray[np.int64]) -> None:
        before = wanted[own]
        known = before >= 0
        wanted[own] = waiting.wanted
        before = np.where(known, before, wanted[own])
        differs = before != waiting.wanted
        if differs.any():
            position = int(np.flatnonzero(differs)[0])
            text = (
                f"threads of one CTA come to barrier {int(waiting.barrier[position])} with different thread counts: "
                f"{_spell(int(before[position]))} and {_spell(int(waiting.wanted[position]))}"
            )
            raise self._error(text, waiting, position)

    def _release(self, full: NDArray[np.bool_]) -> None:
        wave = self.wave
        kept: list[Waiting] = []
        going: list[tuple[Waiting, NDArray[np.intp]]] = []
        for waiting in self.waiting:
            keys = wave.cta[waiting.threads] * COUNT + waiting.barrier
            mask = full[keys]
            if mask.any():
                going.append((waiting, np.flatnonzero(mask)))
            if not mask.all():
                kept.append(_part(waiting, np.flatnonzero(~mask)))
        self.waiting = kept
        self._check_aligned(going)
        if wave.machine.ordering is not None:
            for_order = [(w.threads[p], w.barrier[p], w.blocks, w.time) for w, p in going]
            wave.machine.ordering.barrier(for_order, self.live)
        wave.happened()
        votes = self._votes(going, len(full))
        for waiting, positions in going:
            if waiting.blocks and waiting.resume is not None:
                keys = wave.cta[waiting.threads[positions]] * COUNT + waiting.barrier[positions]
                waiting.resume(positions, votes[keys])

    def _votes(self, going: list[tuple[Waiting, NDArray[np.intp]]], slots: int) -> NDArray[np.int64]:
        """By barrier: (true votes << 32) + votes, of those that bring a predicate."""
        votes: NDArray[np.int64] = np.zeros(slots, np.int64)
        for waiting, positions in going:
            if waiting.vote is not None:
                keys = self.wave.cta[waiting.threads[positions]] * COUNT + waiting.barrier[positions]
                np.add.at(votes, keys, (waiting.vote[positions].astype(np.int64) << 32) + 1)
        return votes

    def _check_aligned(self, going: list[tuple[Waiting, NDArray[np.intp]]]) -> None:
        """Threads of one warp must have come to an aligned barrier at one instruction."""
        if len(going) < 2:
            return
        first: dict[int, tuple[Waiting, int]] = {}
        for waiting, positions in going:
            warps, where = np.unique(self.wave.warp[waiting.threads[positions]], return_index=True)
            for warp, index in zip(warps.tolist(), where.tolist()):
                before = first.setdefault(warp, (waiting, int(positions[index])))
                other = before[0]
                same = other.site is waiting.site and other.group.frame is waiting.group.frame
                if not same and (waiting.aligned or other.aligned):
                    raise self._divergent(waiting, int(positions[index]), other, before[1])

    def _divergent(self, waiting: Waiting, position: int, other: Waiting, there: int) -> Exception:
        text = (
            f"divergent barrier: {waiting.site.instruction.form.spelling} is .aligned, so that all threads of a warp "
            "must come to the same instruction, but two threads of one warp wait at two"
        )
        name = self.wave.thread_name(int(other.threads[there]))
        return self._error(text, waiting, position, f"the other: {name}, {at_line(other.site)}")

    def _error(self, text: str, waiting: Waiting, position: int, other: str = "") -> Exception:
        who = self.wave.thread_name(int(waiting.threads[position]))
        return stop("barrier", text, waiting.site, who, other)

    def lacking(self) -> NDArray[np.bool_]:
        """By thread: whether a barrier of its whole CTA waits for it, and it has not come."""
        wave = self.wave
        found: NDArray[np.bool_] = np.zeros(wave.count, np.bool_)
        for waiting in self.waiting:
            if (waiting.wanted == WHOLE).all():
                found[np.isin(wave.cta, wave.cta[waiting.threads])] = True
        for waiting in self.waiting:
            found[waiting.threads] = False
        return found & wave.live

    def first_site(self) -> Site | None:
        """The instruction of the first thread that waits, if any does."""
        return next((waiting.site for waiting in self.waiting if waiting.blocks), None)

    def explain(self) -> list[str]:
        """Who waits at which barrier, and how many threads are missing."""
        wave = self.wave
        lines = []
        keys = sorted(
            {int(k) for w in self.waiting for k in np.unique(wave.cta[w.threads] * COUNT + w.barrier)}
        )
        for key in keys[:8]:
            cta, barrier = divmod(key, COUNT)
            parts = []
            arrived = 0
            wanted = WHOLE
            for waiting in self.waiting:
                mask = (wave.cta[waiting.threads] == cta) & (waiting.barrier == barrier)
                if mask.any():
                    arrived += int(mask.sum())
                    wanted = int(waiting.wanted[mask][0])
                    verb = "waiting" if waiting.blocks else "arrived"
                    parts.append(f"{verb}: {_warps(wave, waiting.threads[mask])} at {at_line(waiting.site)}")
            total = wanted or int(self.live[cta])
            name = wave.thread_name(cta * wave.block).partition(" of ")[2]
            lines.append(
                f"{name}: barrier {barrier} has {arrived} of {count_of(total, 'thread')}; {'; '.join(parts)}"
            )
        return lines


def after(flow: Flow, number: int) -> set[int]:
    """The instructions at which blocks begin that all paths from this one lead through."""
    found: set[int] = set()
    place = flow.immediate_post_dominator[flow.block[number]]
    while place is not None and place not in found:
        found.add(place)
        place = flow.immediate_post_dominator[flow.block[place]]
    return found


def _part(waiting: Waiting, positions: NDArray[np.intp]) -> Waiting:
    """Some of the threads of a Waiting; `resume` still counts positions as before."""
    resume = waiting.resume

    def resume_part(chosen: NDArray[np.intp], votes: NDArray[np.int64]) -> None:
        if resume is not None:
            resume(positions[chosen], votes)

    return Waiting(
        waiting.group,
        waiting.site,
        waiting.threads[positions],
        waiting.barrier[positions],
        waiting.wanted[positions],
        waiting.aligned,
        waiting.blocks,
        waiting.time,
        resume_part,
        None if waiting.vote is None else waiting.vote[positions],
    )


def _warps(wave: Wave, threads: Threads) -> str:
    """`warp 0, warp 2 (16 threads)`: the warps of one CTA that these threads are in."""
    numbers, counts = np.unique(wave.tid[threads] // 32, return_counts=True)
    parts = [
        f"warp {number}" if count == 32 else f"warp {number} ({count_of(count, 'thread')})"
        for number, count in zip(numbers[:6].tolist(), counts[:6].tolist())
    ]
    return ", ".join(parts) + (", …" if len(numbers) > 6 else "")


def _spell(count: int) -> str:
    return "the whole CTA" if count == WHOLE else str(count)
