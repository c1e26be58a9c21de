"""Which lane and register holds which element of a matrix (PTX ISA 9.7.14.5, 9.7.15.5): registers to matrices.

Registers are arrays (warps, 32, registers). One register holds `32 / bits` neighbours of a row; lane 4 g + t has row g,
and the t-th such group of columns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.widths import Bits, holder


def elements(registers: Bits, bits: int) -> Bits:
    """Registers taken apart: a trailing axis of the elements of each, lowest bits first."""
    width = registers.dtype.itemsize * 8
    if bits == width:
        return registers[..., None]
    kind = registers.dtype.type
    shifts = np.arange(0, width, bits).astype(registers.dtype)
    found: Bits = (registers[..., None] >> shifts & kind((1 << bits) - 1)).astype(
        holder(bits) if bits > 1 else np.uint8
    )
    return found


def packed(parts: Bits, width: int) -> Bits:
    """The inverse of `elements`, into registers of `width` bits."""
    kind = holder(width)
    count = parts.shape[-1]
    if count == 1:
        return parts[..., 0].astype(kind)
    shifts = (np.arange(count) * (width // count)).astype(kind)
    found: Bits = np.bitwise_or.reduce(parts.astype(kind) << shifts, axis=-1)
    return found


def factor_matrix(registers: Bits, rows: int, bits: int) -> Bits:
    """A of `rows` 8 or 16, or B with its columns as rows: (warps, rows, k)."""
    parts = elements(registers, bits)
    warps, _, count, width = parts.shape
    halves = 2 if rows == 16 else 1
    split = parts.reshape(warps, 8, 4, count // halves, halves, width)
    return split.transpose(0, 4, 1, 3, 2, 5).reshape(warps, rows, count // halves * 4 * width)


def sum_matrix(registers: Bits, rows: int, bits: int) -> Bits:
    """C or D of `rows` 8 or 16: (warps, rows, columns). Pairs of neighbours, blocks of eight columns."""
    parts = elements(registers, bits)
    warps, _, count, width = parts.shape
    halves = rows // 8
    split = parts.reshape(warps, 8, 4, count * width // (2 * halves), halves, 2)
    return split.transpose(0, 4, 1, 3, 2, 5).reshape(warps, rows, count * width // (2 * halves) * 8)


def sum_registers(matrix: Bits, bits: int, width: int) -> Bits:
    """The inverse of `sum_matrix`, into registers of `width` bits: (warps, 32, registers)."""
    warps, rows, columns = matrix.shape
    halves = rows // 8
    split = matrix.reshape(warps, halves, 8, columns // 8, 4, 2)
    parts = split.transpose(0, 2, 4, 3, 1, 5).reshape(warps, 32, -1, width // bits)
    return packed(parts, width)


def matrix_words(count: int, transposed: bool) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Of ldmatrix and stmatrix: by lane and piece, the lane that gives the row's address, and the byte in the row.

    A piece is a register, or half of one if `transposed`: arrays (32, pieces).
    """
    lane = np.arange(32)[:, None]
    if not transposed:
        number = np.arange(count)[None, :]
        return number * 8 + lane // 4, np.broadcast_to(lane % 4 * 4, (32, count))
    number, half = np.divmod(np.arange(2 * count)[None, :], 2)
    return number * 8 + lane % 4 * 2 + half, np.broadcast_to(lane // 4 * 2, (32, 2 * count))
