"""mma.sync (PTX ISA 9.7.14.5): fragments to matrices, the product, and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator import tensor_core
from ptxtile.emulator.actions.bulk import named
from ptxtile.emulator.actions.warps import by_warp
from ptxtile.emulator.fragments import factor_matrix, sum_matrix, sum_registers
from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.operands import Read, Write, reader, writer
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.registers import undefined
from ptxtile.emulator.step import Control, control
from ptxtile.emulator.widths import Bits, bits_of
from ptxtile.ir.operand import Operand, Vector

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
class Shape:
    """Rows of A, columns of B, and what they are multiplied along."""

    m: int
    n: int
    k: int


def shape_of(modifier: str) -> Shape:
    """`.m16n8k16` taken apart."""
    m, _, rest = modifier[2:].partition("n")
    n, _, k = rest.partition("k")
    return Shape(int(m), int(n), int(k))


def scalars(operand: Operand) -> tuple[Operand, ...]:
    """The registers of a vector operand, or the one that stands alone."""
    return operand.elements if isinstance(operand, Vector) else (operand,)


@control("mma")
def mma(program: Program, site: Site) -> Control:
    """Every dense product but m8n8k4 of f16."""
    modifiers = site.instruction.form.modifiers
    shape = shape_of(next(m for m in modifiers if m[:2] == ".m" and m[2:3].isdigit()))
    dtype, atype, btype, ctype = [m[1:] for m in modifiers if m in TYPES][-4:]
    operands = named(site)
    wide = "f64" if atype == "f64" else "b32"
    reads: list[Read] = []
    counts = []
    for name in ("a", "b", "c"):
        parts = scalars(operands[name])
        reads.extend(reader(program, site, part, wide) for part in parts)
        counts.append(len(parts))
    writes = [writer(site, part, wide) for part in scalars(operands["d"])]
    multiply = product(modifiers, (atype, btype, ctype))
    rows, width = shape.m, 64 if wide == "f64" else 32

    def compute(sources: list[Bits]) -> list[Bits]:
        a, b, c = _groups(sources, counts)
        left = factor_matrix(a, rows, bits_of(atype) if atype != "tf32" else 32)
        right = factor_matrix(b, 8, bits_of(btype) if btype != "tf32" else 32)
        found = multiply(left, right, sum_matrix(c, rows, bits_of(ctype)))
        registers = sum_registers(found, bits_of(dtype), width)
        return [registers[..., i] for i in range(registers.shape[-1])]

    return by_warp(site, reads, compute, deliver_to(writes))


def _groups(sources: list[Bits], counts: list[int]) -> list[Bits]:
    """Sources as arrays (warps, 32, registers), one a matrix."""
    found, start = [], 0
    for count in counts:
        found.append(np.stack(sources[start : start + count], axis=-1))
        start += count
    return found


def product(modifiers: tuple[str, ...], types: tuple[str, str, str]) -> Multiply:
    """The function of A (…, m, k), B (…, n, k) and C (…, m, n), all bit patterns."""
    atype, btype, _ = types
    if atype == "b1":
        operation = "xor" if ".xor" in modifiers else "and"
        return lambda a, b, c: tensor_core.multiply_bits(a, b, c, operation)
    if atype == "f64":
        rounding = next((m[1:] for m in modifiers if m in (".rn", ".rz", ".rm", ".rp")), "rn")
        return lambda a, b, c: tensor_core.multiply_doubles(a, b, c, rounding)
    if atype in tensor_core.FLOATS:
        return lambda a, b, c: tensor_core.multiply_floats(a, b, c, types)
    saturate = ".satfinite" in modifiers
    return lambda a, b, c: tensor_core.multiply_integers(a, b, c, (atype, btype), saturate)


def deliver_to(writes: list[Write]) -> Callable[[Lanes, list[Bits], NDArray[np.bool_]], None]:
    """Write each result to its register; undefined ones with a shadow."""

    def deliver(lanes: Lanes, results: list[Bits], tainted: NDArray[np.bool_]) -> None:
        for write, result in zip(writes, results):
            shadow = None
            if tainted.any():
                kind = result.dtype
                shadow = np.where(tainted, undefined(kind), kind.type(0)).astype(kind)
            write(lanes, result, shadow)

    return deliver
