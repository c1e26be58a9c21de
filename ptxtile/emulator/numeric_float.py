"""Correctly rounded add, multiply, fused multiply-add, divide and square root on encodings of any format.

Formats up to f32 are computed in double precision rounded to odd, then rounded once more: with 53 bits against at most
24 the second rounding is exact in every direction (Boldo and Melquiond, 2008). f64 goes through `numeric_wide`.
NaN results are the format's own NaN, except in f64, where an operand's NaN comes out quiet; which operand, the caller
says by order. `flush` is .ftz: subnormal operands and results become zeros of their sign; a result counts as subnormal
if it is so after rounding to the full precision of the format.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator import numeric_quick as quick, numeric_wide as wide
from ptxtile.emulator.numeric import BF16, F16, F32, F64, U64, Bits, Format, Mask, pack, unpack

Encoded = NDArray[np.unsignedinteger]
Doubles = NDArray[np.float64]

_QUIET64 = U64(1 << 51)
_INF64 = U64(0x7FF << 52)


def is_nan(x: Encoded, form: Format) -> Mask:
    """Where encodings of an IEEE format are NaN."""
    return (x & x.dtype.type(form.sign - 1)) > x.dtype.type(form.infinity)


def is_negative(x: Encoded, form: Format) -> Mask:
    """Where the sign bit is set."""
    found: Mask = (x & x.dtype.type(form.sign)) != 0
    return found


def flush_subnormals(x: Encoded, form: Format) -> Encoded:
    """Subnormal encodings as zeros of the same sign."""
    tiny = (x & x.dtype.type(form.infinity)) == 0
    return np.where(tiny, x & x.dtype.type(form.sign), x)


def to_double(x: Encoded, form: Format) -> Doubles:
    """Encodings as float64, exactly; every NaN is some NaN."""
    with np.errstate(all="ignore"):
        if form is F32:
            return x.view(np.float32).astype(np.float64)
        if form is BF16:
            return (x.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
        if form is F16:
            return x.view(np.float16).astype(np.float64)
        if form is F64:
            return x.view(np.float64)
    raise ValueError(f"no float64 view of a {form.bits}-bit format")


_NATIVE: dict[Format, type[np.floating]] = {F32: np.float32, F16: np.float16}


def _tiny(value: Doubles, form: Format, rounding: str) -> Mask:
    """What .ftz flushes of exact values, or of values rounded to odd."""
    size, least = np.abs(value), 2.0**form.emin
    if rounding == "rn":
        # From the middle between the last number below and the least normal one a tie goes to the even, latter.
        nearest: Mask = size < least * (1 - 2.0 ** -(form.precision + 1))
        return nearest
    outward = np.signbit(value) ^ (rounding == "rp") if rounding != "rz" else np.zeros(value.shape, np.bool_)
    found: Mask = np.where(outward, size <= least * (1 - 2.0**-form.precision), size < least)
    return found


def _round_native(value: Doubles, form: Format, rounding: str, flush: bool) -> Encoded:
    """NumPy's own rounding to nearest, then one step back where that went the wrong way."""
    kind = form.dtype.type
    with np.errstate(all="ignore"):
        near = value.astype(_NATIVE[form])
        bits = near.view(form.dtype)
        if rounding != "rn":
            back = near.astype(np.float64)
            # In encodings a step toward zero is one less, whatever the sign.
            inward = np.abs(back) > np.abs(value)
            outward = np.abs(back) < np.abs(value)
            negative = np.signbit(value)
            down = inward & (rounding == "rz" or negative ^ (rounding == "rm"))
            up = outward & (rounding != "rz") & (negative ^ (rounding == "rp"))
            bits = bits - down.astype(form.dtype) + up.astype(form.dtype)
        if flush:
            bits = np.where(_tiny(value, form, rounding), bits & kind(form.sign), bits)
    return np.where(np.isnan(value), kind(form.nan), bits)


def _round_bf16(value: Doubles, rounding: str, flush: bool, saturate_finite: bool) -> Encoded:
    """Through f32 rounded to odd, whose upper half is bf16: the exponents are the same."""
    with np.errstate(all="ignore"):
        near = value.astype(np.float32)
        back = near.astype(np.float64)
    bits = near.view(np.uint32)
    even = (back != value) & ((bits & np.uint32(1)) == 0)
    # In encodings a step toward zero is one less, whatever the sign.
    inward = np.abs(back) > np.abs(value)
    bits = bits + np.where(even, np.where(inward, np.uint32(0xFFFFFFFF), np.uint32(1)), np.uint32(0))
    negative = bits >> np.uint32(31)
    lowest = (bits >> np.uint32(16)) & np.uint32(1)
    extra = {
        "rn": np.uint32(0x7FFF) + lowest,
        "rz": np.zeros_like(bits),
        "rm": negative * np.uint32(0xFFFF),
        "rp": (negative ^ np.uint32(1)) * np.uint32(0xFFFF),
    }[rounding]
    result = ((bits + extra) >> np.uint32(16)).astype(np.uint16)
    sign = result & np.uint16(BF16.sign)
    if flush:
        result = np.where(_tiny(value, BF16, rounding), sign, result)
    if saturate_finite:
        result = np.minimum(result ^ sign, np.uint16(BF16.largest)) | sign
    return np.where(np.isnan(value), np.uint16(BF16.nan), result)


def round_double(
    value: Doubles, form: Format, rounding: str, *, flush: bool = False, saturate_finite: bool = False
) -> Encoded:
    """float64 to the nearest encodings in a direction, NaN to the format's NaN, infinity kept."""
    if form in _NATIVE and rounding in ("rn", "rz", "rm", "rp") and not saturate_finite:
        return _round_native(value, form, rounding, flush)
    if form is BF16 and rounding in ("rn", "rz", "rm", "rp"):
        return _round_bf16(value, rounding, flush, saturate_finite)
    bits = np.ascontiguousarray(value).view(np.uint64)
    parts = unpack(bits, F64)
    significand = np.where(parts.zero, U64(0), parts.significand)
    rounded = pack(
        parts.negative,
        parts.exponent,
        significand,
        form,
        rounding,
        flush=flush,
        saturate_finite=saturate_finite,
    )
    sign = np.where(parts.negative, U64(form.sign), U64(0))
    top = form.largest if saturate_finite or not form.infinite else form.infinity
    rounded = np.where(parts.infinite, sign | U64(top), rounded)
    return np.where(parts.nan, U64(form.nan), rounded).astype(form.dtype)


def sum_to_odd(a: Doubles, b: Doubles) -> Doubles:
    """a + b rounded to odd, for sums that neither overflow nor lose bits to underflow (operands from f32 or less)."""
    with np.errstate(all="ignore"):
        total = a + b
        part = total - a
        error = (a - (total - part)) + (b - part)
    bits = total.view(np.int64)
    # Toward zero means one less in the encoding, away from it one more, whatever the sign.
    away = (error > 0) == (total > 0)
    inexact = (error != 0) & np.isfinite(total) & np.isfinite(error)
    step = np.where(inexact & ((bits & 1) == 0), np.where(away, 1, -1), 0)
    return (bits + step).view(np.float64)


def _zero_sum(total: Doubles, a: Doubles, b: Doubles, rounding: str) -> Doubles:
    """An exact zero sum is -0 when rounding down, unless both terms are +0."""
    if rounding != "rm":
        return total
    positive = (a == 0) & (b == 0) & ~np.signbit(a) & ~np.signbit(b)
    return np.where((total == 0) & ~positive, -0.0, total)


def propagate(result: Bits, *operands: Encoded) -> Bits:
    """Double results where the first of `operands` that is a NaN comes out quiet instead."""
    for operand in reversed(operands):
        result = np.where(is_nan(operand, F64), operand | _QUIET64, result)
    return result


def _native64(result: Doubles, operands: Sequence[Encoded]) -> Bits:
    bits = np.where(np.isnan(result), U64(F64.nan), result.view(np.uint64))
    return propagate(bits, *operands)


def add(a: Encoded, b: Encoded, form: Format, rounding: str = "rn", *, flush: bool = False) -> Encoded:
    """a + b. In f64 a NaN b wins over a NaN a."""
    if flush:
        a, b = flush_subnormals(a, form), flush_subnormals(b, form)
    if form is F64:
        return _add64(a, b, rounding)
    if form is F32 and rounding == "rn" and not flush:
        return quick.add(a, b)
    x, y = to_double(a, form), to_double(b, form)
    return round_double(_zero_sum(sum_to_odd(x, y), x, y, rounding), form, rounding, flush=flush)


def negate_bits(x: Encoded, form: Format) -> Encoded:
    """The sign bit turned, NaNs too."""
    return x ^ x.dtype.type(form.sign)


def subtract(a: Encoded, b: Encoded, form: Format, rounding: str = "rn", *, flush: bool = False) -> Encoded:
    """a - b. In f64 a NaN b comes out with its own sign."""
    result = add(a, negate_bits(b, form), form, rounding, flush=flush)
    return propagate(result, b, a) if form is F64 else result


def multiply(a: Encoded, b: Encoded, form: Format, rounding: str = "rn", *, flush: bool = False) -> Encoded:
    """a * b. In f64 a NaN b wins over a NaN a."""
    if flush:
        a, b = flush_subnormals(a, form), flush_subnormals(b, form)
    with np.errstate(all="ignore"):
        if form is F64:
            native = a.view(np.float64) * b.view(np.float64)
            if rounding == "rn":
                return _native64(native, (b, a))
            result = wide.round_wide(wide.exact_product(unpack(a, F64), unpack(b, F64)), rounding)
            return _finite_or(result, native, a, b)
        if form is F32 and rounding == "rn" and not flush:
            return quick.multiply(a, b)
        return round_double(to_double(a, form) * to_double(b, form), form, rounding, flush=flush)


def fused(
    a: Encoded, b: Encoded, c: Encoded, form: Format, rounding: str = "rn", *, flush: bool = False
) -> Encoded:
    """a * b + c with one rounding. In f64 of several NaNs b wins, then c, then a."""
    if flush:
        a, b, c = flush_subnormals(a, form), flush_subnormals(b, form), flush_subnormals(c, form)
    if form is F64:
        return _fused64(a, b, c, rounding)
    if form is F32 and rounding == "rn" and not flush:
        return quick.fused(a, b, c, _fused32)
    return _fused_narrow(a, b, c, form, rounding, flush)


def _fused32(a: Encoded, b: Encoded, c: Encoded) -> Encoded:
    return _fused_narrow(a, b, c, F32, "rn", False)


def _fused_narrow(a: Encoded, b: Encoded, c: Encoded, form: Format, rounding: str, flush: bool) -> Encoded:
    with np.errstate(all="ignore"):
        product = to_double(a, form) * to_double(b, form)
    return sum_rounded(product, to_double(c, form), form, rounding, flush=flush)


def sum_rounded(
    product: Doubles, addend: Doubles, form: Format, rounding: str, *, flush: bool = False
) -> Encoded:
    """The sum of two exact float64 terms rounded once to `form`: for fused and mixed-precision sums."""
    return round_double(exact_sum(product, addend, rounding), form, rounding, flush=flush)


def exact_sum(a: Doubles, b: Doubles, rounding: str) -> Doubles:
    """The sum of two float64, rounded to odd for a second rounding in that direction; a zero has its final sign."""
    return _zero_sum(sum_to_odd(a, b), a, b, rounding)


def divide(a: Encoded, b: Encoded, form: Format, rounding: str = "rn", *, flush: bool = False) -> Encoded:
    """a / b. In f64 a NaN a wins over a NaN b."""
    if flush:
        a, b = flush_subnormals(a, form), flush_subnormals(b, form)
    with np.errstate(all="ignore"):
        native = to_double(a, form) / to_double(b, form)
    if form is not F64:
        # A quotient of 24-bit numbers differs from every 25-bit number by more than 2**-53 of itself, so the rounded
        # double is on the right side of each boundary in every direction.
        return round_double(native, form, rounding, flush=flush)
    if rounding == "rn":
        return _native64(native, (a, b))
    pa, pb = unpack(a, F64), unpack(b, F64)
    result = wide.quotient(pa, pb, rounding)
    special = pa.infinite | pa.nan | pb.infinite | pb.nan | pb.zero
    return propagate(np.where(special, _canonical64(native), result), a, b)


def square_root(a: Encoded, form: Format, rounding: str = "rn", *, flush: bool = False) -> Encoded:
    """The square root; that of -0 is -0, of other negative numbers NaN."""
    if flush:
        a = flush_subnormals(a, form)
    with np.errstate(all="ignore"):
        native = np.sqrt(to_double(a, form))
    if form is not F64:
        return round_double(native, form, rounding, flush=flush)
    if rounding == "rn":
        return _native64(native, (a,))
    parts = unpack(a, F64)
    result = wide.square_root(parts, rounding)
    special = parts.infinite | parts.nan | (parts.negative & ~parts.zero)
    return propagate(np.where(special, _canonical64(native), result), a)


def _canonical64(native: Doubles) -> Bits:
    return np.where(np.isnan(native), U64(F64.nan), native.view(np.uint64))


def _finite_or(result: Bits, native: Doubles, a: Encoded, b: Encoded) -> Bits:
    """`result` where both operands are finite, else the native result, whose rounding does not matter."""
    special = ((a & _INF64) == _INF64) | ((b & _INF64) == _INF64)
    return propagate(np.where(special, _canonical64(native), result), b, a)


def _exact_zero(result: Bits, x: wide.Wide, y: wide.Wide, total: wide.Wide, rounding: str) -> Bits:
    """The sign of an exact zero sum: + unless both terms are -0, and under rm - unless both are +0."""
    if rounding == "rm":
        negative = ~(x.zero & y.zero & ~x.negative & ~y.negative)
    else:
        negative = x.zero & y.zero & x.negative & y.negative
    return np.where(total.zero, np.where(negative, U64(F64.sign), U64(0)), result)


def _add64(a: Encoded, b: Encoded, rounding: str) -> Bits:
    with np.errstate(all="ignore"):
        native = a.view(np.float64) + b.view(np.float64)
    if rounding == "rn":
        return _native64(native, (b, a))
    x, y = wide.widen(unpack(a, F64)), wide.widen(unpack(b, F64))
    total = wide.add_wide(x, y)
    result = _exact_zero(wide.round_wide(total, rounding), x, y, total, rounding)
    return _finite_or(result, native, a, b)


def _two_sum(a: Doubles, b: Doubles) -> tuple[Doubles, Doubles]:
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _halves(x: Doubles) -> tuple[Doubles, Doubles]:
    """Veltkamp's split: two numbers of at most 26 bits that add up to x."""
    scaled = x * 134217729.0
    high = scaled - (scaled - x)
    return high, x - high


def _quick_fused64(x: Doubles, y: Doubles, z: Doubles) -> Doubles:
    """x * y + z to nearest, where nothing overflows and no error term underflows (Boldo and Melquiond, 2008)."""
    product = x * y
    (xh, xl), (yh, yl) = _halves(x), _halves(y)
    rest = ((xh * yh - product) + xh * yl + xl * yh) + xl * yl
    low, lowest = _two_sum(z, rest)
    high, middle = _two_sum(product, low)
    return high + sum_to_odd(middle, lowest)


def _moderate(x: Doubles, least: float, most: float) -> Mask:
    size = np.abs(x)
    inside: Mask = (size > least) & (size < most)
    return inside


def _fused64(a: Encoded, b: Encoded, c: Encoded, rounding: str) -> Bits:
    if rounding != "rn":
        return _exact_fused64(a, b, c, rounding)
    x, y, z = a.view(np.float64), b.view(np.float64), c.view(np.float64)
    with np.errstate(all="ignore"):
        quick = _moderate(x, 2.0**-400, 2.0**400) & _moderate(y, 2.0**-400, 2.0**400)
        quick &= _moderate(z, 2.0**-800, 2.0**900)
        result = np.asarray(_quick_fused64(x, y, z)).view(np.uint64)
    if not quick.all():
        rest = ~quick
        result[rest] = _exact_fused64(a[rest], b[rest], c[rest], rounding)
    return result


def _exact_fused64(a: Encoded, b: Encoded, c: Encoded, rounding: str) -> Bits:
    x = wide.exact_product(unpack(a, F64), unpack(b, F64))
    y = wide.widen(unpack(c, F64))
    total = wide.add_wide(x, y)
    result = _exact_zero(wide.round_wide(total, rounding), x, y, total, rounding)
    with np.errstate(all="ignore"):
        # With an operand not finite the product is exact; a finite product that overflows must not look infinite.
        product = a.view(np.float64) * b.view(np.float64)
        endless = ((a & _INF64) == _INF64) | ((b & _INF64) == _INF64)
        native = np.where(endless, product, 0.0) + c.view(np.float64)
    special = endless | ((c & _INF64) == _INF64)
    return propagate(np.where(special, _canonical64(native), result), b, c, a)
