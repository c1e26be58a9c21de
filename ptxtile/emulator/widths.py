"""Widths of PTX types, and the NumPy types that hold their bit patterns."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[Any]
"""Bit patterns: unsigned integers of some width, or bool for predicates; 128 bits are pairs in a trailing axis."""

_HOLDERS: dict[int, type[np.unsignedinteger]] = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
_SPECIAL = {"pred": 1, "b1": 1, "texref": 64, "samplerref": 64, "surfref": 64, "ue8m0": 8, "s2f6x2": 16}


@cache
def bits_of(name: str) -> int:
    """Bits of a PTX type, with or without its dot: 32 for ".f32" and "f16x2", 1 for "pred"."""
    text = name.lstrip(".")
    if text in _SPECIAL:
        return _SPECIAL[text]
    element, _, count = text.partition("x") if text[-2:-1] == "x" else (text, "", "")
    if element[:1] == "e" and "m" in element:  # e4m3, e2m1: sign, exponent, mantissa
        exponent, _, mantissa = element[1:].partition("m")
        width = 1 + int(exponent) + int(mantissa)
        return {6: 8}.get(width, width) * int(count or 1)
    if element[:2] == "ue":
        return 8 * int(count or 1)
    digits = "".join(character for character in element if character.isdigit())
    return int(digits) * int(count or 1)


def bytes_of(name: str) -> int:
    """Bytes that a type takes in memory."""
    return max(1, bits_of(name) // 8)


@cache
def holder(bits: int) -> np.dtype[np.generic]:
    """The NumPy type that holds `bits` bits: bool for 1, else unsigned. 128 is a pair of uint64 in a trailing axis."""
    if bits == 1:
        return np.dtype(np.bool_)
    for width, kind in _HOLDERS.items():
        if bits <= width:
            return np.dtype(kind)
    return np.dtype(np.uint64)


def is_signed(name: str) -> bool:
    """Whether a value of this type is sign-extended into a wider register."""
    text = name.lstrip(".")
    return text[:1] == "s" and text[1:].isdigit()
