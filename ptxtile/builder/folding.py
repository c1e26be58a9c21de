"""Operators on constants, computed on the host with the bits the instructions would give.

Sums, differences, products and quotients of floats are computed in float64 and rounded once more. That second rounding
is harmless: float64 has more than twice the precision of the narrower formats (and two bits), so the result is the
correctly rounded one. What has no exact host equivalent (NaNs, infinities from a division by zero) is left to the
instruction.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from ptxtile.dtypes import DType, Scalar, bool_
from ptxtile.encoding import Number, integer_range, normalize

_COMPARE: dict[str, Callable[[Number, Number], bool]] = {
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip
_FLOAT: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "neg": operator.neg, "abs": operator.abs,
}  # fmt: skip
_INTEGER: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": operator.floordiv,
    "mod": operator.mod, "and": operator.and_, "or": operator.or_, "xor": operator.xor,
    "shl": operator.lshift, "shr": operator.rshift, "neg": operator.neg, "abs": operator.abs,
    "invert": operator.invert,
}  # fmt: skip
_LOGIC: dict[str, Callable[..., bool]] = {
    "and": operator.and_, "or": operator.or_, "xor": operator.xor, "invert": operator.not_,
}  # fmt: skip


def fold(name: str, dtype: DType, values: tuple[Scalar, ...]) -> Scalar | None:
    """The constant result of an operator whose operands are all constants, or None where an instruction must do it."""
    numbers = [value.value for value in values]
    if any(number is None for number in numbers):
        return None
    if dtype is bool_:
        table = _LOGIC if name in _LOGIC else {"eq": operator.eq, "ne": operator.ne}
        return bool_(table[name](*numbers)) if name in table else None
    if dtype.bits < 16:
        return None  # the operator does not exist at run time either
    if name in _COMPARE:
        return bool_(_COMPARE[name](numbers[0], numbers[1]))  # type: ignore[arg-type]
    if dtype.kind == "float":
        return _fold_float(name, dtype, numbers)
    if name not in _INTEGER or (name in ("floordiv", "mod") and numbers[1] == 0):
        return None
    if dtype.kind == "uint" and name in ("neg", "abs"):
        return None
    if name == "shl":
        numbers[1] = min(int(numbers[1] or 0), dtype.bits)
    return make(dtype, wrap(dtype, _INTEGER[name](*numbers)))


def _fold_float(name: str, dtype: DType, numbers: list[Number | None]) -> Scalar | None:
    if name not in _FLOAT or (name == "truediv" and (numbers[1] == 0 or dtype.bits < 32)):
        return None
    value: float = _FLOAT[name](*numbers)
    if math.isnan(value):
        return None
    return make(dtype, normalize(dtype, value))


def make(dtype: DType, value: Number) -> Scalar:
    """The constant `dtype(value)`."""
    made: Scalar = dtype(value)
    return made


def wrap(dtype: DType, value: int) -> int:
    """An integer reduced to the range of an integer dtype, modulo its width."""
    low, _ = integer_range(dtype)
    return (value - low) % (1 << dtype.bits) + low
