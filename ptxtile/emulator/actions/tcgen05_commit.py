"""tcgen05.commit (PTX ISA 9.7.16.12.1), and how copies and products of tensor memory are queued.

The work of a thread is done in the order in which it was issued, when an mbarrier is waited for to which a commit tied
it. Until then nobody may touch what it writes, or change what it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator import windows
from ptxtile.emulator.actions.access import space_of
from ptxtile.emulator.actions.bulk import cta_of, named
from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.mbarrier import MBarrier, Misuse
from ptxtile.emulator.memory import Addresses, Offsets
from ptxtile.emulator.operands import address_reader, reader
from ptxtile.emulator.ordering import Claims
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.proxies import Actor, Proxies
from ptxtile.emulator.report import fault
from ptxtile.emulator.step import Run
from ptxtile.emulator.tensor_memory import Cells
from ptxtile.emulator.transfer import barrier_of
from ptxtile.emulator.widths import Bits


@dataclass(frozen=True, slots=True)
class Touched:
    """What work of one thread reads and writes.

    shared   byte offsets of granules of four bytes in the wave's shared memory
    read, written   cells of tensor memory
    """

    shared: Sequence[Offsets]
    read: Sequence[Cells]
    written: Cells


def _agents(lanes: Lanes, proxies: Proxies) -> tuple[int, int]:
    """What stands for what a thread's work reads, and for what it writes; all of a pair of CTAs is in order."""
    wave = lanes.wave
    thread = int(proxies.ordering.id[lanes.threads[0]])
    pipe = "tcgen05", int(wave.number[wave.cta[lanes.threads[0]]]) // 2
    return proxies.piped(pipe, "tcgen05.read", thread), proxies.piped(pipe, "tcgen05.write", thread)


def queue(lanes: Lanes, touched: Touched, act: Callable[[], None]) -> None:
    """Queue work of the only thread of `lanes`; what it touches belongs to it until it is done."""
    wave, site = lanes.wave, lanes.step.site
    memory, sanitizer = wave.spaces.tensor, wave.machine.sanitizer
    granules = touched.written.reshape(-1)
    agent = 0
    if sanitizer is not None:
        reads, agent = _agents(lanes, sanitizer.proxies)
        for offsets in touched.shared:
            sanitizer.proxies.read(
                Actor(lanes, 0, lanes.threads, reads), wave.spaces.shared, offsets.reshape(-1)
            )
        for cells in touched.read:
            actor = Actor(lanes, 0, lanes.threads, reads, False)
            sanitizer.proxies.read(actor, memory.store, cells.reshape(-1) * 4)
        actor = Actor(lanes, 0, lanes.threads, agent, False)
        sanitizer.proxies.write(actor, memory.store, granules * 4, 4)
        memory.flights.append(granules)

    def effect(positions: NDArray[np.intp]) -> None:
        act()
        if sanitizer is not None:
            memory.flights[:] = [each for each in memory.flights if each is not granules]
            done = granules
            for other in memory.flights:
                done = done[~np.isin(done, other)]
            sanitizer.ordering.now += 1
            sanitizer.proxies.land(agent, site, memory.store, done * 4, 4)

    ctas = [np.unique(offsets // wave.spaces.shared_stride) for offsets in touched.shared]
    uses = frozenset(cta for found in ctas for cta in found.tolist())
    wave.pending.start(site, lanes.threads, effect, "async", "tcgen05", None, uses)


def commit(program: Program, site: Site) -> Run:
    """An arrival, on one mbarrier or on that of each CTA in a mask, when the thread's work so far is done."""
    operands = named(site)
    locate, space = address_reader(program, site, operands["mbar"]), space_of(program, site, operands["mbar"])
    read = reader(program, site, operands["cta_mask"], ".b16") if "cta_mask" in operands else None

    def run(lanes: Lanes) -> None:
        addresses = locate(lanes)
        masks = None if read is None else read(lanes)[0]
        for position in range(lanes.count):
            one = lanes.at(np.array([position]))
            mask = None if masks is None else int(masks[position])
            _tie(one, _barriers(one, space, addresses[position : position + 1], mask))

    return run


def _barriers(lanes: Lanes, space: str, address: Bits, mask: int | None) -> list[tuple[int, MBarrier]]:
    """The mbarriers, with their CTAs."""
    wave, found = lanes.wave, []
    within = np.uint64((1 << windows.RANK_SHIFT) - 1)
    ranks = [None] if mask is None else [rank for rank in range(16) if mask >> rank & 1]
    for rank in ranks:
        place: Addresses = address.astype(np.uint64)
        if rank is not None:
            if rank >= wave.cluster_size:
                text = f"out of bounds: an arrival at CTA {rank} of a cluster of {wave.cluster_size}"
                raise fault("out-of-bounds", text, lanes, 0)
            generic = windows.SHARED_WINDOW if not space else 0
            place = (place & within) + np.uint64((rank << windows.RANK_SHIFT) + generic)
        (part,) = wave.spaces.parts(lanes, space, place, 8, "arrives on an mbarrier of")
        if part.store is not wave.spaces.shared:
            raise fault("out-of-bounds", "an mbarrier must lie in shared memory", lanes, 0)
        found.append((cta_of(part), barrier_of(part, proxied=False)))
    return found


def _tie(lanes: Lanes, barriers: list[tuple[int, MBarrier]]) -> None:
    wave, thread = lanes.wave, int(lanes.threads[0])
    pending, sanitizer = wave.pending, wave.machine.sanitizer
    pending.commit(lanes.threads, "tcgen05")
    last = pending.committed_groups(thread, "tcgen05") - 1
    issued = 0 if sanitizer is None else sanitizer.ordering.now

    def effect(positions: NDArray[np.intp]) -> None:
        pending.wait_group(thread, "tcgen05", last)
        claims: Claims = {}
        if sanitizer is not None:
            reads, writes = _agents(lanes, sanitizer.proxies)
            claims = sanitizer.proxies.done(writes) | {("thread", reads): issued}
        for _, barrier in barriers:
            try:
                barrier.arrive(1, claims)
            except Misuse as misuse:
                raise fault("mbarrier", f"mbarrier: {misuse}", lanes, 0) from None

    uses = frozenset(cta for cta, _ in barriers)
    pending.start(lanes.step.site, lanes.threads, effect, "async", "mbarrier", None, uses)
