"""The machine: a grid in waves of resident CTAs, whose threads advance together as NumPy arrays."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator import windows
from ptxtile.emulator.asynchronous import Pending
from ptxtile.emulator.barrier import Barriers
from ptxtile.emulator.cluster import ClusterBarriers
from ptxtile.emulator.decode import Decoded
from ptxtile.emulator.group import PATIENCE, Frame, Group, Pool
from ptxtile.emulator.idle import Idle
from ptxtile.emulator.lanes import Lanes, Threads
from ptxtile.emulator.launch_order import LaunchOrder, may_cancel
from ptxtile.emulator.mbarrier import MBarriers
from ptxtile.emulator.memory import Memory, Store
from ptxtile.emulator.ordering import Ordering
from ptxtile.emulator.program import Code, Program, Site
from ptxtile.emulator.registers import Registers
from ptxtile.emulator.rendezvous import Rendezvous
from ptxtile.emulator.report import at_line, count_of, fault, stop
from ptxtile.emulator.sanitizer import Sanitizer
from ptxtile.emulator.spaces import Spaces
from ptxtile.emulator.special import SPECIALS, compute
from ptxtile.emulator.step import Step
from ptxtile.emulator.warpgroup import Warpgroups
from ptxtile.emulator.watch import watch_of
from ptxtile.errors import EmulatorError

Extent = tuple[int, int, int]

RESIDENT_THREADS = 1 << 16
"""Threads that are on the machine at once; the rest of the grid waits, as on a device that is full."""
STEP_BUDGET = 20_000_000
"""Instruction issues, each for one group of threads, after which a launch counts as endless."""
TENSOR_MEMORY_CTAS = 32
"""CTAs that are on the machine at once where they have tensor memory, which takes up to 4 MB each."""
CALL_DEPTH = 1000


@dataclass(frozen=True, slots=True)
class Launch:
    """What is launched, and how. `parameters` are the bytes of the entry's parameter space."""

    program: Program
    entry: Code
    grid: Extent
    block: Extent
    cluster: Extent
    dynamic_shared: int
    parameters: bytes
    sanitize: bool = True
    seed: int = 0
    steps: int = STEP_BUDGET


class Machine:
    """Runs one launch on a device memory."""

    def __init__(
        self, launch: Launch, decoded: Decoded, memory: Memory, addresses: dict[str, int], constants: Store
    ) -> None:
        self.launch = launch
        self.memory = memory
        self.addresses = addresses
        self.constants = constants
        self.random = random.Random(launch.seed)
        self.steps_left = launch.steps
        self.decoded = decoded
        self.waiting = LaunchOrder(np.zeros(0, np.int64), 1, 1, None)
        self.refused: set[int] = set()  # CTAs of the wave that know that nothing is left to cancel
        self.parameters = Store("parameter space", windows.PARAM_START, len(launch.parameters), readonly=True)
        self.parameters.write(0, launch.parameters)
        self.ordering = Ordering(self) if launch.sanitize else None
        self.sanitizer = Sanitizer(self, self.ordering) if self.ordering is not None else None

    @property
    def block_threads(self) -> int:
        """Threads of a CTA."""
        x, y, z = self.launch.block
        return x * y * z

    def run(self) -> None:
        """Run the whole grid, wave by wave, in launch order."""
        grid, cluster = self.launch.grid, self.launch.cluster
        ctas = np.arange(grid[0] * grid[1] * grid[2], dtype=np.int64)
        size = cluster[0] * cluster[1] * cluster[2]
        if size > 1:
            ctas = _by_cluster(ctas, grid, cluster)
        most = max(1, RESIDENT_THREADS // (self.block_threads * size)) * size
        if self.decoded.tensor_memory:
            most = min(most, -(-TENSOR_MEMORY_CTAS // size) * size)
        self.waiting = LaunchOrder(ctas, size, most, self.launch.seed if may_cancel(self.decoded) else None)
        while self.waiting:
            self.refused.clear()
            Wave(self, self.waiting.take()).run()


def _by_cluster(ctas: NDArray[np.int64], grid: Extent, cluster: Extent) -> NDArray[np.int64]:
    """CTA numbers with those of a cluster next to each other, in rank order (x fastest)."""
    coordinates = np.unravel_index(ctas, grid[::-1])[::-1]
    which: NDArray[np.int64] = np.zeros_like(ctas)
    rank: NDArray[np.int64] = np.zeros_like(ctas)
    for axis in (2, 1, 0):
        which = which * (grid[axis] // cluster[axis]) + coordinates[axis] // cluster[axis]
        rank = rank * cluster[axis] + coordinates[axis] % cluster[axis]
    order: NDArray[np.int64] = np.lexsort((rank, which))
    return ctas[order]


class Wave:
    """The CTAs that are on the machine together, and their threads, numbered from 0 CTA by CTA.

    cta    by thread: its CTA's place in the wave          tid     by thread: its place in the CTA, x fastest
    warp   by thread: its warp, numbered through the wave  lane    by thread
    live   by thread: whether it has not ended             number  by CTA of the wave: its place in the grid
    """

    def __init__(self, machine: Machine, numbers: NDArray[np.int64]) -> None:
        launch = machine.launch
        self.machine = machine
        self.launch: Launch = launch
        self.number: NDArray[np.int64] = numbers
        self.ctas: int = len(numbers)
        self.block = machine.block_threads
        self.count: int = self.ctas * self.block
        self.cluster_size: int = launch.cluster[0] * launch.cluster[1] * launch.cluster[2]
        self.cta: NDArray[np.int64] = np.repeat(np.arange(self.ctas), self.block)
        self.tid: NDArray[np.int64] = np.tile(np.arange(self.block), self.ctas)
        self.warps = -(-self.block // 32)
        self.warp = self.cta * self.warps + self.tid // 32
        self.lane: NDArray[np.int64] = self.tid % 32
        self.live = np.ones(self.count, np.bool_)
        self.rank: NDArray[np.int64] = np.arange(self.ctas) % self.cluster_size
        self.shared_size: int = launch.program.static_shared + launch.dynamic_shared
        self.local_size = machine.decoded.local_bytes
        self.constants = machine.constants
        self.parameters = machine.parameters
        self.spaces = Spaces(self, machine.memory, launch.sanitize)
        self.pool = Pool()
        self.barriers = Barriers(self)
        self.clusters = ClusterBarriers(self)
        self.mbarriers = MBarriers(self)
        self.rendezvous = Rendezvous(self)
        self.warpgroups = Warpgroups(self)
        self.pending = Pending(self, machine.random)
        self.specials: dict[str, NDArray[np.generic]] = {}
        self.progress = 0
        self.idle = Idle(self)
        if machine.sanitizer is not None:
            machine.sanitizer.begin(self)

    def run(self) -> None:
        """Run all threads to their end, or stop with an EmulatorError."""
        frame = self.frame(self.launch.entry.function.name, None, 0)
        self.pool.add(Group(frame, 0, np.arange(self.count)))
        while True:
            if not self.pool:
                if self.pending.complete_one():
                    continue
                if self.live.any():
                    raise self._deadlock()
                self.pending.complete_all()
                self.mbarriers.check_end()
                return
            group = self.pool.take()
            if group.laps >= PATIENCE:
                self._waiting(group)
            if self.barriers.split:
                self.barriers.check_passed(group)
            self._advance(group)

    def _advance(self, group: Group) -> None:
        """Run a group until it branches, waits, ends, or comes to where others may join it."""
        steps = group.frame.steps
        registers = group.frame.registers
        machine = self.machine
        number = group.number
        everyone = Lanes(self, registers, group.threads, steps[number])
        while True:
            step = steps[number]
            machine.steps_left -= 1
            if machine.steps_left < 0:
                raise self._endless(group.at(number))
            everyone.step = step
            lanes = everyone
            if step.assumes:
                self._assumed(everyone, group.frame.steps[max(number - 1, 0)])
            if step.guard is not None:
                lanes = self._guarded(everyone, step.guard)
            if step.control is not None:
                group.number = number
                step.control(group, lanes)
                return
            if lanes.count and step.run is not None:
                step.run(lanes)
            number += 1
            if steps[number].joins:
                group.number = number
                self.pool.add(group)
                return

    def _assumed(self, lanes: Lanes, before: Step) -> None:
        """Check the claims of `pt.assume`; `before` is what computed the last one."""
        for number in lanes.step.assumes:
            value, shadow = lanes.read(number)
            false = ~value.view(np.bool_) if shadow is None else ~value.view(np.bool_) & (shadow == 0)
            if false.any():
                lanes.step = before
                text = "false assumption: pt.assume takes for granted what is not so here"
                raise fault("assume", text, lanes, int(np.flatnonzero(false)[0]))

    def _guarded(self, lanes: Lanes, guard: tuple[int, bool]) -> Lanes:
        number, negated = guard
        value, shadow = lanes.read(number)
        if shadow is not None:
            from ptxtile.emulator.operands import refuse_undefined

            instruction = lanes.step.site.instruction
            name = instruction.guard.register.name if instruction.guard else ""
            refuse_undefined(
                lanes, shadow, f"whether {instruction.form.spelling} is executed", f"predicate {name}"
            )
        mask = value.view(np.bool_)
        return lanes.narrow(~mask if negated else mask)

    def frame(self, name: str, caller: Frame | None, return_to: int) -> Frame:
        """The frame of a function called from `caller`, whose call's next instruction is `return_to`."""
        if caller is not None and (return_to, name) in caller.callees:
            return caller.callees[return_to, name]
        code = self.machine.decoded.codes[name]
        depth = 0 if caller is None else caller.depth + 1
        local = 0 if caller is None else caller.local + self.machine.decoded.codes[caller.name].frame
        local = -(-local // 16) * 16
        if depth > CALL_DEPTH or local + code.frame > self.local_size:
            raise stop(
                "out-of-bounds", f"the call stack is full: {name} is called at depth {depth}", code.sites[0]
            )
        registers = Registers(code.register_types, self.count, self.launch.sanitize, local, name)
        if self.launch.sanitize:
            registers.watch = watch_of(code, self.count)
        steps = self.machine.decoded.steps[name]
        frame = Frame(name, steps, registers, caller, return_to, depth, local)
        if caller is not None:
            caller.callees[return_to, name] = frame
        return frame

    def frame_of(self, lanes: Lanes) -> int:
        """Where the local variables of the frame that `lanes` execute in begin, beyond windows.LOCAL_START."""
        return lanes.registers.local

    def end(self, threads: Threads) -> None:
        """These threads exit."""
        self.live[threads] = False
        self.happened()
        if self.machine.sanitizer is not None and self.pending.operations:
            self.pending.check_exit(threads)
        self.clusters.check_exit(threads)
        self.spaces.tensor.check_exit(threads)
        self.barriers.recount(threads)
        self.clusters.recount(threads)
        self.rendezvous.recount(threads)

    def happened(self) -> None:
        """Note that something happened that a waiting thread may be waiting for."""
        self.progress += 1

    def special(self, name: str, lanes: Lanes) -> NDArray[np.generic]:
        """The value of a special register in these threads."""
        if name not in SPECIALS:
            return compute(name, self, lanes)
        if name not in self.specials:
            self.specials[name] = SPECIALS[name](self)
        return self.specials[name][lanes.where]

    def rank_of(self, lanes: Lanes) -> NDArray[np.int64]:
        """The rank in its cluster of each thread's CTA."""
        return self.rank[self.cta[lanes.where]]

    def address_of(self, name: str) -> int:
        """The address of a .global or .const variable of the module in its own space."""
        if name not in self.machine.addresses:
            raise EmulatorError(f"the module has no variable {name!r}", kind="undeclared")
        return self.machine.addresses[name]

    def thread_id(self, threads: Threads) -> NDArray[np.int64]:
        """Numbers of threads that hold for the whole launch."""
        found: NDArray[np.int64] = self.number[self.cta[threads]] * self.block + self.tid[threads]
        return found

    def thread_name(self, thread: int) -> str:
        """`thread (3, 0, 0) of CTA (1, 0, 0)`."""
        return name_thread(
            self.launch, int(self.number[self.cta[thread]]) * self.block + int(self.tid[thread])
        )

    def _waiting(self, group: Group) -> None:
        """All that can run is polling: something asynchronous completes, or nobody gets anywhere any more."""
        if self.pending.complete_one() or not self.idle.stuck(group) or self.pending.complete_late():
            return
        self.pool.add(group)
        raise self._deadlock()

    def _endless(self, group: Group) -> EmulatorError:
        step = group.frame.steps[group.number]
        text = (
            f"step budget: {self.launch.steps} instruction issues are used up and "
            f"{count_of(int(self.live.sum()), 'thread')} still run; an endless loop?"
        )
        return stop("step-budget", text, step.site, self.thread_name(int(group.threads[0])))

    def _deadlock(self) -> EmulatorError:
        """Nobody can go on: say who waits where and for what."""
        spinning = sorted(self.pool.groups(), key=self._culpable)
        lines = [*self.barriers.explain(), *self.clusters.explain(), *self.rendezvous.explain()]
        lines.extend(self.warpgroups.explain())
        for group in spinning:
            lines.append(self._polling(group))
            lines.extend(self.mbarriers.awaited(group.threads))
        lines.extend(self.mbarriers.explain())
        if self.machine.waiting:
            lines.append(f"these leave no room for {count_of(len(self.machine.waiting), 'CTA')} of the grid")
        live = int(self.live.sum())
        text = "deadlock: " + ("the 1 thread left waits" if live == 1 else f"all {live} threads left wait")
        lacking = self.barriers.lacking()
        where: Site | None = next(
            (group.frame.steps[group.number].site for group in spinning if lacking[group.threads].any()), None
        ) or (
            self.barriers.first_site()
            or self.clusters.first_site()
            or self.rendezvous.first_site()
            or self.warpgroups.first_site()
        )
        if where is None:
            where = spinning[0].frame.steps[spinning[0].number].site
        return stop("deadlock", text, where, other="\n  ".join(lines))

    def _culpable(self, group: Group) -> tuple[bool, int]:
        """Whose instruction is named first: a wait for bytes that were counted wrongly explains all the others."""
        return not self.mbarriers.miscounted(group.threads), int(group.threads[0])

    def _polling(self, group: Group) -> str:
        site = group.frame.steps[group.number].site
        first = self.thread_name(int(group.threads[0]))
        if len(group.threads) == 1:
            return f"{first} polls at {at_line(site)}"
        return f"{count_of(len(group.threads), 'thread')} ({first}, …) poll at {at_line(site)}"


def name_thread(launch: Launch, number: int) -> str:
    """The name of a thread by its number in the launch."""
    x, y, z = launch.block
    cta, tid = divmod(number, x * y * z)
    return f"thread {_coordinates(tid, launch.block)} of CTA {_coordinates(cta, launch.grid)}"


def _coordinates(number: int, extent: Extent) -> str:
    return f"({number % extent[0]}, {number // extent[0] % extent[1]}, {number // extent[0] // extent[1]})"
