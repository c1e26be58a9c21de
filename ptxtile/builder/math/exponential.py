"""exp, exp2, exp10 and what is made of them: sigmoid, tanh, sinh, cosh."""

from __future__ import annotations

from ptxtile.builder.casting import bitcast, cast, pack
from ptxtile.builder.math.steps import instruction, polynomial
from ptxtile.builder.operators import operate
from ptxtile.builder.scalars import fma, maximum, minimum, select
from ptxtile.builder.values import current, home
from ptxtile.dtypes import Scalar, float32, float64, int32, uint32

_ROUND = 12582912.0
"""1.5 * 2**23: added to a float32 below 2**22 it leaves the nearest integer in the low bits."""
_PER_E, _LN2_HIGH, _LN2_LOW = (
    1.4426950408889634,
    float.fromhex("0x1.62e4p-1"),
    float.fromhex("0x1.7f7d1cf79abcap-20"),
)
_PER_10 = 3.321928094887362
_LG2_HIGH, _LG2_LOW = float.fromhex("0x1.344p-2"), float.fromhex("0x1.3509f79fef312p-18")
_FACTORIALS = (
    1.0, 1.0, 1 / 2, 1 / 6, 1 / 24, 1 / 120, 1 / 720, 1 / 5040, 1 / 40320, 1 / 362880, 1 / 3628800, 1 / 39916800,
    1 / 479001600, 1 / 6227020800,
)  # fmt: skip


def _power(x: Scalar, per: float, high: float, low: float, halved: bool = False) -> Scalar:
    """2**(x * per) for float32 x, where 1 / per = high + low; half of that if `halved`.

    k is x * per rounded to an integer, kept where 2**k is a normal number; high has so few bits that k * high is exact;
    the rest of the exponent, t, goes through ex2. No multiplication and addition is fused.
    """
    half = int(halved)
    k = minimum(maximum(x * per, -126.0 + half), 127.0 + half)
    shifted = k + (_ROUND + 127 - half)
    k = shifted - (_ROUND + 127 - half)
    rest = (x - k * high) - k * low
    return exp2_32(rest * per) * _shift_to_exponent(shifted)


def _shift_to_exponent(shifted: Scalar) -> Scalar:
    """The float whose exponent field is the low byte of these bits."""
    trace = current("pt.exp")
    made = trace.value(float32)
    bits = operate(trace, "shl", (bitcast(shifted, uint32), 23))
    trace.instruction("mov.b32", home(made), home(bits))
    return made


def exp2_32(x: Scalar) -> Scalar:
    return instruction("ex2.approx.f32", float32, x)


def exp_32(x: Scalar) -> Scalar:
    return _power(x, _PER_E, _LN2_HIGH, _LN2_LOW)


def exp10_32(x: Scalar) -> Scalar:
    return _power(x, _PER_10, _LG2_HIGH, _LG2_LOW)


def exp_64(x: Scalar) -> Scalar:
    clamped = minimum(maximum(x, -746.0), 710.0)
    k = instruction("cvt.rni.f64.f64", float64, clamped * _PER_E)
    rest = fma(k, -float.fromhex("0x1.62e42fefa39efp-1"), clamped)
    rest = fma(k, -float.fromhex("0x1.abc9e3b39803fp-56"), rest)
    return _finish_64(x, polynomial(rest, _FACTORIALS), k)


def exp2_64(x: Scalar) -> Scalar:
    clamped = minimum(maximum(x, -1076.0), 1025.0)
    k = instruction("cvt.rni.f64.f64", float64, clamped)
    rest = (clamped - k) * 0.6931471805599453
    return _finish_64(x, polynomial(rest, _FACTORIALS), k)


def _finish_64(x: Scalar, mantissa: Scalar, k: Scalar) -> Scalar:
    """mantissa * 2**k in two exact steps and one rounded one, and NaN for NaN."""
    whole = cast(k, int32, rounding="rni")
    first = whole >> 1
    scaled = mantissa * power_of_two(first) * power_of_two(whole - first)
    return select(x == x, scaled, x)


def power_of_two(k: Scalar) -> Scalar:
    """2**k as a float64, for an int32 k of a normal number."""
    high = bitcast((k + 1023) << 20, uint32)
    return bitcast(pack(0, high, dtype=uint32), float64)


def sigmoid_32(x: Scalar) -> Scalar:
    return 1.0 / (1.0 + exp_32(-x))


def sigmoid_64(x: Scalar) -> Scalar:
    return 1.0 / (1.0 + exp_64(-x))


def tanh_32(x: Scalar) -> Scalar:
    t = abs(x)
    large = 1.0 - 2.0 / (exp_32(t + t) + 1.0)
    s = x * x
    small = fma(
        s * x,
        polynomial(
            s,
            (
                -0.33333298563957214,
                0.13331939280033112,
                -0.05378512293100357,
                0.020800316706299782,
                -0.005900179035961628,
            ),
        ),
        x,
    )
    return instruction("copysign.f32", float32, x, select(t < 0.6, small, large))


def _half_exp(t: Scalar) -> Scalar:
    return _power(t, _PER_E, _LN2_HIGH, _LN2_LOW, halved=True)


def sinh_32(x: Scalar) -> Scalar:
    t = abs(x)
    half = _half_exp(t)
    large = half - 0.25 / half
    s = x * x
    small = fma(
        s * x,
        polynomial(
            s, (0.1666666716337204, 0.008333311416208744, 0.00019842635083477944, 2.7839255380968098e-06)
        ),
        x,
    )
    return select(t < 1.0, small, instruction("copysign.f32", float32, x, large))


def cosh_32(x: Scalar) -> Scalar:
    half = _half_exp(abs(x))
    return half + 0.25 / half
