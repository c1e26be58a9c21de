"""The math library of kernels and scalar functions: each function is one documented sequence of instructions.

Errors are in units in the last place (ulp) of the result, the largest found over the whole range of the function by
`tests/builder/test_math.py` on the emulator, whose `.approx` instructions are rounded exactly, and, where a second
number stands, by the same inputs on an H200. float16 and bfloat16 go through float32 and are rounded once, unless a
function says otherwise. All take run-time scalars or typed constants of one dtype; results have that dtype.
"""

from __future__ import annotations

from functools import partial
from typing import TypeVar

from ptxtile.builder.math import exponential, logarithm
from ptxtile.builder.math.steps import apply
from ptxtile.dtypes import Scalar

T = TypeVar("T", bound=Scalar)


def exp(x: T) -> T:
    """e**x. float32: mul, max, min, add, sub, then x - k ln 2 in two steps (mul, sub, mul, sub), mul, ex2.approx, shl,
    mul; nothing is fused. float64: cvt.rni, fma, fma, 13 fma, two scalings."""
    return apply("pt.exp", {"float32": exponential.exp_32, "float64": exponential.exp_64}, x)  # type: ignore[return-value]


def exp2(x: T) -> T:
    """2**x. float32: ex2.approx.f32. float64: cvt.rni, sub, mul, 13 fma, two scalings."""
    return apply("pt.exp2", {"float32": exponential.exp2_32, "float64": exponential.exp2_64}, x)  # type: ignore[return-value]


def log(x: T) -> T:
    """Natural logarithm; -infinity at zero, NaN below."""
    sequences = {
        "float32": partial(logarithm.logarithm_32, base=logarithm.E_32),
        "float64": partial(logarithm.logarithm_64, base=logarithm.E_64),
    }
    return apply("pt.log", sequences, x)  # type: ignore[return-value]
