"""Fragments: which lane of which warp holds which element of a matrix in which register (PTX ISA 9.7.15.5.1.1).

A layout here maps (row, column) of the matrix to `wid_in_wg`, `laneid` and, on `m`, the element's place in the lane's
registers: elements of 32 bits are one register each, elements of 16 bits two to a register, low half first.
"""

from __future__ import annotations

from ptxtile.errors import LayoutError
from ptxtile.layout.axis import laneid, wid_in_wg
from ptxtile.layout.layout import TileLayout
from ptxtile.layout.notation import S

__all__ = ["wgmma_accumulator", "wgmma_a", "wgmma_metadata", "wgmma_registers", "wgmma_words"]


def _columns(n: int) -> int:
    if isinstance(n, bool) or not isinstance(n, int) or n % 8 or not 8 <= n <= 256:
        raise LayoutError(f"wgmma has N from 8 to 256 in steps of 8, not {n!r}")
    return n


def wgmma_accumulator(n: int) -> TileLayout:
    """D of wgmma, 64 x n: rows 16 w + 8 h + lane / 4, columns 8 j + 2 (lane % 4) + e in place 4 j + 2 h + e."""
    return S[(4, 2, 8, _columns(n) // 8, 4, 2) : (1 @ wid_in_wg, 2, 4 @ laneid, 4, 1 @ laneid, 1)]


def wgmma_a(itemsize: int = 2) -> TileLayout:
    """A of wgmma in registers, 64 x (32 / itemsize): each register holds 4 bytes of a row, as D's pairs do."""
    if itemsize not in (1, 2, 4):
        raise LayoutError(f"A of wgmma has elements of 1, 2 or 4 bytes, not {itemsize!r}")
    pack = 4 // itemsize
    return S[(4, 2, 8, 2, 4, pack) : (1 @ wid_in_wg, pack, 4 @ laneid, 2 * pack, 1 @ laneid, 1)]


def wgmma_words(columns: int) -> TileLayout:
    """A of wgmma in registers (8 columns), or D of .f16 (n / 2 columns), as 64 x columns words of 32 bits."""
    if isinstance(columns, bool) or not isinstance(columns, int) or columns < 4 or columns % 4:
        raise LayoutError(f"a fragment of wgmma has a multiple of 4 columns of words, not {columns!r}")
    return S[(4, 2, 8, columns // 4, 4) : (1 @ wid_in_wg, 1, 4 @ laneid, 2, 1 @ laneid)]


def wgmma_metadata(itemsize: int = 2, selector: int = 0) -> TileLayout:
    """Metadata of sparse wgmma by halves of a word (PTX ISA 9.7.15.6.1): what four groups of A's elements keep.

    A row of A has four such halves if its elements are of 8 bits, two otherwise. Of 16-bit elements and .tf32, row
    16 w + 8 h + g, half c is with lane 4 g + 2 selector + c, and h is its half of the register; the other two lanes of
    each four are not read. Of 8-bit elements half c is with lane 4 g + 2 (c / 2) + h, and c % 2 is the register's half.
    """
    if itemsize not in (1, 2, 4):
        raise LayoutError(f"A of wgmma has elements of 1, 2 or 4 bytes, not {itemsize!r}")
    if selector not in ((0,) if itemsize == 1 else (0, 1)) or isinstance(selector, bool):
        due = "0" if itemsize == 1 else "0 or 1"
        raise LayoutError(
            f"the sparsity selector is {due} for elements of {itemsize} bytes, not {selector!r}"
        )
    if itemsize == 1:
        return S[(4, 2, 8, 2, 2) : (1 @ wid_in_wg, 1 @ laneid, 4 @ laneid, 2 @ laneid, 1)]
    halves = S[(4, 2, 8, 2) : (1 @ wid_in_wg, 1, 4 @ laneid, 1 @ laneid)]
    return halves + 2 @ laneid if selector else halves


def wgmma_registers(count: int) -> TileLayout:
    """The registers themselves, (4, 32, count): warp, lane, register. The group axes of a warpgroup and the atom."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise LayoutError(f"a fragment has a positive number of registers, not {count!r}")
    return S[(4, 32, count) : (1 @ wid_in_wg, 1 @ laneid, 1)]
