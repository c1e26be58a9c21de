"""Exact double precision: products, sums, quotients and roots in 128-bit integers, rounded once.

Double precision has no wider native type to compute in, and splitting methods (Dekker) fail near overflow and
underflow, so sums and products are taken on significands held as pairs of uint64 (high, low).
Operands here are finite; zeros are allowed. Infinities and NaNs are the caller's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ptxtile.emulator.numeric import F64, U64, Bits, Ints, Mask, Parts, bit_length, pack, shift_right_jam

_LOW = U64(0xFFFFFFFF)
_HALF = U64(32)


@dataclass(frozen=True, slots=True)
class Wide:
    """(-1)**negative * (high * 2**64 + low) * 2**(exponent - 125): bit 125 leads, or all is 0."""

    negative: Mask
    exponent: Ints
    high: Bits
    low: Bits

    @property
    def zero(self) -> Mask:
        """Where the number is 0."""
        found: Mask = (self.high | self.low) == 0
        return found


def multiply(a: Bits, b: Bits) -> tuple[Bits, Bits]:
    """The 128-bit product of two uint64, as (high, low)."""
    a1, a0 = a >> _HALF, a & _LOW
    b1, b0 = b >> _HALF, b & _LOW
    low = a0 * b0
    middle = a1 * b0 + (low >> _HALF)
    other = a0 * b1 + (middle & _LOW)
    high = a1 * b1 + (middle >> _HALF) + (other >> _HALF)
    return high, (other << _HALF) | (low & _LOW)


def _shift_left(high: Bits, low: Bits, places: Ints) -> tuple[Bits, Bits]:
    far = places >= 64
    high = np.where(far, low, high)
    low = np.where(far, U64(0), low)
    by = np.where(far, places - 64, places).astype(np.uint64)
    # Two steps, since a shift by 64 - 0 is undefined.
    carried = (low >> U64(1)) >> (U64(63) - np.minimum(by, U64(63)))
    return (high << by) | carried, low << by


def _shift_right_jam(high: Bits, low: Bits, places: Ints) -> tuple[Bits, Bits]:
    far = places >= 64
    lost = far & (low != 0)
    low = np.where(far, high, low)
    high = np.where(far, U64(0), high)
    by = np.where(far, places - 64, places)
    near = np.minimum(by, 63).astype(np.uint64)
    gone = by > 63
    carried = (high << U64(1)) << (U64(63) - near)
    moved = shift_right_jam(low, by)
    # shift_right_jam keeps what it lost in bit 0; `carried` fills from above and leaves bit 0 jammed.
    low = np.where(gone, ((high | low) != 0).astype(np.uint64), moved | carried)
    high = np.where(gone, U64(0), high >> near)
    return high, low | lost.astype(np.uint64)


def _normalized(negative: Mask, exponent: Ints, high: Bits, low: Bits) -> Wide:
    """`exponent` is that of bit 125; bit 126 may be set."""
    carry = (high >> U64(62)) != 0
    shifted_high, shifted_low = _shift_right_jam(high, low, carry.astype(np.int64))
    length = np.where(shifted_high != 0, bit_length(shifted_high) + 64, bit_length(shifted_low))
    places = np.where(length == 0, 0, 126 - length)
    high, low = _shift_left(shifted_high, shifted_low, places)
    return Wide(negative, exponent + carry - places, high, low)


def exact_product(a: Parts, b: Parts) -> Wide:
    """a * b of two doubles (or narrower numbers), exactly."""
    # 53-bit significands stand in the top of 64: their product's lowest 22 bits are 0, so nothing is lost below.
    sa = np.where(a.zero, U64(0), a.significand)
    sb = np.where(b.zero, U64(0), b.significand)
    high, low = multiply(sa, sb)
    high, low = _shift_right_jam(high, low, np.full(high.shape, 2, np.int64))
    return _normalized(a.negative ^ b.negative, a.exponent + b.exponent + 1, high, low)


def widen(a: Parts) -> Wide:
    """A number as a Wide one."""
    significand: Bits = np.where(a.zero, U64(0), a.significand)
    high: Bits = significand >> U64(2)
    low: Bits = significand << U64(62)
    return Wide(a.negative, a.exponent, high, low)


def add_wide(a: Wide, b: Wide) -> Wide:
    """a + b, jammed in bit 0 where it needs more than 126 bits.

    Both have at most 106 significant bits, so their lowest 20 are 0: a bit can only be lost below the smaller operand
    when it is shifted by more than that, and then the sum keeps at least 124 leading bits. The sign of an exact zero
    is that of `a`; the caller decides it.
    """
    swap = b.zero | (~a.zero & ((a.exponent > b.exponent) | ((a.exponent == b.exponent) & _at_least(a, b))))
    big = _choose(swap, a, b)
    small = _choose(swap, b, a)
    distance = np.where(small.zero, 0, big.exponent - small.exponent)
    high, low = _shift_right_jam(small.high, small.low, distance)
    plus_low = big.low + low
    plus_high = big.high + high + (plus_low < low)
    minus_low = big.low - low
    minus_high = big.high - high - (big.low < low)
    differ = big.negative ^ small.negative
    return _normalized(
        big.negative,
        big.exponent,
        np.where(differ, minus_high, plus_high),
        np.where(differ, minus_low, plus_low),
    )


def _at_least(a: Wide, b: Wide) -> Mask:
    found: Mask = (a.high > b.high) | ((a.high == b.high) & (a.low >= b.low))
    return found


def _choose(where: Mask, a: Wide, b: Wide) -> Wide:
    return Wide(
        np.where(where, a.negative, b.negative),
        np.where(where, a.exponent, b.exponent),
        np.where(where, a.high, b.high),
        np.where(where, a.low, b.low),
    )


def round_wide(x: Wide, rounding: str) -> Bits:
    """A Wide number as the encoding of a double; a zero has the sign of `x`."""
    significand = (x.high << U64(2)) | (x.low >> U64(62))
    lost = (x.low << U64(2)) != 0
    return pack(x.negative, x.exponent, significand | lost.astype(np.uint64), F64, rounding)


def quotient(a: Parts, b: Parts, rounding: str) -> Bits:
    """a / b of finite doubles, b not zero, rounded once. A zero a gives a signed zero."""
    shift = U64(11)
    sa, sb = a.significand >> shift, np.where(b.zero, U64(1), b.significand >> shift)
    result = sa // sb
    rest = sa - result * sb
    # The rest is below 2**53, so ten bits a step fit; six steps make 60 bits behind the first.
    for _ in range(6):
        rest = rest << U64(10)
        digit = rest // sb
        rest = rest - digit * sb
        result = (result << U64(10)) | digit
    places = 64 - bit_length(result)
    significand = (result << np.minimum(places, 63).astype(np.uint64)) | (rest != 0).astype(np.uint64)
    significand = np.where(a.zero, U64(0), significand)
    exponent = a.exponent - b.exponent + 3 - places
    return pack(a.negative ^ b.negative, exponent, significand, F64, rounding)


def square_root(a: Parts, rounding: str) -> Bits:
    """The square root of positive finite doubles (or zeros, which keep their sign), rounded once."""
    odd = (a.exponent & 1) != 0
    # x = m * 2**(2k) with m in [1, 4): the root of m is below 2, to 53 bits of which NumPy rounds correctly.
    m = (a.significand >> U64(11)).astype(np.float64) * 2.0**-52
    root = np.sqrt(np.where(odd, m * 2.0, m))
    whole = (root * 2.0**52).astype(np.uint64)
    high, low = multiply(whole, whole)
    # m * 2**104 as 128 bits, to tell on which side of the exact root `whole` is.
    target = _shift_left(np.zeros_like(a.significand), a.significand >> U64(11), np.where(odd, 53, 52))
    above = (high > target[0]) | ((high == target[0]) & (low > target[1]))
    exact = (high == target[0]) & (low == target[1])
    significand = (whole << U64(11)) + np.where(exact, U64(0), U64(1)) - np.where(above, U64(2), U64(0))
    significand = np.where(a.zero, U64(0), significand)
    exponent = (a.exponent - odd) >> 1
    # One below a power of two still normalizes: whole * 2**11 - 1 of the least root, 1, is only reached exactly.
    return pack(a.negative, exponent, significand, F64, rounding)
