"""The math library of kernels and scalar functions: each function is one documented sequence of instructions.

Errors are the largest found, in units in the last place (ulp) of the result, against float64 (of float64 functions:
against extended precision) over the whole range of the function, on the emulator, whose `.approx` instructions are
exact to the last bit (tests/builder/test_math.py holds these bounds). A GPU's are up to 2 ulp off, which adds to what
goes through them: exp, exp2, exp10 and their kin, rsqrt; benchmarks/device_math.py measures there. float16 and bfloat16
go through float32 and are rounded once more, unless a function says otherwise. All
take run-time scalars or typed constants of one dtype, Python numbers beside them; results have that dtype. NaN gives
NaN, and zeros and infinities give what C's functions of the same name give.

Only `pt.exp`, `pt.exp2`, `pt.exp10` and `pt.sigmoid` in float32 contain no fused operation.
"""

from __future__ import annotations

from functools import partial
from typing import TypeVar

from ptxtile.builder.math import exponential, logarithm, power, trigonometric
from ptxtile.builder.math.steps import apply
from ptxtile.builder.operators import operate
from ptxtile.builder.values import current
from ptxtile.dtypes import Scalar

T = TypeVar("T", bound=Scalar)

__all__ = [
    "abs", "atan", "atan2", "ceil", "copysign", "cos", "cosh", "erf", "exp", "exp10", "exp2", "floor", "fmod", "hypot",
    "log", "log10", "log2", "pow", "round", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
]  # fmt: skip


# --- exponentials ---------------------------------------------------------------------------------------------------
def exp(x: T) -> T:
    """e**x.

    float32  2**k ex2(t): mul, max, min, add, sub for k; x - k ln 2 in two steps (mul, sub, mul, sub), mul for t;
             ex2.approx, shl, mul (0.9 ulp)
    float64  max, min, mul, cvt.rni for k; two fma; a series of 13 fma; two scalings (0.9 ulp)
    """
    return apply("pt.exp", {"float32": exponential.exp_32, "float64": exponential.exp_64}, x)  # type: ignore[return-value]


def exp2(x: T) -> T:
    """2**x.

    float32  ex2.approx.f32 (0.5 ulp)
    float64  max, min, cvt.rni, sub, mul; a series of 13 fma; two scalings (0.9 ulp)
    """
    return apply("pt.exp2", {"float32": exponential.exp2_32, "float64": exponential.exp2_64}, x)  # type: ignore[return-value]


def exp10(x: T) -> T:
    """10**x. float32: as exp, with the constants of 10 (1.0 ulp)."""
    return apply("pt.exp10", {"float32": exponential.exp10_32}, x)  # type: ignore[return-value]


def sigmoid(x: T) -> T:
    """1 / (1 + e**-x): neg, exp, add, div.rn (2.1 ulp; below -88.7 the float32 result is 0)."""
    sequences = {"float32": exponential.sigmoid_32, "float64": exponential.sigmoid_64}
    return apply("pt.sigmoid", sequences, x)  # type: ignore[return-value]


def tanh(x: T) -> T:
    """Hyperbolic tangent. float32: x + x**3 P(x**2) below 0.6 (7 fma and mul), else 1 - 2 / (exp(2|x|) + 1); both are
    computed (1.4 ulp). The one instruction tanh.approx.f32 has 11 good bits."""
    return apply("pt.tanh", {"float32": exponential.tanh_32}, x)  # type: ignore[return-value]


def sinh(x: T) -> T:
    """Hyperbolic sine. float32: x + x**3 P(x**2) below 1, else h - 0.25 / h with h = exp(|x|) / 2; both computed
    (1.5 ulp)."""
    return apply("pt.sinh", {"float32": exponential.sinh_32}, x)  # type: ignore[return-value]


def cosh(x: T) -> T:
    """Hyperbolic cosine. float32: h + 0.25 / h with h = exp(|x|) / 2 (1.3 ulp)."""
    return apply("pt.cosh", {"float32": exponential.cosh_32}, x)  # type: ignore[return-value]


# --- logarithms -----------------------------------------------------------------------------------------------------
def log(x: T) -> T:
    """Natural logarithm; -infinity at zero, NaN below.

    float32  x = 2**k (1 + f): k ln 2 + f - f**2 / 2 + f**3 P(f), P of degree 7; lg2.approx for zero, infinity, NaN
             (0.9 ulp)
    float64  the same with a series in f / (2 + f) of 11 terms (one div.rn); selp for zero, infinity, NaN
             (0.8 ulp)
    """
    return _logarithm("pt.log", x, logarithm.E_32, logarithm.E_64)


def log2(x: T) -> T:
    """Logarithm to base 2, as log (1.5 ulp; float64 1.0). The one instruction lg2.approx.f32 is inexact near 1."""
    return _logarithm("pt.log2", x, logarithm.TWO_32, logarithm.TWO_64)


def log10(x: T) -> T:
    """Logarithm to base 10, as log (1.1 ulp; float64 0.9)."""
    return _logarithm("pt.log10", x, logarithm.TEN_32, logarithm.TEN_64)


def _logarithm(use: str, x: T, single: logarithm.Base, double: logarithm.Base) -> T:
    sequences = {
        "float32": partial(logarithm.logarithm_32, base=single),
        "float64": partial(logarithm.logarithm_64, base=double),
    }
    return apply(use, sequences, x)  # type: ignore[return-value]


# --- roots and powers -----------------------------------------------------------------------------------------------
def sqrt(x: T) -> T:
    """Square root. float32, float64: sqrt.rn, exact."""
    return apply("pt.sqrt", {"float32": power.root, "float64": power.root}, x)  # type: ignore[return-value]


def rsqrt(x: T) -> T:
    """1 / sqrt(x). float32, float64: rsqrt.approx (0.5 ulp; float64 1.5)."""
    return apply("pt.rsqrt", {"float32": power.inverse_root, "float64": power.inverse_root}, x)  # type: ignore[return-value]


def pow(x: T, y: T | float) -> T:
    """x**y. float32: exp2(y log2 |x|) in float64 (about 100 instructions), rounded once (0.5 ulp), with the signs and
    special cases of C's pow."""
    return apply("pt.pow", {"float32": power.pow_32}, x, y)  # type: ignore[return-value]


def fmod(x: T, y: T | float) -> T:
    """x - y trunc(x / y), exact, with the sign of x. float32: a run-time loop in float64 that takes 26 bits of the
    quotient in each pass (div.rn, cvt.rzi, fma); NaN for y = 0 or an infinite x."""
    return apply("pt.fmod", {"float32": power.fmod_32}, x, y)  # type: ignore[return-value]


def hypot(x: T, y: T | float) -> T:
    """sqrt(x**2 + y**2) without overflow. float32: mul, fma, sqrt.rn in float64, cvt.rn (0.5 ulp)."""
    return apply("pt.hypot", {"float32": power.hypot_32}, x, y)  # type: ignore[return-value]


def erf(x: T) -> T:
    """Error function. float32: x + x P(x**2) below 1, else 1 - exp(-Q(|x|)); both are computed (1.0 ulp)."""
    return apply("pt.erf", {"float32": power.erf_32}, x)  # type: ignore[return-value]


# --- angles ---------------------------------------------------------------------------------------------------------
def sin(x: T) -> T:
    """Sine of an angle of any size. float32: x - k pi / 2 by three fma (from 105615 on, in a branch, by 96 bits of
    2 / pi), both polynomials, selp (1.6 ulp)."""
    return apply("pt.sin", {"float32": trigonometric.sin_32}, x)  # type: ignore[return-value]


def cos(x: T) -> T:
    """Cosine of an angle of any size, as sin (1.6 ulp)."""
    return apply("pt.cos", {"float32": trigonometric.cos_32}, x)  # type: ignore[return-value]


def tan(x: T) -> T:
    """Tangent of an angle of any size: the two polynomials of sin, div.rn (3.1 ulp)."""
    return apply("pt.tan", {"float32": trigonometric.tan_32}, x)  # type: ignore[return-value]


def atan(x: T) -> T:
    """Arc tangent. float32: r + r**3 P(r**2) with r the lesser of |x| and 1 / |x| (div.rn; 1.3 ulp)."""
    return apply("pt.atan", {"float32": trigonometric.atan_32}, x)  # type: ignore[return-value]


def atan2(y: T, x: T | float) -> T:
    """The angle of the point (x, y). float32: atan of the lesser coordinate by the greater (div.rn), in its octant
    (1.5 ulp)."""
    return apply("pt.atan2", {"float32": trigonometric.atan2_32}, y, x)  # type: ignore[return-value]


# --- roundings and signs --------------------------------------------------------------------------------------------
def floor(x: T) -> T:
    """The greatest integer not above x: cvt.rmi.T.T."""
    return _whole("pt.floor", "rmi", x)


def ceil(x: T) -> T:
    """The least integer not below x: cvt.rpi.T.T."""
    return _whole("pt.ceil", "rpi", x)


def trunc(x: T) -> T:
    """x without its fraction: cvt.rzi.T.T."""
    return _whole("pt.trunc", "rzi", x)


def round(x: T) -> T:
    """The nearest integer, the even one of two: cvt.rni.T.T."""
    return _whole("pt.round", "rni", x)


def _whole(use: str, mode: str, x: T) -> T:
    sequence = partial(power.whole, mode)
    return apply(use, {"float16": sequence, "float32": sequence, "float64": sequence}, x)  # type: ignore[return-value]


def copysign(x: T, y: T | float) -> T:
    """|x| with the sign of y. float32, float64: copysign; float16, bfloat16: and, and, or on the bits."""
    sequences = dict.fromkeys(("float16", "bfloat16", "float32", "float64"), power.copysign)
    return apply("pt.copysign", sequences, x, y)  # type: ignore[return-value]


def abs(x: T) -> T:
    """Magnitude: abs.T of floats and signed integers."""
    return operate(current("pt.abs"), "abs", (x,))  # type: ignore[return-value]
