"""sin, cos and tan with arguments of any size, atan and atan2, in float32."""

from __future__ import annotations

from ptxtile.builder.casting import bitcast, cast, pack
from ptxtile.builder.control import branch
from ptxtile.builder.math.steps import instruction, polynomial
from ptxtile.builder.scalars import fma, maximum, minimum, reg, select
from ptxtile.builder.values import current
from ptxtile.dtypes import Scalar, float32, float64, int32, int64, uint32, uint64

_ROUND = 12582912.0
_TWO_OVER_PI = 0.6366197723675814
_PIO2 = (float.fromhex("0x1.921fb4p0"), float.fromhex("0x1.4442d0p-24"), float.fromhex("0x1.84698ap-48"))
"""pi / 2 as the sum of three float32 numbers, all positive so that -0 stays -0."""
_LARGE = 105615.0
"""Up to here three parts of pi / 2 are enough."""
_TWO_OVER_PI_BITS = (0, 0, 0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041)
"""64 zero bits and the first 192 fraction bits of 2 / pi."""
_SIN = (-0.1666666716337204, 0.008333379402756691, -0.00019852982950396836, 2.8308033961366164e-06)
_COS = (0.0416666679084301, -0.0013888980029150844, 2.4821911210892722e-05, -2.885932985918771e-07)
_ATAN = (
    -0.33333298563957214, 0.1999853104352951, -0.14264051616191864, 0.10951174795627594, -0.08400475233793259,
    0.05790654569864273, -0.031127002090215683, 0.010887361131608486, -0.0017875476041808724,
)  # fmt: skip
_HALF_PI, _HALF_PI_LOW = float.fromhex("0x1.921fb6p0"), float.fromhex("-0x1.777a5cp-25")
_PI, _PI_LOW = float.fromhex("0x1.921fb6p1"), float.fromhex("-0x1.777a5cp-24")


def _reduced(x: Scalar) -> tuple[Scalar, Scalar]:
    """(r, q): x = r + q pi / 2 with |r| <= pi / 4 (a little more), q as an int32 modulo 4.

    Up to 105615 by three fused steps; beyond, in a branch, by 96 bits of 2 / pi chosen by the exponent.
    """
    trace = current("pt.sin")
    if x.value is not None:
        x = reg(float32, x)  # the branch below wants a predicate
    shifted = fma(x, _TWO_OVER_PI, _ROUND)
    k = shifted - _ROUND
    near = x
    for part in _PIO2:
        near = fma(k, -part, near)
    rest, quadrant = reg(float32, near), reg(int32, bitcast(shifted, int32))
    after = trace.label("reduced")
    branch(trace, after, when=abs(x) <= _LARGE)
    far, turns = _reduced_far(x)
    rest.set(far)
    quadrant.set(turns)
    trace.place(after)
    return rest, quadrant


def _reduced_far(x: Scalar) -> tuple[Scalar, Scalar]:
    """The same for 2**15 <= |x|: |x| is an integer of 32 bits times a power of two; its product with the 96 bits of
    2 / pi that start at that power's place gives x * 2 / pi modulo 4 with 62 fraction bits."""
    bits = bitcast(x, uint32)
    start = ((bits >> 23) & 255) - 96
    integer = ((bits & 0x7FFFFF) | 0x800000) << 8
    high, middle, low = _window(start)
    below = instruction("mul.hi.u32", uint32, integer, low)
    lower = instruction("mad.wide.u32", uint64, integer, middle, cast(below, uint64))
    upper = cast(lower >> 32, uint32) + integer * high
    turns = bitcast(pack(cast(lower, uint32), upper), int64)
    quadrant = cast(bitcast(turns, uint64) + (1 << 61) >> 62, int32)
    quarter = cast(turns << 2, float64) * (1.5707963267948966 * 2.0**-64)
    rest = cast(quarter, float32) + (x - x)
    negative = x < 0
    return select(negative, -rest, rest), select(negative, -quadrant, quadrant)


def _window(start: Scalar) -> tuple[Scalar, ...]:
    """96 bits of the table from bit `start` on (32 <= start < 160), the most significant word first."""
    index, shift = start >> 5, start & 31
    first, low, third = index < 2, index < 3, index < 4
    words = []
    for n in range(4):
        choice = [uint32(word) for word in _TWO_OVER_PI_BITS[n + 1 : n + 5]]
        words.append(select(low, select(first, choice[0], choice[1]), select(third, choice[2], choice[3])))
    pairs = zip(words[1:], words)
    return tuple(instruction("shf.l.wrap.b32", uint32, after, before, shift) for after, before in pairs)


def _sine_of(r: Scalar) -> Scalar:
    """sin of |r| <= pi / 4; copysign is there for -0."""
    s = r * r
    return instruction("copysign.f32", float32, r, fma(s * r, polynomial(s, _SIN), r))


def _cosine_of(r: Scalar) -> Scalar:
    s = r * r
    return fma(s * s, polynomial(s, _COS), fma(s, -0.5, 1.0))


def _turned(r: Scalar, q: Scalar) -> Scalar:
    """sin(r + q pi / 2)."""
    value = select((q & 1) != 0, _cosine_of(r), _sine_of(r))
    return select((q & 2) != 0, -value, value)


def sin_32(x: Scalar) -> Scalar:
    return _turned(*_reduced(x))


def cos_32(x: Scalar) -> Scalar:
    r, q = _reduced(x)
    return _turned(r, q + 1)


def tan_32(x: Scalar) -> Scalar:
    r, q = _reduced(x)
    sine, cosine = _sine_of(r), _cosine_of(r)
    odd = (q & 1) != 0
    return select(odd, -cosine, sine) / select(odd, sine, cosine)


def _arctangent_of(r: Scalar) -> Scalar:
    """atan of 0 <= r <= 1."""
    s = r * r
    return fma(s * r, polynomial(s, _ATAN), r)


def _from(high: float, low: float, angle: Scalar) -> Scalar:
    """high + low - angle, high and low being the two parts of a multiple of pi / 2."""
    return high + (low - angle)


def atan_32(x: Scalar) -> Scalar:
    t = abs(x)
    steep = t > 1.0
    angle = _arctangent_of(select(steep, 1.0 / t, t))
    return instruction("copysign.f32", float32, x, select(steep, _from(_HALF_PI, _HALF_PI_LOW, angle), angle))


def atan2_32(y: Scalar, x: Scalar) -> Scalar:
    ax, ay = abs(x), abs(y)
    longer, shorter = maximum(ax, ay), minimum(ax, ay)
    ratio = select(shorter == longer, float32(1), shorter / longer)
    angle = _arctangent_of(select(longer == 0, float32(0), ratio))
    angle = select(ay > ax, _from(_HALF_PI, _HALF_PI_LOW, angle), angle)
    angle = select(bitcast(x, int32) < 0, _from(_PI, _PI_LOW, angle), angle)
    known = (x == x) & (y == y)
    return select(known, instruction("copysign.f32", float32, y, angle), x + y)
