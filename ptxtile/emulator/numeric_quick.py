"""f32 add, multiply and fused multiply-add to nearest, as fast as NumPy goes: what nearly all kernels are made of.

Arrays are encodings (uint32). NaN results are the one NaN of f32.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Encoded = NDArray[np.uint32]
Floats = NDArray[np.float32]

NAN = np.uint32(0x7FFFFFFF)
_EXPONENT = np.uint32(0x7F800000)
_LOW = np.uint32(0x1FFFFFFF)
_MIDDLE = np.uint32(0x10000000)
"""The low 29 bits of a float64 that lies in the middle between two numbers of f32."""


def canonical(value: Floats) -> Encoded:
    """Encodings of results; every NaN becomes the one of f32. `value` is handed over."""
    lost = np.isnan(value)
    bits: Encoded = value.view(np.uint32)
    if lost.any():
        bits[lost] = NAN
    return bits


def add(a: Encoded, b: Encoded) -> Encoded:
    """a + b, rounded to nearest."""
    with np.errstate(all="ignore"):
        return canonical(a.view(np.float32) + b.view(np.float32))


def multiply(a: Encoded, b: Encoded) -> Encoded:
    """a * b, rounded to nearest."""
    with np.errstate(all="ignore"):
        return canonical(a.view(np.float32) * b.view(np.float32))


def fused(
    a: Encoded, b: Encoded, c: Encoded, exact: Callable[[Encoded, Encoded, Encoded], Encoded]
) -> Encoded:
    """a * b + c, rounded once, to nearest.

    The product is exact in float64, and the sum rounded there rounds to f32 as the exact one does, except where it
    lies in the middle between two numbers, which it may have been rounded to, or below the normal numbers. `exact` is
    asked about those.
    """
    with np.errstate(all="ignore"):
        total = a.view(np.float32).astype(np.float64)
        total *= b.view(np.float32)
        total += c.view(np.float32)
        bits = canonical(total.astype(np.float32))
    doubtful = (total.view(np.uint32)[::2] & _LOW) == _MIDDLE
    doubtful |= (bits & _EXPONENT) == 0
    if doubtful.any():
        places = np.flatnonzero(doubtful & (total != 0))
        if len(places):
            bits[places] = exact(a[places], b[places], c[places])
    return bits
