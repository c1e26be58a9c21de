"""CTA barriers (PTX ISA 9.7.13.1) and bar.warp.sync (9.7.13.2)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.actions.cluster import cluster_barrier
from ptxtile.emulator.actions.control import fall_through
from ptxtile.emulator.barrier import Waiting
from ptxtile.emulator.group import Group
from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.operands import Read, Write, reader, refuse_undefined, writer
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.rendezvous import Arrival, Meeting
from ptxtile.emulator.step import Control, control
from ptxtile.emulator.widths import Bits
from ptxtile.ir.operand import Operand

REDUCTIONS = {".popc", ".and", ".or"}


@control("bar", "barrier")
def bar(program: Program, site: Site) -> Control:
    """bar and barrier: sync, arrive, red; bar.warp.sync."""
    modifiers = site.instruction.form.modifiers
    if ".cluster" in modifiers:
        return cluster_barrier(program, site)
    if ".warp" in modifiers:
        return _warp_sync(program, site)
    aligned = site.opcode == "bar" or ".aligned" in modifiers
    operands = site.instruction.operands
    destination: Operand | None = None
    vote: Operand | None = None
    if ".red" in modifiers:
        destination, vote = operands[0], operands[-1]
        operands = operands[1:-1]
    reads = [reader(program, site, operand, ".u32") for operand in operands]
    read_vote = None if vote is None else reader(program, site, vote, ".pred")
    deliver = None if destination is None else _deliver(site, destination)
    return _barrier(site, reads, read_vote, deliver, aligned, ".arrive" not in modifiers)


def _barrier(
    site: Site,
    reads: list[Read],
    read_vote: Read | None,
    deliver: Callable[[Lanes, NDArray[np.int64]], None] | None,
    aligned: bool,
    blocks: bool,
) -> Control:
    def run(group: Group, lanes: Lanes) -> None:
        fall_through(group, lanes)
        if not lanes.count:
            return
        wave = lanes.wave
        barrier = _numbers(lanes, reads[0]) if reads else np.zeros(lanes.count, np.int64)
        wanted = _numbers(lanes, reads[1]) if len(reads) > 1 else np.zeros(lanes.count, np.int64)
        vote = None if read_vote is None else np.asarray(read_vote(lanes)[0], np.bool_)

        def resume(positions: NDArray[np.intp], votes: NDArray[np.int64]) -> None:
            if deliver is not None:
                deliver(lanes.at(positions), votes)
            wave.pool.add(group.at(site.number + 1, lanes.threads[positions]))

        now = 0
        if wave.machine.ordering is not None:
            now = wave.machine.ordering.now
            wave.machine.ordering.now += 1
        if not blocks:
            wave.pool.add(group.at(site.number + 1, lanes.threads))
        waiting = Waiting(
            group,
            site,
            lanes.threads,
            barrier,
            wanted,
            aligned,
            blocks,
            now,
            resume if blocks else None,
            vote,
        )
        wave.barriers.arrive(waiting)

    return run


def _numbers(lanes: Lanes, read: Read) -> NDArray[np.int64]:
    value, shadow = read(lanes)
    if shadow is not None:
        refuse_undefined(lanes, shadow, "which barrier is meant", "a register")
    return value.astype(np.int64)


def _deliver(site: Site, destination: Operand) -> Callable[[Lanes, NDArray[np.int64]], None]:
    modifiers = site.instruction.form.modifiers
    kind = next(modifier for modifier in modifiers if modifier in REDUCTIONS)
    write: Write = writer(site, destination, ".u32" if kind == ".popc" else ".pred")

    def deliver(lanes: Lanes, votes: NDArray[np.int64]) -> None:
        true, total = votes >> 32, votes & 0xFFFFFFFF
        result: Bits = true.astype(np.uint32)
        if kind != ".popc":
            result = true == total if kind == ".and" else true > 0
        write(lanes, result, None)

    return deliver


def _warp_sync(program: Program, site: Site) -> Control:
    read = reader(program, site, site.instruction.operands[-1], ".b32")

    def run(group: Group, lanes: Lanes) -> None:
        fall_through(group, lanes)
        if not lanes.count:
            return
        mask, shadow = read(lanes)
        if shadow is not None:
            refuse_undefined(lanes, shadow, "the member mask", "a register")
        lanes.wave.rendezvous.arrive(
            Arrival(
                group, lanes, site, lanes.threads, mask.astype(np.uint32), (), _nothing, _forget, orders=True
            )
        )

    return run


def _nothing(meeting: Meeting) -> tuple[Bits, ...]:
    return ()


def _forget(lanes: Lanes, results: tuple[Bits, ...]) -> None:
    return
