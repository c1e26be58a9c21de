"""Where tcgen05.mma finds and leaves matrices in tensor memory (PTX ISA 9.7.16.10.5, 9.7.16.10.7, 9.7.16.10.8).

No hardware here runs this. What the manual's text leaves to its figures is taken from two public sources each: CUTLASS
(mma_traits_sm100.hpp, sm1xx_sparse_config.inl, sm100_blockscaled_layout.hpp), JAX (Mosaic GPU), Apache TVM.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.widths import Bits

Places = NDArray[np.int64]
HALF = "CF"
"""Layouts of 64 rows that use 16 lanes of each 32."""


def layout_of(m: int, ctas: int, stationary: bool, sparse: bool) -> str:
    """The letter of the datapath layout for M rows; "" if there is none."""
    table = {
        (128, 1, False): "D",
        (64, 1, False): "F",
        (256, 2, False): "A",
        (128, 2, False): "C" if sparse else "B",
    }
    table |= {(128, 1, True): "D", (64, 1, True): "E", (32, 1, True): "G"}
    return table.get((m, ctas, stationary), "")


def row_lanes(letter: str, rows: int) -> Places:
    """The lane of each row of a CTA, from the address's: of A in tensor memory, and of D's first columns."""
    row = np.arange(rows, dtype=np.int64)
    return row // 16 * 32 + row % 16 if letter in HALF else row


def sum_places(letter: str, rows: int, columns: int) -> tuple[Places, Places]:
    """Lane and column of each element of D, (rows, columns) each, from the address's."""
    lane = np.broadcast_to(row_lanes(letter, rows)[:, None], (rows, columns))
    column = np.broadcast_to(np.arange(columns, dtype=np.int64), (rows, columns))
    parts = {"B": 2, "E": 2, "G": 4}.get(letter, 1)
    wide = columns // parts
    return lane + column // wide * (128 // parts), column % wide


def metadata_places(letter: str, rows: int, bits: int, selector: int) -> tuple[Places, Places, Places]:
    """Of each group of each row of sparse A: lane, column, and the lowest bit of its four; (rows, groups) each.

    bits   of an element of A: 16 and 32 have 8 groups a row, in two lanes, one column of two; 8 and 4 have 16 groups
    """
    lanes = row_lanes(letter, rows)[:, None]
    if bits < 16:
        group = np.arange(16, dtype=np.int64)[None, :]
        lane, group = np.broadcast_arrays(lanes, group)
        return lane, group // 8, group % 8 * 4
    row, group = np.arange(rows, dtype=np.int64)[:, None], np.arange(8, dtype=np.int64)[None, :]
    lane = lanes - row // 8 % 2 * 8 + group // 4 * 8
    column = np.full((rows, 8), selector & 1, np.int64)
    return lane, column, row // 8 % 2 * 16 + group % 4 * 4


def scale_places(count: int, vector: int, first: int) -> tuple[Places, Places, Places]:
    """Of each scale factor of `count` rows or columns: lane, column, byte; (count, vector) each, `first` the id.

    What does not fit into four bytes goes on behind the columns of 128 rows, or of 256.
    """
    line = np.arange(count, dtype=np.int64)[:, None]
    byte = np.arange(vector, dtype=np.int64)[None, :] + first
    column = line // 32 + byte // 4 * (-(-count // 128) * 4)
    lane, column, byte = np.broadcast_arrays(line % 32, column, byte % 4)
    return lane, column, byte


def move_places(shape: str, count: int, half: int, packed: bool) -> tuple[Places, Places]:
    """Lane and column of each register of tcgen05.ld and .st, (32, registers, 1, or 2 if packed) each; 9.7.16.8.

    half   the distance in columns of the two halves of .16x32bx2
    """
    lane = np.arange(32, dtype=np.int64)[:, None]
    each = {"16x128b": 2, "16x256b": 4}.get(shape, 1)
    register = np.arange(count * each, dtype=np.int64)[None, :]
    start: Places = np.zeros((1, 1), np.int64)
    if shape == "32x32b":
        row, column = lane, register
    elif shape == "16x64b":
        row, column = lane // 4 + lane % 2 * 8, register * 2 + lane // 2 % 2
    elif shape == "16x128b":
        row, column = lane // 4 + register % 2 * 8, register // 2 * 4 + lane % 4
    elif shape == "16x256b":
        row, column = lane // 4 + register // 2 % 2 * 8, register // 4 * 8 + lane % 4 * 2 + register % 2
    else:
        row, column, start = lane % 16, register, lane // 16 * half
    row, column, start = np.broadcast_arrays(row, column, start)
    if not packed:
        return row[..., None], (column + start)[..., None]
    pair = np.arange(2, dtype=np.int64)
    return np.broadcast_to(row[..., None], (*row.shape, 2)), column[..., None] * 2 + start[..., None] + pair


def zero_columns(bits: int, m: int, n: int) -> NDArray[np.bool_]:
    """Which columns of B count as zero (9.7.16.4.3): runs of `use + 1` used and `skip + 1` zero columns, by turns."""
    zero: NDArray[np.bool_] = np.zeros(n, np.bool_)
    if not bits >> 39 & 1:
        return zero
    skip, use = (bits >> 40 & 255) + 1, (bits >> 48 & 255) + 1
    parts = 128 // m
    wide = n // parts
    for part in range(parts):
        place = np.arange(wide) + (bits >> 8 * part & 255)
        first = bool(bits >> 32 + part & 1)
        run = place % (skip + use)
        zero[part * wide : (part + 1) * wide] = run < skip if first else run >= use
    return zero


def in_bytes(words: Bits, kind: str, packed: bool) -> Bits:
    """Elements of A in tensor memory, (rows, words) to (rows, k); `packed`: of four bits without padding."""
    rows = len(words)
    if kind == "tf32":
        return words
    if kind in ("f16", "bf16"):
        return np.ascontiguousarray(words).view(np.uint16)
    single = np.ascontiguousarray(words).view(np.uint8)
    if packed:
        return np.stack([single & 15, single >> 4], axis=-1).reshape(rows, -1)
    if kind == "e2m1":  # the four bits in the middle of a byte
        return single >> 2 & 15
    return single & 63 if kind in ("e2m3", "e3m2") else single
