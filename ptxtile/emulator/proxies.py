"""The asynchronous proxy (PTX ISA 8.4, 9.7.9.25): what copies and matrix operations do to memory beside threads.

Work that completes together stands under one agent, a number from ordering.AGENT on: the copies that one mbarrier
counts, a thread's bulk groups, a warpgroup's matrix operations. Who waits for some of it learns a claim about the
agent. A write is noted in shadow memory when it is issued, at a time that nobody knows, and again when it is done. A
read is kept here until the memory is written by somebody who knows that it is over.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.lanes import Lanes, Threads
from ptxtile.emulator.memory import Offsets, Store
from ptxtile.emulator.ordering import AGENT, FENCED, IN_FLIGHT, SCOPES, WEAK, Claims
from ptxtile.emulator.program import Site
from ptxtile.emulator.races import MANY, NOBODY, Event, Races
from ptxtile.emulator.report import at_line, fault

if TYPE_CHECKING:
    from ptxtile.emulator.sanitizer import Sanitizer
    from ptxtile.emulator.spaces import Part

Strengths = NDArray[np.int8]
ATOMIC = SCOPES[".gpu"]
"""The strength of reductions by asynchronous work, and of atomic operations that may meet them."""
NEVER = (1 << 31) - 1
"""The time of work that is not done: no claim reaches it."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who starts asynchronous work: a thread of `lanes`, those whose knowledge counts, and the work's agent.

    proxied   it runs in the asynchronous proxy, not in the generic one
    atomic    its writes are reductions, which may meet other atomic ones in any order
    """

    lanes: Lanes
    position: int
    threads: Threads
    agent: int
    proxied: bool = True
    atomic: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """Bytes that asynchronous work reads: granules of four bytes, ascending, of a store, from `time` on."""

    store: Store
    granules: Offsets
    first: int
    last: int
    agent: int
    time: int
    site: Site
    thread: int


class Proxies:
    """The sanitizer's part that watches the asynchronous proxy."""

    def __init__(self, sanitizer: Sanitizer) -> None:
        self.sanitizer = sanitizer
        self.ordering = sanitizer.ordering
        self.agents: dict[Hashable, int] = {}
        self.starters: dict[tuple[int, int], int] = {}
        self.readings: dict[Hashable, Reading] = {}
        self.pipes: dict[int, Hashable] = {}

    def piped(self, pipe: Hashable, *key: Hashable) -> int:
        """The agent with this key, whose work follows in order that of all agents of the same pipe."""
        agent = self.agent(*key)
        self.pipes[agent] = pipe
        return agent

    def _follows(self, agent: int, earlier: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these agents' work comes before this one's by itself."""
        pipe = self.pipes.get(agent)
        if pipe is None:
            return np.zeros(len(earlier), np.bool_)
        ahead = [other for other in np.unique(earlier).tolist() if self.pipes.get(other) == pipe]
        return np.isin(earlier, ahead)

    def agent(self, *key: Hashable) -> int:
        """The agent that stands for work with this key."""
        return self.agents.setdefault(key, AGENT + len(self.agents))

    def done(self, agent: int) -> Claims:
        """What those know who have waited for all that this agent has done until now."""
        self.ordering.now += 1
        return {("thread", agent): self.ordering.now}

    def read(self, actor: Actor, store: Store, offsets: Offsets, key: Hashable = None) -> None:
        """The work reads the 4-byte granules at these byte offsets: stop if what is there is not for it to read.

        key   of a reading that takes the place of an earlier one with the same key
        """
        races = self._races(store, 4)
        if races is None:
            return
        self.ordering.now += 1
        granules = np.unique(offsets >> 2)
        fine = granules if races.grain == 4 else self._finer(granules, races.grain)
        self._check(
            actor,
            races.writes.event(fine[races.writes.owner[fine] != NOBODY]),
            "reads",
            "wrote",
            space=self._space(store),
        )
        number = self.sanitizer.site_number(actor.lanes.step.site)
        thread = int(self.ordering.id[actor.lanes.threads[actor.position]])
        first, last = int(granules[0]), int(granules[-1])
        if key is None:
            key = (id(store), actor.agent, number, first, last)
        self.readings[key] = Reading(
            store, granules, first, last, actor.agent, self.ordering.now, actor.lanes.step.site, thread
        )

    def hold(self, key: Hashable, store: Store, offsets: Offsets, lanes: Lanes) -> None:
        """Copies of the generic proxy will read the granules at these offsets, until `forget`: nobody may write there.

        lanes   a thread that started them
        """
        granules = np.unique(offsets >> 2)
        self.readings[key] = Reading(
            store,
            granules,
            int(granules[0]),
            int(granules[-1]),
            IN_FLIGHT,
            self.ordering.now,
            lanes.step.site,
            int(self.ordering.id[lanes.threads[0]]),
        )

    def forget(self, key: Hashable) -> None:
        """The reading with this key is over, and nobody needs to know."""
        self.readings.pop(key, None)

    def write(self, actor: Actor, store: Store, offsets: Offsets, unit: int) -> None:
        """The work will write `unit` bytes at each offset: stop if somebody may still use what is there."""
        races = self._races(store, unit)
        if races is None:
            return
        self.ordering.now += 1
        granules = np.unique(
            np.concatenate([(offsets + i) // races.grain for i in range(0, unit, races.grain)])
        )
        written = races.writes.event(granules[races.writes.owner[granules] != NOBODY])
        self._check(actor, written, "writes", "wrote", space=self._space(store))
        readers = races.reads.owner[granules]
        single = granules[(readers != NOBODY) & (readers != MANY)]
        self._check(actor, races.reads.event(single), "writes", "read")
        if (readers == MANY).any():
            log = races.readers(granules[readers == MANY])
            self._check(actor, log, "writes", "read")
        places = granules * races.grain
        self.overwrite(store, places, races.grain, actor.lanes, actor.threads, actor.position, actor.agent)
        site = self.sanitizer.site_number(actor.lanes.step.site)
        self.starters[actor.agent, site] = int(self.ordering.id[actor.lanes.threads[actor.position]])
        self._note(races, granules, actor.agent, NEVER, site, ATOMIC if actor.atomic else WEAK)

    def land(self, agent: int, site: Site, store: Store, offsets: Offsets, unit: int) -> None:
        """The work has written."""
        races = self._races(store, unit)
        if races is None:
            return
        granules = np.concatenate([(offsets + i) // races.grain for i in range(0, unit, races.grain)])
        own = granules[races.writes.owner[granules] == agent + 1]  # others may be reducing there as well
        strength = races.writes.strength[own].copy()
        self._note(races, own, agent, self.ordering.now, self.sanitizer.site_number(site), strength)

    def _note(
        self, races: Races, granules: Offsets, agent: int, time: int, site: int, strength: int | Strengths
    ) -> None:
        cells = races.writes
        cells.owner[granules] = agent + 1
        cells.time[granules] = time
        cells.site[granules] = site
        cells.cta[granules] = 0
        cells.strength[granules] = strength
        races.reads.owner[granules] = NOBODY
        races.reads.cta[granules] = 0

    def generic_write(self, part: Part, width: int) -> None:
        """Threads write: stop if asynchronous work may still read what was there."""
        offsets = part.offsets
        if width > 4:
            offsets = (offsets[:, None] + np.arange(0, width, 4)).reshape(-1)
        self.overwrite(part.store, offsets, min(width, 4), part.lanes, part.lanes.threads, None)

    def overwrite(
        self,
        store: Store,
        offsets: Offsets,
        width: int,
        lanes: Lanes,
        threads: Threads,
        position: int | None,
        agent: int = -1,
    ) -> None:
        """Stop if a reading of these bytes is not over; forget those that are. `agent`: of the writing work."""
        first, last = int(offsets.min()) >> 2, int(offsets.max()) + width - 1 >> 2
        found = [
            (key, reading)
            for key, reading in self.readings.items()
            if reading.store is store and reading.first <= last and first <= reading.last
        ]
        for key, reading in found:
            hit = np.flatnonzero(np.isin(offsets >> 2, reading.granules))
            if not len(hit) or self._follows(agent, np.array([reading.agent]))[0]:
                continue
            which = int(hit[0]) * len(threads) // len(offsets) if position is None else position
            mine = threads[hit * len(threads) // len(offsets)] if position is None else threads
            mine = np.unique(mine)
            agents = np.full(len(mine), reading.agent, np.int64)
            times = np.full(len(mine), reading.time, np.int64)
            if not self.ordering.knows(mine, agents, times).all():
                other = f"{self._name(reading.thread)} started it at {at_line(reading.site)}"
                text = "in flight: memory is overwritten that asynchronous work still reads; wait for the work first"
                raise fault("in-flight", text, lanes, which, other)
            if len(hit) == len(reading.granules):
                del self.readings[key]

    def _check(self, actor: Actor, event: Event, verb: str, did: str, space: str | None = None) -> None:
        """Stop unless all these accesses are past, and, given a space, those of the generic proxy are fenced there."""
        if actor.atomic:
            event = event.at(np.flatnonzero(event.strength < ATOMIC))
        if self.pipes:
            event = event.at(np.flatnonzero(~self._follows(actor.agent, event.thread)))
        if not len(event.thread):
            return
        stamp = event.thread << 32 | event.time
        _, first = np.unique(stamp, return_index=True)
        event = event.at(first)
        for thread in actor.threads.tolist():
            mine = np.full(len(first), thread, np.intp)
            known = self.ordering.knows(mine, event.thread, event.time)
            if not known.all():
                self._refuse(actor, event, int(np.flatnonzero(~known)[0]), verb, did)
        if space is None or not actor.proxied:
            return
        for which, (other, time) in enumerate(zip(event.thread.tolist(), event.time.tolist())):
            if other < AGENT and not self.ordering.fenced_for(int(actor.threads[0]), other, time, space):
                site = self.sanitizer.sites[int(event.site[which])]
                text = (
                    f"proxy: asynchronous work {verb} what a thread {did} without a fence.proxy.async "
                    "between the two"
                )
                elsewhere = next(each for each in FENCED if each != space)
                if self.ordering.fenced_for(int(actor.threads[0]), other, time, elsewhere):
                    text += f" that covers {space} memory"
                fact = f"{self._name(other)} {did} it at {at_line(site)}"
                raise fault("proxy", text, actor.lanes, actor.position, fact)

    def _refuse(self, actor: Actor, event: Event, which: int, verb: str, did: str) -> None:
        thread, site = int(event.thread[which]), self.sanitizer.sites[int(event.site[which])]
        if thread >= AGENT:
            text = f"in flight: asynchronous work {verb} what other asynchronous work {did} that was not waited for"
            other = self.started(thread, int(event.site[which]))
            raise fault("in-flight", text, actor.lanes, actor.position, other)
        text = f"race: asynchronous work {verb} what a thread {did}, and nothing orders the two"
        other = f"{self._name(thread)} {did} it at {at_line(site)}"
        raise fault("race", text, actor.lanes, actor.position, other)

    def started(self, agent: int, site: int) -> str:
        """`thread (0, 0, 0) of CTA (0, 0, 0) started it at line 7: …`."""
        where = at_line(self.sanitizer.sites[site])
        if agent >= IN_FLIGHT:
            return f"{self._name(agent - IN_FLIGHT)} started it at {where}"
        thread = self.starters.get((agent, site))
        return f"started at {where}" if thread is None else f"{self._name(thread)} started it at {where}"

    def _name(self, thread: int) -> str:
        from ptxtile.emulator.machine import name_thread

        return name_thread(self.sanitizer.machine.launch, thread % AGENT)

    def _space(self, store: Store) -> str:
        """Which proxy fences count for this store."""
        return "shared" if store is self.sanitizer.wave.spaces.shared else "global"

    def _races(self, store: Store, unit: int) -> Races | None:
        return self.sanitizer.races_of(store, unit)

    def _finer(self, granules: Offsets, grain: int) -> NDArray[np.int64]:
        """Granules of four bytes as those of `grain` bytes."""
        parts = 4 // grain
        found: NDArray[np.int64] = (granules[:, None] * parts + np.arange(parts)).reshape(-1)
        return found
