"""tcgen05.mma (PTX ISA 9.7.16.10): products of matrices in shared and tensor memory, dense, sparse, block-scaled, .ws.

The numbers are one aligned sum with 25 fraction bits, as an H200's wgmma of 16-bit floats; nothing here was measured on
a machine that has the instruction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator import datapaths, tensor_core
from ptxtile.emulator.actions.bulk import named
from ptxtile.emulator.actions.tcgen05_commit import Touched, queue
from ptxtile.emulator.actions.tcgen05_copy import ctas_of, shared_offsets
from ptxtile.emulator.fragments import densified, given_places
from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.mma_shape import scalars
from ptxtile.emulator.operands import Read, address_reader, reader, refuse_undefined
from ptxtile.emulator.product_descriptor import BITS, Described, described, shape_problem
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.report import fault
from ptxtile.emulator.scaling import scaled, vector_of
from ptxtile.emulator.shared_matrix import Offsets, k_major, matrix, mn_major, per_chunk, unpacked
from ptxtile.emulator.step import Run
from ptxtile.emulator.tensor_core import Factor
from ptxtile.emulator.tensor_memory import LANES, WIDTH, Cells
from ptxtile.emulator.tiles import CHUNK
from ptxtile.emulator.widths import Bits
from ptxtile.ir.operand import Address, Integer, Operand

Lost = NDArray[np.bool_]
NUMBERS = ("a_desc", "b_desc", "zero_column_mask_desc")
PLACES = ("d_tmem", "a_tmem", "sp_meta_tmem", "scale_a_tmem", "scale_b_tmem")


@dataclass(frozen=True, slots=True)
class Plan:
    """One tcgen05.mma made ready: its operands' readers by name, and what its modifiers say."""

    site: Site
    reads: dict[str, Read]
    disabled: tuple[Read, ...]
    kind: str
    pair: bool
    stationary: bool
    sparse: bool
    shifted: bool
    vector: int
    exponent: int

    @property
    def packed(self) -> bool:
        """Whether elements are of four bits without padding."""
        return self.kind in ("mxf4", "mxf4nvf4")

    @property
    def pairwise(self) -> str:
        """The type by which sparse A is spread: of four bits two neighbours stay together."""
        return "s4" if self.packed else "tf32" if self.kind == "tf32" else "f16"


def multiply(program: Program, site: Site) -> Run:
    """Each thread that executes it starts a product."""
    modifiers, operands = site.instruction.form.modifiers, named(site)
    reads = {name: reader(program, site, operands[name], ".u64") for name in NUMBERS if name in operands}
    for name in PLACES:
        if name in operands:
            reads[name] = _place(program, site, operands[name])
    reads["idesc"] = reader(program, site, operands["idesc"], ".u32")
    reads["enable"] = reader(program, site, operands["enable_input_d"], ".pred")
    divisor = operands.get("scale_input_d")
    off = operands.get("disable_output_lane")
    plan = Plan(
        site,
        reads,
        () if off is None else tuple(reader(program, site, part, ".b32") for part in scalars(off)),
        next(m for m in modifiers if m.startswith(".kind::"))[7:],
        ".cta_group::2" in modifiers,
        ".ws" in modifiers,
        ".sp" in modifiers,
        ".ashift" in modifiers,
        vector_of(modifiers),
        divisor.value if isinstance(divisor, Integer) else 0,
    )

    def run(lanes: Lanes) -> None:
        for position in range(lanes.count):
            Product(plan, lanes.at(np.array([position]))).start()

    return run


def _place(program: Program, site: Site, operand: Operand) -> Read:
    assert isinstance(operand, Address)
    locate = address_reader(program, site, operand)
    return lambda lanes: (locate(lanes), None)


class Product:
    """One product of one thread. Arrays are of one CTA's part of it, lists are by CTA, the even one first."""

    def __init__(self, plan: Plan, lanes: Lanes) -> None:
        self.plan, self.lanes = plan, lanes
        self.wave = lanes.wave
        self.values = {name: self._value(name, read) for name, read in plan.reads.items()}
        self.off = [self._value("the lanes", read) for read in plan.disabled]
        self.ctas = ctas_of(lanes, plan.pair)
        self.made = self._described()
        self.rows = self.made.m // len(self.ctas)
        self.letter = datapaths.layout_of(self.made.m, len(self.ctas), plan.stationary, plan.sparse)
        self.shift = 0
        self.zero: Lost = np.zeros(self.made.n, np.bool_)
        if "zero_column_mask_desc" in self.values:
            bits = self.values["zero_column_mask_desc"]
            self.zero = datapaths.zero_columns(bits, self.made.m, self.made.n)
            self.shift = bits >> 56 & 63
        self.a = [self._a_places(cta) for cta in self.ctas]
        self.b = [self._b_places(cta) for cta in self.ctas]
        self.sums = [self._sums(cta) for cta in self.ctas]
        self.metadata = [self._metadata(cta) for cta in self.ctas] if plan.sparse else []
        self.scales = [self._scales(cta) for cta in self.ctas] if self.made.scale else []

    def _value(self, name: str, read: Read) -> int:
        value, shadow = read(self.lanes)
        if shadow is not None:
            refuse_undefined(self.lanes, shadow, f"operand {name}", "a register")
        return int(value[0])

    def _fault(self, text: str) -> Exception:
        return fault("tensor-memory", f"tensor memory: {text}", self.lanes, 0)

    def _described(self) -> Described:
        plan, bits = self.plan, self.values["idesc"]
        found = described(bits, plan.kind)
        problem = found if isinstance(found, str) else ""
        if not isinstance(found, str):
            problem = shape_problem(found, plan.kind, len(self.ctas), plan.stationary, plan.sparse)
        if problem or isinstance(found, str):
            raise self._fault(f"the instruction descriptor {bits:#010x}: {problem}")
        return found

    @property
    def _chunks(self) -> int:
        """Chunks of 16 bytes along k, of what A stores."""
        return 3 if self.made.deep else 2

    # --- where everything lies ----------------------------------------------------------------------------------------
    def _cells(self, cta: int, name: str, lane: NDArray[np.int64], column: NDArray[np.int64]) -> Cells:
        """Cells from the address of an operand on, checked."""
        address = self.values[name]
        start, first = address >> 16 & 0xFFFF, address & 0xFFFF
        aligned = (0, 16) if self.letter in datapaths.HALF and name in PLACES[:3] else (0,)
        if start not in aligned:
            told = " or ".join(map(str, aligned))
            raise self._fault(f"the lane of {name} is {start}; it is {told} with M {self.made.m}")
        memory = self.wave.spaces.tensor
        columns = int(column.min()) + first, int(column.max()) + first
        memory.check(self.lanes, 0, cta, columns, "multiplies in", start + int(lane.max()))
        return memory.cells(cta, lane + start, column + first)

    def _sums(self, cta: int) -> Cells:
        return self._cells(cta, "d_tmem", *datapaths.sum_places(self.letter, self.rows, self.made.n))

    def _a_places(self, cta: int) -> Cells | Offsets:
        """Cells (rows, words), or the offsets of chunks in shared memory."""
        if "a_tmem" in self.values:
            lane = datapaths.row_lanes(self.letter, self.rows)
            if self.plan.shifted and self.rows != 128:
                raise self._fault(f".ashift takes M 128 or 256, not {self.made.m}")
            if self.plan.shifted:
                lane = np.minimum(lane + 1, 127)
            words = np.arange(4 * self._chunks, dtype=np.int64)
            return self._cells(cta, "a_tmem", lane[:, None], words[None, :])
        return self._shared(cta, "a_desc", self.rows, self._chunks, self.made.a, self.made.transposed[0])

    def _b_places(self, cta: int) -> Offsets:
        rows = self.made.n // len(self.ctas) + self.shift
        chunks = self._chunks * (2 if self.plan.sparse else 1)
        return self._shared(cta, "b_desc", rows, chunks, self.made.b, self.made.transposed[1])

    def _shared(self, cta: int, name: str, rows: int, chunks: int, kind: str, transposed: bool) -> Offsets:
        bits = self.values[name]
        descriptor = unpacked(bits, self.made.deep)
        if isinstance(descriptor, str):
            raise self._fault(f"{name} {bits:#018x}: {descriptor}")
        per = per_chunk(kind, self.plan.packed)
        if transposed:
            places = mn_major(descriptor, -(-rows // per), chunks * per)
        else:
            places = k_major(descriptor, rows, chunks)
        return shared_offsets(self.lanes, cta, places, name, bits)

    def _metadata(self, cta: int) -> tuple[Cells, NDArray[np.int64]]:
        bits = BITS[self.plan.kind]
        lane, column, low = datapaths.metadata_places(self.letter, self.rows, bits, self.made.selector)
        return self._cells(cta, "sp_meta_tmem", lane, column), low

    def _scales(self, cta: int) -> list[tuple[Cells, NDArray[np.int64]]]:
        """Of A and of B: the cells in each of the four parts of 32 lanes, (4, lines, vector), and the bytes."""
        found = []
        vector = self.plan.vector * 3 // 2 if self.made.deep else self.plan.vector
        step = (2 if vector == 6 else 1) if self.made.deep else vector
        for name, count, first in (
            ("scale_a_tmem", self.rows, self.made.first[0]),
            ("scale_b_tmem", self.made.n, self.made.first[1]),
        ):
            if first % step:
                raise self._fault(f"the scale factors of {name} begin at byte {first}, with {vector} a row")
            lane, column, byte = datapaths.scale_places(count, vector, first)
            parts = np.arange(0, 128, 32, dtype=np.int64)[:, None, None]
            lane, column = np.broadcast_arrays(lane + parts, column)
            found.append((self._cells(cta, name, lane, column), byte))
        return found

    # --- when it is issued, and when it is done -----------------------------------------------------------------------
    def start(self) -> None:
        """Queue it."""
        granules = [self._granules(each) for each in self.b]
        read: list[Cells] = [each for each, _ in self.metadata]
        read.extend(cells for pair in self.scales for cells, _ in pair)
        if "a_tmem" in self.values:
            read.extend(self.a)
        else:
            granules.extend(self._granules(each) for each in self.a)
        self._check_written(granules)
        written = np.concatenate([cells[self._enabled(i)] for i, cells in enumerate(self.sums)])
        queue(self.lanes, Touched(granules, read, written), self._complete)

    def _granules(self, chunks: Offsets) -> Offsets:
        return (chunks.reshape(-1, 1) + np.arange(0, CHUNK, 4)).reshape(-1)

    def _check_written(self, granules: list[Offsets]) -> None:
        store = self.wave.spaces.shared
        for name, offsets in zip(("B", "B", "A", "A") if len(self.ctas) == 2 else ("B", "A"), granules):
            if store.unwritten is not None and store.unwritten[offsets].all():
                text = f"uninitialised: all of the matrix {name} is shared memory that was never written"
                raise fault("uninitialised", text, self.lanes, 0)

    def _enabled(self, which: int) -> Lost:
        """Which elements of D may be written."""
        cells = self.sums[which]
        if not self.off:
            return np.ones(cells.shape, np.bool_)
        words = np.array(self.off[4 * which : 4 * which + 4], np.uint32)
        lane = cells // WIDTH % LANES
        found: Lost = words[lane // 32] >> (lane % 32).astype(np.uint32) & np.uint32(1) == 0
        return found

    def _complete(self) -> None:
        """Read, multiply and write, in each CTA."""
        b, lost_b = self._b()
        for which in range(len(self.ctas)):
            a, present, lost_a = self._a(which)
            before = self.wave.spaces.tensor.words[self.sums[which]]
            kind = self.made.d
            start = before.astype(np.uint16) if kind == "f16" else before
            if not self.values["enable"]:
                start = np.zeros_like(start)
            if self.plan.kind == "i8":
                types, saturate = (self.made.a, self.made.b), self.made.saturate
                found = tensor_core.multiply_integers(a, b, start, types, saturate)
            else:
                found = self._sum(*self._scaled(which, a, b, present), start)
            self._write(which, before, found, lost_a[:, None] | lost_b[None, :])

    def _b(self) -> tuple[Bits, Lost]:
        """B with its columns as rows, (n, k), and which of them are undefined."""
        kind, transposed = self.made.b, self.made.transposed[1]
        half = self.made.n // len(self.ctas)
        found = [matrix(self.wave.spaces.shared, each, kind, self.plan.packed, transposed) for each in self.b]
        rows = slice(self.shift, self.shift + half)
        b = np.concatenate([each[rows] for each, _ in found])
        lost = np.concatenate([each[rows] for _, each in found])
        return np.where(self.zero[:, None], b.dtype.type(0), b), lost & ~self.zero

    def _a(self, which: int) -> tuple[Bits, NDArray[np.bool_] | None, Lost]:
        """A of one CTA, (rows, k), which of its elements were given, and which rows are undefined."""
        plan, kind = self.plan, self.made.a
        if "a_tmem" in self.values:
            memory, cells = self.wave.spaces.tensor, self.a[which]
            a = datapaths.in_bytes(memory.words[cells], kind, plan.packed)
            marks = memory.unwritten
            lost: Lost = np.zeros(self.rows, np.bool_) if marks is None else np.any(marks[cells] != 0, axis=1)
        else:
            transposed = self.made.transposed[0]
            a, lost = matrix(self.wave.spaces.shared, self.a[which], kind, plan.packed, transposed)
            a, lost = a[: self.rows], lost[: self.rows]
        if not plan.sparse:
            return a, None, lost
        memory = self.wave.spaces.tensor
        cells, low = self.metadata[which]
        nibbles = (memory.words[cells] >> low.astype(np.uint32) & np.uint32(15))[None]
        if memory.unwritten is not None:
            lost = lost | np.any(memory.unwritten[cells] != 0, axis=1)
        present = given_places(a[None], nibbles, plan.pairwise)[0]
        return densified(a[None], nibbles, plan.pairwise)[0], present, lost

    def _scaled(
        self, which: int, a: Bits, b: Bits, present: NDArray[np.bool_] | None
    ) -> tuple[Factor, Factor]:
        left = tensor_core.sparse_factor(a, self.made.a, present)
        right = tensor_core.factor(b, self.made.b)
        if self.made.negative[0]:
            left = Factor(-left.value, left.exponent)
        if self.made.negative[1]:
            right = Factor(-right.value, right.exponent)
        if self.scales:
            by_a, by_b = (self._factors(cells, byte) for cells, byte in self.scales[which])
            left, right = scaled(left, by_a, self.made.scale), scaled(right, by_b, self.made.scale)
        return left, right

    def _factors(self, cells: Cells, byte: NDArray[np.int64]) -> Bits:
        """Scale factors (lines, vector), which all four parts of the lanes must hold."""
        memory = self.wave.spaces.tensor
        shift = (byte * 8).astype(np.uint32)
        if memory.unwritten is not None and (memory.unwritten[cells] >> shift & np.uint32(255)).any():
            text = "uninitialised: a scale factor is tensor memory that was never written"
            raise fault("uninitialised", text, self.lanes, 0)
        found = (memory.words[cells] >> shift).astype(np.uint8)
        if (found != found[0]).any():
            raise self._fault("scale factors must be the same in all four parts of 32 lanes")
        same: Bits = found[0]
        return same

    def _sum(self, left: Factor, right: Factor, start: Bits) -> Bits:
        addend = tensor_core.factor(start, self.made.d)
        if self.plan.exponent:
            value: tensor_core.Doubles = np.ldexp(addend.value, -self.plan.exponent)
            exponent = np.where(addend.value == 0, addend.exponent, addend.exponent - self.plan.exponent)
            addend = Factor(value, exponent)
        total = tensor_core.aligned_sum(left, right, addend, tensor_core.FRACTION)
        return tensor_core.to_half(total) if self.made.d == "f16" else tensor_core.cut(total)

    def _write(self, which: int, before: Bits, found: Bits, lost: Lost) -> None:
        """Write D where it may be; what is undefined of its row, its column or itself makes an element undefined."""
        memory, cells, enabled = self.wave.spaces.tensor, self.sums[which], self._enabled(which)
        kept = np.uint32(0xFFFF0000 if self.made.d == "f16" else 0)
        memory.words[cells[enabled]] = (before & kept | found)[enabled]
        marks = memory.unwritten
        if marks is not None:
            if self.values["enable"]:
                lost = lost | (marks[cells] & ~kept != 0)
            marks[cells[enabled]] = (marks[cells] & kept | np.where(lost, ~kept, np.uint32(0)))[enabled]
