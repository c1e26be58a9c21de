"""The barrier of a cluster (PTX ISA 9.7.13.4): every living thread arrives, and later waits for the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.lanes import Lanes, Threads
from ptxtile.emulator.ordering import Claims, union
from ptxtile.emulator.program import Site
from ptxtile.emulator.report import at_line, count_of, fault, stop

if TYPE_CHECKING:
    from ptxtile.emulator.machine import Wave

HERE, ARRIVED, PASSED = 0, 1, 2
"""A thread has yet to arrive; has arrived; may go on when it waits."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Threads of one group that wait, and what lets them go on."""

    site: Site
    threads: Threads
    resume: Callable[[Threads], None]


class ClusterBarriers:
    """The barriers of all clusters of a wave."""

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        self.state: NDArray[np.int8] = np.zeros(wave.count, np.int8)
        self.cluster: NDArray[np.int64] = wave.cta // wave.cluster_size
        self.waiting: list[Waiting] = []
        self.arrivals: list[tuple[Threads, int, bool]] = []
        self.claims: dict[int, Claims] = {}
        self.visits: dict[int, dict[tuple[int, int], tuple[int, Site]]] = {}
        self.complete: dict[int, int] = {}

    def arrive(self, site: Site, threads: Threads, releases: bool) -> None:
        """Threads arrive. `releases`: what they did before is visible to those who acquire."""
        twice = self.state[threads] != HERE
        if twice.any():
            who = self.wave.thread_name(int(threads[np.flatnonzero(twice)[0]]))
            raise stop("barrier", "a thread arrives at the cluster barrier twice without waiting", site, who)
        self.state[threads] = ARRIVED
        ordering = self.wave.machine.ordering
        if ordering is not None:
            self.arrivals.append((threads, ordering.now, releases))
            ordering.now += 1
        self._complete(np.unique(self.cluster[threads]))

    def wait(self, site: Site, threads: Threads, resume: Callable[[Threads], None]) -> None:
        """Threads wait; those whose barrier is complete go on at once."""
        early = self.state[threads] == HERE
        if early.any():
            who = self.wave.thread_name(int(threads[np.flatnonzero(early)[0]]))
            raise stop("barrier", "a thread waits at the cluster barrier without having arrived", site, who)
        self.waiting.append(Waiting(site, threads, resume))
        self._let_go()

    def recount(self, threads: Threads) -> None:
        """These threads have ended: nobody waits for them any more."""
        if self.arrivals or self.waiting:
            self._complete(np.unique(self.cluster[threads]))

    def _complete(self, clusters: NDArray[np.int64]) -> None:
        missing = np.unique(self.cluster[self.wave.live & (self.state == HERE)])
        for cluster in np.setdiff1d(clusters, missing).tolist():
            members = (self.cluster == cluster) & (self.state == ARRIVED)
            if members.any():
                self.state[members] = PASSED
                self._order(cluster)
        self._let_go()

    def visit(self, lanes: Lanes, ctas: NDArray[np.int64]) -> None:
        """Threads access the shared memory of these CTAs of the wave: those of others must outlive the access."""
        wave, ordering = self.wave, self.wave.machine.ordering
        elsewhere = np.flatnonzero(ctas != wave.cta[lanes.where])
        if ordering is None or not len(elsewhere):
            return
        site = lanes.step.site
        for position in elsewhere.tolist():
            thread, cta = int(lanes.threads[position]), int(ctas[position])
            if not wave.live[cta * wave.block : (cta + 1) * wave.block].any():
                text = f"exit: shared memory of {self._name(cta)}, which has ended, is accessed"
                raise fault("exit", text, lanes, position)
            self.visits.setdefault(cta, {})[thread, site.number] = (ordering.now, site)

    def covered(self, lanes: Lanes, cta: int) -> None:
        """The access of the only thread of `lanes` is asynchronous work, which is watched until it is done."""
        self.visits.get(cta, {}).pop((int(lanes.threads[0]), lanes.step.site.number), None)

    def check_exit(self, threads: Threads) -> None:
        """These threads have ended: stop if others' accesses to their CTA's shared memory need not be over."""
        wave, ordering = self.wave, self.wave.machine.ordering
        if ordering is None or not self.visits:
            return
        for cta in np.unique(wave.cta[threads]).tolist():
            members = slice(cta * wave.block, (cta + 1) * wave.block)
            if cta not in self.visits or wave.live[members].any():
                continue
            everyone = np.arange(members.start, members.stop)
            for (thread, _), (time, site) in self.visits.pop(cta).items():
                who, when = np.full(wave.block, ordering.id[thread]), np.full(wave.block, time)
                if not ordering.knows(everyone, who, when).any():
                    text = f"exit: {self._name(cta)} ends, and nothing tells it that this access to its memory is over"
                    raise stop("exit", text, site, wave.thread_name(thread))

    def _name(self, cta: int) -> str:
        return self.wave.thread_name(cta * self.wave.block).partition(" of ")[2]

    def _order(self, cluster: int) -> None:
        ordering = self.wave.machine.ordering
        if ordering is None:
            return
        self.complete[cluster] = ordering.now
        mine = [(t[self.cluster[t] == cluster], time, rel) for t, time, rel in self.arrivals]
        self.arrivals = [(t[self.cluster[t] != cluster], time, rel) for t, time, rel in self.arrivals]
        self.arrivals = [each for each in self.arrivals if len(each[0])]
        self.claims[cluster] = ordering.arrived(
            [(t, time) for t, time, releases in mine if releases and len(t)]
        )
        for threads, _, releases in mine:  # what a fence released before a relaxed arrival
            for thread in () if releases else threads.tolist():
                if thread in ordering.fenced:
                    self.claims[cluster] = union(self.claims[cluster], ordering.fenced[thread][0])

    def _acquire(self, threads: Threads) -> None:
        ordering = self.wave.machine.ordering
        if ordering is not None:
            for cluster in np.unique(self.cluster[threads]).tolist():
                own = threads[self.cluster[threads] == cluster]
                ordering.learn(own, self.claims.get(cluster, {}))
                for cta in np.unique(self.wave.cta[own]).tolist() if self.visits else ():
                    self._forget(cta, self.complete[cluster])

    def _forget(self, cta: int, time: int) -> None:
        """Somebody of this CTA has waited for all of its cluster: accesses before that are over."""
        left = {who: visit for who, visit in self.visits.get(cta, {}).items() if visit[0] > time}
        if left:
            self.visits[cta] = left
        else:
            self.visits.pop(cta, None)

    def _let_go(self) -> None:
        kept = []
        waiting, self.waiting = self.waiting, []
        for each in waiting:
            passed = self.state[each.threads] == PASSED
            if not passed.all():
                kept.append(Waiting(each.site, each.threads[~passed], each.resume))
            going = each.threads[passed]
            if len(going):
                self.state[going] = HERE
                self._acquire(going)
                self.wave.happened()
                each.resume(going)
        self.waiting.extend(kept)

    def first_site(self) -> Site | None:
        """The instruction of the first thread that waits, if any does."""
        return self.waiting[0].site if self.waiting else None

    def explain(self) -> list[str]:
        """How many threads each cluster's barrier lacks, and who waits."""
        lines = []
        for each in self.waiting[:8]:
            cluster = int(self.cluster[each.threads[0]])
            members = (self.cluster == cluster) & self.wave.live
            there = int((members & (self.state != HERE)).sum())
            who = self.wave.thread_name(int(each.threads[0]))
            lines.append(
                f"the cluster barrier has {there} of {count_of(int(members.sum()), 'thread')}; waiting: {who}, … at "
                f"{at_line(each.site)}"
            )
        return lines
