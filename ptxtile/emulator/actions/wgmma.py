"""wgmma (PTX ISA 9.7.15): matrix operations of warpgroups, done when they are waited for.

Until then their registers belong to them, and what they read in shared memory must not change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator import tensor_core, windows
from ptxtile.emulator.actions.bulk import named
from ptxtile.emulator.actions.control import fall_through
from ptxtile.emulator.actions.mma import TYPES, product
from ptxtile.emulator.descriptors import k_major, mn_major, unpacked
from ptxtile.emulator.fragments import (
    densified,
    elements,
    factor_matrix,
    given_places,
    lost_registers,
    metadata_nibbles,
    sum_matrix,
    sum_registers,
)
from ptxtile.emulator.group import Group
from ptxtile.emulator.lanes import Lanes, Threads
from ptxtile.emulator.mma_shape import Shape, shape_of
from ptxtile.emulator.operands import Read, reader, refuse_undefined
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.proxies import Actor, Proxies
from ptxtile.emulator.registers import Registers, Shadow
from ptxtile.emulator.report import fault
from ptxtile.emulator.step import Control, control
from ptxtile.emulator.tiles import CHUNK
from ptxtile.emulator.warpgroup import THREADS
from ptxtile.emulator.watch import matrix_registers
from ptxtile.emulator.widths import Bits, bits_of
from ptxtile.ir.operand import Integer

ROWS = 64
STORED = {"tf32": 32, "b1": 1}


@dataclass(frozen=True, slots=True)
class Plan:
    """One wgmma.mma_async made ready.

    a, d       register numbers; `a` is empty where A comes from shared memory
    negate     whether A and B are negated     transposed   whether they are MN-major
    metadata   of sparse A, and which lanes hold it
    """

    site: Site
    shape: Shape
    types: tuple[str, str, str]
    d: tuple[int, ...]
    a: tuple[int, ...]
    a_descriptor: Read | None
    b_descriptor: Read
    scale: Read
    negate: tuple[bool, bool]
    transposed: tuple[bool, bool]
    metadata: Read | None
    selector: int

    @property
    def depth(self) -> int:
        """Elements of a row of A as it is stored."""
        return self.shape.k if self.metadata is None else self.shape.k // 2


def width_of(kind: str) -> int:
    """Bits of an element in memory and registers."""
    return STORED.get(kind, bits_of(kind))


@control("wgmma")
def wgmma(program: Program, site: Site) -> Control:
    """fence, commit_group, wait_group, mma_async."""
    modifiers = site.instruction.form.modifiers
    if ".mma_async" in modifiers:
        return _multiply(program, site)
    act: Callable[[Lanes], None] = _fence
    if ".commit_group" in modifiers:
        act = _commit
    elif ".wait_group" in modifiers:
        (count,) = site.instruction.operands
        assert isinstance(count, Integer)
        allowed = count.value
        act = lambda lanes: _wait(lanes, allowed)  # noqa: E731

    def run(group: Group, lanes: Lanes) -> None:
        fall_through(group, lanes)
        if lanes.count:
            act(lanes)
            lanes.wave.pool.add(group.at(site.number + 1, lanes.threads))

    return run


def _fence(lanes: Lanes) -> None:
    if lanes.registers.watch is not None:
        lanes.registers.watch.fence(lanes.threads)


def _commit(lanes: Lanes) -> None:
    lanes.wave.pending.commit(lanes.threads, "wgmma")


def _wait(lanes: Lanes, allowed: int) -> None:
    wave = lanes.wave
    issued = wave.pending.wait(lanes.threads, "wgmma", allowed)
    sanitizer = wave.machine.sanitizer
    if sanitizer is None or not issued:
        return
    groups = wave.warpgroups.number(lanes)
    for number in np.unique(groups).tolist():
        threads = lanes.threads[groups == number]
        times = [issued[thread] for thread in threads.tolist() if thread in issued]
        if times:
            agent = sanitizer.proxies.agent("wgmma", _name(lanes, int(threads[0])))
            sanitizer.ordering.learn(threads, {("thread", agent): max(times)})


def _name(lanes: Lanes, thread: int) -> int:
    """A number for a thread's warpgroup that holds for the launch."""
    wave = lanes.wave
    return int(wave.number[wave.cta[thread]]) * 8 + int(wave.tid[thread]) // THREADS


def _plan(program: Program, site: Site) -> Plan:
    modifiers, operands = site.instruction.form.modifiers, named(site)
    shape = shape_of(next(m for m in modifiers if m[:2] == ".m" and m[2:3].isdigit()))
    kinds = [m[1:] for m in modifiers if m in TYPES]
    registers = matrix_registers(site)

    def flag(name: str, value: int) -> bool:
        operand = operands.get(name)
        return isinstance(operand, Integer) and operand.value == value

    descriptor = operands.get("a_desc")
    return Plan(
        site,
        shape,
        (kinds[1], kinds[2], kinds[0]),
        registers["d"],
        registers.get("a", ()),
        None if descriptor is None else reader(program, site, descriptor, ".u64"),
        reader(program, site, operands["b_desc"], ".u64"),
        reader(program, site, operands["scale_d"], ".pred"),
        (flag("imm_scale_a", -1), flag("imm_scale_b", -1)),
        (flag("imm_trans_a", 1), flag("imm_trans_b", 1)),
        reader(program, site, operands["sp_meta"], ".b32") if "sp_meta" in operands else None,
        int(flag("sp_sel", 1)),
    )


def _multiply(program: Program, site: Site) -> Control:
    plan = _plan(program, site)
    numbers = frozenset((*plan.d, *plan.a))

    def act(lanes: Lanes) -> None:
        wave = lanes.wave
        issue = Issue(plan, lanes)
        if lanes.registers.watch is not None:
            lanes.registers.watch.issue(lanes, numbers)
        issue.claim()
        uses = frozenset(wave.cta[lanes.threads].tolist())
        wave.pending.start(site, lanes.threads, issue.complete, "async", "wgmma", None, uses)

    def run(group: Group, lanes: Lanes) -> None:
        fall_through(group, lanes)
        if lanes.count:
            lanes.wave.warpgroups.arrive(group, lanes, site, act)

    return run


def _defined(lanes: Lanes, read: Read, what: str) -> Bits:
    value, shadow = read(lanes)
    if shadow is not None:
        refuse_undefined(lanes, shadow, what, "a register")
    return value.copy()  # it may be a view of the register, which is written before the operation is done


def _rows(data: Bits, width: int, transposed: bool) -> Bits:
    """Chunks of 16 bytes as the rows of a matrix of elements of `width` bits."""
    if transposed:
        words = data.view(np.uint16)
        return words.transpose(0, 2, 1).reshape(-1, words.shape[1])
    flat = data.reshape(len(data), -1)
    if width >= 8:
        return flat.view(np.dtype(f"u{width // 8}"))
    return elements(flat, width).reshape(len(data), -1)


class Issue:
    """One execution of a wgmma.mma_async by some warpgroups. Arrays are by warpgroup."""

    def __init__(self, plan: Plan, lanes: Lanes) -> None:
        self.plan = plan
        self.lanes = lanes
        self.registers: Registers = lanes.registers
        self.accumulates = _defined(lanes, plan.scale, "whether the matrix is accumulated")
        b = _defined(lanes, plan.b_descriptor, "the matrix B")[::THREADS]
        extents = plan.shape.n, plan.shape.k
        self.b = [self._offsets(i, int(bits), extents, plan.transposed[1]) for i, bits in enumerate(b)]
        self.a: list[NDArray[np.int64]] = []
        if plan.a_descriptor is not None:
            a = _defined(lanes, plan.a_descriptor, "the matrix A")[::THREADS]
            extents = ROWS, plan.depth
            self.a = [self._offsets(i, int(bits), extents, plan.transposed[0]) for i, bits in enumerate(a)]
        self.metadata: Bits | None = None
        if plan.metadata is not None:
            self.metadata = _defined(lanes, plan.metadata, "where the zeros of A are").reshape(-1, 32)

    def _offsets(
        self, group: int, bits: int, extents: tuple[int, int], transposed: bool
    ) -> NDArray[np.int64]:
        """Offsets in the wave's shared memory of a matrix's chunks, checked."""
        descriptor, spaces = unpacked(bits), self.lanes.wave.spaces
        rows, depth = extents
        if transposed:
            places = mn_major(descriptor, rows, depth)
        else:
            places = k_major(descriptor, rows, depth * width_of(self.plan.types[0]) // 8)
        inside = places - windows.SHARED_START
        if inside.min() < 0 or inside.max() + CHUNK > spaces.shared_size:
            bad = places[(inside < 0) | (inside + CHUNK > spaces.shared_size)]
            text = (
                f"out of bounds: a matrix descriptor ({bits:#018x}) leads to shared address {int(bad.flat[0]):#x}; the "
                f"CTA has {windows.SHARED_START:#x} to {windows.SHARED_START + spaces.shared_size:#x}"
            )
            raise fault("out-of-bounds", text, self.lanes, group * THREADS)
        cta = int(self.lanes.wave.cta[self.lanes.threads[group * THREADS]])
        found: NDArray[np.int64] = inside + cta * spaces.shared_stride
        return found

    def claim(self) -> None:
        """What is read in shared memory must be there, and must stay until the operation has been waited for."""
        sanitizer = self.lanes.wave.machine.sanitizer
        if sanitizer is None:
            return
        for group in range(len(self.b)):
            threads = self.lanes.threads[group * THREADS : (group + 1) * THREADS]
            agent = sanitizer.proxies.agent("wgmma", _name(self.lanes, int(threads[0])))
            actor = Actor(self.lanes, group * THREADS, threads[::32], agent)
            for name, matrix in (("A", self.a), ("B", self.b)):
                if matrix:
                    self._claim(sanitizer.proxies, actor, name, matrix[group])

    def _claim(self, proxies: Proxies, actor: Actor, name: str, chunks: NDArray[np.int64]) -> None:
        store = self.lanes.wave.spaces.shared
        granules = (chunks.reshape(-1, 1) + np.arange(0, CHUNK, 4)).reshape(-1)
        proxies.read(actor, store, granules)
        if store.unwritten is not None and store.unwritten[granules].all():
            text = f"uninitialised: all of the matrix {name} is shared memory that was never written"
            raise fault("uninitialised", text, self.lanes, actor.position)

    def complete(self, positions: NDArray[np.intp]) -> None:
        """Do it for the warps of these threads."""
        threads = self.lanes.threads[positions]
        warps = positions[::32] // 32
        plan = self.plan
        c, shadow = self._read(plan.d, threads)
        accumulates = self.accumulates[positions[::32]][:, None, None]
        bits = bits_of(plan.types[2])
        matrix = sum_matrix(c, 16, bits)
        matrix = np.where(accumulates, matrix, matrix.dtype.type(0))
        a, lost_a = self._a(threads, warps)
        present: NDArray[np.bool_] | None = None
        if self.metadata is not None:
            nibbles = self._nibbles(warps)
            present = given_places(a, nibbles, plan.types[0])
            a = densified(a, nibbles, plan.types[0])
        b, lost_b = self._b(warps)
        found = self._product(a, b, matrix, present)
        lost = lost_a[:, :, None] | lost_b[:, None, :]
        if shadow is not None:
            lost = lost | (sum_matrix(shadow, 16, bits) != 0) & accumulates
        self._write(threads, sum_registers(found, bits, 32), lost_registers(lost, bits, 32))
        if self.registers.watch is not None:
            self.registers.watch.land(plan.site, threads)

    def _nibbles(self, warps: NDArray[np.intp]) -> Bits:
        """Where the elements of sparse A belong, by warp."""
        assert self.metadata is not None
        width = width_of(self.plan.types[0])
        groups = self.plan.shape.k // (2 if width == 32 else 4)
        return metadata_nibbles(self.metadata[warps], self.plan.selector, groups, width)

    def _read(self, numbers: tuple[int, ...], threads: Threads) -> tuple[Bits, Shadow]:
        """Registers (warps, 32, registers), and their shadow."""
        columns, shadows = [], []
        for number in numbers:
            value, shadow = self.registers.read(number, threads, False)
            columns.append(value.reshape(-1, 32))
            shadows.append(shadow)
        lost: Shadow = None
        if any(shadow is not None for shadow in shadows):
            marks = [np.zeros_like(c) if s is None else s.reshape(-1, 32) for c, s in zip(columns, shadows)]
            lost = np.stack(marks, axis=-1)
        return np.stack(columns, axis=-1), lost

    def _write(self, threads: Threads, registers: Bits, shadow: Shadow) -> None:
        for column, number in enumerate(self.plan.d):
            value = np.ascontiguousarray(registers[..., column]).reshape(-1)
            mark = None if shadow is None else np.ascontiguousarray(shadow[..., column]).reshape(-1)
            self.registers.write(number, threads, False, value, mark)

    def _a(self, threads: Threads, warps: NDArray[np.intp]) -> tuple[Bits, NDArray[np.bool_]]:
        """A by warp, (warps, 16, k), and which rows are undefined, (warps, 16)."""
        width = width_of(self.plan.types[0])
        if self.plan.a:
            registers, shadow = self._read(self.plan.a, threads)
            matrix = factor_matrix(registers, 16, width)
            if shadow is None:
                return matrix, np.zeros(matrix.shape[:2], np.bool_)
            return matrix, np.any(factor_matrix(shadow, 16, width) != 0, axis=2)
        found = [self._matrix(self.a[warp // 4], width, self.plan.transposed[0]) for warp in warps]
        rows = [slice(warp % 4 * 16, warp % 4 * 16 + 16) for warp in warps.tolist()]
        quarter = [matrix[part] for (matrix, _), part in zip(found, rows)]
        return np.stack(quarter), np.stack([lost[part] for (_, lost), part in zip(found, rows)])

    def _b(self, warps: NDArray[np.intp]) -> tuple[Bits, NDArray[np.bool_]]:
        """B by warp, (warps, n, k), and which columns are undefined, (warps, n)."""
        width, groups = width_of(self.plan.types[1]), (warps // 4).tolist()
        found = {group: self._matrix(self.b[group], width, self.plan.transposed[1]) for group in set(groups)}
        return np.stack([found[group][0] for group in groups]), np.stack(
            [found[group][1] for group in groups]
        )

    def _matrix(
        self, chunks: NDArray[np.int64], width: int, transposed: bool
    ) -> tuple[Bits, NDArray[np.bool_]]:
        """A matrix (rows, k) from shared memory, and which of its rows are undefined."""
        store = self.lanes.wave.spaces.shared
        places = chunks[..., None] + np.arange(CHUNK)
        matrix = _rows(store.data[places], width, transposed)
        lost: NDArray[np.bool_] = np.zeros(len(matrix), np.bool_)
        if store.unwritten is not None:
            marks = store.unwritten[places]
            if marks.any():
                lost = np.any(_rows(marks, width, transposed) != 0, axis=1)
        return matrix, lost

    def _product(self, a: Bits, b: Bits, c: Bits, present: NDArray[np.bool_] | None) -> Bits:
        atype, btype, ctype = self.plan.types
        if atype not in tensor_core.FLOATS:
            return product(self.plan.site.instruction.form.modifiers, self.plan.types)(a, b, c)
        left, right = tensor_core.sparse_factor(a, atype, present), tensor_core.factor(b, btype)
        if self.plan.negate[0]:
            left = tensor_core.Factor(-left.value, left.exponent)
        if self.plan.negate[1]:
            right = tensor_core.Factor(-right.value, right.exponent)
        return tensor_core.multiply_async(left, right, c, ctype, atype in ("e4m3", "e5m2"))
