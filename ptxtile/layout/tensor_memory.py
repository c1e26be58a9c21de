"""Tensor memory: where matrices lie in its lanes and columns, and which lane moves which word (PTX ISA 9.7.16).

Tensor memory has 128 lanes (TLane) of 512 columns (TCol) of 32 bits; warp w of a warpgroup reaches lanes 32 w to
32 w + 31. No hardware here runs this, so each formula has two independent sources besides the manual's text:
    datapaths            PTX ISA 9.7.16.10.5; Apache TVM TIRx 0.1.0a4, backend/cuda/layout.py (tmem_datapath_layout)
    scale factors        see `scale_factors`
    loads and stores     CUTLASS include/cute/atom/copy_traits_sm100.hpp (SM100_TMEM_LOAD_*); Triton
                         lib/Dialect/TritonNvidiaGPU/IR (getTileLayout of TMemAccessAtom)
"""

from __future__ import annotations

from ptxtile.errors import LayoutError
from ptxtile.layout.axis import TCol, TLane, laneid
from ptxtile.layout.layout import TileLayout
from ptxtile.layout.mma_fragment import Fragment
from ptxtile.layout.notation import R, S

__all__ = ["DATAPATHS", "datapath", "datapath_of", "scale_factors", "tensor_memory_fragment"]

DATAPATHS = {"A": 128, "B": 64, "C": 64, "D": 128, "E": 64, "F": 64, "G": 32}
"""Rows that one CTA holds in each datapath layout."""

_SHAPES = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}
_LEAST = {"16x128b": 64, "16x256b": 32}


def datapath(letter: str, columns: int) -> TileLayout:
    """The accumulator (rows, columns) of one CTA, words of 32 bits, in a datapath layout.

    A    M 256 of two CTAs                  row r in lane r
    B    M 128 of two CTAs, dense           64 rows; the right half of the columns in lanes 64 on
    C    M 128 of two CTAs, sparse          64 rows, 16 in each warp's first lanes
    D    M 128                              row r in lane r
    E    M 64 of .ws                        as B
    F    M 64                               as C
    G    M 32 of .ws                        32 rows; a quarter of the columns in each warp's lanes
    """
    if letter not in DATAPATHS:
        raise LayoutError(f"a datapath layout is one of {', '.join(DATAPATHS)}, not {letter!r}")
    parts = {"B": 2, "E": 2, "G": 4}.get(letter, 1)
    if isinstance(columns, bool) or not isinstance(columns, int) or columns < 1 or columns % parts:
        raise LayoutError(f"datapath {letter} has a positive multiple of {parts} columns, not {columns!r}")
    if letter in "AD":
        return S[(128, columns) : (1 @ TLane, 1 @ TCol)]
    if letter in "CF":
        return S[(4, 16, columns) : (32 @ TLane, 1 @ TLane, 1 @ TCol)]
    rows = DATAPATHS[letter]
    return S[(rows, parts, columns // parts) : (1 @ TLane, 128 // parts @ TLane, 1 @ TCol)]


def datapath_of(m: int, ctas: int, weights_stationary: bool = False, sparse: bool = False) -> str:
    """The datapath layout of tcgen05.mma with M rows in all. LayoutError if there is none."""
    table = {
        (128, 1, False): "D",
        (64, 1, False): "F",
        (256, 2, False): "A",
        (128, 2, False): "C" if sparse else "B",
    }
    table |= {(128, 1, True): "D", (64, 1, True): "E", (32, 1, True): "G"}
    found = table.get((m, ctas, weights_stationary))
    if found is None:
        have = sorted(key[0] for key in table if key[1:] == (ctas, weights_stationary))
        kind = ".ws" if weights_stationary else f".cta_group::{ctas}"
        raise LayoutError(
            f"tcgen05.mma with {kind} has M {', '.join(map(str, have)) or 'of none'}, not {m!r}"
        )
    return found


def scale_factors(rows: int) -> TileLayout:
    """Words of scale factors of tcgen05.mma with .block_scale, one for a row: (rows,), row r in lane r % 32 and column
    r / 32, and again in each quarter of the lanes, as tcgen05.cp with .warpx4 writes them.

    Sources: CUTLASS include/cute/atom/mma_traits_sm100_frag.hpp (tmem_sf_frg); Apache TVM's simulator of tensor memory.
    """
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1 or (rows > 32 and rows % 32):
        raise LayoutError(f"scale factors are of up to 32 rows, or of a multiple of 32, not {rows!r}")
    if rows <= 32:
        return S[rows : 1 @ TLane] + R[4 : 32 @ TLane]
    return S[(rows // 32, 32) : (1 @ TCol, 1 @ TLane)] + R[4 : 32 @ TLane]


def tensor_memory_fragment(shape: str, count: int) -> Fragment:
    """The registers of tcgen05.ld and .st: (rows, columns) of words; two regions (2, 16, columns) for 16x32bx2.

    32x32b     lane = row, register = column
    16x64b     lane = 4 (row % 8) + 2 (column % 2) + row / 8, register = column / 2
    16x128b    lane = 4 (row % 8) + column % 4, register = 2 (column / 4) + row / 8
    16x256b    lane = 4 (row % 8) + column / 2 % 4, register = 4 (column / 8) + 2 (row / 8) + column % 2
    16x32bx2   lane = 16 region + row, register = column
    """
    most = _LEAST.get(shape, 128)
    if shape not in _SHAPES or count not in (1, 2, 4, 8, 16, 32, 64, 128) or count > most:
        raise LayoutError(
            f"tcgen05.ld has {', '.join(_SHAPES)}, times a power of two up to {most}, not {shape} x {count}"
        )
    name = f"tensor_memory_fragment({shape!r}, {count})"
    if shape == "32x32b":
        return Fragment((32, count), S[(32, count) : (1 @ laneid, 1)], name)
    if shape == "16x64b":
        layout = S[(2, 8, count, 2) : (1 @ laneid, 4 @ laneid, 1, 2 @ laneid)]
        return Fragment((16, 2 * count), layout, name)
    if shape == "16x128b":
        return Fragment((16, 4 * count), S[(2, 8, count, 4) : (1, 4 @ laneid, 2, 1 @ laneid)], name)
    if shape == "16x256b":
        layout = S[(2, 8, count, 4, 2) : (2, 4 @ laneid, 4, 1 @ laneid, 1)]
        return Fragment((16, 8 * count), layout, name)
    return Fragment((2, 16, count), S[(2, 16, count) : (16 @ laneid, 1 @ laneid, 1)], name)
