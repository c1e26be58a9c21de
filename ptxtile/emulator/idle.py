"""When all that can run polls: is anybody still getting anywhere?

A group that comes to the same instruction with the same registers, and nothing has happened in between, will do so for
ever. When that is so of every group that can run, the machine is deadlocked, however long the loops would go on. Loops
that count or read a clock change a register each time; for them there is a limit of laps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptxtile.emulator.group import Group
from ptxtile.emulator.lanes import Threads
from ptxtile.emulator.widths import Bits

if TYPE_CHECKING:
    from ptxtile.emulator.machine import Wave

IDLE_LAPS = 4_096
"""Laps of polling loops, with nothing else happening on the machine, after which it counts as deadlocked."""

Place = tuple[int, int]
State = tuple[Threads, list[tuple[int, Bits]]]


class Idle:
    """What polling groups were like when they last came by, since anything happened in a wave."""

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        self.progress = -1
        self.laps = 0
        self.visits: dict[Place, int] = {}
        self.states: dict[Place, State] = {}
        self.fixed: set[Place] = set()

    def stuck(self, group: Group) -> bool:
        """Whether nobody can get anywhere. `group`, taken from the pool, polls; nothing asynchronous is left."""
        if self.progress != self.wave.progress:
            self.progress, self.laps = self.wave.progress, group.laps
            self.visits.clear()
            self.states.clear()
            self.fixed.clear()
            return False
        place = id(group.frame), group.number
        count = self.visits[place] = self.visits.get(place, 0) + 1
        if count > 1:  # who passes once is not worth the comparison
            self._compare(place, group)
        if place in self.fixed and all(
            (id(other.frame), other.number) in self.fixed for other in self.wave.pool.groups()
        ):
            return True
        return group.laps - self.laps > IDLE_LAPS

    def _compare(self, place: Place, group: Group) -> None:
        values = group.frame.registers.snapshot(group.threads)
        before = self.states.get(place)
        if before is not None and _equal(before, (group.threads, values)):
            self.fixed.add(place)
            return
        self.fixed.discard(place)
        self.states[place] = (group.threads, values)


def _equal(before: State, now: State) -> bool:
    if not np.array_equal(before[0], now[0]) or len(before[1]) != len(now[1]):
        return False
    return all(a[0] == b[0] and np.array_equal(a[1], b[1]) for a, b in zip(before[1], now[1]))
