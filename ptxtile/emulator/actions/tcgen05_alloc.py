"""tcgen05.alloc, dealloc, relinquish_alloc_permit (PTX ISA 9.7.16.7.1): columns of tensor memory, by whole warps.

A warp whose columns are not to be had yet, or of which some threads are missing, comes back as one that polls does.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.actions.access import space_of
from ptxtile.emulator.actions.bulk import named
from ptxtile.emulator.actions.control import fall_through
from ptxtile.emulator.group import Group
from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.memory import Offsets
from ptxtile.emulator.operands import Read, address_reader, reader, refuse_undefined
from ptxtile.emulator.ordering import Strength
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.proxies import Proxies
from ptxtile.emulator.races import NOBODY
from ptxtile.emulator.report import at_line, fault
from ptxtile.emulator.step import Control
from ptxtile.emulator.tensor_memory import COLUMNS, LANES, UNIT, WIDTH

Try = Callable[[Lanes], bool]
"""What a whole warp does; whether it could."""


def allocate(program: Program, site: Site) -> Control:
    """tcgen05.alloc: the address of the columns goes to shared memory."""
    operands, modifiers = named(site), site.instruction.form.modifiers
    locate, space = address_reader(program, site, operands["dst"]), space_of(program, site, operands["dst"])
    read = reader(program, site, operands["n_cols"], ".u32")
    pair, exclusive = ".cta_group::2" in modifiers, ".exclusive" in modifiers

    def attempt(lanes: Lanes) -> bool:
        memory, cta = lanes.wave.spaces.tensor, int(lanes.wave.cta[lanes.threads[0]])
        count = _columns(lanes, read, exclusive)
        if cta in memory.closed:
            text = "tensor memory: the CTA has given up the right to allocate"
            raise fault("tensor-memory", text, lanes, 0, f"at {at_line(memory.closed[cta])}")
        most = WIDTH if exclusive else COLUMNS
        if pair:
            paired(lanes, cta)
        first = (memory.allocate_pair if pair else memory.allocate)(cta, count, site, most)
        if first is None:
            return False
        _publish(lanes, space, locate(lanes), first)
        return True

    return _by_whole_warps(site, attempt)


def _columns(lanes: Lanes, read: Read, exclusive: bool) -> int:
    value, shadow = read(lanes)
    if shadow is not None:
        refuse_undefined(lanes, shadow, "how many columns are meant", "a register")
    count = int(value[0])
    if (value != value[0]).any():
        raise fault(
            "tensor-memory", "tensor memory: the threads of the warp name different columns", lanes, 0
        )
    most = WIDTH if exclusive else COLUMNS
    if count % UNIT or not UNIT <= count <= most or (not exclusive and count & count - 1):
        kind = "multiple of 32" if exclusive else "power of two"
        text = f"tensor memory: {count} columns; a number of columns is a {kind} from 32 to {most}"
        raise fault("tensor-memory", text, lanes, 0)
    return count


def paired(lanes: Lanes, cta: int) -> None:
    """Stop if the CTA has no other to form a pair with."""
    wave = lanes.wave
    if wave.cluster_size % 2:
        text = f"tensor memory: .cta_group::2 takes pairs of CTAs, and the cluster has {wave.cluster_size}"
        raise fault("tensor-memory", text, lanes, 0)
    other = wave.spaces.tensor.peer(cta)
    if not wave.live[other * wave.block : (other + 1) * wave.block].any():
        raise fault("exit", "exit: the other CTA of the pair has ended", lanes, 0)


def _publish(lanes: Lanes, space: str, addresses: NDArray[np.uint64], value: int) -> None:
    sanitizer, ordering = lanes.wave.machine.sanitizer, lanes.wave.machine.ordering
    held = np.full(lanes.count, value, np.uint32)
    for part in lanes.wave.spaces.parts(lanes, space, addresses, 4, "writes"):
        if part.store is not lanes.wave.spaces.shared:
            text = "out of bounds: the address of tensor memory goes to shared memory"
            raise fault("out-of-bounds", text, lanes, 0)
        if sanitizer is not None:
            sanitizer.write(part, 4, Strength(), (held[: part.lanes.count],))
        part.store.scatter(part.index(4), 4, held[: part.lanes.count])
    if ordering is not None:
        ordering.warp_sync(lanes.threads)


def free(program: Program, site: Site) -> Control:
    """tcgen05.dealloc: nothing may still be going on in the columns."""
    operands, modifiers = named(site), site.instruction.form.modifiers
    address = reader(program, site, operands["taddr"], ".u32")
    read = reader(program, site, operands["n_cols"], ".u32")
    exclusive = ".exclusive" in modifiers

    def attempt(lanes: Lanes) -> bool:
        memory, cta = lanes.wave.spaces.tensor, int(lanes.wave.cta[lanes.threads[0]])
        count = _columns(lanes, read, exclusive)
        value, shadow = address(lanes)
        if shadow is not None:
            refuse_undefined(lanes, shadow, "which columns are freed", "a register")
        first = int(value[0])
        memory.free(lanes, 0, cta, first, count)
        sanitizer = lanes.wave.machine.sanitizer
        if sanitizer is not None:
            lane, column = np.arange(LANES)[:, None], np.arange(first, first + count)[None, :]
            _settle(lanes, sanitizer.proxies, memory.cells(cta, lane, column).reshape(-1) * 4)
        return True

    return _by_whole_warps(site, attempt)


def _settle(lanes: Lanes, proxies: Proxies, offsets: Offsets) -> None:
    """Stop if work on these cells is not known to be over; then they are as good as new."""
    from ptxtile.emulator.machine import name_thread

    store, ordering = lanes.wave.spaces.tensor.store, proxies.ordering
    races = proxies.sanitizer.races_of(store, 4)
    assert races is not None and store.unwritten is not None
    granules = offsets // races.grain
    owned = granules[races.writes.owner[granules] != NOBODY]
    event = races.writes.event(owned)
    if len(owned):
        _, first = np.unique(event.thread << 32 | event.time, return_index=True)
        event = event.at(first)
        me = np.repeat(lanes.threads[:1], len(first))
        late = np.flatnonzero(~ordering.knows(me, event.thread, event.time))
        if len(late):
            other = proxies.started(int(event.thread[late[0]]), int(event.site[late[0]]))
            text = "in flight: tensor memory is freed, and nothing tells this warp that what is written there is done"
            raise fault("in-flight", text, lanes, 0, other)
    for key, reading in list(proxies.readings.items()):
        if reading.store is store and np.isin(reading.granules, granules).any():
            who, when = np.array([reading.agent]), np.array([reading.time])
            if not ordering.knows(lanes.threads[:1], who, when).all():
                name = name_thread(proxies.sanitizer.machine.launch, reading.thread)
                other = f"{name} started it at {at_line(reading.site)}"
                text = "in flight: tensor memory is freed, and nothing tells this warp that it has been read"
                raise fault("in-flight", text, lanes, 0, other)
            proxies.forget(key)
    races.writes.owner[granules] = NOBODY
    races.reads.owner[granules] = NOBODY
    store.unwritten.view(np.uint32)[offsets // 4] = 0xFFFFFFFF


def relinquish(lanes: Lanes) -> None:
    """tcgen05.relinquish_alloc_permit: these threads' CTAs allocate no more."""
    for cta in np.unique(lanes.wave.cta[lanes.threads]).tolist():
        lanes.wave.spaces.tensor.closed.setdefault(cta, lanes.step.site)


def _by_whole_warps(site: Site, attempt: Try) -> Control:
    def run(group: Group, lanes: Lanes) -> None:
        fall_through(group, lanes)
        wave = lanes.wave
        warps = wave.warp[lanes.where]
        done: NDArray[np.bool_] = np.zeros(lanes.count, np.bool_)
        for warp in np.unique(warps).tolist():
            mine = np.flatnonzero(warps == warp)
            if len(mine) == 32:
                done[mine] = attempt(lanes.at(mine))
        if done.any():
            wave.happened()
            wave.pool.add(group.at(site.number + 1, lanes.threads[done]))
        if not done.all():
            again = group.at(site.number, lanes.threads[~done])
            again.laps += 1
            wave.pool.add(again)

    return run
