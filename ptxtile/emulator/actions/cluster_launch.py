"""clusterlaunchcontrol (PTX ISA 9.7.13.17, 9.7.13.18): take over the work of clusters that have not been started.

The answer is written when the copy engine pleases, like a bulk copy's bytes. Its 16 bytes are four words: the CTA's
x, y and z, and 1 where a launch was cancelled.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator import windows
from ptxtile.emulator.actions.bulk import cta_of, destinations
from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.memory import Addresses
from ptxtile.emulator.operands import address_reader, reader, refuse_undefined, writer
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.report import fault
from ptxtile.emulator.step import Run, action
from ptxtile.emulator.transfer import Bytes, Source, Target, Transfer, barrier_of
from ptxtile.ir.operand import Vector

BYTES = 16
CANCELLED = 1


@action("clusterlaunchcontrol")
def cluster_launch(program: Program, site: Site) -> Run:
    """try_cancel, or one of the questions to its answer."""
    if ".try_cancel" in site.instruction.form.modifiers:
        return _try_cancel(program, site)
    return _query(program, site)


def _try_cancel(program: Program, site: Site) -> Run:
    modifiers = site.instruction.form.modifiers
    named = ".shared::cta" in modifiers
    everywhere = ".multicast::cluster::all" in modifiers
    places = [address_reader(program, site, operand) for operand in site.instruction.operands]

    def run(lanes: Lanes) -> None:
        target, barrier = (locate(lanes) for locate in places)
        if not named:
            target, barrier = _in_shared(lanes, target), _in_shared(lanes, barrier)
        refused = lanes.wave.machine.refused
        for position in range(lanes.count):
            one = lanes.at(np.array([position]))
            if lanes.wave.launch.sanitize and int(one.wave.cta[one.threads[0]]) in refused:
                text = "cluster-launch: the CTA asks again after it has seen that there is nothing left to cancel"
                raise fault("cluster-launch", text, one, 0)
            mask = (1 << lanes.wave.cluster_size) - 1 if everywhere else None
            _ask(one, target[position : position + 1], barrier[position : position + 1], mask)

    return run


def _in_shared(lanes: Lanes, addresses: Addresses) -> Addresses:
    """Generic addresses as those of shared memory."""
    for position, address in enumerate(addresses.tolist()):
        if windows.space_of(address) != "shared":
            text = f"out of bounds: the address {address:#x} is not in shared memory"
            raise fault("out-of-bounds", text, lanes, position)
    inside: Addresses = addresses - np.uint64(windows.SHARED_WINDOW)
    return inside


def _ask(lanes: Lanes, target: Addresses, barrier: Addresses, mask: int | None) -> None:
    """The request of one thread."""
    targets = []
    for part, counter in destinations(lanes, "shared::cluster", target, barrier, mask, BYTES):
        assert counter is not None
        start = int(part.offsets[0])
        offsets = np.arange(start, start + BYTES, BYTES)
        targets.append(
            Target(part.store, offsets, BYTES, cta=cta_of(part), barrier=barrier_of(counter), size=BYTES)
        )
    machine = lanes.wave.machine

    def take() -> tuple[Bytes, None]:
        return _answer(machine.waiting.cancel(), lanes.wave.launch.grid), None

    Transfer(lanes, Source(None, np.zeros(0, np.int64), take), targets, "mbarrier").start()


def _answer(first: int | None, grid: tuple[int, int, int]) -> Bytes:
    words = np.zeros(4, np.uint32)
    if first is not None:
        words[:] = first % grid[0], first // grid[0] % grid[1], first // grid[0] // grid[1], CANCELLED
    return words.view(np.uint8)


def _query(program: Program, site: Site) -> Run:
    modifiers = site.instruction.form.modifiers
    destination, response = site.instruction.operands
    read = reader(program, site, response, ".b128")
    asks = ".is_canceled" in modifiers
    parts = destination.elements if isinstance(destination, Vector) else (destination,)
    writes = [writer(site, part, ".pred" if asks else ".b32") for part in parts]
    axis = next(
        (number for number, name in enumerate("xyz") if f".get_first_ctaid::{name}" in modifiers), None
    )

    def run(lanes: Lanes) -> None:
        words = _words(lanes, read(lanes))
        won = words[:, 3] == CANCELLED
        if asks:
            lanes.wave.machine.refused.update(lanes.wave.cta[lanes.threads[~won]].tolist())
            writes[0](lanes, won, None)
            return
        if lanes.wave.launch.sanitize and not won.all():
            text = "cluster-launch: the CTA of an answer that nothing was cancelled is asked for"
            raise fault("cluster-launch", text, lanes, int(np.flatnonzero(~won)[0]))
        columns = range(4) if axis is None else [axis]
        for write, column in zip(writes, columns):
            value = words[:, column] if column < 3 else np.zeros(lanes.count, np.uint32)
            write(lanes, np.ascontiguousarray(value), None)

    return run


def _words(lanes: Lanes, found: tuple[NDArray[np.generic], NDArray[np.generic] | None]) -> NDArray[np.uint32]:
    value, shadow = found
    if shadow is not None:
        refuse_undefined(lanes, shadow, "what try_cancel answered", "a register")
    pairs = np.ascontiguousarray(np.broadcast_to(value, (lanes.count, 2)))
    return pairs.view(np.uint32).reshape(-1, 4)
