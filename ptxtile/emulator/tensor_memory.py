"""Tensor memory (PTX ISA 9.7.16.1, 9.7.16.7): 128 lanes of 512 columns of 32 bits for each CTA, allocated by columns.

A cell's number is (cta * 128 + lane) * WIDTH + column; the store behind it is made at its first use. Each CTA has all
columns to itself: how many CTAs share an SM is the device's affair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.lanes import Lanes, Threads
from ptxtile.emulator.memory import Store
from ptxtile.emulator.program import Site
from ptxtile.emulator.report import at_line, count_of, fault, stop
from ptxtile.emulator.widths import Bits

if TYPE_CHECKING:
    from ptxtile.emulator.machine import Wave

Cells = NDArray[np.int64]

LANES = 128
COLUMNS = 512
WIDTH = 576
"""Columns of a lane in the store: as many as the largest exclusive allocation may have."""
UNIT = 32
"""Columns that are allocated together."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """Columns `first` to `first + count - 1` of a CTA of the wave, and the instruction that took them."""

    cta: int
    first: int
    count: int
    site: Site


class TensorMemory:
    """The tensor memory of a wave's CTAs.

    live    by CTA: its allocations
    freed   by CTA and column: the instruction that freed it last
    closed  CTAs that have given up the right to allocate, with the instruction
    flights the cells that work in flight will write
    wanted, granted   by CTA of a pair: columns asked for with .cta_group::2, and the column it got
    """

    def __init__(self, wave: Wave, sanitize: bool) -> None:
        self.wave = wave
        self.sanitize = sanitize
        self.live: dict[int, list[Allocation]] = {}
        self.freed: dict[tuple[int, int], Site] = {}
        self.closed: dict[int, Site] = {}
        self.wanted: dict[int, int] = {}
        self.granted: dict[int, int] = {}
        self.flights: list[Cells] = []
        self._store: Store | None = None

    @property
    def store(self) -> Store:
        """The cells of all CTAs, four bytes each."""
        if self._store is None:
            size = self.wave.ctas * LANES * WIDTH * 4
            self._store = Store("tensor memory", 0, size, written=not self.sanitize)
        return self._store

    @property
    def words(self) -> Bits:
        """The cells as uint32; writing to it writes to the store."""
        return self.store.data.view(np.uint32)

    @property
    def unwritten(self) -> Bits | None:
        """The cells' bits that were never written, or None without the sanitizer."""
        found = self.store.unwritten
        return None if found is None else found.view(np.uint32)

    def cells(self, cta: int, lane: NDArray[np.int64], column: NDArray[np.int64]) -> Cells:
        """The numbers of cells; lanes and columns broadcast."""
        return (cta * LANES + lane) * WIDTH + column

    def peer(self, cta: int) -> int:
        """The other CTA of a pair: the ranks in the cluster differ in the last bit."""
        return cta + 1 - 2 * (int(self.wave.rank[cta]) & 1)

    # --- allocation ---------------------------------------------------------------------------------------------------
    def allocate(self, cta: int, count: int, site: Site, most: int = COLUMNS) -> int | None:
        """The first of `count` free columns, which are now taken; None if there are not as many together."""
        taken = self.live.setdefault(cta, [])
        for first in range(0, most - count + 1, UNIT):
            if all(first + count <= each.first or each.first + each.count <= first for each in taken):
                taken.append(Allocation(cta, first, count, site))
                return first
        return None

    def allocate_pair(self, cta: int, count: int, site: Site, most: int) -> int | None:
        """The same for a pair of CTAs: both ask, and both get the same columns."""
        if cta in self.granted:
            return self.granted.pop(cta)
        self.wanted[cta] = count
        other = self.peer(cta)
        if self.wanted.get(other) != count:
            return None
        firsts = [self.allocate(each, count, site, most) for each in (cta, other)]
        if None in firsts or firsts[0] != firsts[1]:
            for each, first in zip((cta, other), firsts):
                if first is not None:
                    self.live[each].pop()
            return None
        del self.wanted[cta], self.wanted[other]
        self.granted[other] = int(firsts[0] or 0)
        return firsts[0]

    def free(self, lanes: Lanes, position: int, cta: int, first: int, count: int) -> None:
        """Give columns back; what is not an allocation of the CTA is an error."""
        for each in self.live.get(cta, []):
            if (each.first, each.count) == (first, count):
                self.live[cta].remove(each)
                self.freed.update(
                    dict.fromkeys(((cta, c) for c in range(first, first + count)), lanes.step.site)
                )
                return
        have = ", ".join(f"{each.count} from {each.first}" for each in self.live.get(cta, []))
        text = (
            f"tensor memory: {count} columns from {first} are freed, and no allocation of the CTA is that; "
            + (f"it has {have}" if have else "it has none")
        )
        raise fault("tensor-memory", text, lanes, position)

    # --- checks -------------------------------------------------------------------------------------------------------
    def check(
        self, lanes: Lanes, position: int, cta: int, columns: tuple[int, int], verb: str, lane: int = 0
    ) -> None:
        """Stop unless all columns from the first to the last one are allocated, and the lane is one."""
        first, last = columns
        if lane >= LANES:
            text = f"tensor memory: {verb} lane {lane}; there are {LANES}"
            raise fault("tensor-memory", text, lanes, position)
        column = first
        taken = sorted((each.first, each.count) for each in self.live.get(cta, []))
        for start, count in taken:
            if start <= column < start + count:
                column = start + count
        if column > last:
            return
        site = self.freed.get((cta, column))
        fate = "is not allocated" if site is None else f"was freed at {at_line(site)}"
        span = f"column {first}" if first == last else f"columns {first} to {last}"
        raise fault(
            "tensor-memory", f"tensor memory: {verb} {span}, and column {column} {fate}", lanes, position
        )

    def check_exit(self, threads: Threads) -> None:
        """These threads have ended: stop if their CTA has and still holds columns."""
        wave = self.wave
        if not self.sanitize or not any(self.live.values()):
            return
        for cta in np.unique(wave.cta[threads]).tolist():
            held = self.live.get(cta)
            if held and not wave.live[cta * wave.block : (cta + 1) * wave.block].any():
                name = wave.thread_name(cta * wave.block).partition(" of ")[2]
                text = (
                    f"tensor memory: {name} has ended with {count_of(held[0].count, 'column')} from {held[0].first} "
                    "allocated; tcgen05.dealloc gives them back"
                )
                raise stop("tensor-memory", text, held[0].site)
