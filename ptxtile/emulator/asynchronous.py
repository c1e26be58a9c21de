"""Work that completes later than the instruction that starts it (PTX ISA 9.7.9.25).

A copy or a matrix operation is queued when it is issued and takes effect as late as the ISA allows: when somebody waits
for it, or when nobody can go on without it. Which of several that may complete does so first is drawn from the
launch's seed. A program that reads before it waits therefore reads what was there before.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.lanes import Threads
from ptxtile.emulator.program import Site

if TYPE_CHECKING:
    from ptxtile.emulator.machine import Wave

Proxy = Literal["generic", "async"]
Mechanism = Literal["group", "bulk_group", "mbarrier"]

OPEN = -1
"""The group of an operation that has not been committed."""


@dataclass(slots=True, eq=False)
class Operation:
    """One instruction's asynchronous work, of which each thread's part completes by itself.

    threads    of the wave, on whose behalf it runs
    effect     does it for the threads at these positions of `threads`; called once for each
    proxy      through which its memory accesses are made
    mechanism  how its completion is observed
    group      by thread: the number of its commit group, OPEN until committed
    """

    site: Site
    threads: Threads
    effect: Callable[[NDArray[np.intp]], None]
    proxy: Proxy
    mechanism: Mechanism
    group: NDArray[np.int64]

    def keep(self, positions: NDArray[np.intp]) -> Operation:
        """The parts at these positions."""
        effect = self.effect
        return Operation(
            self.site,
            self.threads[positions],
            lambda chosen: effect(positions[chosen]),
            self.proxy,
            self.mechanism,
            self.group[positions],
        )


class Pending:
    """The operations in flight in a wave."""

    def __init__(self, wave: Wave, chooser: random.Random) -> None:
        self.wave = wave
        self.chooser = chooser
        self.operations: list[Operation] = []
        self.committed: dict[Mechanism, NDArray[np.int64]] = {}

    def start(
        self,
        site: Site,
        threads: Threads,
        effect: Callable[[NDArray[np.intp]], None],
        proxy: Proxy,
        mechanism: Mechanism,
    ) -> None:
        """Queue an operation."""
        group = np.full(len(threads), OPEN, np.int64)
        self.operations.append(Operation(site, threads, effect, proxy, mechanism, group))

    def _groups(self, mechanism: Mechanism) -> NDArray[np.int64]:
        """By thread: how many groups it has committed."""
        if mechanism not in self.committed:
            self.committed[mechanism] = np.zeros(self.wave.count, np.int64)
        return self.committed[mechanism]

    def commit(self, threads: Threads, mechanism: Mechanism) -> None:
        """Close each thread's current group: what it started since its last commit (perhaps nothing)."""
        groups = self._groups(mechanism)
        for operation in self.operations:
            if operation.mechanism == mechanism:
                mine = np.isin(operation.threads, threads) & (operation.group == OPEN)
                operation.group[mine] = groups[operation.threads[mine]]
        groups[threads] += 1

    def wait(self, threads: Threads, mechanism: Mechanism, allowed: int) -> None:
        """Complete all but the `allowed` most recent groups of each thread."""
        limit = self._groups(mechanism) - allowed
        self._complete(mechanism, threads, lambda op: (op.group != OPEN) & (op.group < limit[op.threads]))

    def wait_all(self, threads: Threads, mechanism: Mechanism) -> None:
        """Complete everything that these threads started, committed or not."""
        self._complete(mechanism, threads, lambda op: np.ones(len(op.threads), np.bool_))

    def _complete(
        self, mechanism: Mechanism, threads: Threads, due: Callable[[Operation], NDArray[np.bool_]]
    ) -> None:
        finished: list[tuple[Operation, NDArray[np.intp]]] = []
        kept: list[Operation] = []
        for operation in self.operations:
            mask = np.zeros(len(operation.threads), np.bool_)
            if operation.mechanism == mechanism:
                mask = np.isin(operation.threads, threads) & due(operation)
            if mask.any():
                finished.append((operation, np.flatnonzero(mask)))
            if not mask.all():
                kept.append(operation.keep(np.flatnonzero(~mask)) if mask.any() else operation)
        self.operations = kept
        self.chooser.shuffle(finished)
        for operation, positions in finished:
            operation.effect(positions)
            self.wave.happened()

    def complete_one(self) -> bool:
        """Complete one operation whose completion somebody may be polling for; whether there was one."""
        free = [operation for operation in self.operations if operation.mechanism == "mbarrier"]
        if not free:
            return False
        chosen = self.chooser.choice(free)
        self.operations.remove(chosen)
        chosen.effect(np.arange(len(chosen.threads)))
        self.wave.happened()
        return True

    def complete_all(self) -> None:
        """Complete everything: all threads have ended."""
        while self.operations:
            chosen = self.operations.pop(self.chooser.randrange(len(self.operations)))
            chosen.effect(np.arange(len(chosen.threads)))
