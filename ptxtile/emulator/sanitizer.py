"""The sanitizer's check of every access: does it race with an earlier one (PTX ISA 8.6, 8.7)?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.lanes import Lanes, Threads
from ptxtile.emulator.memory import Index, Offsets, Store
from ptxtile.emulator.ordering import AGENT, IN_FLIGHT, SCOPES, Ordering, Strength
from ptxtile.emulator.program import Site
from ptxtile.emulator.proxies import Proxies
from ptxtile.emulator.races import MANY, NOBODY, Event, Races
from ptxtile.emulator.report import at_line, fault
from ptxtile.emulator.spaces import Part
from ptxtile.emulator.widths import Bits

if TYPE_CHECKING:
    from ptxtile.emulator.machine import Machine, Wave

Flags = NDArray[np.bool_]


class Sanitizer:
    """Checks accesses against shadow memory and what threads know of each other."""

    def __init__(self, machine: Machine, ordering: Ordering) -> None:
        self.machine = machine
        self.ordering = ordering
        self.block = machine.block_threads
        self.sites: list[Site] = []
        self.site_numbers: dict[int, int] = {}
        self.proxies = Proxies(self)

    def begin(self, wave: Wave) -> None:
        """A new wave comes onto the machine."""
        self.wave = wave
        self.proxies.readings.clear()
        self.ordering.begin(wave)
        self.id = self.ordering.id
        wave.spaces.shared.races = Races(len(wave.spaces.shared.data))

    def site_number(self, site: Site) -> int:
        """A small number for a site, for shadow memory."""
        key = id(site)
        if key not in self.site_numbers:
            self.site_numbers[key] = len(self.sites)
            self.sites.append(site)
        return self.site_numbers[key]

    def read(self, part: Part, width: int, strength: Strength) -> None:
        """Threads read `width` bytes each: stop on a race with an earlier write."""
        races = self.races_of(part.store, width)
        if races is None:
            return
        self.ordering.now += 1
        for shift in range(0, width, races.grain):
            self._read(races, part.index(races.grain, shift), part.lanes, strength)
        if strength.acquire or (strength.scope and self.ordering.fences):
            self.ordering.acquire(part, strength)

    def look(self, part: Part, width: int, strength: Strength) -> None:
        """Like `read`, but leaves no trace: for what polls, and must only not come before an initialisation."""
        races = self.races_of(part.store, width)
        if races is None:
            return
        index = part.index(races.grain)
        writers = races.writes.owner[index]
        suspects = (writers != NOBODY) & (writers != self.id[part.lanes.where] + 1)
        if suspects.any():
            positions = np.flatnonzero(suspects)
            event = races.writes.event(_spelt(index)[positions])
            self._refuse(event, part.lanes, positions, strength, "reads", "wrote")

    def write(self, part: Part, width: int, strength: Strength, values: Sequence[Bits]) -> None:
        """Threads write: stop on a race with an earlier access, or between threads that write different values."""
        races = self.races_of(part.store, width)
        if races is None:
            return
        if self.proxies.readings:
            self.proxies.generic_write(part, width)
        self.ordering.now += 1
        ordered = strength.atomic and (strength.acquire or strength.release or self.ordering.fences)
        if ordered:
            self.ordering.exchange(part, strength)
        per_value = max(1, width // max(len(values), 1) // races.grain)
        for number, shift in enumerate(range(0, width, races.grain)):
            which = number // per_value
            same = _Same(part, which * (width // len(values)), values[which]) if values else None
            self._write(races, part.index(races.grain, shift), part.lanes, strength, same)
        plain = strength.release or (strength.scope and self.ordering.fences) or self.ordering.released
        if plain and not ordered:
            self.ordering.release(part, strength)

    def fly(self, store: Store, offsets: Offsets, threads: Threads, site: Site, width: int) -> None:
        """Asynchronous work of these threads will write here: until it lands, nobody may touch it."""
        self._own(store, offsets, self.id[threads] + IN_FLIGHT, site, width)

    def land(self, store: Store, offsets: Offsets, threads: Threads, site: Site, width: int) -> None:
        """The work is done: from now on these are the threads' own writes."""
        self.ordering.now += 1
        self._own(store, offsets, self.id[threads], site, width)

    def _own(self, store: Store, offsets: Offsets, ids: NDArray[np.int64], site: Site, width: int) -> None:
        races = self.races_of(store, width)
        if races is None:
            return
        number = self.site_number(site)
        for shift in range(0, width, races.grain):
            granules = (offsets + shift) // races.grain
            ctas = (ids % IN_FLIGHT) // self.block + 1
            races.writes.set(granules, ids + 1, ctas, self.ordering.now, number, 0)

    def races_of(self, store: Store, width: int) -> Races | None:
        """The shadow of a store, fine enough for accesses of `width` bytes; None where there are no races."""
        if store.readonly or store is self.wave.spaces.local:
            return None
        if store.races is None:
            store.races = Races(len(store.data))
        if width < store.races.grain:
            store.races.fit(width)
        return store.races

    def _read(self, races: Races, index: Index, lanes: Lanes, strength: Strength) -> None:
        me = self.id[lanes.where]
        writers = races.writes.owner[index]
        suspects = (writers != NOBODY) & (writers != me + 1)
        readers = races.reads.owner[index]
        others = (readers != NOBODY) & (readers != me + 1)
        site = self.site_number(lanes.step.site)
        ctas = self.wave.number[self.wave.cta[lanes.where]] + 1
        if isinstance(index, slice) and not suspects.any() and not others.any():
            races.reads.set(index, me + 1, ctas, self.ordering.now, site, strength.scope)
            return
        granules = _spelt(index)
        if suspects.any():
            positions = np.flatnonzero(suspects)
            self._refuse(
                races.writes.event(granules[positions]), lanes, positions, strength, "reads", "wrote"
            )
        if others.any():
            replace = ~others
            positions = np.flatnonzero(others)
            replace[positions] = self._past_readers(races, granules[positions], lanes, positions)
            self._read_along(races, granules, lanes, strength, ~replace)
            if not replace.all():
                granules, me, ctas = granules[replace], me[replace], ctas[replace]
        races.reads.set(granules, me + 1, ctas, self.ordering.now, site, strength.scope)
        together = races.reads.owner[granules] != me + 1
        if together.any():
            crowded = np.isin(granules, granules[together])
            self._log(races, granules[crowded], me[crowded], site, strength)
            self._mark_many(races, granules[crowded], ctas[crowded])

    def _past_readers(self, races: Races, granules: Offsets, lanes: Lanes, positions: Threads) -> Flags:
        """Whether all that read these granules are known to be past, so that the new reader can stand for them."""
        event = races.reads.event(granules)
        many = races.reads.owner[granules] == MANY
        cta = self.wave.cta[lanes.threads[positions]]
        own = races.reads.cta[granules] == self.wave.number[cta] + 1
        past: Flags = own & (event.time <= self.ordering.cta_time[cta])
        single = np.flatnonzero(~many & ~past)
        if len(single):
            past[single] = self.ordering.knows(
                lanes.threads[positions[single]], event.thread[single], event.time[single]
            )
        return past

    def _read_along(
        self, races: Races, granules: Offsets, lanes: Lanes, strength: Strength, along: Flags
    ) -> None:
        """Note readers beside others that are not past."""
        if not along.any():
            return
        chosen = granules[along]
        single = chosen[races.reads.owner[chosen] > 0]
        if len(single):
            races.remember(races.reads.event(np.unique(single)))
        me = self.id[lanes.where][along]
        ctas = self.wave.number[self.wave.cta[lanes.where]][along] + 1
        self._log(races, chosen, me, self.site_number(lanes.step.site), strength)
        self._mark_many(races, chosen, ctas)

    def _log(
        self, races: Races, granules: Offsets, me: NDArray[np.int64], site: int, strength: Strength
    ) -> None:
        count = len(granules)
        races.remember(
            Event(
                granules,
                me,
                np.full(count, self.ordering.now),
                np.full(count, site),
                np.full(count, strength.scope),
            )
        )

    def _mark_many(self, races: Races, granules: Offsets, ctas: NDArray[np.int64]) -> None:
        cells = races.reads
        before = cells.cta[granules]
        mixed = (before != 0) & (before != ctas)
        cells.owner[granules] = MANY
        cells.time[granules] = self.ordering.now
        cells.cta[granules] = ctas
        different = cells.cta[granules] != ctas  # two CTAs in this very access
        cells.cta[granules[mixed | different]] = -1

    def _write(
        self, races: Races, index: Index, lanes: Lanes, strength: Strength, value: _Same | None
    ) -> None:
        me = self.id[lanes.where]
        writers = races.writes.owner[index]
        suspects = (writers != NOBODY) & (writers != me + 1)
        readers = races.reads.owner[index]
        others = (readers != NOBODY) & (readers != me + 1)
        granules = _spelt(index)
        site = self.site_number(lanes.step.site)
        if suspects.any():
            positions = np.flatnonzero(suspects)
            event = races.writes.event(granules[positions])
            if value is not None and not strength.scope:
                other = ~((event.site == site) & (event.strength == 0) & value.stays(positions))
                event, positions = event.at(np.flatnonzero(other)), positions[other]
            self._refuse(event, lanes, positions, strength, "writes", "wrote")
        if others.any():
            self._check_readers(races, granules, lanes, strength, np.flatnonzero(others))
        ctas = self.wave.number[self.wave.cta[lanes.where]] + 1
        races.writes.set(index, me + 1, ctas, self.ordering.now, site, strength.scope)
        races.reads.owner[index] = NOBODY
        races.reads.cta[index] = 0
        if 0 < strength.scope < SCOPES[".gpu"] and not isinstance(index, slice):
            others = np.flatnonzero(races.writes.owner[granules] != me + 1)
            self._refuse(races.writes.event(granules[others]), lanes, others, strength, "writes", "wrote")
        if not strength.scope and value is not None and not isinstance(index, slice):
            together = races.writes.owner[granules] != me + 1
            if together.any():
                crowded = np.flatnonzero(np.isin(granules, granules[together]))
                self._same_value(granules, lanes, value.value, crowded)

    def _same_value(self, granules: Offsets, lanes: Lanes, value: Bits, positions: Threads) -> None:
        """Threads that write one place in one instruction must write the same value: then no order matters."""
        order = positions[np.argsort(granules[positions], kind="stable")]
        first, second = order[:-1], order[1:]
        differs = value[first] != value[second]
        if differs.ndim > 1:
            differs = differs.any(axis=1)
        clash = np.flatnonzero((granules[first] == granules[second]) & differs)
        if len(clash):
            here, there = int(second[clash[0]]), int(first[clash[0]])
            name = self.wave.thread_name(int(lanes.threads[there]))
            text = "race: two threads write different values to one place in the same instruction"
            raise fault("race", text, lanes, here, f"the other: {name}")

    def _check_readers(
        self, races: Races, granules: Offsets, lanes: Lanes, strength: Strength, positions: Threads
    ) -> None:
        own = granules[positions]
        past = self._past_readers(races, own, lanes, positions)
        rest = positions[~past]
        if not len(rest):
            return
        single = races.reads.owner[granules[rest]] != MANY
        if single.any():
            chosen = rest[single]
            self._refuse(races.reads.event(granules[chosen]), lanes, chosen, strength, "writes", "read")
        many = rest[~single]
        if len(many):
            log = races.readers(granules[many])
            sorter = np.argsort(granules[many], kind="stable")
            place = many[sorter[np.searchsorted(granules[many], log.granule, sorter=sorter)]]
            foreign = np.flatnonzero(log.thread != self.id[lanes.threads[place]])
            self._refuse(log.at(foreign), lanes, place[foreign], strength, "writes", "read")

    def _refuse(
        self, event: Event, lanes: Lanes, positions: Threads, strength: Strength, verb: str, did: str
    ) -> None:
        """Stop if one of these threads conflicts with an access that is not past and not morally strong with it."""
        if not len(positions):
            return
        threads = lanes.threads[positions]
        ordered = self.ordering.knows(threads, event.thread, event.time)
        if ordered.all():
            return
        if strength.scope:
            ordered |= self._morally_strong(threads, event, strength)
            if ordered.all():
                return
        which = int(np.flatnonzero(~ordered)[0])
        from ptxtile.emulator.machine import name_thread

        site = self.sites[int(event.site[which])]
        thread = int(event.thread[which])
        if AGENT <= thread < IN_FLIGHT:
            text = f"in flight: a thread {verb} what asynchronous work {did} that was not waited for"
            other = self.proxies.started(thread, int(event.site[which]))
            raise fault("in-flight", text, lanes, int(positions[which]), other)
        name = name_thread(self.machine.launch, thread % IN_FLIGHT)
        if thread >= IN_FLIGHT:
            text = f"in flight: a thread {verb} what an asynchronous copy {did} that was not waited for"
            other = f"{name} started the copy at {at_line(site)}"
            raise fault("in-flight", text, lanes, int(positions[which]), other)
        other = f"{name} {did} it at {at_line(site)}"
        text = f"race: a thread {verb} what another {did}, and nothing orders the two"
        raise fault("race", text, lanes, int(positions[which]), other)

    def _morally_strong(self, threads: Threads, event: Event, strength: Strength) -> Flags:
        """Both strong, and each scope includes the other thread (PTX ISA 8.6)."""
        scope = np.minimum(event.strength, strength.scope)
        mine = self.id[threads]
        same_cta = mine // self.block == event.thread // self.block
        wide = scope >= SCOPES[".gpu"]
        if self.wave.cluster_size > 1:
            wide |= (scope == SCOPES[".cluster"]) & self.ordering.same_cluster(
                mine // self.block, event.thread // self.block
            )
        strong: Flags = (scope > 0) & (wide | same_cta)
        return strong


@dataclass(frozen=True, slots=True)
class _Same:
    """What is about to be written: `value`, `shift` bytes from each thread's offset."""

    part: Part
    shift: int
    value: Bits

    def stays(self, positions: Threads) -> Flags:
        """Where memory holds this value already: writing it once more, at the same instruction, harms nobody."""
        width = self.value.dtype.itemsize * (self.value.shape[1] if self.value.ndim > 1 else 1)
        places = (self.part.offsets[positions] + self.shift) // width
        found = self.part.store.gather(places, width)
        differs = found != self.value[positions]
        same: Flags = ~differs if differs.ndim == 1 else ~np.any(differs, axis=1)
        return same


def _spelt(index: Index) -> Offsets:
    """The granules of an index, one by one."""
    return np.arange(index.start, index.stop, index.step) if isinstance(index, slice) else index
