"""Literals and constant expressions (PTX ISA 4.5, 4.6): 64-bit integers with and without sign, and floats.

`Fault` is how the reader's parts say that something is wrong at a place of the piece of text they were given; only
`reader` and `check` turn it into an exception or a Diagnostic with a line and a column.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from typing import Union

from ptxtile.ir.operand import Float, Integer

Number = Union[Integer, Float]

_WRAP = 1 << 64
_HALF = 1 << 63
# No 64-bit literal is longer (binary, prefix and suffix); it also bounds the time of int().
_LONGEST = 80


class Fault(Exception):
    """Something wrong at offset `position` of the text being read; `endless` if nothing after it can be read."""

    def __init__(self, message: str, position: int = 0, hint: str = "", endless: bool = False) -> None:
        super().__init__(message)
        self.endless = endless
        self.message = message
        self.position = position
        self.hint = hint


def number(text: str) -> Number:
    """The value of a literal, with at most one leading minus; raises Fault."""
    if text[0] == "-":
        return negative(number(text[1:]))
    head = text[:2]
    if head in ("0f", "0F"):
        return Float(int(text[2:], 16), 32)
    if head in ("0d", "0D"):
        return Float(int(text[2:], 16), 64)
    if len(text) > _LONGEST:
        raise Fault(f"a literal of {len(text)} characters is longer than any number of 64 bits")
    if head in ("0x", "0X"):
        return _integer(text, text[2:].rstrip("U"), 16)
    if head in ("0b", "0B"):
        return _integer(text, text[2:].rstrip("U"), 2)
    digits = text[:-1] if text[-1] == "U" else text
    if not digits.isdigit():
        value = float(text)
        if math.isinf(value) or (value == 0 and text.lower().partition("e")[0].strip("0.")):
            raise Fault(f"the number {text} does not fit in 64 bits")
        return double(value)
    if digits[0] == "0" and len(digits) > 1:
        if not digits.strip("01234567") == "":
            raise Fault(f"{text} starts with 0, so it is octal, and has a digit that octal has not")
        return _integer(text, digits, 8)
    return _integer(text, digits, 10)


def _integer(text: str, digits: str, base: int) -> Integer:
    value = int(digits, base)
    if value >= _WRAP:
        raise Fault(f"the integer {text} does not fit in 64 bits")
    return Integer(value, text[-1] == "U")


def double(value: float) -> Float:
    """A .f64 literal."""
    return Float(int.from_bytes(struct.pack(">d", value), "big"), 64)


def real(value: Number) -> float:
    """The value of a literal as a Python float."""
    if isinstance(value, Integer):
        return float(value.value)
    if value.width == 32:
        return float(struct.unpack(">f", value.bits.to_bytes(4, "big"))[0])
    return float(struct.unpack(">d", value.bits.to_bytes(8, "big"))[0])


def _unsigned(value: Integer) -> bool:
    """Literals that do not fit .s64 are .u64, with or without the suffix (4.5.1)."""
    return value.unsigned or value.value >= _HALF


def _wrapped(value: int, unsigned: bool) -> Integer:
    value %= _WRAP
    if unsigned:
        return Integer(value, True)
    return Integer(value - _WRAP if value >= _HALF else value)


def negative(value: Number) -> Number:
    """Unary minus."""
    if isinstance(value, Integer):
        if value.value == _HALF and not value.unsigned:
            return Integer(-_HALF)
        return _wrapped(-value.value, _unsigned(value))
    if value.width == 32:
        raise Fault("a 0f literal takes no sign: its first digit holds it")
    return double(-real(value))


def unary(sign: str, value: Number) -> Number:
    """`+`, `-`, `!` or `~` before a constant."""
    if sign == "-":
        return negative(value)
    if sign == "+":
        return value
    if isinstance(value, Float):
        raise Fault(f"{sign} takes an integer, not a float")
    if sign == "!":
        return Integer(int(value.value == 0))
    return _wrapped(~value.value, _unsigned(value))


def cast(type_: str, value: Number) -> Integer:
    """`(.s64)` or `(.u64)` before an integer constant."""
    if type_ not in (".s64", ".u64") or isinstance(value, Float):
        raise Fault(f"a cast in a constant expression is (.s64) or (.u64) of an integer, not ({type_})")
    return _wrapped(value.value, type_ == ".u64")


def _truncated(a: int, b: int) -> int:
    if b == 0:
        raise Fault("division by zero in a constant expression")
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _truncated,
    "%": lambda a, b: a - b * _truncated(a, b),
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}
_REAL: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}


def binary(left: Number, sign: str, right: Number) -> Number:
    """Two constants and an operator between them; integers have 64 bits and wrap (4.6.5)."""
    if isinstance(left, Float) or isinstance(right, Float):
        return _binary_float(real(left), sign, real(right))
    if sign == "&&":
        return Integer(int(left.value != 0 and right.value != 0))
    if sign == "||":
        return Integer(int(left.value != 0 or right.value != 0))
    if sign in ("<<", ">>"):
        return _shift(left, sign, right.value)
    unsigned = _unsigned(left) or _unsigned(right)
    a, b = _wrapped(left.value, unsigned).value, _wrapped(right.value, unsigned).value
    if sign in _COMPARE:
        return Integer(int(_COMPARE[sign](a, b)))
    return _wrapped(_ARITHMETIC[sign](a, b), unsigned)


def _shift(left: Integer, sign: str, distance: int) -> Integer:
    if not 0 <= distance < 64:
        raise Fault(f"a shift by {distance} in a constant expression: 0 to 63 are possible")
    moved = left.value << distance if sign == "<<" else left.value >> distance
    return _wrapped(moved, _unsigned(left))


def _binary_float(a: float, sign: str, b: float) -> Number:
    if sign in _COMPARE:
        return Integer(int(_COMPARE[sign](a, b)))
    if sign in _REAL:
        return double(_REAL[sign](a, b))
    if sign == "/":
        if b == 0:
            return double(
                math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)
            )
        return double(a / b)
    raise Fault(f"{sign} takes integers, not floats")


def choose(condition: Number, then: Number, otherwise: Number) -> Number:
    """`condition ? then : otherwise`."""
    if isinstance(condition, Float):
        raise Fault("the condition of ?: is an integer")
    return then if condition.value else otherwise
