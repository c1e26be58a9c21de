"""mbarrier objects (PTX ISA 9.7.13.15): arrivals, transaction counts, phases.

The state of an object is kept here, by its place in shared memory; the eight bytes there only show that it exists.
Phases count from 0. The phase in progress completes when no arrival and no byte is pending; a transaction count below
zero is legal as long as an expect_tx still makes up for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ptxtile.emulator.lanes import Threads
from ptxtile.emulator.ordering import Claims, union
from ptxtile.emulator.program import Site
from ptxtile.emulator.report import at_line, fault, stop

if TYPE_CHECKING:
    from ptxtile.emulator.lanes import Lanes
    from ptxtile.emulator.machine import Wave
    from ptxtile.emulator.memory import Offsets

MOST = (1 << 20) - 1
"""The largest count of arrivals, and of bytes either way."""


class Misuse(Exception):
    """What is wrong with an operation on an object, in words."""


@dataclass(slots=True)
class MBarrier:
    """One object.

    expected  arrivals that a phase takes       pending  those that the current phase still lacks
    drops     how many fewer the next phase takes
    bytes     the current phase's transaction count: bytes expected and not yet come
    phase     completed phases
    creator   the thread that initialised it, and when; `visible`: whether a fence has shown that to the
              asynchronous proxy
    gathered  what those who arrived in the current phase knew; `known`: what completed phases pass on
    """

    site: Site
    expected: int
    pending: int
    drops: int = 0
    bytes: int = 0
    phase: int = 0
    gathered: Claims = field(default_factory=dict)
    known: Claims = field(default_factory=dict)
    creator: tuple[int, int] = (0, 0)
    visible: bool = False

    def arrive(self, count: int, claims: Claims, drop: bool = False) -> None:
        """`count` arrivals at once."""
        if count > self.pending:
            raise Misuse(f"{count} arrivals, and the phase lacks {self.pending} of {self.expected}")
        self.pending -= count
        if drop:
            self.drops += count
        self.gathered = union(self.gathered, claims)
        self.advance()

    def expect(self, size: int) -> None:
        """More bytes are expected in the current phase; fewer, if `size` is negative: they have come."""
        self.bytes += size
        if abs(self.bytes) > MOST:
            raise Misuse(f"a transaction count of {self.bytes}; it may reach {MOST} either way")
        self.advance()

    def receive(self, size: int, claims: Claims) -> None:
        """Bytes have come, through asynchronous work of which those know who see the phase complete."""
        self.gathered = union(self.gathered, claims)
        self.expect(-size)

    def advance(self) -> None:
        """Complete the phase if nothing is pending."""
        if self.pending == 0 and self.bytes == 0:
            self.phase += 1
            self.expected -= self.drops
            self.drops = 0
            self.pending = self.expected
            self.known = union(self.known, self.gathered)
            self.gathered = {}

    @property
    def state(self) -> int:
        """The opaque value that an arrival returns: the phase it is in, and the arrivals it lacks."""
        return self.phase << 32 | self.pending

    def complete(self, state: int) -> bool:
        """Whether the phase of that state is complete."""
        return self.phase > state >> 32

    def complete_parity(self, parity: int) -> bool:
        """Whether the phase of that parity, the current or the one before it, is complete."""
        return self.phase & 1 != parity & 1


@dataclass(frozen=True, slots=True)
class Asked:
    """What a wait that found its phase incomplete asked for: a parity, or the state of an arrival."""

    offset: int
    site: Site
    value: int
    parity: bool


class MBarriers:
    """The objects of a wave, by their offset in its shared memory."""

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        self.objects: dict[int, MBarrier] = {}
        self.asked: dict[int, Asked] = {}

    def show(self, threads: Threads) -> None:
        """These threads fence: the asynchronous proxy sees the objects whose initialisation they know of."""
        ordering = self.wave.machine.ordering
        if ordering is None:
            return
        for barrier in self.objects.values():
            if not barrier.visible:
                count = len(threads)
                who, when = np.full(count, barrier.creator[0]), np.full(count, barrier.creator[1])
                barrier.visible = bool(ordering.knows(threads, who, when).any())

    def overwritten(self, lanes: Lanes, offsets: Offsets, width: int) -> None:
        """Threads store into shared memory: stop if an object lies there that was not invalidated."""
        first, last = int(offsets.min()) - 8, int(offsets.max()) + width
        for offset, barrier in self.objects.items():
            if not first < offset < last:
                continue
            hit = np.flatnonzero((offsets < offset + 8) & (offset < offsets + width))
            if len(hit):
                text = (
                    "mbarrier: a store to the memory of an mbarrier that is in use; mbarrier.inval must come before "
                    "the memory serves another purpose"
                )
                raise fault("mbarrier", text, lanes, int(hit[0]), f"initialised at {at_line(barrier.site)}")

    def check_end(self) -> None:
        """All threads have ended: bytes that are still expected, or came unexpected, are a mistake in a count."""
        for offset, barrier in sorted(self.objects.items()):
            if barrier.bytes:
                cta, place = divmod(offset, self.wave.spaces.shared_stride)
                name = self.wave.thread_name(cta * self.wave.block).partition(" of ")[2]
                what = "bytes expected that never came" if barrier.bytes > 0 else "bytes that nobody expected"
                text = f"transaction count: the mbarrier at shared offset {place} of {name} ends with "
                raise stop("expect-tx", f"{text}{abs(barrier.bytes)} {what}", barrier.site)

    def ask(self, offset: int, site: Site, threads: Threads, asked: int, parity: bool) -> None:
        """Threads were told that the phase they ask for is not complete: noted for who asks why nothing moves."""
        self.asked[int(threads[0])] = Asked(offset, site, asked, parity)

    def awaited(self, threads: Threads) -> list[str]:
        """Which objects these threads, which poll, last asked about, and what those lack."""
        lines = []
        for thread in [thread for thread in threads.tolist() if thread in self.asked][:4]:
            asked = self.asked[thread]
            barrier = self.objects.get(asked.offset)
            if barrier is None:
                continue
            phase = f"a phase of parity {asked.value & 1}" if asked.parity else f"phase {asked.value >> 32}"
            lines.append(f"  waits for {phase} of {self._state(asked.offset, barrier)}")
        return lines

    def miscounted(self, threads: Threads) -> bool:
        """Whether one of these threads asked for a phase that lacks no arrival, only bytes."""
        asked = [self.asked[thread].offset for thread in threads.tolist() if thread in self.asked]
        found = [self.objects[offset] for offset in asked if offset in self.objects]
        return any(barrier.pending == 0 and barrier.bytes != 0 for barrier in found)

    def explain(self) -> list[str]:
        """What each object whose phase is not complete still waits for, those left out that a thread asks about."""
        known = {asked.offset for asked in self.asked.values()}
        begun = [
            (offset, barrier)
            for offset, barrier in sorted(self.objects.items())
            if offset not in known and (barrier.pending < barrier.expected or barrier.bytes)
        ]
        return [self._state(offset, barrier) for offset, barrier in begun[:8]]

    def _state(self, offset: int, barrier: MBarrier) -> str:
        cta, place = divmod(offset, self.wave.spaces.shared_stride)
        name = self.wave.thread_name(cta * self.wave.block).partition(" of ")[2]
        text = (
            f"the mbarrier at shared offset {place} of {name} (from {at_line(barrier.site)}), which is in phase "
            f"{barrier.phase} and lacks {barrier.pending} of {barrier.expected} arrivals"
        )
        if barrier.bytes > 0:
            return f"{text} and {barrier.bytes} bytes that were expected and did not come"
        if barrier.bytes < 0:
            return f"{text}; {-barrier.bytes} bytes came that no expect_tx announced"
        return text
