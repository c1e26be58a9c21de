"""What tensor cores compute, bit for bit as an H200 was measured to (docs/emulator.md says what was).

A product of f16, bf16 or tf32 matrices adds all k products and C at once: every term is aligned to the largest
exponent among them, cut toward zero, and added exactly. The exponent of a product is the sum of its factors', whatever
the product's own leading bit; a subnormal factor counts with the least exponent of its format. Matrices are arrays
(…, rows, k), A by row and B by column, and (…, rows, columns) for C.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator import numeric_float as nf
from ptxtile.emulator.numeric import E2M1, E2M3, E3M2, E4M3, E5M2, F16, F32, F64, FORMATS, unpack
from ptxtile.emulator.widths import Bits

Doubles = NDArray[np.float64]
Ints = NDArray[np.int64]

LEAST = -600
"""Below the exponent of every product: that of a zero, so that it takes no part in the alignment."""
ABSENT = -10000
"""The exponent of what sparse A leaves out: unlike a zero, it makes no NaN of an infinity or a NaN in B."""
FRACTION = 25
"""Bits below the largest exponent that f16, bf16 and tf32 terms keep."""
FRACTION_FP8 = 13
"""The same for the eight-bit floats of wgmma, whose result has no more mantissa bits either."""
CHUNK = 1 << 21
"""Products that are held at once."""
FLOATS = frozenset({"f16", "bf16", "tf32", "e4m3", "e5m2", "e2m3", "e3m2", "e2m1"})
SMALL = {"e4m3": E4M3, "e5m2": E5M2, "e2m3": E2M3, "e3m2": E3M2, "e2m1": E2M1}
"""Formats of eight bits and fewer."""


@dataclass(frozen=True, slots=True)
class Factor:
    """Numbers with the exponents that the hardware aligns by."""

    value: Doubles
    exponent: Ints

    def rows(self, index: slice) -> Factor:
        """Some of the matrices of a batch."""
        return Factor(self.value[index], self.exponent[index])

    def columns(self, mask: NDArray[np.bool_]) -> Factor:
        """Some k."""
        return Factor(self.value[..., mask], self.exponent[..., mask])


def factor(bits: Bits, kind: str, held: str = "") -> Factor:
    """Encodings of a type (of FLOATS, or "f32") as factors or addends.

    held   the type that they are converted to before, whose subnormals may be fewer; "" for `kind`
    """
    value = _values(bits, kind)
    with np.errstate(invalid="ignore"):
        exponent = np.frexp(value)[1].astype(np.int64) - 1
    exponent = np.maximum(exponent, FORMATS[held or kind].emin)
    return Factor(value, np.where(value == 0, LEAST, exponent))


def sparse_factor(bits: Bits, kind: str, present: NDArray[np.bool_] | None, held: str = "") -> Factor:
    """`factor` of sparse A with its zeros; `present`, like `bits`: which of them were given. None: all."""
    found = factor(bits, kind, held)
    return found if present is None else Factor(found.value, np.where(present, found.exponent, ABSENT))


def _values(bits: Bits, kind: str) -> Doubles:
    if kind == "tf32":
        return nf.to_double(np.bitwise_and(bits, np.uint32(0xFFFFE000)), F32)
    if kind in SMALL:
        return _table(kind)[bits]
    return nf.to_double(bits, FORMATS[kind])


@cache
def _table(kind: str) -> Doubles:
    """All values of a small format."""
    codes = np.arange(1 << SMALL[kind].bits, dtype=np.uint8)
    parts = unpack(codes, SMALL[kind])
    magnitude = np.ldexp(parts.significand.astype(np.float64), (parts.exponent - 63).astype(np.int64))
    magnitude = np.where(parts.zero, 0.0, magnitude)
    magnitude = np.where(parts.infinite, np.inf, magnitude)
    magnitude = np.where(parts.nan, np.nan, magnitude)
    return np.where(parts.negative, -magnitude, magnitude)


def aligned_sum(a: Factor, b: Factor, c: Factor, fraction: int) -> Doubles:
    """The sum before it is rounded: exact in float64. NaN and infinity where the true sum is that."""
    rows, columns, depth = a.value.shape[-2], b.value.shape[-2], a.value.shape[-1]
    batch = max(1, CHUNK // (rows * columns * depth))
    if a.value.ndim == 2 or len(a.value) <= batch:
        return _aligned_sum(a, b, c, fraction)
    pieces = [slice(i, i + batch) for i in range(0, len(a.value), batch)]
    return np.concatenate([_aligned_sum(a.rows(i), b.rows(i), c.rows(i), fraction) for i in pieces])


def _aligned_sum(a: Factor, b: Factor, c: Factor, fraction: int) -> Doubles:
    with np.errstate(invalid="ignore", over="ignore"):
        products = a.value[..., :, None, :] * b.value[..., None, :, :]
        highest = (a.exponent[..., :, None, :] + b.exponent[..., None, :, :]).max(axis=-1)
        highest = np.maximum(np.maximum(highest, c.exponent), LEAST)
        up = np.ldexp(1.0, fraction - highest)
        terms = np.trunc(products * up[..., None]).sum(axis=-1) + np.trunc(c.value * up)
        total: Doubles = np.ldexp(terms, highest - fraction) + 0.0
        if np.isfinite(terms).all():
            return total
        absent = (a.exponent == ABSENT)[..., :, None, :]
        if absent.any():
            products = np.where(absent, 0.0, products)
            terms = np.trunc(products * up[..., None]).sum(axis=-1) + np.trunc(c.value * up)
            total = np.ldexp(terms, highest - fraction) + 0.0
        plain = products.sum(axis=-1) + c.value
        found: Doubles = np.where(np.isfinite(plain), total, plain)
        return found


def cut(total: Doubles, mantissa: int = 23) -> Bits:
    """float64 to f32 toward zero with so many mantissa bits; too large a number becomes infinity, a zero +0."""
    mask = np.uint64((1 << 64) - (1 << (52 - mantissa)))
    kept = (np.ascontiguousarray(total).view(np.uint64) & mask).view(np.float64)
    tiny = np.abs(total) < 2.0**-126
    with np.errstate(over="ignore", invalid="ignore"):
        if tiny.any():
            step = 2.0 ** (-126 - mantissa)
            kept = np.where(tiny, np.trunc(total / step) * step, kept)
        found = (kept + 0.0).astype(np.float32).view(np.uint32)
    return np.where(np.isnan(total), np.uint32(0x7FFFFFFF), found)


def to_half(total: Doubles) -> Bits:
    """float64 to the nearest f16, ties to even; NaN is canonical, and a number that is too small gives +0."""
    found = nf.round_double(total, F16, "rn")
    return np.where(found == 0x8000, found.dtype.type(0), found)


def multiply_floats(
    a: Bits,
    b: Bits,
    c: Bits,
    types: tuple[str, str, str],
    dtype: str = "",
    present: NDArray[np.bool_] | None = None,
) -> Bits:
    """mma.sync: D of A and B of floating types and C of f32 or f16 (PTX ISA 9.7.14.5).

    dtype     of D, if not C's
    present   of sparse A: which elements were given
    """
    atype, btype, ctype = types
    if atype in ("e4m3", "e5m2"):
        period = 4 if present is None else 8
        given = sparse_factor(a, atype, present, "f16"), factor(b, btype, "f16")
        return _multiply_fp8(*given, c, ctype, period)
    left, right = sparse_factor(a, atype, present), factor(b, btype)
    total = aligned_sum(left, right, factor(c, ctype), FRACTION)
    return to_half(total) if (dtype or ctype) == "f16" else cut(total)


def _multiply_fp8(a: Factor, b: Factor, c: Bits, ctype: str, period: int) -> Bits:
    """Not a path of its own on sm_90: two f16 products, one upon the other, then C is added.

    period   of k: its first half goes to the first product. Of sparse A, pairs of stored elements are kept together.
    """
    so_far = np.zeros(c.shape, c.dtype)
    depth = np.arange(a.value.shape[-1])
    first = depth % period < period // 2
    for half in (each for each in (first, ~first) if each.any()):
        total = aligned_sum(a.columns(half), b.columns(half), factor(so_far, ctype), FRACTION)
        so_far = to_half(total) if ctype == "f16" else cut(total)
    return nf.add(so_far, c, F16 if ctype == "f16" else F32)


def multiply_quads(a: Bits, b: Bits, c: Bits, ctype: str, dtype: str) -> Bits:
    """mma.sync.m8n8k4 of f16, no path of its own on sm_90: f32 operations, each rounded to nearest.

    D of f32: fma in ascending k from zero, then C is added. D of f16: to C the first two products, then the others.
    """
    left, right = nf.to_double(a, F16), nf.to_double(b, F16)
    with np.errstate(invalid="ignore"):
        products = [left[..., :, None, k] * right[..., None, :, k] for k in range(4)]
    start = c if ctype == "f32" else nf.round_double(nf.to_double(c, F16), F32, "rn")
    if dtype == "f32":
        return nf.add(_chain(products, np.zeros(c.shape, np.uint32)), start, F32)
    for pair in (products[:2], products[2:]):
        first = nf.round_double(pair[0], F32, "rn")
        start = nf.add(start, _chain(pair[1:], first), F32)
    return nf.round_double(nf.to_double(start, F32), F16, "rn")


def _chain(products: list[Doubles], total: Bits) -> Bits:
    """Exact products added to f32 numbers one by one."""
    for product in products:
        total = nf.sum_rounded(product, nf.to_double(total, F32), F32, "rn")
    return total


def multiply_async(a: Factor, b: Factor, c: Bits, ctype: str, narrow: bool) -> Bits:
    """wgmma: D of A, B and C; `narrow`: of eight-bit floats (PTX ISA 9.7.15.5)."""
    fraction = FRACTION_FP8 if narrow else FRACTION
    total = aligned_sum(a, b, factor(c, ctype), fraction)
    if ctype == "f16":
        return to_half(total)
    return cut(total, FRACTION_FP8) if narrow else cut(total)


def multiply_doubles(a: Bits, b: Bits, c: Bits, rounding: str) -> Bits:
    """mma.sync of f64: a chain of fma in ascending k from C."""
    result = c
    for k in range(a.shape[-1]):
        left, right = np.broadcast_arrays(a[..., :, None, k], b[..., None, :, k])
        shape = left.shape
        found = nf.fused(left.reshape(-1), right.reshape(-1), result.reshape(-1), F64, rounding)
        result = found.reshape(shape)
    return result


def multiply_integers(a: Bits, b: Bits, c: Bits, types: tuple[str, str], saturate: bool) -> Bits:
    """Integer products into 32 bits: the sum wraps, or is clamped once at the end."""
    left, right = (_signed(x, kind) for x, kind in zip((a, b), types))
    exact = np.matmul(left, np.swapaxes(right, -1, -2)).astype(np.int64) + c.view(np.int32)
    if saturate:
        exact = np.clip(exact, -(1 << 31), (1 << 31) - 1)
    found: Bits = exact.astype(np.uint32)
    return found


def _signed(bits: Bits, kind: str) -> Doubles:
    value = bits.astype(np.float64)
    width = int(kind[1:])
    return np.where(value >= 1 << (width - 1), value - (1 << width), value) if kind[0] == "s" else value


def multiply_bits(a: Bits, b: Bits, c: Bits, operation: str) -> Bits:
    """Single bits, combined by "and" or "xor" and counted."""
    left, right = a.astype(np.float64), b.astype(np.float64)
    both = np.matmul(left, np.swapaxes(right, -1, -2))
    if operation == "xor":
        both = left.sum(axis=-1)[..., :, None] + right.sum(axis=-1)[..., None, :] - 2 * both
    found: Bits = (both.astype(np.int64) + c.astype(np.int64)).astype(np.uint32)
    return found
