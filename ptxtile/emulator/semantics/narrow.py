"""Packed lanes of any format as numbers: halves, floats of eight, six and four bits, scales, fixed point.

ue8m0 is a power of two, ue5m3 an unsigned float with a NaN and no infinity, s2f6 a signed byte in units of 1/64.
"""

from __future__ import annotations

import numpy as np

from ptxtile.emulator import numeric_float as nf
from ptxtile.emulator.numeric import Format, unpack
from ptxtile.emulator.semantics.kinds import Kind, Unsigned, as_signed, join, split

E5M3 = Format(9, 4, -14, False, 0xFF, 0xFE)
"""ue5m3 with a sign above it, which encodings of eight bits lack."""
FRACTION = 64.0
"""Units of s2f6 in 1."""


def unpacked(a: Unsigned, kind: Kind) -> Unsigned:
    """A packed register as lanes, the lowest first; 6-bit lanes stand in bytes, two 4-bit ones in a byte."""
    if kind.bits == 4:
        octets = split(a, 8)
        return np.stack([octets & np.uint8(15), octets >> np.uint8(4)], axis=-1).reshape(-1)
    lanes = split(a, max(kind.bits, 8))
    return lanes & lanes.dtype.type((1 << kind.bits) - 1)


def packed(lanes: Unsigned, kind: Kind) -> Unsigned:
    """What `unpacked` took apart."""
    if kind.bits == 4:
        octets = lanes[0::2] | (lanes[1::2] << np.uint8(4))
        return join(octets, 4 * kind.lanes)
    return join(lanes, max(kind.bits, 8) * kind.lanes)


def number(x: Unsigned, kind: Kind) -> nf.Doubles:
    """Lanes as float64, exactly."""
    if kind.format in ("f16", "bf16", "f32", "f64"):
        return nf.to_double(x, kind.form)
    if kind.format == "s2f6":
        return as_signed(x).astype(np.float64) / FRACTION
    if kind.format == "ue8m0":
        return power(x)
    parts = unpack(x, E5M3 if kind.format == "ue5m3" else kind.form)
    size = np.ldexp(parts.significand.astype(np.float64), (parts.exponent - 63).astype(np.int32))
    size = np.where(parts.zero, 0.0, size)
    size = np.where(parts.infinite, np.inf, np.where(parts.nan, np.nan, size))
    signed: nf.Doubles = np.where(parts.negative, -size, size)
    return signed


def power(x: Unsigned) -> nf.Doubles:
    """ue8m0 encodings as powers of two; 0xff is NaN."""
    found: nf.Doubles = np.where(x == 0xFF, np.nan, np.ldexp(1.0, x.astype(np.int32) - 127))
    return found
