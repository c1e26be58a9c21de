"""Warpgroups: four warps that execute a matrix operation together (PTX ISA 9.7.15)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.group import Group
from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.program import Site
from ptxtile.emulator.register_pool import RegisterPool
from ptxtile.emulator.report import at_line, count_of, fault

if TYPE_CHECKING:
    from ptxtile.emulator.machine import Wave

THREADS = 128


@dataclass(frozen=True, slots=True)
class Standing:
    """Threads of a group that wait for the rest of their warpgroup."""

    group: Group
    lanes: Lanes
    site: Site


class Warpgroups:
    """Who waits for the rest of a warpgroup, in a wave."""

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        self.waiting: list[Standing] = []
        self.registers = RegisterPool(wave)

    def number(self, lanes: Lanes) -> NDArray[np.int64]:
        """By thread: its warpgroup, numbered through the wave."""
        wave = self.wave
        found: NDArray[np.int64] = (
            wave.cta[lanes.where] * -(-wave.block // THREADS) + wave.tid[lanes.where] // THREADS
        )
        return found

    def arrive(self, group: Group, lanes: Lanes, site: Site, act: Callable[[Lanes], None]) -> None:
        """Threads come to an operation; the warpgroups that are all there execute it and go on."""
        if self._complete(lanes).all():
            self._go(group, lanes, site, act)
            return
        self._check(lanes)
        alike = [each for each in self.waiting if each.site is site and each.group.frame is group.frame]
        threads = np.sort(np.concatenate([lanes.threads, *(each.lanes.threads for each in alike)]))
        together = Lanes(self.wave, lanes.registers, threads, lanes.step)
        ready = self._complete(together)
        self.waiting = [each for each in self.waiting if each not in alike]
        if ready.any():
            self._go(group, together.narrow(ready), site, act)
        if not ready.all():
            rest = together.at(np.flatnonzero(~ready))
            self.waiting.append(Standing(group.at(site.number, rest.threads), rest, site))

    def _go(self, group: Group, lanes: Lanes, site: Site, act: Callable[[Lanes], None]) -> None:
        act(Lanes(self.wave, lanes.registers, lanes.threads, lanes.step))
        self.wave.happened()
        self.wave.pool.add(group.at(site.number + 1, lanes.threads))

    def _complete(self, lanes: Lanes) -> NDArray[np.bool_]:
        """By thread: whether all of its warpgroup are among these."""
        number = self.number(lanes)
        first = int(number.min())
        found: NDArray[np.bool_] = np.bincount(number - first)[number - first] == THREADS
        return found

    def _check(self, lanes: Lanes) -> None:
        """A warpgroup of which a thread is missing for good can never execute the operation."""
        wave = self.wave
        number = self.number(lanes)
        everyone = wave.cta * -(-wave.block // THREADS) + wave.tid // THREADS
        living = np.bincount(everyone[wave.live], minlength=int(everyone.max()) + 1)
        short = living[number] < THREADS
        if short.any():
            position = int(np.flatnonzero(short)[0])
            text = f"the warpgroup has {count_of(int(living[number[position]]), 'thread')} left; all 128 must take part"
            raise fault("barrier", text, lanes, position)

    def explain(self) -> list[str]:
        """Who waits where for the rest of a warpgroup, or for registers."""
        lines = self.registers.explain()
        for each in self.waiting[:8]:
            who = self.wave.thread_name(int(each.lanes.threads[0]))
            count = count_of(each.lanes.count, "thread")
            lines.append(f"{count} ({who}, …) wait for the rest of their warpgroup at {at_line(each.site)}")
        return lines

    def first_site(self) -> Site | None:
        """The instruction of the first thread that waits, if any does."""
        return self.waiting[0].site if self.waiting else self.registers.first_site()
