"""Happens-before, and the races that its absence makes (PTX ISA 8, the memory consistency model).

Time is one counter of the machine. What a thread knows of others is a set of claims "everything that this thread (warp,
CTA) did up to that time happened before". Nearly all claims come from barriers of whole CTAs and whole warps, and are
one number a CTA or a warp; the rest (named barriers of some warps, release and acquire) are dictionaries that threads
share by number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.lanes import Lanes, Threads
from ptxtile.emulator.program import Site
from ptxtile.emulator.sequential import Arrivals, pass_on
from ptxtile.emulator.spaces import Part

if TYPE_CHECKING:
    from ptxtile.emulator.machine import Machine, Wave

Flags = NDArray[np.bool_]
Claims = dict[tuple[str, int], int]

FENCED = {"shared": "~", "global": "^"}
"""Before the kind of a claim, by state space: what a proxy fence has made visible to the asynchronous proxy there."""
MOST_IN_TURN = 512
"""Threads that update one place in one instruction and are still ordered one by one."""
CLAIM_SETS = 2048
"""Sets of claims that are kept before those that no thread has any more are dropped."""
WEAK = 0
IN_FLIGHT = 1 << 30
"""Added to a thread's number: the asynchronous work that it started and that nobody has waited for. No one knows it."""
AGENT = 1 << 29
"""Where the numbers of agents begin, which stand for asynchronous work that completes together (see `proxies`)."""
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
        self.released: dict[tuple[int, int], tuple[Claims, int, int]] = {}
        sites = (site for code in machine.decoded.codes.values() for site in code.sites)
        self.fences = any(site.opcode in ("fence", "membar") for site in sites)

    def begin(self, wave: Wave) -> None:
        """A new wave's threads know nothing of anybody."""
        self.wave = wave
        self.cta_time: NDArray[np.int64] = np.zeros(wave.ctas, np.int64)
        self.warp_time: NDArray[np.int64] = np.zeros(wave.ctas * wave.warps, np.int64)
        self.known: NDArray[np.int64] = np.zeros(wave.count, np.int64)
        self.claims: list[Claims] = [{}]
        self._merged: dict[tuple[int, int], tuple[int, Claims]] = {}
        self.fenced: dict[int, tuple[Claims, int]] = {}
        self.sequential: dict[int, tuple[Claims, int]] = {}  # fence.sc since the thread's last barrier
        self.observed: dict[int, list[tuple[Claims, int, int]]] = {}
        self.id: NDArray[np.int64] = wave.thread_id(np.arange(wave.count))

    def knows(self, threads: Threads, others: NDArray[np.int64], times: NDArray[np.int64]) -> Flags:
        """Whether what `others` (numbers in the launch) did at `times` happened before what `threads` do now."""
        wave = self.wave
        mine = self.id[threads]
        same_cta = mine // self.block == others // self.block
        result: Flags = (mine == others) | (same_cta & (times <= self.cta_time[wave.cta[threads]]))
        same_warp = same_cta & (mine % self.block // 32 == others % self.block // 32)
        result |= same_warp & (times <= self.warp_time[wave.warp[threads]])
        result &= others < IN_FLIGHT
        rest = np.flatnonzero(~result & (self.known[threads] > 0) & (others < IN_FLIGHT))
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

    def learn(self, threads: Threads, claims: Claims) -> None:
        """These threads know these claims from now on."""
        if len(self.claims) > CLAIM_SETS:
            self._tidy()
        for before in np.unique(self.known[threads]).tolist():
            after = self._merge(before, claims)
            if after != before:
                self.known[threads[self.known[threads] == before]] = after

    def _merge(self, before: int, claims: Claims) -> int:
        """The number of the claims `before` with these added; the same number if that adds nothing."""
        key = before, id(claims)
        found = self._merged.get(key)
        if found is None:
            both = union(self.claims[before], claims)
            number = before
            if both != self.claims[before]:
                number = len(self.claims)
                self.claims.append(both)
            found = self._merged[key] = (number, claims)
        return found[0]

    def _tidy(self) -> None:
        """Drop the sets of claims that no thread has."""
        used, numbers = np.unique(self.known, return_inverse=True)
        kept = [self.claims[number] for number in used.tolist()]
        if used[0] != 0:
            kept.insert(0, {})
            numbers = numbers + 1
        self.claims = kept
        self.known = numbers.reshape(self.known.shape).astype(np.int64)
        self._merged = {}

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
        return union(claims, own)

    def barrier(self, arrivals: Arrivals, live: NDArray[np.int64]) -> None:
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
        came = np.concatenate([wave.cta[threads] for threads, _, _, _ in arrivals])
        for cta in np.flatnonzero(np.bincount(came, minlength=wave.ctas) * ~whole).tolist():
            self._some(arrivals, cta)
        if self.sequential:
            pass_on(self, arrivals)

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
            everything = union(everything, self.claims[number])
        self.claims.append(everything)
        self.known[threads] = len(self.claims) - 1

    def _some(self, arrivals: Arrivals, cta: int) -> None:
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
                    own = union(own, self.claims[number])
                claims = union(claims, own)
            for threads, blocks, _ in parts:
                if blocks:
                    self.learn(threads, claims)

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
                claims["warp", cta * wave.warps + int(wave.tid[first]) // 32] = int(self.warp_time[warp])
                claims.update({("thread", int(number)): time for number in self.id[members]})
        return claims

    def warp_sync(self, threads: Threads) -> None:
        """bar.warp.sync: the threads of each warp among these know what the others of it had done."""
        self.now += 1
        wave = self.wave
        size = len(self.warp_time)
        count = np.bincount(wave.warp[threads], minlength=size)
        living = np.bincount(wave.warp[wave.live], minlength=size)
        whole = (count > 0) & (count >= living)
        self.warp_time[whole] = self.now
        for warp in np.flatnonzero((count > 0) & ~whole).tolist():
            members = threads[wave.warp[threads] == warp]
            self.learn(members, self._those(members, self.now))
        if self.known[threads].any():
            for warp in np.unique(wave.warp[threads[self.known[threads] > 0]]).tolist():
                members = np.zeros(wave.count, np.bool_)
                members[threads[wave.warp[threads] == warp]] = True
                self._share(members)

    def arrived(self, arrivals: list[tuple[Threads, int]]) -> Claims:
        """What those know who acquire from these threads: all that each had done, and knew, when it arrived."""
        wave = self.wave
        claims: Claims = {}
        for threads, time in arrivals:
            ctas, counts = np.unique(wave.cta[threads], return_counts=True)
            for cta, count in zip(ctas.tolist(), counts.tolist()):
                members = threads[wave.cta[threads] == cta]
                if count == int(wave.live[wave.cta == cta].sum()):
                    claims["cta", int(wave.number[cta])] = time
                else:
                    met: Claims = {("cta", int(wave.number[cta])): int(self.cta_time[cta])}
                    claims = union(union(claims, met), self._those(members, time))
            for number in np.unique(self.known[threads]).tolist():
                claims = union(claims, self.claims[number])
        return claims

    def fence(
        self, lanes: Lanes, scope: int, acquire: bool = True, release: bool = True, sequential: bool = False
    ) -> None:
        """fence, membar: earlier strong reads become acquiring, later strong writes releasing."""
        self.now += 1
        for thread in lanes.threads.tolist():
            if acquire:
                for claims, other_scope, releaser in self.observed.pop(thread, []):
                    if self._includes(thread, releaser, min(scope, other_scope)):
                        self.learn(np.array([thread]), claims)
            if release:
                self.fenced[thread] = (self._snapshot(thread), scope)
                if sequential:
                    self.sequential[thread] = self.fenced[thread]

    def proxy_fence(self, threads: Threads, spaces: tuple[str, ...]) -> None:
        """fence.proxy.async: what these threads did and know of is visible to the asynchronous proxy there."""
        self.now += 1
        wave = self.wave
        known = self.known[threads]
        for number in np.unique(known).tolist():
            members = threads[known == number]
            claims = {
                key: time for key, time in self.claims[number].items() if key[0][0] not in FENCED.values()
            }
            for warp in np.unique(wave.warp[members]).tolist():
                cta = warp // wave.warps
                own: Claims = {
                    ("cta", int(wave.number[cta])): int(self.cta_time[cta]),
                    ("warp", int(wave.number[cta]) * wave.warps + warp % wave.warps): int(
                        self.warp_time[warp]
                    ),
                }
                claims = union(claims, own)
            claims = union(claims, self._those(members, self.now))
            for mark in (FENCED[space] for space in spaces):
                self.learn(members, {(mark + kind, who): time for (kind, who), time in claims.items()})

    def fenced_for(self, thread: int, other: int, time: int, space: str) -> bool:
        """Whether a proxy fence for a space that `thread` knows of came after what `other` did there at `time`."""
        mark = FENCED[space]
        claims = self.claims[int(self.known[thread])]
        cta, tid = divmod(other, self.block)
        return (
            claims.get((mark + "thread", other), 0) >= time
            or claims.get((mark + "warp", cta * self.wave.warps + tid // 32), 0) >= time
            or claims.get((mark + "cta", cta), 0) >= time
        )

    def exchange(self, part: Part, strength: Strength) -> None:
        """Threads update places atomically: at each place, one after the other sees what those before it released."""
        offsets = part.offsets
        _, turns, counts = np.unique(offsets, return_inverse=True, return_counts=True)
        if len(counts) == len(offsets) or int(counts.max()) > MOST_IN_TURN:
            self.acquire(part, strength)
            self.release(part, strength)
            if len(counts) < len(offsets):  # too many for an order of their own: each is taken to see all
                self.acquire(part, strength)
            return
        alone = np.flatnonzero(counts[turns] == 1)
        turn_sets = [alone, *(np.array([p]) for p in np.flatnonzero(counts[turns] > 1).tolist())]
        for positions in turn_sets:
            if len(positions):
                one = Part(part.store, part.lanes.at(positions), None, offsets[positions], None)
                self.acquire(one, strength)
                self.release(one, strength)

    def acquire(self, part: Part, strength: Strength) -> None:
        """Threads read what others may have released: they know it now, or at their next fence."""
        key = id(part.store)
        for offset in np.unique(part.offsets).tolist():
            found = self.released.get((key, offset))
            if found is None:
                continue
            claims, scope, releaser = found
            scope = min(scope, strength.scope)
            threads = part.lanes.threads[part.offsets == offset]
            if strength.acquire and scope >= SCOPES[".gpu"]:
                self.learn(threads, claims)
                continue
            for thread in threads.tolist():
                if strength.acquire and self._includes(thread, releaser, scope):
                    self.learn(np.array([thread]), claims)
                elif not strength.acquire:
                    self._observe(thread, (claims, scope, releaser))

    def _observe(self, thread: int, release: tuple[Claims, int, int]) -> None:
        """Note for the thread's next fence what it has read, once while it polls."""
        seen = self.observed.setdefault(thread, [])
        if not seen or seen[-1][0] is not release[0]:
            seen.append(release)

    def release(self, part: Part, strength: Strength) -> None:
        """Threads write: who reads it with acquire knows what they know; a plain write breaks the chain."""
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
                claims, scope = union(claims, before[0]), min(scope, before[1])
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
        return scope == SCOPES[".cluster"] and bool(self.same_cluster(*pair)[0])

    def same_cluster(self, a: NDArray[np.int64], b: NDArray[np.int64]) -> Flags:
        def cluster(cta: NDArray[np.int64]) -> NDArray[np.int64]:
            grid, size = self.machine.launch.grid, self.machine.launch.cluster
            x, y, z = cta % grid[0], cta // grid[0] % grid[1], cta // (grid[0] * grid[1])
            found: NDArray[np.int64] = x // size[0] + grid[0] * (y // size[1] + grid[1] * (z // size[2]))
            return found

        same: Flags = cluster(a) == cluster(b)
        return same


def union(a: Claims, b: Claims) -> Claims:
    """Both sets of claims; of two about the same party, the later."""
    result = dict(a)
    for key, time in b.items():
        if result.get(key, 0) < time:
            result[key] = time
    return result
