"""Binary floating-point formats as bit patterns: take them apart, round exactly, put them together.

Everything works on whole arrays of unsigned integers and uses integer arithmetic alone, so a result does not depend on
the host's rounding mode, flush mode or NaN rules. A finite non-zero number is held as a sign, the exponent e of its
leading bit and a uint64 significand s with bit 63 set, and means s * 2**(e - 63). Where bits were lost below the
significand its bit 0 is set ("jammed"), which leaves every rounding to 62 bits or fewer exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

U64 = np.uint64
Bits = NDArray[np.uint64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Format:
    """A binary floating-point format.

    bits       width of the encoding
    precision  significand bits with the hidden one
    emin       exponent of the least normal number
    infinite   the top exponent holds infinities and NaNs, as in IEEE 754
    nan        the NaN that operations make: 0x7fffffff for f32
    largest    the encoding of the largest finite number
    """

    bits: int
    precision: int
    emin: int
    infinite: bool
    nan: int
    largest: int

    @property
    def sign(self) -> int:
        """The sign bit."""
        return 1 << (self.bits - 1)

    @property
    def hidden(self) -> int:
        """The hidden bit: also the encoding of the least normal number."""
        return 1 << (self.precision - 1)

    @property
    def infinity(self) -> int:
        """The encoding of positive infinity, for a format that has one."""
        return self.sign - self.hidden

    @property
    def one(self) -> int:
        """The encoding of 1."""
        return (1 - self.emin) << (self.precision - 1)

    @property
    def dtype(self) -> np.dtype[np.unsignedinteger]:
        """The unsigned NumPy type that carries one number."""
        return np.dtype(f"u{max(self.bits, 8) // 8}" if self.bits != 19 else "u4")


def _ieee(bits: int, precision: int, emin: int, nan: int) -> Format:
    infinity = (1 << (bits - 1)) - (1 << (precision - 1))
    return Format(bits, precision, emin, True, nan, infinity - 1)


F16 = _ieee(16, 11, -14, 0x7FFF)
BF16 = _ieee(16, 8, -126, 0x7FFF)
F32 = _ieee(32, 24, -126, 0x7FFFFFFF)
F64 = _ieee(64, 53, -1022, 0xFFF8000000000000)
TF32 = _ieee(19, 11, -126, 0x3FFFF)
E5M2 = _ieee(8, 3, -14, 0x7F)
E4M3 = Format(8, 4, -6, False, 0x7F, 0x7E)
E2M3 = Format(6, 4, 0, False, 0x1F, 0x1F)
E3M2 = Format(6, 3, -2, False, 0x1F, 0x1F)
E2M1 = Format(4, 2, 0, False, 0x7, 0x7)

FORMATS: dict[str, Format] = {
    "f16": F16,
    "bf16": BF16,
    "f32": F32,
    "f64": F64,
    "tf32": TF32,
    "e5m2": E5M2,
    "e4m3": E4M3,
    "e2m3": E2M3,
    "e3m2": E3M2,
    "e2m1": E2M1,
}


@dataclass(frozen=True, slots=True)
class Parts:
    """Numbers taken apart: see the module's docstring. Where `zero`, `infinite` or `nan`, the rest is meaningless."""

    negative: Mask
    exponent: Ints
    significand: Bits
    zero: Mask
    infinite: Mask
    nan: Mask


def bit_length(x: Bits) -> Ints:
    """The position of the highest set bit plus one, 0 for 0; uint64 in, int64 out."""
    # Halving steps on integers: a conversion to float would round up to the next power of two near 2**53.
    rest = x.copy()
    length = np.zeros(x.shape, np.int64)
    for step in (32, 16, 8, 4, 2, 1):
        large = rest >= U64(1 << step)
        length += np.where(large, step, 0)
        rest = np.where(large, rest >> U64(step), rest)
    total: Ints = length + (rest != 0)
    return total


def shift_right_jam(x: Bits, count: Ints) -> Bits:
    """x >> count with bit 0 set if a one was shifted out; count >= 0, any size."""
    near = np.minimum(count, 63).astype(np.uint64)
    kept = x >> near
    lost = (kept << near) != x
    far = count > 63
    shifted: Bits = np.where(far, (x != 0).astype(np.uint64), kept | lost.astype(np.uint64))
    return shifted


def normalize(x: Bits) -> tuple[Bits, Ints]:
    """x shifted left until bit 63 is set, and by how many places; 0 stays 0 (64 places)."""
    places = 64 - bit_length(x)
    return x << np.minimum(places, 63).astype(np.uint64), places


def unpack(bits: NDArray[np.unsignedinteger], form: Format) -> Parts:
    """Take encodings apart. Subnormals are normalized."""
    wide = bits.astype(np.uint64)
    magnitude = wide & U64(form.sign - 1)
    biased = (magnitude >> U64(form.precision - 1)).astype(np.int64)
    fraction = magnitude & U64(form.hidden - 1)
    significand = np.where(biased > 0, fraction | U64(form.hidden), fraction)
    normal, places = normalize(significand)
    exponent = np.maximum(biased, 1) + (form.emin - 1) + (64 - form.precision) - places
    if form.infinite:
        infinite = magnitude == U64(form.infinity)
        nan = magnitude > U64(form.infinity)
    else:
        infinite = np.zeros(wide.shape, np.bool_)
        # Six and four bit formats have no NaN: their "nan" encoding is their largest number.
        nan = magnitude == U64(form.nan) if form.nan != form.largest else infinite
    return Parts((wide & U64(form.sign)) != 0, exponent, normal, magnitude == 0, infinite, nan)


def _increment(kept: Bits, rest: Bits, half: int, negative: Mask, rounding: str) -> Mask:
    up: Mask
    if rounding == "rn":
        up = (rest > U64(half)) | ((rest == U64(half)) & ((kept & U64(1)) != 0))
    elif rounding == "rna":
        up = rest >= U64(half)
    elif rounding == "rm":
        up = negative & (rest != 0)
    elif rounding == "rp":
        up = ~negative & (rest != 0)
    elif rounding == "rz":
        up = np.zeros(kept.shape, np.bool_)
    else:
        raise ValueError(f"unknown rounding {rounding!r}; one of rn, rz, rm, rp, rna")
    return up


def _overflowed(negative: Mask, form: Format, rounding: str) -> Bits:
    if not form.infinite:
        return np.full(negative.shape, form.nan, np.uint64)
    away = {
        "rn": np.ones_like(negative),
        "rna": np.ones_like(negative),
        "rz": np.zeros_like(negative),
        "rm": negative,
        "rp": ~negative,
    }[rounding]
    return np.where(away, U64(form.infinity), U64(form.largest))


def _tiny(negative: Mask, exponent: Ints, significand: Bits, form: Format, rounding: str) -> Mask:
    shift = 64 - form.precision
    kept, rest = significand >> U64(shift), significand & U64((1 << shift) - 1)
    up = _increment(kept, rest, 1 << (shift - 1), negative, rounding)
    reaches: Mask = up & (kept == U64(2 * form.hidden - 1)) & (exponent == form.emin - 1)
    return (exponent < form.emin) & ~reaches


def pack(
    negative: Mask,
    exponent: Ints,
    significand: Bits,
    form: Format,
    rounding: str,
    *,
    flush: bool = False,
    saturate_finite: bool = False,
) -> Bits:
    """Round finite non-zero numbers to `form`, as uint64 encodings.

    Where `significand` is 0 the result is a zero of that sign. `flush` gives a zero of the same sign for what is less
    than the least normal number when rounded to the format's precision with unbounded exponent (IEEE 754: tiny after
    rounding). `saturate_finite` gives the largest finite number on overflow.
    """
    places = np.maximum(form.emin - exponent, 0)
    placed = shift_right_jam(significand, places)
    shift = 64 - form.precision
    kept = placed >> U64(shift)
    rest = placed & U64((1 << shift) - 1)
    kept = kept + _increment(kept, rest, 1 << (shift - 1), negative, rounding)
    # A normal significand's hidden bit adds the one by which the exponent field exceeds exponent - emin.
    field = np.maximum(exponent - form.emin, 0).astype(np.uint64)
    magnitude = kept + (field << U64(form.precision - 1))
    over: Mask = magnitude > U64(form.largest)
    if saturate_finite:
        magnitude = np.where(over, U64(form.largest), magnitude)
    else:
        magnitude = np.where(over, _overflowed(negative, form, rounding), magnitude)
    gone = significand == 0
    if flush:
        gone = gone | _tiny(negative, exponent, significand, form, rounding)
    magnitude = np.where(gone, U64(0), magnitude)
    signs: Bits = np.where(negative, U64(form.sign), U64(0)).astype(np.uint64)
    encoded: Bits = magnitude | signs
    return encoded
