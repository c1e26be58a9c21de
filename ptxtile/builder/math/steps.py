"""What the functions of the math library are made of: single instructions on values, polynomials, and the choice of a
sequence by dtype.

The sequences are written with the operators of docs/operators.md: on float32 values `a * b` is mul.rn.f32, `fma` is
fma.rn.f32, a Python float is the nearest constant of the dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from ptxtile.builder.casting import bitcast, cast
from ptxtile.builder.scalars import fma
from ptxtile.builder.values import common, current, home, where, word
from ptxtile.dtypes import DType, Scalar, float32
from ptxtile.errors import OperandError, TraceError

T = TypeVar("T", bound=Scalar)
Sequence32 = Callable[..., Scalar]


def instruction(spelling: str, dtype: DType, *operands: Scalar) -> Scalar:
    """One instruction into a new value of `dtype`."""
    trace = current(spelling)
    words = [word(trace, operand) for operand in operands]
    made = trace.value(dtype)
    trace.instruction(spelling, home(made), *words)
    return made


def as_float(bits: Scalar) -> Scalar:
    """The float32 of 32 bits (a mov)."""
    return bitcast(bits, float32)


def polynomial(x: Scalar, coefficients: Sequence[float]) -> Scalar:
    """c[0] + c[1] x + c[2] x**2 + … by Horner's rule: an fma for each coefficient but the last."""
    result: object = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        result = fma(result, x, coefficient)
    assert isinstance(result, Scalar)
    return result


def apply(use: str, sequences: Mapping[str, Sequence32], *operands: object) -> Scalar:
    """The sequence of a function for the operands' dtype.

    float16 and bfloat16 without a sequence of their own are computed in float32 and rounded once: cvt, the float32
    sequence, cvt.rn. OperandError for numbers without a dtype and for integers; TraceError where there is no sequence.
    """
    trace = current(use)
    dtype, values = common(trace, use, operands)
    if dtype.kind != "float":
        raise OperandError(
            f"{use} takes a float, not {dtype.name}; write pt.cast(x, pt.float32)" + where(trace)
        )
    sequence = sequences.get(dtype.name)
    if sequence is not None:
        return sequence(*values)
    if dtype.name in ("float16", "bfloat16") and "float32" in sequences:
        return cast(sequences["float32"](*(cast(value, float32) for value in values)), dtype)
    have = ", ".join(name for name in ("float16", "bfloat16", "float32", "float64") if _has(sequences, name))
    raise TraceError(f"{use} has no sequence for {dtype.name}; it has {have}" + where(trace))


def _has(sequences: Mapping[str, Sequence32], name: str) -> bool:
    return name in sequences or (name in ("float16", "bfloat16") and "float32" in sequences)
