"""Happens-before, and the races that its absence makes (PTX ISA 8, the memory consistency model).

Time is one counter of the machine. What a thread knows of others is a set of claims "everything that this thread (warp,
CTA) did up to that time happened before". Nearly all claims come from barriers of whole CTAs and whole warps, and are
one number a CTA or a warp; the rest (named barriers of some warps, release and acquire) are dictionaries that threads
share by number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.lanes import Lanes, Threads
from ptxtile.emulator.memory import Offsets, Store
from ptxtile.emulator.program import Site
from ptxtile.emulator.races import MANY, NOBODY, Event, Races
from ptxtile.emulator.report import at_line, fault
from ptxtile.emulator.spaces import Part
from ptxtile.emulator.widths import Bits

if TYPE_CHECKING:
    from ptxtile.emulator.machine import Machine, Wave

Flags = NDArray[np.bool_]
Claims = dict[tuple[str, int], int]

WEAK = 0
SCOPES = {".cta": 1, ".cluster": 2, ".gpu": 3, ".sys": 4}
SCOPE_NAMES = {number: name[1:] for name, number in SCOPES.items()}


@dataclass(frozen=True, slots=True)
class Strength:
    """How an access takes part in the memory model: scope (WEAK, or SCOPES), and whether it acquires or releases."""

    scope: int = WEAK
    acquire: bool = False
    release: bool = False
    atomic: bool = False


def strength_of(site: Site) -> Strength:
    """The strength that an instruction's modifiers say (PTX ISA 8.3)."""
    modifiers = site.instruction.form.modifiers
    atomic = site.opcode in ("atom", "red")
    scope = next((SCOPES[m] for m in modifiers if m in SCOPES), SCOPES[".gpu"] if atomic else WEAK)
    if ".volatile" in modifiers or ".mmio" in modifiers:
        scope = SCOPES[".sys"]
    both = ".acq_rel" in modifiers
    return Strength(scope, both or ".acquire" in modifiers, both or ".release" in modifiers, atomic)


class Ordering:
    """What every thread of the machine knows of the others."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.block = machine.block_threads
        self.now = 1
        self.sites: list[Site] = []
        self.site_numbers: dict[int, int] = {}
        self.released: dict[tuple[int, int], tuple[Claims, int, int]] = {}
        self.fences = False

    def begin(self, wave: Wave) -> None:
        """A new wave's threads know nothing of anybody."""
        self.wave = wave
        self.cta_time: NDArray[np.int64] = np.zeros(wave.ctas, np.int64)
        self.warp_time: NDArray[np.int64] = np.zeros(wave.ctas * wave.warps, np.int64)
        self.known: NDArray[np.int64] = np.zeros(wave.count, np.int64)
        self.claims: list[Claims] = [{}]
        self.fenced: dict[int, tuple[Claims, int]] = {}
        self.observed: dict[int, list[tuple[Claims, int, int]]] = {}
        self.id: NDArray[np.int64] = wave.thread_id(np.arange(wave.count))
        wave.spaces.shared.races = Races(len(wave.spaces.shared.data))

    def site_number(self, site: Site) -> int:
        """A small number for a site, for shadow memory."""
        key = id(site)
        if key not in self.site_numbers:
            self.site_numbers[key] = len(self.sites)
            self.sites.append(site)
        return self.site_numbers[key]

    # -- accesses

    def read(self, part: Part, width: int, strength: Strength) -> None:
        """Threads read `width` bytes each: stop on a race with an earlier write."""
        races = self._races(part.store, width)
        if races is None:
            return
        self.now += 1
        for granules in _granules(part.offsets, width, races.grain):
            self._read(races, granules, part.lanes, strength)
        if strength.acquire or (strength.scope and self.fences):
            self._acquire(part, strength)

    def write(self, part: Part, width: int, strength: Strength, values: Sequence[Bits]) -> None:
        """Threads write: stop on a race with an earlier access, or between threads that write different values."""
        races = self._races(part.store, width)
        if races is None:
            return
        self.now += 1
        if strength.atomic and (strength.acquire or self.fences):
            self._acquire(part, strength)
        per_value = max(1, width // max(len(values), 1) // races.grain)
        for number, granules in enumerate(_granules(part.offsets, width, races.grain)):
            value = values[number // per_value] if values else None
            self._write(races, granules, part.lanes, strength, value)
        if strength.release or (strength.scope and self.fences) or self.released:
            self._release(part, strength)

    def _races(self, store: Store, width: int) -> Races | None:
        if store.readonly or store is self.wave.spaces.local:
            return None
        if store.races is None:
            store.races = Races(len(store.data))
        if width < store.races.grain:
            store.races.fit(width)
        return store.races

    def _read(self, races: Races, granules: Offsets, lanes: Lanes, strength: Strength) -> None:
        me = self.id[lanes.where]
        writers = races.writes.owner[granules]
        suspects = (writers != NOBODY) & (writers != me + 1)
        if suspects.any():
            positions = np.flatnonzero(suspects)
            self._refuse(
                races.writes.event(granules[positions]), lanes, positions, strength, "reads", "wrote"
            )
        readers = races.reads.owner[granules]
        site = self.site_number(lanes.step.site)
        ctas = self.wave.number[self.wave.cta[lanes.where]] + 1
        others = (readers != NOBODY) & (readers != me + 1)
        if others.any():
            replace = ~others
            positions = np.flatnonzero(others)
            replace[positions] = self._past_readers(races, granules[positions], lanes, positions)
            self._read_along(races, granules, lanes, strength, ~replace)
            if not replace.all():
                granules, me, ctas = granules[replace], me[replace], ctas[replace]
        races.reads.set(granules, me + 1, ctas, self.now, site, strength.scope)
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
        past: Flags = own & (event.time <= self.cta_time[cta])
        single = np.flatnonzero(~many & ~past)
        if len(single):
            past[single] = self.knows(
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
                granules, me, np.full(count, self.now), np.full(count, site), np.full(count, strength.scope)
            )
        )

    def _mark_many(self, races: Races, granules: Offsets, ctas: NDArray[np.int64]) -> None:
        cells = races.reads
        before = cells.cta[granules]
        mixed = (before != 0) & (before != ctas)
        cells.owner[granules] = MANY
        cells.time[granules] = self.now
        cells.cta[granules] = ctas
        different = cells.cta[granules] != ctas  # two CTAs in this very access
        cells.cta[granules[mixed | different]] = -1

    def _write(
        self, races: Races, granules: Offsets, lanes: Lanes, strength: Strength, value: Bits | None
    ) -> None:
        me = self.id[lanes.where]
        writers = races.writes.owner[granules]
        suspects = (writers != NOBODY) & (writers != me + 1)
        if suspects.any():
            positions = np.flatnonzero(suspects)
            self._refuse(
                races.writes.event(granules[positions]), lanes, positions, strength, "writes", "wrote"
            )
        readers = races.reads.owner[granules]
        suspects = (readers != NOBODY) & (readers != me + 1)
        if suspects.any():
            self._check_readers(races, granules, lanes, strength, np.flatnonzero(suspects))
        site = self.site_number(lanes.step.site)
        ctas = self.wave.number[self.wave.cta[lanes.where]] + 1
        races.writes.set(granules, me + 1, ctas, self.now, site, strength.scope)
        races.reads.owner[granules] = NOBODY
        races.reads.cta[granules] = 0
        if not strength.scope and value is not None:
            together = races.writes.owner[granules] != me + 1
            if together.any():
                self._same_value(
                    granules, lanes, value, np.flatnonzero(np.isin(granules, granules[together]))
                )

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
        ordered = self.knows(threads, event.thread, event.time)
        if ordered.all():
            return
        if strength.scope:
            ordered |= self._morally_strong(threads, event, strength)
            if ordered.all():
                return
        which = int(np.flatnonzero(~ordered)[0])
        from ptxtile.emulator.machine import name_thread

        site = self.sites[int(event.site[which])]
        other = f"{name_thread(self.machine.launch, int(event.thread[which]))} {did} it at {at_line(site)}"
        text = f"race: a thread {verb} what another {did}, and nothing orders the two"
        raise fault("race", text, lanes, int(positions[which]), other)

    def _morally_strong(self, threads: Threads, event: Event, strength: Strength) -> Flags:
        """Both strong, and each scope includes the other thread (PTX ISA 8.6)."""
        scope = np.minimum(event.strength, strength.scope)
        mine = self.id[threads]
        same_cta = mine // self.block == event.thread // self.block
        wide = scope >= SCOPES[".gpu"]
        if self.wave.cluster_size > 1:
            wide |= (scope == SCOPES[".cluster"]) & self._same_cluster(
                mine // self.block, event.thread // self.block
            )
        strong: Flags = (scope > 0) & (wide | same_cta)
        return strong

    def _same_cluster(self, a: NDArray[np.int64], b: NDArray[np.int64]) -> Flags:
        def cluster(cta: NDArray[np.int64]) -> NDArray[np.int64]:
            grid, size = self.machine.launch.grid, self.machine.launch.cluster
            x, y, z = cta % grid[0], cta // grid[0] % grid[1], cta // (grid[0] * grid[1])
            found: NDArray[np.int64] = x // size[0] + grid[0] * (y // size[1] + grid[1] * (z // size[2]))
            return found

        same: Flags = cluster(a) == cluster(b)
        return same

    # -- knowledge

    def knows(self, threads: Threads, others: NDArray[np.int64], times: NDArray[np.int64]) -> Flags:
        """Whether what `others` (numbers in the launch) did at `times` happened before what `threads` do now."""
        wave = self.wave
        mine = self.id[threads]
        same_cta = mine // self.block == others // self.block
        result: Flags = (mine == others) | (same_cta & (times <= self.cta_time[wave.cta[threads]]))
        same_warp = same_cta & (mine % self.block // 32 == others % self.block // 32)
        result |= same_warp & (times <= self.warp_time[wave.warp[threads]])
        rest = np.flatnonzero(~result & (self.known[threads] > 0))
        for position in rest.tolist():
            claims = self.claims[int(self.known[threads[position]])]
            result[position] = self._claimed(claims, int(others[position]), int(times[position]))
        return result

    def _claimed(self, claims: Claims, other: int, time: int) -> bool:
        cta, tid = divmod(other, self.block)
        return (
            claims.get(("thread", other), 0) >= time
            or claims.get(("warp", cta * self.wave.warps + tid // 32), 0) >= time
            or claims.get(("cta", cta), 0) >= time
        )

    def _learn(self, threads: Threads, claims: Claims) -> None:
        """These threads know these claims from now on."""
        merged: dict[int, int] = {}
        for thread in threads.tolist():
            before = int(self.known[thread])
            if before not in merged:
                merged[before] = len(self.claims)
                self.claims.append(_union(self.claims[before], claims))
            self.known[thread] = merged[before]

    def _snapshot(self, thread: int) -> Claims:
        """All that a thread knows, itself included."""
        wave = self.wave
        cta = int(wave.number[wave.cta[thread]])
        claims = dict(self.claims[int(self.known[thread])])
        own: Claims = {
            ("thread", int(self.id[thread])): self.now,
            ("cta", cta): int(self.cta_time[wave.cta[thread]]),
            ("warp", cta * wave.warps + int(wave.tid[thread]) // 32): int(self.warp_time[wave.warp[thread]]),
        }
        return _union(claims, own)

    # -- synchronisation

    def barrier(
        self, arrivals: list[tuple[Threads, NDArray[np.int64], bool, int]], live: NDArray[np.int64]
    ) -> None:
        """CTA barriers are complete: those who waited know all that those who came had done when they came."""
        self.now += 1
        wave = self.wave
        count: NDArray[np.int64] = np.zeros(wave.ctas, np.int64)
        for threads, _, blocks, _ in arrivals:
            if blocks:
                count += np.bincount(wave.cta[threads], minlength=wave.ctas)
        whole = (count > 0) & (count >= live)
        self.cta_time[whole] = self.now
        for cta in np.flatnonzero(whole & self._any_claims()).tolist():
            self._share(wave.cta == cta)
        for cta in np.flatnonzero(np.bincount(_ctas(wave, arrivals), minlength=wave.ctas) * ~whole).tolist():
            self._some(arrivals, cta)

    def _any_claims(self) -> Flags:
        if not self.known.any():
            return np.zeros(self.wave.ctas, np.bool_)
        found: Flags = np.bincount(self.wave.cta, weights=self.known, minlength=self.wave.ctas) > 0
        return found

    def _share(self, members: Flags) -> None:
        """All members come to know what any of them knows."""
        threads = np.flatnonzero(members)
        everything: Claims = {}
        for number in np.unique(self.known[threads]).tolist():
            everything = _union(everything, self.claims[number])
        self.claims.append(everything)
        self.known[threads] = len(self.claims) - 1

    def _some(self, arrivals: list[tuple[Threads, NDArray[np.int64], bool, int]], cta: int) -> None:
        """Barriers of one CTA that not all of its threads waited at."""
        wave = self.wave
        by_barrier: dict[int, list[tuple[Threads, bool, int]]] = {}
        for threads, barrier, blocks, time in arrivals:
            mask = wave.cta[threads] == cta
            for number in np.unique(barrier[mask]).tolist():
                by_barrier.setdefault(number, []).append((threads[mask & (barrier == number)], blocks, time))
        for parts in by_barrier.values():
            claims: Claims = {}
            for threads, blocks, time in parts:
                own = self._those(threads, self.now if blocks else time)
                for number in np.unique(self.known[threads]).tolist():
                    own = _union(own, self.claims[number])
                claims = _union(claims, own)
            for threads, blocks, _ in parts:
                if blocks:
                    self._learn(threads, claims)

    def _those(self, threads: Threads, time: int) -> Claims:
        """The claim that these threads were here at `time`: by warp where a warp is complete."""
        wave = self.wave
        claims: Claims = {}
        for warp in np.unique(wave.warp[threads]).tolist():
            members = threads[wave.warp[threads] == warp]
            living = np.flatnonzero(wave.live[members])
            first = int(members[0])
            cta = int(wave.number[wave.cta[first]])
            if len(living) == int(wave.live[(wave.warp == warp)].sum()):
                claims["warp", cta * wave.warps + int(wave.tid[first]) // 32] = time
            else:
                claims.update({("thread", int(number)): time for number in self.id[members]})
        return claims

    def warp_sync(self, parts: Sequence[Threads]) -> None:
        """bar.warp.sync: the threads of each warp among these know what the others of it had done."""
        self.now += 1
        wave = self.wave
        threads = np.concatenate(list(parts))
        size = len(self.warp_time)
        count = np.bincount(wave.warp[threads], minlength=size)
        living = np.bincount(wave.warp[wave.live], minlength=size)
        whole = (count > 0) & (count >= living)
        self.warp_time[whole] = self.now
        for warp in np.flatnonzero((count > 0) & ~whole).tolist():
            members = threads[wave.warp[threads] == warp]
            self._learn(members, self._those(members, self.now))
        if self.known[threads].any():
            for warp in np.unique(wave.warp[threads[self.known[threads] > 0]]).tolist():
                members = np.zeros(wave.count, np.bool_)
                members[threads[wave.warp[threads] == warp]] = True
                self._share(members)

    def fence(self, lanes: Lanes, scope: int, acquire: bool = True, release: bool = True) -> None:
        """fence, membar: earlier strong reads become acquiring, later strong writes releasing."""
        self.now += 1
        self.fences = True
        for thread in lanes.threads.tolist():
            if acquire:
                for claims, other_scope, releaser in self.observed.pop(thread, []):
                    if self._includes(thread, releaser, min(scope, other_scope)):
                        self._learn(np.array([thread]), claims)
            if release:
                self.fenced[thread] = (self._snapshot(thread), scope)

    def _acquire(self, part: Part, strength: Strength) -> None:
        key = id(part.store)
        for thread, offset in zip(part.lanes.threads.tolist(), part.offsets.tolist()):
            found = self.released.get((key, offset))
            if found is None:
                continue
            claims, scope, releaser = found
            if not strength.acquire:
                self.observed.setdefault(thread, []).append((claims, min(scope, strength.scope), releaser))
            elif self._includes(thread, releaser, min(scope, strength.scope)):
                self._learn(np.array([thread]), claims)

    def _release(self, part: Part, strength: Strength) -> None:
        key = id(part.store)
        for thread, offset in zip(part.lanes.threads.tolist(), part.offsets.tolist()):
            claims: Claims | None = None
            scope = strength.scope
            if strength.release:
                claims = self._snapshot(thread)
            elif strength.scope and thread in self.fenced:
                claims, fence_scope = self.fenced[thread]
                scope = min(scope, fence_scope)
            before = self.released.get((key, offset))
            if claims is None:
                if not strength.atomic:
                    self.released.pop((key, offset), None)
                continue
            if strength.atomic and before is not None:
                claims, scope = _union(claims, before[0]), min(scope, before[1])
            self.released[key, offset] = (claims, scope, int(self.id[thread]))

    def _includes(self, thread: int, releaser: int, scope: int) -> bool:
        """Whether a scope around one of two threads holds the other."""
        if scope >= SCOPES[".gpu"]:
            return True
        mine = int(self.id[thread]) // self.block
        other = releaser // self.block
        if mine == other:
            return True
        pair = np.array([mine]), np.array([other])
        return scope == SCOPES[".cluster"] and bool(self._same_cluster(*pair)[0])


def _ctas(wave: Wave, arrivals: list[tuple[Threads, NDArray[np.int64], bool, int]]) -> NDArray[np.int64]:
    return np.concatenate([wave.cta[threads] for threads, _, _, _ in arrivals])


def _union(a: Claims, b: Claims) -> Claims:
    """Both sets of claims; of two about the same party, the later."""
    result = dict(a)
    for key, time in b.items():
        if result.get(key, 0) < time:
            result[key] = time
    return result


def _granules(offsets: Offsets, width: int, grain: int) -> list[Offsets]:
    """The granules of each access, as one array for each granule that an access covers."""
    first = offsets // grain
    return [first] if width <= grain else [first + i for i in range(width // grain)]
