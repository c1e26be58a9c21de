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

from ptxtile.emulator.program import Site

if TYPE_CHECKING:
    from ptxtile.emulator.machine import Wave

Proxy = Literal["generic", "async"]
Mechanism = Literal["group", "bulk_group", "mbarrier"]


@dataclass(slots=True, eq=False)
class Operation:
    """One asynchronous operation that has not completed.

    threads    numbers in the wave of the threads on whose behalf it runs
    effect     does it: called once
    proxy      through which its memory accesses are made
    mechanism  how its completion is observed
    group      for "group" and "bulk_group": the commit group of its threads, None until committed
    """

    site: Site
    thread: int
    effect: Callable[[], None]
    proxy: Proxy
    mechanism: Mechanism
    group: int | None = None


class Pending:
    """The operations in flight in a wave."""

    def __init__(self, wave: Wave, chooser: random.Random) -> None:
        self.wave = wave
        self.chooser = chooser
        self.operations: list[Operation] = []
        self._committed: dict[tuple[int, Mechanism], int] = {}

    def start(self, operation: Operation) -> None:
        """Queue an operation."""
        self.operations.append(operation)

    def commit(self, thread: int, mechanism: Mechanism) -> None:
        """Close the thread's current group: what it started since the last commit (perhaps nothing)."""
        number = self._committed.get((thread, mechanism), 0)
        self._committed[thread, mechanism] = number + 1
        for operation in self.operations:
            if operation.thread == thread and operation.mechanism == mechanism and operation.group is None:
                operation.group = number

    def wait(self, thread: int, mechanism: Mechanism, allowed: int) -> None:
        """Complete all but the `allowed` most recent groups of a thread."""
        limit = self._committed.get((thread, mechanism), 0) - allowed
        due = [
            operation
            for operation in self.operations
            if operation.thread == thread
            and operation.mechanism == mechanism
            and operation.group is not None
            and operation.group < limit
        ]
        self.chooser.shuffle(due)
        for operation in due:
            self._finish(operation)

    def complete_one(self) -> bool:
        """Complete one operation whose completion somebody may be polling for; whether there was one."""
        free = [operation for operation in self.operations if operation.mechanism == "mbarrier"]
        if not free:
            return False
        self._finish(self.chooser.choice(free))
        return True

    def complete_all(self) -> None:
        """Complete everything: the grid ends."""
        rest = list(self.operations)
        self.chooser.shuffle(rest)
        for operation in rest:
            self._finish(operation)

    def _finish(self, operation: Operation) -> None:
        self.operations.remove(operation)
        operation.effect()
        self.wave.happened()
