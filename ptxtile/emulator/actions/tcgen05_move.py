"""tcgen05.ld, st, wait (PTX ISA 9.7.16.8): registers from and to the 32 lanes of tensor memory that a warp reaches.

Both are done when tcgen05.wait has waited for them: until then the destinations of a load, and the cells of a store,
are what they were.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator import numeric_float as nf
from ptxtile.emulator.actions.bulk import named
from ptxtile.emulator.actions.warps import by_warp
from ptxtile.emulator.asynchronous import Mechanism
from ptxtile.emulator.datapaths import Places, move_places
from ptxtile.emulator.lanes import Lanes, Threads
from ptxtile.emulator.mma_shape import scalars
from ptxtile.emulator.numeric import F32
from ptxtile.emulator.operands import address_reader, reader, refuse_undefined
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.proxies import Actor
from ptxtile.emulator.registers import Registers, Shadow
from ptxtile.emulator.report import fault
from ptxtile.emulator.step import Control, Run
from ptxtile.emulator.tensor_memory import Cells
from ptxtile.emulator.watch import loaded_registers
from ptxtile.emulator.widths import Bits
from ptxtile.ir.operand import Integer

SHAPES = ("16x64b", "16x128b", "16x256b", "32x32b", "16x32bx2")


@dataclass(frozen=True, slots=True)
class Plan:
    """Which cells the registers are: lane and column from the address's, (32, registers, 1 or 2) each.

    rows   lanes that are reached from the address's on
    """

    shape: str
    row: Places
    column: Places

    @property
    def rows(self) -> int:
        """Lanes that are reached from the address's on."""
        return 32 if self.shape == "32x32b" else 16


def _plan(site: Site) -> Plan:
    modifiers = site.instruction.form.modifiers
    shape = next(m[1:] for m in modifiers if m[1:] in SHAPES)
    count = next(int(m[2:]) for m in modifiers if m[:2] == ".x" and m[2:].isdigit())
    half = named(site).get("half_split_off")
    apart = half.value if isinstance(half, Integer) else 0
    packed = any("pack::16b" in m for m in modifiers)
    return Plan(shape, *move_places(shape, count, apart, packed))


def _cells(plan: Plan, lanes: Lanes, addresses: Bits, verb: str) -> Cells:
    """The cells of each register of these threads, checked: (threads, registers, 1 or 2)."""
    wave = lanes.wave
    memory, lane = wave.spaces.tensor, wave.lane[lanes.where]
    found: Cells = np.zeros((lanes.count, *plan.row.shape[1:]), np.int64)
    for warp, mine in by_warps(lanes):
        bases = addresses[mine] & np.uint64(0xFFFFFFFF)
        base, first = int(bases[0]), int(mine[0])
        if (bases != bases[0]).any():
            text = "tensor memory: the threads of the warp give different addresses"
            raise fault("tensor-memory", text, lanes, first)
        start, column = base >> 16, base & 0xFFFF
        slab = warp % wave.warps % 4 * 32
        if start // 32 * 32 != slab or start % 32 not in ((0,) if plan.rows == 32 else (0, 16)):
            text = (
                f"tensor memory: {verb} {plan.rows} lanes from lane {start}; warp {warp % wave.warps} of the CTA "
                f"reaches lanes {slab} to {slab + 31}, {plan.rows} at a time"
            )
            raise fault("tensor-memory", text, lanes, first)
        cta = int(wave.cta[lanes.threads[first]])
        columns = plan.column[lane[mine]] + column
        memory.check(lanes, first, cta, (int(columns.min()), int(columns.max())), verb)
        found[mine] = memory.cells(cta, plan.row[lane[mine]] + start, columns)
    return found


def by_warps(lanes: Lanes) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """The warps of these threads, numbered through the wave, and their threads' positions."""
    warps = lanes.wave.warp[lanes.where]
    for warp in np.unique(warps).tolist():
        yield warp, np.flatnonzero(warps == warp)


def _agent(lanes: Lanes, mechanism: Mechanism, position: int) -> int:
    """What stands for the loads, or the stores, of the warp of a thread."""
    sanitizer = lanes.wave.machine.sanitizer
    assert sanitizer is not None
    wave, thread = lanes.wave, int(lanes.threads[position])
    return sanitizer.proxies.agent(mechanism, int(wave.number[wave.cta[thread]]), int(wave.tid[thread]) // 32)


def load(program: Program, site: Site) -> Control:
    """tcgen05.ld, with .pack::16b, with .red."""
    plan, numbers = _plan(site), loaded_registers(site)
    taddr = named(site)["taddr"]
    locate = address_reader(program, site, taddr)

    def deliver(lanes: Lanes, results: list[Bits], shadows: list[Bits] | None) -> None:
        cells = _cells(plan, lanes, results[0], "loads")
        registers, sanitizer = lanes.registers, lanes.wave.machine.sanitizer
        if sanitizer is not None:
            for _, mine in by_warps(lanes):
                actor = Actor(
                    lanes,
                    int(mine[0]),
                    lanes.threads[mine[:1]],
                    _agent(lanes, "tcgen05.ld", int(mine[0])),
                    False,
                )
                sanitizer.proxies.read(actor, lanes.wave.spaces.tensor.store, cells[mine].reshape(-1) * 4)
        if registers.watch is not None:
            registers.watch.load(lanes, frozenset(numbers))

        def effect(chosen: NDArray[np.intp]) -> None:
            threads = lanes.threads[chosen]
            _arrive(lanes, registers, threads, numbers, cells[chosen], site)
            if registers.watch is not None:
                registers.watch.land(site, threads)

        lanes.wave.pending.start(site, lanes.threads, effect, "generic", "tcgen05.ld")

    return by_warp(site, [lambda lanes: (locate(lanes), None)], lambda sources: sources, deliver)


def _arrive(
    lanes: Lanes, registers: Registers, threads: Threads, numbers: tuple[int, ...], cells: Cells, site: Site
) -> None:
    """Write the destinations of a load."""
    memory = lanes.wave.spaces.tensor
    values = _joined(memory.words[cells])
    marks: Shadow = None
    if memory.unwritten is not None:
        found = _joined(memory.unwritten[cells])
        marks = found if found.any() else None
    for place, number in enumerate(numbers[: values.shape[1]]):
        mark = None if marks is None else np.ascontiguousarray(marks[:, place])
        registers.write(number, threads, False, np.ascontiguousarray(values[:, place]), mark)
    if len(numbers) > values.shape[1]:
        reduced = reduction(values, site.instruction.form.modifiers)
        lost = None
        if marks is not None and (marks != 0).any():
            lost = np.where((marks != 0).any(axis=1), np.uint32(0xFFFFFFFF), np.uint32(0))
        registers.write(numbers[-1], threads, False, reduced, lost)


def _joined(parts: Bits) -> Bits:
    """Cells (…, 1 or 2) as registers; of two the low halves."""
    if parts.shape[-1] == 1:
        return parts[..., 0]
    low = parts & np.uint32(0xFFFF)
    return low[..., 0] | low[..., 1] << np.uint32(16)


def reduction(values: Bits, modifiers: tuple[str, ...]) -> Bits:
    """.min or .max of each row: (threads,). -0 is less than +0, and a NaN counts only with .NaN."""
    largest = ".max" in modifiers
    if ".f32" not in modifiers:
        numbers = values.view(np.int32) if ".s32" in modifiers else values
        found: Bits = (numbers.max(axis=1) if largest else numbers.min(axis=1)).view(np.uint32)
        return found
    if ".abs" in modifiers:
        values = values & np.uint32(0x7FFFFFFF)
    nan = nf.is_nan(values, F32)
    order = np.where(values >> 31 != 0, ~values, values | np.uint32(1 << 31))
    worst = np.uint32(0) if largest else np.uint32(0xFFFFFFFF)
    order = np.where(nan, worst, order)
    best = order.max(axis=1) if largest else order.min(axis=1)
    result = np.where(best >> 31 != 0, best & np.uint32(0x7FFFFFFF), ~best)
    gone = nan.any(axis=1) if ".NaN" in modifiers else nan.all(axis=1)
    return np.where(gone, np.uint32(0x7FFFFFFF), result).astype(np.uint32)


def store(program: Program, site: Site) -> Control:
    """tcgen05.st, with .unpack::16b: each half goes to the low half of a cell, whose high half stays."""
    plan, operands = _plan(site), named(site)
    locate = address_reader(program, site, operands["taddr"])
    parts = scalars(operands["r"])
    reads = [reader(program, site, part, ".b32") for part in parts]

    def deliver(lanes: Lanes, results: list[Bits], shadows: list[Bits] | None) -> None:
        cells = _cells(plan, lanes, results[0], "stores to")
        held = []
        for part, read in zip(parts, reads):
            value, shadow = read(lanes)
            if shadow is not None:
                refuse_undefined(lanes, shadow, "the stored value", f"register {part}")
            held.append(value)
        _start(lanes, cells, np.stack(held, axis=1))

    return by_warp(site, [lambda lanes: (locate(lanes), None)], lambda sources: sources, deliver)


def _start(lanes: Lanes, cells: Cells, values: Bits) -> None:
    """Queue a store of (threads, registers) to cells (threads, registers, 1 or 2)."""
    wave, site = lanes.wave, lanes.step.site
    memory, sanitizer = wave.spaces.tensor, wave.machine.sanitizer
    agents: dict[int, int] = {}
    if sanitizer is not None:
        for warp, mine in by_warps(lanes):
            agents[warp] = _agent(lanes, "tcgen05.st", int(mine[0]))
            actor = Actor(lanes, int(mine[0]), lanes.threads[mine[:1]], agents[warp], False)
            sanitizer.proxies.write(actor, memory.store, cells[mine].reshape(-1) * 4, 4)

    def effect(chosen: NDArray[np.intp]) -> None:
        places, packed = cells[chosen], cells.shape[-1] == 2
        words = values[chosen][..., None] >> np.array([0, 16][: cells.shape[-1]], np.uint32)
        kept = np.uint32(0xFFFF0000 if packed else 0)
        memory.words[places] = memory.words[places] & kept | words & ~kept
        if memory.unwritten is not None:
            memory.unwritten[places] &= kept
        if sanitizer is not None:
            warps = wave.warp[lanes.threads[chosen]]
            for warp in np.unique(warps).tolist():
                sanitizer.ordering.now += 1
                landed = places[warps == warp].reshape(-1) * 4
                sanitizer.proxies.land(agents[warp], site, memory.store, landed, 4)

    wave.pending.start(site, lanes.threads, effect, "generic", "tcgen05.st")


def wait(site: Site) -> Run:
    """tcgen05.wait::ld, ::st: all that the thread has started."""
    loads = "::ld" in site.instruction.form.modifiers[0]
    mechanism: Mechanism = "tcgen05.ld" if loads else "tcgen05.st"

    def run(lanes: Lanes) -> None:
        issued = lanes.wave.pending.wait_all(lanes.threads, mechanism)
        sanitizer = lanes.wave.machine.sanitizer
        if sanitizer is None or not issued:
            return
        for _, mine in by_warps(lanes):
            times = [issued[thread] for thread in lanes.threads[mine].tolist() if thread in issued]
            if times:
                agent = _agent(lanes, mechanism, int(mine[0]))
                claims = {("thread", agent): max(times)} if loads else sanitizer.proxies.done(agent)
                sanitizer.ordering.learn(lanes.threads[mine], claims)

    return run
