"""Fragments of mma.sync and of the moves of matrices: which lane holds which word in which register (PTX ISA 9.7.14.5).

A layout here maps (row, word) of a matrix to `laneid` and, on `m`, to the register of the instruction's operand. A word
is a register: 32 bits of a row, low bits first, or one float64. In every shape with 8 or 16 rows a lane is
4 * (row % 8) + word % 4; registers count first over the rows beyond 8, then over the words beyond 4.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ptxtile.errors import LayoutError
from ptxtile.layout.axis import Axis, laneid, m, warpid
from ptxtile.layout.iters import Iter
from ptxtile.layout.layout import TileLayout
from ptxtile.layout.notation import S

__all__ = ["Fragment", "ldmatrix", "mma_a", "mma_b", "mma_c", "per_lane", "stacked", "stmatrix"]

_SHAPE = re.compile(r"\.?m(\d+)n(\d+)k(\d+)")
_WORD = 32


@dataclass(frozen=True, slots=True)
class Fragment:
    """The words of one operand of one instruction.

    shape   of the atom, in words
    layout  from the atom's coordinate to laneid and to the register's number
    name    the call that makes it, for messages
    """

    shape: tuple[int, ...]
    layout: TileLayout
    name: str

    @property
    def registers(self) -> int:
        """Registers of a lane."""
        return self.layout.span("m")


def _extents(shape: str) -> tuple[int, int, int]:
    found = _SHAPE.fullmatch(shape) if isinstance(shape, str) else None
    if found is None or int(found[1]) not in (8, 16) or found[2] != "8":
        raise LayoutError(
            f"a shape of mma is such as m16n8k16, with 8 or 16 rows and 8 columns, not {shape!r}"
        )
    return int(found[1]), int(found[2]), int(found[3])


def _words(what: str, elements: int, bits: int) -> int:
    if bits not in (1, 4, 8, 16, 32, 64):
        raise LayoutError(f"{what}: elements have 1, 4, 8, 16, 32 or 64 bits, not {bits!r}")
    words = elements if bits == 64 else elements * bits // _WORD
    if words < 4 or words % 4:
        raise LayoutError(
            f"{what}: a row of {elements} elements of {bits} bits does not fill four lanes' registers"
        )
    return words


def _operand(rows: int, words: int, name: str) -> Fragment:
    high = rows // 8
    layout = S[(high, 8, words // 4, 4) : (1, 4 @ laneid, high, 1 @ laneid)]
    return Fragment((rows, words), layout, name)


def mma_a(shape: str, bits: int, sparse: bool = False, order: str = "row") -> Fragment:
    """A of mma: (M, words of K). `bits` an element; the six- and four-bit types of .kind::f8f6f4 take 8.

    `sparse`: A without its zeros, half as wide. `order`: "col" only with the half-precision m8n8k4.
    LayoutError for a shape that no mma has.
    """
    if shape in ("m8n8k4", ".m8n8k4") and bits == 16:
        return _quad_pairs(f"mma_a('m8n8k4', 16, order={order!r})", order == "row")
    rows, _, k = _extents(shape)
    name = f"mma_a({shape.lstrip('.')!r}, {bits}{', sparse=True' if sparse else ''})"
    return _operand(rows, _words(name, k // 2 if sparse else k, bits), name)


def mma_b(shape: str, bits: int, order: str = "col") -> Fragment:
    """B of mma as N rows of K: (8, words of K). `order`: "row" only with the half-precision m8n8k4."""
    if shape in ("m8n8k4", ".m8n8k4") and bits == 16:
        return _quad_pairs(f"mma_b('m8n8k4', 16, order={order!r})", order == "col")
    _, columns, k = _extents(shape)
    name = f"mma_b({shape.lstrip('.')!r}, {bits})"
    return _operand(columns, _words(name, k, bits), name)


def mma_c(shape: str, bits: int, quad_pairs: bool = False) -> Fragment:
    """C and D of mma: (M, 8) for 32 and 64 bits, (M, 4) pairs for 16.

    `quad_pairs`: of the half-precision m8n8k4, four products at once: (4, 8, 8) or (4, 8, 4).
    """
    if quad_pairs:
        return _quad_pair_sums(bits)
    rows, columns, _ = _extents(shape)
    name = f"mma_c({shape.lstrip('.')!r}, {bits})"
    high = rows // 8
    if bits == 16:
        return Fragment((rows, 4), S[(high, 8, 4) : (1, 4 @ laneid, 1 @ laneid)], name)
    if bits not in (32, 64):
        raise LayoutError(f"{name}: accumulators have 16, 32 or 64 bits")
    return Fragment((rows, columns), S[(high, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)], name)


def _quad_pairs(name: str, lines: bool) -> Fragment:
    """A or B of the half-precision m8n8k4 (9.7.14.5.1): product q is of lanes 4 q to 4 q + 3, and 16 lanes on.

    `lines`: eight lines (rows of A, columns of B), one a lane, as words of K: (4, 8, 2). Else four steps of K, one in
    two lanes, as words over the lines: (4, 4, 4).
    """
    if lines:
        return Fragment((4, 8, 2), S[(4, 2, 4, 2) : (4 @ laneid, 16 @ laneid, 1 @ laneid, 1)], name)
    return Fragment((4, 4, 4), S[(4, 4, 2, 2) : (4 @ laneid, 1 @ laneid, 16 @ laneid, 1)], name)


def _quad_pair_sums(bits: int) -> Fragment:
    name = f"mma_c('m8n8k4', {bits}, quad_pairs=True)"
    if bits == 16:
        return Fragment((4, 8, 4), S[(4, 2, 4, 4) : (4 @ laneid, 16 @ laneid, 1 @ laneid, 1)], name)
    # Row: lane % 2, register & 2, lane & 16; column: register & 1, lane & 2, register & 4.
    layout = S[(4, 2, 2, 2, 2, 2, 2) : (4 @ laneid, 16 @ laneid, 2, 1 @ laneid, 4, 2 @ laneid, 1)]
    return Fragment((4, 8, 8), layout, name)


# --- moves of matrices ------------------------------------------------------------------------------------------------
def ldmatrix(shape: str, count: int) -> Fragment:
    """Words that ldmatrix leaves in registers (9.7.14.5.15): (count, rows, 4).

    m8n8     register i of a lane is word lane % 4 of row lane / 4 of matrix i; with .trans, of the transposed matrix
    m8n16    the same, a word being four elements of a byte
    m16n16   of the transposed matrix, bytes: two registers a matrix, rows lane / 4 and lane / 4 + 8
    """
    if count not in (1, 2, 4):
        raise LayoutError(f"ldmatrix loads 1, 2 or 4 matrices, not {count!r}")
    name = f"ldmatrix({shape!r}, {count})"
    if shape in ("m8n8", "m8n16"):
        return Fragment((count, 8, 4), S[(count, 8, 4) : (1, 4 @ laneid, 1 @ laneid)], name)
    if shape != "m16n16" or count == 4:
        raise LayoutError(f"ldmatrix has m8n8, m8n16 and, for 1 or 2 matrices, m16n16, not {shape!r}")
    # Sources: CUTLASS copy_traits_sm100.hpp with the bytes' order of copy_sm100.hpp (SM100_U8x8_LDSM_T), and Triton's
    # lowerLdStMatrix (TritonNVIDIAGPUToLLVM/Utility.cpp).
    return Fragment((count, 16, 4), S[(count, 2, 8, 4) : (2, 1, 4 @ laneid, 1 @ laneid)], name)


def stmatrix(shape: str, count: int) -> Fragment:
    """Words that stmatrix takes from registers (9.7.14.5.16): (count, 8, 4), one register a matrix.

    m8n8     word lane % 4 of row lane / 4, of the transposed matrix with .trans
    m16n8    bytes, low first: (row, column) = (g, 2 t), (g, 2 t + 1), (g + 8, 2 t), (g + 8, 2 t + 1), where
             g = lane / 4 and t = lane % 4, as the accumulators of mma lie; the word's coordinate is (g, t)
    """
    if count not in (1, 2, 4):
        raise LayoutError(f"stmatrix stores 1, 2 or 4 matrices, not {count!r}")
    if shape not in ("m8n8", "m16n8"):
        raise LayoutError(f"stmatrix has m8n8 and m16n8, not {shape!r}")
    # m16n8: CUTLASS copy_traits_sm100.hpp (SM100_U8x4_STSM_T), and Triton's lowerLdStMatrix.
    return Fragment(
        (count, 8, 4), S[(count, 8, 4) : (1, 4 @ laneid, 1 @ laneid)], f"stmatrix({shape!r}, {count})"
    )


def per_lane(name: str = "per_lane()") -> Fragment:
    """One word of every lane, (32,): metadata and scale factors."""
    return Fragment((_WORD,), S[_WORD : 1 @ laneid], name)


def stacked(fragment: Fragment, *repeats: int, warps: int | None = None, axis: Axis = warpid) -> TileLayout:
    """The layout of a register tensor (*repeats, *fragment.shape): each repeat has registers of its own.

    `warps`: a leading axis of that many warps, of the cta scope; of the warpgroup scope with `axis=wid_in_wg`.
    """
    if any(isinstance(extent, bool) or not isinstance(extent, int) or extent < 1 for extent in repeats):
        raise LayoutError(f"repeats are positive integers, not {repeats!r}")
    iters = list(fragment.layout.shard)
    step = fragment.registers
    for extent in reversed(repeats):
        iters.insert(0, Iter(extent, step, m))
        step *= extent
    if warps is not None:
        iters.insert(0, Iter(warps, 1, axis))
    return TileLayout.from_iters(iters)
