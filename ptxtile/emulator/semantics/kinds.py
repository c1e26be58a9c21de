"""What the chapters share: the types a form names, packed operands as lanes, signed views."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.numeric import FORMATS, Format
from ptxtile.emulator.semantics import Call

Unsigned = NDArray[np.unsignedinteger]
Signed = NDArray[np.signedinteger]

_INTEGER = re.compile(r"\.([subSUB])(2|4|8|16|32|64)(?:x([24]))?$")
_OCTETS = ("ue8m0", "ue5m3", "s2f6")
"""Formats of eight bits that are no signed floats."""
_FLOAT = re.compile(r"\.(" + "|".join((*FORMATS, *_OCTETS)) + r")(?:x([24]))?$")


@dataclass(frozen=True, slots=True)
class Kind:
    """A PTX type that holds numbers.

    family  "s", "u", "b" or "f"
    bits    width of one lane
    lanes   how many are packed: 2 for .f16x2
    format  of a float, its key in FORMATS, or "ue8m0", "ue5m3", "s2f6"; of an integer, ""
    """

    family: str
    bits: int
    lanes: int = 1
    format: str = ""

    @property
    def floating(self) -> bool:
        """Whether this is a floating-point type."""
        return self.family == "f"

    @property
    def form(self) -> Format:
        """The float format of one lane."""
        return FORMATS[self.format]


@cache
def kind_of(modifier: str) -> Kind | None:
    """The type that a modifier names, or None: ".s16x2" is two lanes of 16 bits."""
    integer = _INTEGER.match(modifier)
    if integer:
        return Kind(integer[1], int(integer[2]), int(integer[3] or 1))
    number = _FLOAT.match(modifier)
    if number:
        bits = 8 if number[1] in _OCTETS else FORMATS[number[1]].bits
        return Kind("f", bits, int(number[2] or 1), number[1])
    return None


def kinds(call: Call) -> tuple[Kind, ...]:
    """The types that a form names, in written order: (f32, bf16) for add.rn.f32.bf16."""
    return _kinds(call.modifiers)


@cache
def _kinds(modifiers: tuple[str, ...]) -> tuple[Kind, ...]:
    found = (kind_of(modifier) for modifier in modifiers)
    return tuple(kind for kind in found if kind is not None)


def rounding(call: Call, default: str = "rn") -> str:
    """The rounding a form names: "rn", "rz", "rm", "rp", "rna" or "rs"."""
    for modifier in call.modifiers:
        if modifier in (".rn", ".rz", ".rm", ".rp", ".rna", ".rs"):
            return modifier[1:]
    return default


def unsigned(bits: int) -> np.dtype[np.unsignedinteger]:
    """The unsigned NumPy type of that width."""
    return np.dtype(f"u{bits // 8}")


def as_signed(x: Unsigned) -> Signed:
    """The same bits as a signed type."""
    return x.view(np.dtype(f"i{x.dtype.itemsize}"))


def as_unsigned(x: NDArray[np.generic]) -> Unsigned:
    """The same bits as an unsigned type."""
    return x.view(np.dtype(f"u{x.dtype.itemsize}"))


def split(x: Unsigned, bits: int) -> Unsigned:
    """Packed registers as one long array of lanes of `bits`, lane 0 (the low bits) first."""
    if x.dtype.itemsize * 8 == bits:
        return x
    lane = unsigned(bits)
    return np.ascontiguousarray(x).astype(x.dtype.newbyteorder("<"), copy=False).view(lane)


def join(lanes: Unsigned, bits: int) -> Unsigned:
    """What `split` took apart, as registers of `bits`."""
    if lanes.dtype.itemsize * 8 == bits:
        return lanes
    return np.ascontiguousarray(lanes).view(unsigned(bits))
