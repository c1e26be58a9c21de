"""wmma (PTX ISA 9.7.14.4): whole matrices loaded, multiplied and stored.

Which register of which lane holds which element is the machine's own affair: here a matrix's elements follow each other
row by row, lane by lane. f16 factors are held twice or four times, since the table gives them eight registers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.actions.access import space_of
from ptxtile.emulator.actions.bulk import named
from ptxtile.emulator.actions.control import fall_through
from ptxtile.emulator.actions.mma import TYPES, product
from ptxtile.emulator.actions.warps import by_warp
from ptxtile.emulator.fragments import elements, packed
from ptxtile.emulator.group import Group
from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.mma_shape import deliver_to, scalars, shape_of
from ptxtile.emulator.operands import Locate, Read, address_reader, reader, refuse_undefined, writer
from ptxtile.emulator.ordering import Strength
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.registers import Shadow
from ptxtile.emulator.spaces import Part
from ptxtile.emulator.step import Control, Run, control
from ptxtile.emulator.widths import Bits, bits_of


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix of an instruction: extents, element bits, and the bits of the registers that hold it."""

    rows: int
    columns: int
    bits: int
    width: int

    @property
    def each(self) -> int:
        """Elements of a lane."""
        return self.rows * self.columns // 32


def _matrix(site: Site, which: str, kind: str) -> Matrix:
    modifiers = site.instruction.form.modifiers
    shape = shape_of(next(m for m in modifiers if m[:2] == ".m" and m[2:3].isdigit()))
    rows, columns = {"a": (shape.m, shape.k), "b": (shape.k, shape.n)}.get(which, (shape.m, shape.n))
    bits = 32 if kind == "tf32" else bits_of(kind)
    return Matrix(rows, columns, bits, 64 if kind == "f64" else 32)


@control("wmma")
def wmma(program: Program, site: Site) -> Control:
    """load, mma, store."""
    verb = site.instruction.form.modifiers[0]
    if verb == ".mma":
        return _multiply(program, site)
    run = _load(program, site) if verb == ".load" else _store(program, site)

    def control_run(group: Group, lanes: Lanes) -> None:
        fall_through(group, lanes)
        if lanes.count:
            run(lanes)
            lanes.wave.pool.add(group.at(site.number + 1, lanes.threads))

    return control_run


@dataclass(frozen=True, slots=True)
class Place:
    """Where a matrix lies in memory."""

    matrix: Matrix
    by_column: bool
    locate: Locate
    space: str
    stride: Read | None

    def parts(self, lanes: Lanes, verb: str) -> list[tuple[Part, int]]:
        """Each lane's accesses, and how many elements each is (more than one where elements are below a byte)."""
        matrix = self.matrix
        lines = matrix.columns if self.by_column else matrix.rows
        pitch: NDArray[np.int64] = np.full(lanes.count, matrix.rows * matrix.columns // lines, np.int64)
        if self.stride is not None:
            value, shadow = self.stride(lanes)
            if shadow is not None:
                refuse_undefined(lanes, shadow, "where the matrix lies", "the stride")
            pitch = value.astype(np.int64)
        start = self.locate(lanes)
        group = max(8 // matrix.bits, 1) if matrix.bits > 1 else 32
        unit = max(matrix.bits * group // 8, 1)
        found = []
        for i in range(0, matrix.each, group):
            row, column = np.divmod(lanes.wave.lane[lanes.where] * matrix.each + i, matrix.columns)
            if self.by_column:
                row, column = column, row
            places = (row * pitch + column) * matrix.bits // 8
            (part,) = lanes.wave.spaces.parts(lanes, self.space, start + places.astype(np.uint64), unit, verb)
            found.append((part, unit))
        return found


def _place(program: Program, site: Site, matrix: Matrix) -> Place:
    operands, modifiers = named(site), site.instruction.form.modifiers
    by_column = ".col" in modifiers
    return Place(
        replace(matrix, rows=matrix.columns, columns=matrix.rows)
        if by_column and matrix.bits < 8
        else matrix,
        by_column and matrix.bits >= 8,
        address_reader(program, site, operands["p"]),
        space_of(program, site, operands["p"]),
        reader(program, site, operands["stride"], ".u32") if "stride" in operands else None,
    )


def _load(program: Program, site: Site) -> Run:
    modifiers = site.instruction.form.modifiers
    matrix = _matrix(site, modifiers[1][1:], modifiers[-1][1:])
    place = _place(program, site, matrix)
    parts = scalars(named(site)["r"])
    writes = [writer(site, part, f"b{matrix.width}") for part in parts]

    def run(lanes: Lanes) -> None:
        values, shadows = [], []
        for part, unit in place.parts(lanes, "reads"):
            if lanes.wave.machine.sanitizer is not None:
                lanes.wave.machine.sanitizer.read(part, unit, Strength())
            index = part.index(unit)
            values.append(part.store.gather(index, unit))
            shadows.append(part.store.shadow(index, unit))
        lost: Shadow = None
        if any(shadow is not None for shadow in shadows):
            lost = np.stack([np.zeros_like(v) if s is None else s for v, s in zip(values, shadows)], axis=-1)
        registers = _registers(np.stack(values, axis=-1), matrix.width, len(writes))
        marks = None if lost is None else _registers(lost, matrix.width, len(writes))
        for number, write in enumerate(writes):
            mark = (
                None
                if marks is None or not marks[:, number].any()
                else np.ascontiguousarray(marks[:, number])
            )
            write(lanes, np.ascontiguousarray(registers[:, number]), mark)

    return run


def _registers(values: Bits, width: int, count: int) -> Bits:
    """The values of each lane as registers, repeated until there are enough."""
    per = width // (values.dtype.itemsize * 8)
    found = packed(values.reshape(len(values), -1, per), width)
    return np.tile(found, (1, count // found.shape[1]))


def _store(program: Program, site: Site) -> Run:
    kind = site.instruction.form.modifiers[-1][1:]
    matrix = _matrix(site, "d", kind)
    place = _place(program, site, matrix)
    parts = scalars(named(site)["r"])
    reads = [reader(program, site, part, f"b{matrix.width}") for part in parts]

    def run(lanes: Lanes) -> None:
        columns = []
        for part, read in zip(parts, reads):
            value, shadow = read(lanes)
            if shadow is not None:
                refuse_undefined(lanes, shadow, "the stored value", f"register {part}")
            columns.append(value)
        values = elements(np.stack(columns, axis=-1), matrix.bits).reshape(lanes.count, -1)
        for number, (target, unit) in enumerate(place.parts(lanes, "writes")):
            value = np.ascontiguousarray(values[:, number])
            if lanes.wave.machine.sanitizer is not None:
                lanes.wave.machine.sanitizer.write(target, unit, Strength(), (value,))
            target.store.scatter(target.index(unit), unit, value)
        lanes.wave.happened()

    return run


def _multiply(program: Program, site: Site) -> Control:
    modifiers, operands = site.instruction.form.modifiers, named(site)
    kinds = [m[1:] for m in modifiers if m in TYPES]
    if len(kinds) == 2:
        kinds = [kinds[0], "f16", "f16", kinds[1]]
    dtype, atype, btype, ctype = kinds
    matrices = [_matrix(site, which, kind) for which, kind in zip("abc", (atype, btype, ctype))]
    vectors = [scalars(operands[name]) for name in "abc"]
    width = matrices[0].width
    reads = [reader(program, site, part, f"b{width}") for vector in vectors for part in vector]
    writes = [writer(site, part, f"b{width}") for part in scalars(operands["d"])]
    multiply = product(modifiers, (atype, btype, ctype), dtype)
    # An H200 takes tf32 in two steps of four along k, each a sum of its own; other types in one.
    step = 4 if atype == "tf32" else matrices[0].columns

    def compute(sources: list[Bits]) -> list[Bits]:
        found, start = [], 0
        for matrix, vector in zip(matrices, vectors):
            registers = np.stack(sources[start : start + len(vector)], axis=-1)
            parts = elements(registers, matrix.bits).reshape(len(registers), 32, -1)[..., : matrix.each]
            found.append(_laid(parts, matrix))
            start += len(vector)
        a, b, c = found
        d = c
        for k in range(0, a.shape[2], step):
            d = multiply(a[..., k : k + step], b.transpose(0, 2, 1)[..., k : k + step], d)
        each = replace(matrices[2], bits=bits_of(dtype))
        results = packed(d.reshape(len(d), 32, -1, width // each.bits), width)
        return [results[..., i] for i in range(results.shape[-1])]

    return by_warp(site, reads, compute, deliver_to(writes))


def _laid(parts: Bits, matrix: Matrix) -> Bits:
    """A lane's elements as matrices (warps, rows, columns). Below a byte, B lies with its columns as rows."""
    if matrix.bits < 8 and matrix.rows > matrix.columns:
        return parts.reshape(len(parts), matrix.columns, matrix.rows).transpose(0, 2, 1)
    return parts.reshape(len(parts), matrix.rows, matrix.columns)
