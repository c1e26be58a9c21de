"""Integer arithmetic (PTX ISA 9.7.1): add sub mul mad mul24 mad24 sad div rem abs neg min max, plain and packed.

Every function takes and returns unsigned bit patterns of the lane width; packed types arrive already split in lanes.
Divisions by zero give all ones, quotient and remainder, at every width; the least number by -1 wraps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ptxtile.emulator import numeric_wide
from ptxtile.emulator.semantics import Array, Call, value
from ptxtile.emulator.semantics.kinds import (
    Kind,
    Unsigned,
    as_signed,
    as_unsigned,
    join,
    kinds,
    split,
    unsigned,
)


def saturated(wide: np.ndarray, kind: Kind) -> Unsigned:
    """int64 numbers clamped to a type of at most 32 bits, as its bits."""
    low, high = (
        (-(1 << (kind.bits - 1)), (1 << (kind.bits - 1)) - 1)
        if kind.family == "s"
        else (0, (1 << kind.bits) - 1)
    )
    bits: Unsigned = np.clip(wide, low, high).astype(np.int64).view(np.uint64).astype(unsigned(kind.bits))
    return bits


def extended(x: Unsigned, kind: Kind) -> np.ndarray:
    """Up to 32 bits as int64, sign- or zero-extended."""
    return (as_signed(x) if kind.family == "s" else x).astype(np.int64)


def _sum(call: Call, kind: Kind, a: Unsigned, b: Unsigned, sign: int) -> Unsigned:
    if call.has(".sat"):
        x, y = extended(a, kind), extended(b, kind)
        return saturated(x + y if sign > 0 else x - y, kind)
    return a + b if sign > 0 else a - b


def add(call: Call, kind: Kind, a: Unsigned, b: Unsigned) -> Unsigned:
    """add, with .sat to the type's range."""
    return _sum(call, kind, a, b, 1)


def sub(call: Call, kind: Kind, a: Unsigned, b: Unsigned) -> Unsigned:
    """sub, with .sat to the type's range."""
    return _sum(call, kind, a, b, -1)


def high_half(a: Unsigned, b: Unsigned, kind: Kind) -> Unsigned:
    """The upper half of the double-width product."""
    if kind.bits < 64:
        # Unsigned words multiply as uint64, whose wrapped int64 product has the same bits.
        full = extended(a, kind) * extended(b, kind)
        bits: Unsigned = (full.view(np.uint64) >> np.uint64(kind.bits)).astype(unsigned(kind.bits))
        return bits
    high, _ = numeric_wide.multiply(a, b)
    if kind.family == "s":
        # a as unsigned is a + 2**64 where negative, which adds b to the high word; likewise b.
        zero = np.uint64(0)
        high = high - np.where(as_signed(a) < 0, b, zero) - np.where(as_signed(b) < 0, a, zero)
    return high


def product(call: Call, kind: Kind, a: Unsigned, b: Unsigned) -> Unsigned:
    """a * b in the half that .lo, .hi or .wide names."""
    if call.has(".hi"):
        return high_half(a, b, kind)
    if call.has(".wide"):
        target = unsigned(2 * kind.bits)
        if kind.family == "s":
            return as_unsigned(
                as_signed(a).astype(f"i{kind.bits // 4}") * as_signed(b).astype(f"i{kind.bits // 4}")
            )
        return a.astype(target) * b.astype(target)
    return a * b


def mad(call: Call, kind: Kind, a: Unsigned, b: Unsigned, c: Unsigned) -> Unsigned:
    """mad.lo, .hi (with .sat on .s32) and .wide; c has the width of the result."""
    half = product(call, kind, a, b)
    if call.has(".sat"):
        return saturated(extended(half, kind) + extended(c, kind), kind)
    return half + c


@value("mul24", "mad24")
def mul24(call: Call, a: Unsigned, b: Unsigned, c: Unsigned | None = None) -> Array:
    """mul24, mad24 (9.7.1.5, 9.7.1.6): bits 0 to 31 or 16 to 47 of a 24-bit product; bits 24 to 31 are ignored."""
    kind = kinds(call)[0]
    x, y = (v.astype(np.int64) & 0xFFFFFF for v in (a, b))
    if kind.family == "s":
        x, y = ((v ^ 0x800000) - 0x800000 for v in (x, y))
    full = (x * y).view(np.uint64)
    half = ((full >> np.uint64(16)) if call.has(".hi") else full).astype(np.uint32)
    if c is None:
        return half
    if call.has(".sat"):
        return saturated(extended(half, kind) + extended(c, kind), kind)
    return half + c


@value("sad")
def sad(call: Call, a: Unsigned, b: Unsigned, c: Unsigned) -> Array:
    """sad (9.7.1.7): c + |a - b|, wrapping."""
    less = as_signed(a) < as_signed(b) if kinds(call)[0].family == "s" else a < b
    return c + np.where(less, b - a, a - b)


def div(call: Call, kind: Kind, a: Unsigned, b: Unsigned) -> Unsigned:
    """Integer div (9.7.1.8), toward zero."""
    quotient, _ = _divide(kind, a, b)
    return np.where(b == 0, a.dtype.type(np.iinfo(a.dtype).max), quotient)


@value("rem")
def rem(call: Call, a: Unsigned, b: Unsigned) -> Array:
    """rem (9.7.1.9): the sign is that of a; by zero all ones."""
    _, rest = _divide(kinds(call)[0], a, b)
    return np.where(b == 0, a.dtype.type(np.iinfo(a.dtype).max), rest)


def _divide(kind: Kind, a: Unsigned, b: Unsigned) -> tuple[Unsigned, Unsigned]:
    safe = np.where(b == 0, b.dtype.type(1), b)
    if kind.family != "s":
        quotient = a // safe
        return quotient, a - quotient * safe
    # On magnitudes: the least number by -1 would overflow NumPy's signed division, its magnitude does not.
    na, nb = as_signed(a) < 0, as_signed(safe) < 0
    x, y = np.where(na, -a, a), np.where(nb, -safe, safe)
    quotient = x // y
    rest = x - quotient * y
    return np.where(na ^ nb, -quotient, quotient), np.where(na, -rest, rest)


def absolute(call: Call, kind: Kind, a: Unsigned) -> Unsigned:
    """abs (9.7.1.10); the least number stays."""
    return np.where(as_signed(a) < 0, -a, a)


def neg(call: Call, kind: Kind, a: Unsigned) -> Unsigned:
    """neg (9.7.1.11); the least number stays."""
    return -a


def extreme(call: Call, kind: Kind, *operands: Unsigned) -> Unsigned:
    """min and max (9.7.1.12, 9.7.1.13) of two or three; .relu makes negative results 0."""
    order = np.minimum if call.opcode == "min" else np.maximum
    numbers = [as_signed(x) if kind.family == "s" else x for x in operands]
    result = numbers[0]
    for number in numbers[1:]:
        result = order(result, number)
    if call.has(".relu"):
        result = np.maximum(result, result.dtype.type(0))
    return as_unsigned(result)


OPERATIONS: dict[str, Callable[..., Unsigned]] = {
    "add": add,
    "sub": sub,
    "mul": product,
    "mad": mad,
    "div": div,
    "abs": absolute,
    "neg": neg,
    "min": extreme,
    "max": extreme,
}


def evaluate(call: Call, kind: Kind, operands: tuple[Unsigned, ...]) -> Unsigned:
    """An integer instruction of OPERATIONS on whole registers, packed or not."""
    operation = OPERATIONS[call.opcode]
    if kind.lanes == 1:
        return operation(call, kind, *operands)
    lanes = operation(call, kind, *(split(x, kind.bits) for x in operands))
    return join(lanes, kind.bits * kind.lanes)
