"""Groups of threads that run together, and the pool of those that are ready."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ptxtile.emulator.lanes import Lanes, Threads
from ptxtile.emulator.registers import Registers
from ptxtile.emulator.step import Step

PATIENCE = 16
"""Laps of a loop that polls memory after which threads that were waiting for it to end run first."""


@dataclass(slots=True, eq=False)
class Frame:
    """One call path: a function, where it returns to, and its registers for all threads of the wave.

    There is a frame for every path of call sites, so recursion needs nothing special.
    enter   hands over the parameters, one after the other: called with the threads that call, caller and callee
    leave   hands the results to the caller: called with the threads that return
    local   where the frame's variables lie in each thread's local memory, in bytes from those of the kernel
    """

    name: str
    steps: list[Step]
    registers: Registers
    caller: Frame | None
    return_to: int
    depth: int
    local: int
    enter: list[Callable[[Lanes, Frame, Frame], None]] = field(default_factory=list)
    leave: Callable[[Lanes], None] | None = None
    callees: dict[tuple[int, str], Frame] = field(default_factory=dict)


class Group:
    """Threads of one frame at one instruction.

    laps   rounds of a polling loop since it was entered: what keeps those who wait for another thread from keeping it
           from running
    """

    __slots__ = ("frame", "laps", "number", "threads")

    def __init__(self, frame: Frame, number: int, threads: Threads, laps: int = 0) -> None:
        self.frame = frame
        self.number = number
        self.threads = threads
        self.laps = laps

    def at(self, number: int, threads: Threads | None = None) -> Group:
        """The same group, or some of its threads, at another instruction of the frame."""
        return Group(self.frame, number, self.threads if threads is None else threads, self.laps)


class Pool:
    """The groups that can run. The next one is of least (laps, depth from the deepest, rank); ties cannot be.

    Rank alone makes threads wait at post-dominators for the rest of their warp. It is global, not per warp: warps that
    are behind run first, so that all are at the same instruction as often as can be, which is what makes NumPy pay.
    """

    def __init__(self) -> None:
        self._ready: dict[tuple[int, int], list[Group]] = {}

    def __bool__(self) -> bool:
        return bool(self._ready)

    def add(self, group: Group) -> None:
        """Make a group ready."""
        if len(group.threads):
            self._ready.setdefault((id(group.frame), group.number), []).append(group)

    def take(self) -> Group:
        """The group to run next, with all that stand where it stands."""
        if len(self._ready) == 1:
            _, groups = self._ready.popitem()
            return _merge(groups)
        key = min(self._ready, key=self._urgency)
        return _merge(self._ready.pop(key))

    def _urgency(self, key: tuple[int, int]) -> tuple[int, int, int, int]:
        group = self._ready[key][0]
        laps = min(other.laps for other in self._ready[key])
        step = group.frame.steps[group.number]
        return laps // PATIENCE, -group.frame.depth, step.rank, int(group.threads[0])

    @property
    def least_laps(self) -> int:
        """The fewest laps of any ready group: when it grows, all that can run are waiting for something."""
        return min((group.laps for groups in self._ready.values() for group in groups), default=0)

    def groups(self) -> list[Group]:
        """Every ready group."""
        return [group for groups in self._ready.values() for group in groups]


def _merge(groups: list[Group]) -> Group:
    first = groups[0]
    if len(groups) == 1:
        return first
    threads = np.concatenate([group.threads for group in groups])
    threads.sort()
    return Group(first.frame, first.number, threads, max(group.laps for group in groups))
