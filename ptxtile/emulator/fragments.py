"""Which lane and register holds which element of a matrix (PTX ISA 9.7.14.5, 9.7.15.5): registers to matrices.

Registers are arrays (warps, 32, registers). One register holds `32 / bits` neighbours of a row; lane 4 g + t has row g,
and the t-th such group of columns.
"""

from __future__ import annotations

from functools import cache

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


def lost_registers(lost: NDArray[np.bool_], bits: int, width: int) -> Bits | None:
    """The shadow of `sum_registers` where these elements are undefined; None if all are defined."""
    if not lost.any():
        return None
    kind = holder(bits)
    every = kind.type((1 << bits) - 1)
    return sum_registers(np.where(lost, every, kind.type(0)).astype(kind), bits, width)


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


def quad_matrix(registers: Bits, transposed: bool) -> Bits:
    """A, or B with its columns as rows, of the four products of m8n8k4: (warps, 4, 8, 4); 9.7.14.5.1.

    transposed   A column-major, or B row-major: a lane holds one k of four rows, not one row
    """
    parts = elements(registers, 16).reshape(-1, 2, 4, 4, 4)  # warp, half, product, lane, element
    if transposed:
        return parts.transpose(0, 2, 1, 4, 3).reshape(-1, 4, 8, 4)
    return parts.transpose(0, 2, 1, 3, 4).reshape(-1, 4, 8, 4)


@cache
def _quad_places(bits: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Row and column of each accumulator of m8n8k4 by lane of a quad pair and element: (2, 4, 8) each."""
    half, lane, i = np.indices((2, 4, 8))
    if bits == 16:
        return lane + 4 * half, i
    return (lane & 1) + (i & 2) + 4 * half, (i & 4) + (lane & 2) + (i & 1)


def quad_sums(registers: Bits, bits: int) -> Bits:
    """C of m8n8k4: (warps, 4, 8, 8)."""
    parts = elements(registers, bits).reshape(-1, 2, 4, 4, 8).transpose(0, 2, 1, 3, 4)
    found = np.zeros((len(parts), 4, 8, 8), parts.dtype)
    row, column = _quad_places(bits)
    found[:, :, row, column] = parts
    return found


def quad_registers(matrix: Bits, bits: int) -> Bits:
    """The inverse of `quad_sums`: (warps, 32, registers)."""
    row, column = _quad_places(bits)
    parts = matrix[:, :, row, column].transpose(0, 2, 1, 3, 4)  # warp, half, product, lane, element
    return packed(parts.reshape(len(matrix), 32, -1, 32 // bits), 32)


def metadata_nibbles(registers: Bits, selector: int, groups: int, bits: int) -> Bits:
    """The indices of sparse A: (warps, 16, groups), four bits for each group of a row; 9.7.14.6.1.

    registers   the metadata, (warps, 32)     bits   of an element of A
    """
    nibbles = elements(registers, 4).reshape(-1, 8, 4, 8)  # warp, row of eight, lane of the quad, nibble
    if bits >= 16:
        lanes = (
            nibbles[:, :, selector : selector + 1] if groups == 4 else nibbles[:, :, 2 * selector :][:, :, :2]
        )
        halves = lanes.reshape(len(nibbles), 8, -1, 2, 4)
        return halves.transpose(0, 3, 1, 2, 4).reshape(len(nibbles), 16, groups)
    if groups == 8:
        lanes = nibbles[:, :, 2 * selector : 2 * selector + 2]
        return lanes.transpose(0, 2, 1, 3).reshape(len(nibbles), 16, groups)
    lanes = nibbles.reshape(-1, 8, 2, 2, 8)  # warp, row, half of k, half of the rows, nibble
    return lanes.transpose(0, 3, 1, 2, 4).reshape(len(nibbles), 16, groups)


def given_places(compressed: Bits, nibbles: Bits, kind: str) -> NDArray[np.bool_]:
    """Which elements of `densified` were given: (warps, 16, k)."""
    given: NDArray[np.bool_] = np.not_equal(densified(np.ones_like(compressed), nibbles, kind), 0)
    return given


def densified(compressed: Bits, nibbles: Bits, kind: str) -> Bits:
    """Sparse A with its zeros: from (warps, 16, k / 2) to (warps, 16, k)."""
    warps, rows, groups = nibbles.shape
    if kind == "tf32":  # one of two, told by the highest bit
        found = np.zeros((warps, rows, groups, 2), compressed.dtype)
        np.put_along_axis(found, (nibbles >> 3)[..., None].astype(np.intp), compressed[..., None], axis=3)
        return found.reshape(warps, rows, -1)
    width = 2 if kind in ("s4", "u4") else 1  # pairs of four-bit elements stay together
    units = compressed.reshape(warps, rows, groups, 2, width)
    found = np.zeros((warps, rows, groups, 4, width), compressed.dtype)
    for place in (0, 1):
        index = (nibbles >> (2 * place) & 3).astype(np.intp)
        np.put_along_axis(found, index[..., None, None], units[..., place : place + 1, :], axis=3)
    return found.reshape(warps, rows, -1)
