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
from ptxtile.emulator.report import stop

if TYPE_CHECKING:
    from ptxtile.emulator.machine import Wave

Proxy = Literal["generic", "async"]
Mechanism = Literal["group", "bulk_group", "mbarrier", "wgmma", "tcgen05", "tcgen05.ld", "tcgen05.st"]
IN_ORDER = ("wgmma", "tcgen05")
"""Matrix operations of a warpgroup, or of a thread, follow each other."""

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
    take       reads the source, for work whose source may be free before it is done; called once, before `effect`
    time       when it was issued, in the sanitizer's count
    serial     how many came before it in the wave
    uses       CTAs of the wave whose shared memory it reads or writes
    """

    site: Site
    threads: Threads
    effect: Callable[[NDArray[np.intp]], None]
    proxy: Proxy
    mechanism: Mechanism
    group: NDArray[np.int64]
    take: Callable[[], None] | None = None
    time: int = 0
    uses: frozenset[int] = frozenset()
    serial: int = 0

    def finish(self, positions: NDArray[np.intp]) -> None:
        """Read the source, if that has not been done, and do the rest for the threads at these positions."""
        self.read_source()
        self.effect(positions)

    def read_source(self) -> None:
        """Read the source, once."""
        take, self.take = self.take, None
        if take is not None:
            take()
            if self.mechanism == "bulk_group":
                self.uses = frozenset()  # what is left is in global memory

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
            self.take,
            self.time,
            self.uses,
            self.serial,
        )


class Pending:
    """The operations in flight in a wave."""

    def __init__(self, wave: Wave, chooser: random.Random) -> None:
        self.wave = wave
        self.chooser = chooser
        self.operations: list[Operation] = []
        self.committed: dict[Mechanism, NDArray[np.int64]] = {}
        self.started = 0

    def start(
        self,
        site: Site,
        threads: Threads,
        effect: Callable[[NDArray[np.intp]], None],
        proxy: Proxy,
        mechanism: Mechanism,
        take: Callable[[], None] | None = None,
        uses: frozenset[int] = frozenset(),
    ) -> None:
        """Queue an operation."""
        group = np.full(len(threads), OPEN, np.int64)
        ordering = self.wave.machine.ordering
        time = 0 if ordering is None else ordering.now
        self.started += 1
        self.operations.append(
            Operation(site, threads, effect, proxy, mechanism, group, take, time, uses, self.started)
        )

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

    def wait(self, threads: Threads, mechanism: Mechanism, allowed: int) -> dict[int, int]:
        """Complete all but the `allowed` most recent groups of each thread: when the last was issued, by thread."""
        limit = self._groups(mechanism) - allowed
        return self._complete(
            mechanism, threads, lambda op: (op.group != OPEN) & (op.group < limit[op.threads])
        )

    def wait_read(self, threads: Threads, mechanism: Mechanism, allowed: int) -> dict[int, int]:
        """Like `wait`, but only read the sources."""
        limit = self._groups(mechanism) - allowed
        issued: dict[int, int] = {}
        for operation in self.operations:
            mine = np.isin(operation.threads, threads) & (operation.group != OPEN)
            if (
                operation.mechanism == mechanism
                and (mine & (operation.group < limit[operation.threads])).any()
            ):
                operation.read_source()
                issued.update(dict.fromkeys(operation.threads.tolist(), operation.time))
        return issued

    def wait_all(self, threads: Threads, mechanism: Mechanism, until: int | None = None) -> dict[int, int]:
        """Complete everything that these threads started, committed or not: when the last was issued, by thread.

        until   only what is among the first so many operations of the wave
        """
        last = self.started if until is None else until
        return self._complete(mechanism, threads, lambda op: np.full(len(op.threads), op.serial <= last))

    def committed_groups(self, thread: int, mechanism: Mechanism) -> int:
        """How many groups this thread has committed."""
        return int(self._groups(mechanism)[thread])

    def wait_group(self, thread: int, mechanism: Mechanism, last: int) -> dict[int, int]:
        """Complete this thread's groups up to the one with this number."""
        threads = np.array([thread])
        return self._complete(mechanism, threads, lambda op: (op.group != OPEN) & (op.group <= last))

    def check_exit(self, threads: Threads) -> None:
        """These threads have ended: stop if their CTA's shared memory is still in use."""
        wave = self.wave
        used = frozenset[int]().union(*(operation.uses for operation in self.operations))
        for cta in used.intersection(wave.cta[threads].tolist()):
            if wave.live[cta * wave.block : (cta + 1) * wave.block].any():
                continue
            operation = next(operation for operation in self.operations if cta in operation.uses)
            name = wave.thread_name(cta * wave.block).partition(" of ")[2]
            text = f"exit: {name} has ended, and asynchronous work still uses its shared memory"
            who = f"{wave.thread_name(int(operation.threads[0]))} started it"
            raise stop("exit", text, operation.site, who)

    def _complete(
        self, mechanism: Mechanism, threads: Threads, due: Callable[[Operation], NDArray[np.bool_]]
    ) -> dict[int, int]:
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
        issued: dict[int, int] = {}
        for operation, positions in finished:
            issued.update(dict.fromkeys(operation.threads[positions].tolist(), operation.time))
        if mechanism not in IN_ORDER:
            self.chooser.shuffle(finished)
        for operation, positions in finished:
            operation.finish(positions)
            self.wave.happened()
        return issued

    def complete_one(self) -> bool:
        """Complete one operation whose completion somebody may be polling for; whether there was one."""
        return self._complete_any("mbarrier")

    def complete_late(self) -> bool:
        """Nobody can go on: a bulk copy that nobody waits for completes in the end. Whether there was one."""
        return self._complete_any("bulk_group")

    def _complete_any(self, mechanism: str) -> bool:
        free = [operation for operation in self.operations if operation.mechanism == mechanism]
        if not free:
            return False
        chosen = self.chooser.choice(free)
        self.operations.remove(chosen)
        chosen.finish(np.arange(len(chosen.threads)))
        self.wave.happened()
        return True

    def complete_all(self) -> None:
        """Complete everything: all threads have ended."""
        while self.operations:
            chosen = self.operations.pop(self.chooser.randrange(len(self.operations)))
            chosen.finish(np.arange(len(chosen.threads)))
