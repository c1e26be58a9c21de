"""log, log2 and log10: the exponent apart; for the rest a polynomial (float32) or a series in f / (2 + f) (float64)."""

from __future__ import annotations

from dataclasses import dataclass

from ptxtile.builder.casting import bitcast, cast
from ptxtile.builder.math.steps import instruction, polynomial
from ptxtile.builder.scalars import fma, select
from ptxtile.dtypes import Scalar, float32, float64, int32, int64

_CUBIC = (
    0.3333321213722229, -0.24999798834323883, 0.2001064568758011, -0.16680489480495453, 0.14001643657684326,
    -0.12183552235364914, 0.14006662368774414, -0.12897488474845886,
)  # fmt: skip
_INFINITY = float("inf")


@dataclass(frozen=True, slots=True)
class Base:
    """log_b(e) and log_b(2), each as the nearest number of the dtype and what is left of it."""

    of_e: tuple[float, float]
    of_2: tuple[float, float]


def _split(value: str, bits: int) -> tuple[float, float]:
    """A constant given to 40 digits as a head of at most `bits` bits and its tail."""
    from fractions import Fraction
    from math import frexp

    exact = Fraction(value)
    _, exponent = frexp(float(exact))
    scale = Fraction(2) ** (bits - exponent)
    head = Fraction(round(exact * scale)) / scale
    return float(head), float(exact - head)


_LN2 = "0.6931471805599453094172321214581765680755"
_LOG2_E = "1.442695040888963407359924681001892137427"
_LOG10_E = "0.4342944819032518276511289189166050822944"
_LOG10_2 = "0.3010299956639811952137388947244930267682"
E_32 = Base((1.0, 0.0), _split(_LN2, 15))
TWO_32 = Base(_split(_LOG2_E, 24), (1.0, 0.0))
TEN_32 = Base(_split(_LOG10_E, 24), _split(_LOG10_2, 12))
E_64 = Base((1.0, 0.0), _split(_LN2, 40))
TWO_64 = Base(_split(_LOG2_E, 53), (1.0, 0.0))
TEN_64 = Base(_split(_LOG10_E, 53), _split(_LOG10_2, 40))


def logarithm_32(x: Scalar, base: Base) -> Scalar:
    """The logarithm of a float32. x = 2**k (1 + f), -1/3 <= f < 1/3; log(1 + f) = f + tail."""
    tiny = x < 2.0**-126
    scaled = select(tiny, x * 2.0**23, x)
    offset = select(tiny, float32(-23), float32(0))
    bits = bitcast(scaled, int32)
    exponent = (bits - 0x3F2AAAAB) & -0x800000
    k = fma(cast(exponent, float32), 2.0**-23, offset)
    f = bitcast(bits - exponent, float32) - 1.0
    tail = f * f * fma(polynomial(f, _CUBIC), f, -0.5)
    special = instruction("lg2.approx.f32", float32, x)  # -infinity, infinity or NaN where it is used
    return select((x > 0) & (x < _INFINITY), _assemble(k, f, tail, base), special)


def _assemble(k: Scalar, f: Scalar, tail: Scalar, base: Base) -> Scalar:
    """k * of_2 + (f + tail) * of_e, the small parts first."""
    if base.of_e[0] == 1.0:
        small = fma(k, base.of_2[1], tail)
        return fma(k, base.of_2[0], f + small)
    small = fma(f, base.of_e[1], tail * base.of_e[0])
    if base.of_2[0] == 1.0:
        return k + fma(f, base.of_e[0], small)
    return fma(k, base.of_2[0], fma(f, base.of_e[0], fma(k, base.of_2[1], small)))


def reduced_64(x: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """(k, f, tail) of a positive finite float64: x = 2**k (1 + f) and log(1 + f) = f + tail."""
    tiny = x < 2.0**-1022
    scaled = select(tiny, x * 2.0**54, x)
    offset = select(tiny, float64(-54), float64(0))
    bits = bitcast(scaled, int64)
    exponent = (bits - 0x3FE6A09E667F3BCD) & -(1 << 52)
    k = cast(exponent >> 52, float64) + offset
    f = bitcast(bits - exponent, float64) - 1.0
    s = f / (f + 2.0)
    z = s * s
    series = z * polynomial(z, tuple(2 / (2 * n + 3) for n in range(11)))
    half = f * f * 0.5
    return k, f, fma(s, half + series, -half)


def logarithm_64(x: Scalar, base: Base) -> Scalar:
    """The logarithm of a float64."""
    k, f, tail = reduced_64(x)
    special = select(x == 0, float64(-_INFINITY), select(x > 0, x, float64(0) * _invalid(x)))
    return select((x > 0) & (x < _INFINITY), _assemble(k, f, tail, base), special)


def _invalid(x: Scalar) -> Scalar:
    """NaN for a negative number, and for NaN."""
    return instruction("sqrt.rn.f64", float64, x)
