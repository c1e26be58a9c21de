"""mma.sync (PTX ISA 9.7.14.5): fragments to matrices, the product, and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ptxtile.emulator import tensor_core
from ptxtile.emulator.actions.bulk import named
from ptxtile.emulator.actions.mma_small import small
from ptxtile.emulator.actions.warps import Lost, by_warp
from ptxtile.emulator.fragments import (
    densified,
    factor_matrix,
    given_places,
    lost_registers,
    metadata_nibbles,
    quad_matrix,
    quad_registers,
    quad_sums,
    sum_matrix,
    sum_registers,
)
from ptxtile.emulator.mma_shape import Shape, deliver_to, scalars, shape_of
from ptxtile.emulator.operands import reader, writer
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.step import Control, control
from ptxtile.emulator.widths import Bits, bits_of
from ptxtile.ir.operand import Integer

Multiply = Callable[[Bits, Bits, Bits], Bits]
TYPES = (
    ".f16",
    ".bf16",
    ".tf32",
    ".f32",
    ".f64",
    ".e4m3",
    ".e5m2",
    ".s8",
    ".u8",
    ".s4",
    ".u4",
    ".b1",
    ".s32",
)


@dataclass(frozen=True, slots=True)
class Plan:
    """One mma made ready: its matrices' types and shape, and for sparse A the selector."""

    modifiers: tuple[str, ...]
    shape: Shape
    types: tuple[str, str, str]
    dtype: str
    counts: tuple[int, ...]
    selector: int | None

    @property
    def sum_width(self) -> int:
        """Bits of a register of D."""
        return 64 if self.dtype == "f64" else 32


@control("mma")
def mma(program: Program, site: Site) -> Control:
    """Dense and sparse products; those with a .kind stand in `mma_small`."""
    modifiers, operands = site.instruction.form.modifiers, named(site)
    if any(m.startswith(".kind::") for m in modifiers):
        return small(program, site)
    shape = shape_of(next(m for m in modifiers if m[:2] == ".m" and m[2:3].isdigit()))
    dtype, atype, btype, ctype = [m[1:] for m in modifiers if m in TYPES][-4:]
    wide = "f64" if atype == "f64" else "b32"
    vectors = [scalars(operands[name]) for name in ("a", "b", "c")]
    selector = operands.get("selector")
    if isinstance(selector, Integer):
        vectors.append(scalars(operands["metadata"]))
    reads = [reader(program, site, part, wide) for vector in vectors for part in vector]
    writes = [writer(site, part, wide) for part in scalars(operands["d"])]
    plan = Plan(
        modifiers,
        shape,
        (atype, btype, ctype),
        dtype,
        tuple(len(vector) for vector in vectors),
        selector.value if isinstance(selector, Integer) else None,
    )
    if (shape.k, atype) == (4, "f16"):
        return by_warp(site, reads, _quads(plan), deliver_to(writes))
    return by_warp(site, reads, _fragments(plan), deliver_to(writes), _lost(plan))


def _fragments(plan: Plan) -> Callable[[list[Bits]], list[Bits]]:
    multiply = product(plan.modifiers, plan.types, plan.dtype)
    left_bits, right_bits = (32 if kind == "tf32" else bits_of(kind) for kind in plan.types[:2])
    floats = plan.types[0] in tensor_core.FLOATS

    def compute(sources: list[Bits]) -> list[Bits]:
        a, b, c, *metadata = _groups(sources, plan.counts)
        left = factor_matrix(a, plan.shape.m, left_bits)
        present = None
        if plan.selector is not None:
            groups = plan.shape.k // {32: 2, 4: 8}.get(left_bits, 4)
            nibbles = metadata_nibbles(metadata[0][..., 0], plan.selector, groups, left_bits)
            present = given_places(left, nibbles, plan.types[0]) if floats else None
            left = densified(left, nibbles, plan.types[0])
        right = factor_matrix(b, 8, right_bits)
        start = sum_matrix(c, plan.shape.m, bits_of(plan.types[2]))
        if present is None:
            found = multiply(left, right, start)
        else:
            found = tensor_core.multiply_floats(left, right, start, plan.types, plan.dtype, present)
        registers = sum_registers(found, bits_of(plan.dtype), plan.sum_width)
        return [registers[..., i] for i in range(registers.shape[-1])]

    return compute


def _lost(plan: Plan) -> Lost:
    """An element of D is undefined if its row of A, its column of B, or its element of C is."""
    left_bits, right_bits = (32 if kind == "tf32" else bits_of(kind) for kind in plan.types[:2])

    def lost(shadows: list[Bits], results: list[Bits]) -> list[Bits]:
        a, b, c, *metadata = _groups(shadows, plan.counts)
        rows = np.any(factor_matrix(a, plan.shape.m, left_bits) != 0, axis=2)
        columns = np.any(factor_matrix(b, 8, right_bits) != 0, axis=2)
        marks = rows[:, :, None] | columns[:, None, :]
        marks = marks | (sum_matrix(c, plan.shape.m, bits_of(plan.types[2])) != 0)
        for word in metadata:
            marks = marks | np.any(word != 0, axis=(1, 2))[:, None, None]
        found = lost_registers(marks, bits_of(plan.dtype), plan.sum_width)
        if found is None:
            return [np.zeros_like(result) for result in results]
        return [np.ascontiguousarray(found[..., i]) for i in range(found.shape[-1])]

    return lost


def _quads(plan: Plan) -> Callable[[list[Bits]], list[Bits]]:
    """m8n8k4 of f16: four products, one for each two quads of the warp."""
    layouts = [m for m in plan.modifiers if m in (".row", ".col")]
    ctype = plan.types[2]

    def compute(sources: list[Bits]) -> list[Bits]:
        a, b, c = _groups(sources, plan.counts)
        left, right = quad_matrix(a, layouts[0] == ".col"), quad_matrix(b, layouts[1] == ".row")
        found = tensor_core.multiply_quads(left, right, quad_sums(c, bits_of(ctype)), ctype, plan.dtype)
        registers = quad_registers(found, bits_of(plan.dtype))
        return [registers[..., i] for i in range(registers.shape[-1])]

    return compute


def _groups(sources: list[Bits], counts: tuple[int, ...]) -> list[Bits]:
    """Sources as arrays (warps, 32, registers), one a matrix."""
    found, start = [], 0
    for count in counts:
        found.append(np.stack(sources[start : start + count], axis=-1))
        start += count
    return found


def product(modifiers: tuple[str, ...], types: tuple[str, str, str], dtype: str = "") -> Multiply:
    """The function of A (…, m, k), B (…, n, k) and C (…, m, n), all bit patterns."""
    atype, btype, ctype = types
    if atype == "b1":
        operation = "xor" if ".xor" in modifiers else "and"
        return lambda a, b, c: tensor_core.multiply_bits(a, b, c, operation)
    if atype == "f64":
        rounding = next((m[1:] for m in modifiers if m in (".rn", ".rz", ".rm", ".rp")), "rn")
        return lambda a, b, c: tensor_core.multiply_doubles(a, b, c, rounding)
    if atype in tensor_core.FLOATS:
        return lambda a, b, c: tensor_core.multiply_floats(a, b, c, types, dtype or ctype)
    saturate = ".satfinite" in modifiers
    return lambda a, b, c: tensor_core.multiply_integers(a, b, c, (atype, btype), saturate)
