"""Scalar video instructions (PTX ISA 9.7.18.1): what is computed of two numbers and a third word.

No GPU since Maxwell has these in hardware: the assembler spells them out, not always as the manual has it. This is what
its code computes, of which an H200 gives the same bits:

* .sat to .u32 of vadd, vsub, vabsdiff, vmin, vmax keeps the low 32 bits of what is too large; only what is negative
  becomes 0. Saturation to a byte or a half takes negative numbers for too large.
* vshl with .sat cuts the shifted number to 34 bits before it saturates; vshl and vshr saturate to 32 bits where the
  manual says a byte or a half.
* .min and .max compare in 64 bits, unsigned (signed if the destination, of vset the first operand, is signed), c with
  the result; that of vadd and vsub, and of a saturating shift, is first cut to 32 bits and sign-extended.
* vmad multiplies signed words and adds a signed one, whatever the types; an unsigned result with a scale is shifted
  without its sign. A minus makes the result signed.

The assembler of CUDA 13.0, in drivers of release 580, merges the upper half of a result into .h1. That of CUDA 13.5
merges the lower one, as the manual has it, and so does this.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
_WORD = (1 << 32) - 1
_SHIFTS = ("vshl", "vshr")
_COMPARE: dict[str, Callable[[Ints, Ints], NDArray[np.bool_]]] = {
    ".eq": np.equal,
    ".ne": np.not_equal,
    ".lt": np.less,
    ".le": np.less_equal,
    ".gt": np.greater,
    ".ge": np.greater_equal,
}
_BINARY: dict[str, Callable[[Ints, Ints], Ints]] = {
    "vadd": np.add,
    "vsub": np.subtract,
    "vabsdiff": lambda a, b: np.abs(a - b),
    "vmin": np.minimum,
    "vmax": np.maximum,
}


@dataclass(frozen=True, slots=True)
class Part:
    """Some bits of a 32-bit register: `width` of them from `start` on."""

    start: int = 0
    width: int = 32

    @classmethod
    def named(cls, selector: str) -> Part:
        """The part that "b0" to "b3", "h0" or "h1" names."""
        width = 8 if selector[0] == "b" else 16
        return cls(int(selector[1]) * width, width)

    def take(self, words: NDArray[np.uint32], signed: bool) -> Ints:
        """The part of each word as a number."""
        value: Ints = (words.astype(np.int64) >> self.start) & ((1 << self.width) - 1)
        return extend(value, self.width) if signed else value

    def put(self, value: Ints, words: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """The words with the low bits of `value` in this part."""
        mask = ((1 << self.width) - 1) << self.start
        merged = (words.astype(np.int64) & ~mask) | ((value << self.start) & mask)
        return (merged & _WORD).astype(np.uint32)


def extend(value: Ints, bits: int) -> Ints:
    """The low bits of numbers, sign-extended."""
    sign = 1 << (bits - 1)
    extended: Ints = ((value & ((1 << bits) - 1)) ^ sign) - sign
    return extended


@dataclass(frozen=True, slots=True)
class Scalar:
    """One of these instructions.

    signed       whether the destination, a and b are .s32; the destination of vset has the sign of a
    target       the part of the destination that is written; the rest comes from c
    minus        whether the product of vmad, and whether c, is negated
    """

    opcode: str
    modifiers: tuple[str, ...]
    signed: tuple[bool, bool, bool]
    target: Part
    minus: tuple[bool, bool] = (False, False)

    @classmethod
    def of(
        cls, opcode: str, modifiers: tuple[str, ...], target: Part, minus: tuple[bool, bool] = (False, False)
    ) -> Scalar:
        """From a form's opcode and modifiers."""
        types = [modifier == ".s32" for modifier in modifiers if modifier in (".u32", ".s32")]
        signed = (types[0], types[0], types[1]) if opcode == "vset" else (types[0], types[1], types[2])
        return cls(opcode, modifiers, signed, target, minus)

    def compute(self, a: Ints, b: Ints, c: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """The destination's words; a and b are numbers, c words."""
        if self.opcode == "vmad":
            return self._multiply(a, b, c)
        value = self._saturated(self._first(a, b))
        second = self.modifiers[-1]
        if second == ".add":
            value = value + c.astype(np.int64)
        elif second in (".min", ".max"):
            value = self._extreme(value, c, second)
        return self.target.put(value, c)

    def _has(self, modifier: str) -> bool:
        return modifier in self.modifiers

    def _first(self, a: Ints, b: Ints) -> Ints:
        if self.opcode == "vset":
            compare = _COMPARE[next(m for m in self.modifiers if m in _COMPARE)]
            return compare(a, b).astype(np.int64)
        if self.opcode not in _SHIFTS:
            return _BINARY[self.opcode](a, b)
        by = np.minimum(b, 32) if self._has(".clamp") else b & 31
        if self.opcode == "vshr":
            return a >> by
        shifted: Ints = a << by
        return extend(shifted, 34) if self._has(".sat") else shifted

    def _saturated(self, value: Ints) -> Ints:
        if not self._has(".sat"):
            return value
        signed = self.signed[0]
        if self.opcode in _SHIFTS:
            return np.clip(value, -(1 << 31), (1 << 31) - 1) if signed else np.clip(value, 0, _WORD)
        if self.target.width < 32:
            top = (1 << (self.target.width - signed)) - 1
            return np.where((value < 0) | (value > top), top, value)
        return np.clip(value, -(1 << 31), (1 << 31) - 1) if signed else np.maximum(value, 0)

    def _extreme(self, value: Ints, c: NDArray[np.uint32], second: str) -> Ints:
        order = np.minimum if second == ".min" else np.maximum
        cut = self.opcode in ("vadd", "vsub") or (self.opcode in _SHIFTS and self._has(".sat"))
        left = extend(value, 32) if cut else value
        if self.signed[0]:
            return order(left, c.view(np.int32).astype(np.int64))
        return order(left.view(np.uint64), c.astype(np.uint64)).view(np.int64)

    def _multiply(self, a: Ints, b: Ints, c: NDArray[np.uint32]) -> NDArray[np.uint32]:
        signed = self.signed[1] or self.signed[2] or any(self.minus)
        product, addend = extend(a, 32) * extend(b, 32), c.view(np.int32).astype(np.int64)
        value: Ints = (-product if self.minus[0] else product) + (-addend if self.minus[1] else addend)
        value = value + self._has(".po")
        scale = 7 if self._has(".shr7") else 15 if self._has(".shr15") else 0
        if scale and not signed:
            value = (value.view(np.uint64) >> np.uint64(scale)).view(np.int64)
        else:
            value = value >> scale
        if self._has(".sat"):
            value = np.clip(value, -(1 << 31), (1 << 31) - 1) if signed else np.clip(value, 0, _WORD)
        return (value & _WORD).astype(np.uint32)
