"""Registers that warps give back to their CTA and ask of it (PTX ISA 9.7.19.5, setmaxnreg).

A launch gives every thread as many as `.maxnreg` says, else at most as many as fit when `.maxntid` or `.reqntid` and
`.minnctapersm` are kept. What a warpgroup gives back goes into the pool of its CTA; who asks for more waits until the
pool has it. A kernel without any of these directives has no count to change, and the instruction does nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.group import Group
from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.program import Site
from ptxtile.emulator.report import at_line, count_of, fault

if TYPE_CHECKING:
    from ptxtile.emulator.machine import Launch, Wave

FILE = 65536
"""32-bit registers of a multiprocessor."""
STEP = 8
MOST = 256


@dataclass(frozen=True, slots=True)
class Asking:
    """Threads of a group, all of one warpgroup, that wait for registers: `need` of them in all."""

    group: Group
    lanes: Lanes
    site: Site
    cta: int
    need: int
    count: int


def at_launch(launch: Launch) -> tuple[int | None, bool]:
    """How many registers each thread has to begin with, None if nothing says so, and whether it cannot be fewer."""
    sizes: dict[str, list[int]] = {}
    for directive in launch.entry.function.directives:
        sizes[directive.name] = [int(value) for value in directive.values if isinstance(value, int)]
    if "maxnreg" in sizes:
        return sizes["maxnreg"][0], True
    block = sizes.get("reqntid") or sizes.get("maxntid")
    if block is None:
        return None, False
    threads = int(np.prod(block)) * (sizes.get("minnctapersm") or [1])[0]
    return min(MOST, FILE // max(threads, 1) // STEP * STEP), False


class RegisterPool:
    """The counts of a wave's threads, and what each CTA has left."""

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        self.start, self.exact = at_launch(wave.launch)
        self.held: NDArray[np.int64] = np.full(wave.count, self.start or 0, np.int64)
        self.free: NDArray[np.int64] = np.zeros(wave.ctas, np.int64)
        self.asking: list[Asking] = []

    def change(self, group: Group, lanes: Lanes, site: Site, count: int, more: bool) -> None:
        """These threads give back all but `count` registers each, or ask for so many."""
        if self.start is None:
            self._resume(group, lanes.threads, site)
            return
        self._check(lanes, count, more)
        warpgroups = self.wave.warpgroups.number(lanes)
        for number in np.unique(warpgroups):
            mine = lanes.narrow(warpgroups == number)
            cta = int(self.wave.cta[mine.threads[0]])
            change = int((count - self.held[mine.threads]).sum())
            if more:
                self.asking.append(Asking(group, mine, site, cta, change, count))
            else:
                self.held[mine.threads] = count
                self.free[cta] -= change
                self.wave.happened()
                self._resume(group, mine.threads, site)
        self._serve()

    def _check(self, lanes: Lanes, count: int, more: bool) -> None:
        held = self.held[lanes.threads]
        # Where the start is only known not to be more, a thread may well have had fewer than it asks for.
        wrong = (held > count) & self.exact if more else held < count
        if wrong.any():
            position = int(np.flatnonzero(wrong)[0])
            have = int(held[position])
            way, what = ("inc", "more") if more else ("dec", "fewer")
            text = f"registers: setmaxnreg.{way} to {count}, where the thread has {have}, which is {what} already"
            raise fault("registers", text, lanes, position)

    def _serve(self) -> None:
        """Give to those who have asked, in their order, what the pools have."""
        waiting, self.asking = self.asking, []
        for each in waiting:
            if each.need > self.free[each.cta]:
                self.asking.append(each)
                continue
            self.free[each.cta] -= each.need
            self.held[each.lanes.threads] = each.count
            self.wave.happened()
            self._resume(each.group, each.lanes.threads, each.site)

    def _resume(self, group: Group, threads: NDArray[np.intp], site: Site) -> None:
        self.wave.pool.add(group.at(site.number + 1, threads))

    def explain(self) -> list[str]:
        """Who waits for how many registers."""
        lines = []
        for each in self.asking[:8]:
            who = self.wave.thread_name(int(each.lanes.threads[0]))
            threads = count_of(each.lanes.count, "thread")
            left = count_of(int(self.free[each.cta]), "register")
            lines.append(
                f"{threads} ({who}, …) wait for {each.need} registers, and their CTA has {left} to give, at "
                f"{at_line(each.site)}"
            )
        return lines

    def first_site(self) -> Site | None:
        """The instruction of the first who wait, if any do."""
        return self.asking[0].site if self.asking else None
