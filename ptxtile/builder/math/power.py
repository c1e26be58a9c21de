"""pow, fmod, hypot, in float32 by way of float64; erf; copysign and the roundings to integers."""

from __future__ import annotations

from ptxtile.builder.casting import bitcast, cast
from ptxtile.builder.control import while_
from ptxtile.builder.math.exponential import exp2_64, exp_32, power_of_two
from ptxtile.builder.math.logarithm import TWO_64, logarithm_64
from ptxtile.builder.math.steps import instruction, polynomial
from ptxtile.builder.scalars import fma, maximum, reg, select
from ptxtile.dtypes import DType, Scalar, float32, float64, int32, int64, uint16

_INFINITY, _NAN = float("inf"), float("nan")
_ERF_SMALL = (
    -0.3761263787746429, 0.11283769458532333, -0.026864539831876755, 0.0052182856015861034, -0.0008441663812845945,
    0.00010945421672658995, -8.723434802959673e-06,
)  # fmt: skip
_ERF_LARGE = (
    -0.00018850680498871952, 1.1295804977416992, 0.6332160234451294, 0.10842250287532806, -0.025210591033101082,
    0.004205374512821436, -0.00044148965389467776, 2.1698942873626947e-05,
)  # fmt: skip
_ERF_SLOPE = 0.12837916709551256
"""2 / sqrt(pi) - 1"""


def whole(mode: str, x: Scalar) -> Scalar:
    """x rounded to an integer of its own dtype: cvt.{rmi,rpi,rzi,rni}."""
    dtype = type(x)
    return instruction(f"cvt.{mode}{dtype.ptx}{dtype.ptx}", dtype, x)


def copysign(x: Scalar, y: Scalar) -> Scalar:
    """float32 and float64: copysign (whose first operand is the sign). 16-bit floats: and, and, or on the bits."""
    dtype = type(x)
    if dtype.bits >= 32:
        return instruction(f"copysign{dtype.ptx}", dtype, y, x)
    bits = (bitcast(x, uint16) & 0x7FFF) | (bitcast(y, uint16) & 0x8000)
    return bitcast(bits, dtype)


def root(x: Scalar) -> Scalar:
    dtype = type(x)
    return instruction(f"sqrt.rn{dtype.ptx}", dtype, x)


def inverse_root(x: Scalar) -> Scalar:
    dtype: DType = type(x)
    return instruction(f"rsqrt.approx{dtype.ptx}", dtype, x)


def hypot_32(x: Scalar, y: Scalar) -> Scalar:
    a, b = cast(x, float64), cast(y, float64)
    length = cast(root(fma(a, a, b * b)), float32)
    endless = (abs(x) == _INFINITY) | (abs(y) == _INFINITY)
    return select(endless, float32(_INFINITY), length)


def erf_32(x: Scalar) -> Scalar:
    t, s = abs(x), x * x
    small = fma(x, fma(s, polynomial(s, _ERF_SMALL), _ERF_SLOPE), x)
    large = 1.0 - exp_32(-polynomial(t, _ERF_LARGE))
    return select(t < 1.0, small, instruction("copysign.f32", float32, x, large))


def pow_32(x: Scalar, y: Scalar) -> Scalar:
    size, exponent = abs(x), cast(y, float64)
    power = cast(exp2_64(exponent * logarithm_64(cast(size, float64), TWO_64)), float32)
    power = select(size == 1.0, float32(1), power)
    is_whole = whole("rzi", y) == y
    half = y * 0.5
    odd = is_whole & (whole("rzi", half) != half)
    power = select((bitcast(x, int32) < 0) & odd, -power, power)
    undefined = (x < 0) & (x > -_INFINITY) & ~is_whole
    power = select(undefined | (x != x) | (y != y), float32(_NAN), power)
    return select((x == 1.0) | (y == 0), float32(1), power)


def fmod_32(x: Scalar, y: Scalar) -> Scalar:
    rest, divisor = reg(float64, cast(abs(x), float64)), cast(abs(y), float64)
    fits = (abs(x) < _INFINITY) & (divisor > 0)
    width = bitcast(divisor, int64) >> 52
    with while_(lambda: (rest >= divisor) & fits):
        gap = cast((bitcast(rest, int64) >> 52) - width, int32) - 26
        step = divisor * power_of_two(maximum(gap, 0))
        over = fma(-whole("rzi", rest / step), step, rest)
        rest.set(select(over < 0, over + step, over))
    return select(fits, instruction("copysign.f32", float32, x, cast(rest, float32)), float32(_NAN))
