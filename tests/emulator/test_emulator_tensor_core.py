"""The sums of tensor cores against exact rational arithmetic, one element at a time."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from ptxtile.emulator import tensor_core
from ptxtile.emulator.tensor_core import aligned_sum, cut, factor, multiply_floats

TYPES = {
    "f16": (np.float16, np.uint16, -14),
    "bf16": (ml_dtypes.bfloat16, np.uint16, -126),
    "tf32": (np.float32, np.uint32, -126),
    "f32": (np.float32, np.uint32, -126),
    "e4m3": (ml_dtypes.float8_e4m3fn, np.uint8, -6),
    "e5m2": (ml_dtypes.float8_e5m2, np.uint8, -14),
}
ADVERSARIAL = [0.0, -0.0, 1.0, -1.0, 1.5, 2.0**-14, 2.0**-24, 3 * 2.0**-16, 1024.0, -1023.0, 448.0, 2.0**-9]


def encode(values, kind):
    held, carrier, _ = TYPES[kind]
    bits = np.asarray(values, np.float64).astype(np.float32).astype(held).view(carrier)
    return bits & np.uint32(0xFFFFE000) if kind == "tf32" else bits


def decode(bits, kind):
    return bits.view(TYPES[kind][0]).astype(np.float64)


def exponent(value: Fraction, least: int) -> int:
    """Of the leading bit, not below the least normal exponent."""
    found = value.numerator.bit_length() - value.denominator.bit_length() if value > 0 else least
    while value and Fraction(2) ** found > abs(value):
        found -= 1
    while value and Fraction(2) ** (found + 1) <= abs(value):
        found += 1
    return max(found, least)


def toward_zero(value: Fraction, step: Fraction) -> Fraction:
    return (abs(value) / step).__floor__() * step * (1 if value > 0 else -1)


def model(a, b, c, kinds, fraction):
    """The sum of one element as Fractions: before the last rounding."""
    left, right = TYPES[kinds[0]][2], TYPES[kinds[1]][2]
    terms = [(Fraction(x) * Fraction(y), Fraction(x), Fraction(y)) for x, y in zip(a, b)]
    exponents = [exponent(abs(x), left) + exponent(abs(y), right) for p, x, y in terms if p]
    if c:
        exponents.append(exponent(abs(Fraction(c)), TYPES[kinds[2]][2]))
    if not exponents:
        return Fraction(0)
    step = Fraction(2) ** (max(exponents) - fraction)
    return sum((toward_zero(p, step) for p, _, _ in terms), toward_zero(Fraction(c), step))


def draw(rng, shape, kind):
    """Random numbers of many magnitudes, with a third of them from a list of hard ones."""
    wide = 3 if kind[0] == "e" else 6
    value = rng.standard_normal(shape) * 2.0 ** rng.integers(-wide, wide, shape)
    hard = rng.choice(ADVERSARIAL, shape)
    most = 24 if kind[0] == "e" else 2.0**15
    return encode(np.clip(np.where(rng.random(shape) < 0.35, hard, value), -most, most), kind)


@pytest.mark.parametrize(
    ("kind", "depth"), [("f16", 16), ("bf16", 8), ("bf16", 16), ("tf32", 4), ("tf32", 8)]
)
def test_a_product_into_f32(kind, depth):
    rng = np.random.default_rng(1)
    a, b, c = draw(rng, (2, 16, depth), kind), draw(rng, (2, 8, depth), kind), draw(rng, (2, 16, 8), "f32")
    found = multiply_floats(a, b, c, (kind, kind, "f32")).view(np.float32)
    x, y, z = decode(a, kind), decode(b, kind), decode(c, "f32")
    for w, i, j in np.ndindex(2, 16, 8):
        exact = model(x[w, i], y[w, j], z[w, i, j], (kind, kind, "f32"), 25)
        step = Fraction(2) ** (exponent(abs(exact), -126) - 23)
        assert Fraction(float(found[w, i, j])) == toward_zero(exact, step)


def test_a_product_into_f16_is_rounded_to_nearest():
    rng = np.random.default_rng(2)
    a, b, c = draw(rng, (2, 16, 16), "f16"), draw(rng, (2, 8, 16), "f16"), draw(rng, (2, 16, 8), "f16")
    found = multiply_floats(a, b, c, ("f16", "f16", "f16"))
    x, y, z = decode(a, "f16"), decode(b, "f16"), decode(c, "f16")
    for w, i, j in np.ndindex(2, 16, 8):
        exact = model(x[w, i], y[w, j], z[w, i, j], ("f16", "f16", "f16"), 25)
        with np.errstate(over="ignore"):
            assert found.view(np.float16)[w, i, j] == np.float16(float(exact))


def test_an_exact_sum_is_cut_below_the_largest_exponent():
    a = encode([[[2.0**10, 2.0**-8, 0, 0, 0, 0, 0, 0]]], "f16")
    one = encode([[[2.0**10, 2.0**-8, 0, 0, 0, 0, 0, 0]]], "f16")
    zero = np.zeros((1, 1, 1), np.uint32)
    # 2**20 + 2**-16: the small term lies 36 places below the large one
    assert multiply_floats(a, one, zero, ("f16", "f16", "f32")).view(np.float32)[0, 0, 0] == 2.0**20
    # three terms of 1.5 * 2**-25 next to 1 give nothing of what an exact sum would
    many = encode([[[1.0, *[1.5 * 2.0**-12] * 3, 0, 0, 0, 0]]], "f16")
    small = encode([[[1.0, *[2.0**-13] * 3, 0, 0, 0, 0]]], "f16")
    total = aligned_sum(factor(many, "f16"), factor(small, "f16"), factor(zero, "f32"), 25)
    assert total[0, 0, 0] == 1 + 3 * 2.0**-25


@pytest.mark.parametrize("kind", ["f16", "bf16", "tf32"])
def test_what_is_not_finite(kind):
    inf, nan = encode([np.inf], kind)[0], encode([np.nan], kind)[0]
    one, zero = encode([1.0], kind)[0], encode([0.0], kind)[0]

    def of(*pairs, c=0.0):
        a = np.array([[[x for x, _ in pairs]]])
        b = np.array([[[y for _, y in pairs]]])
        return int(multiply_floats(a, b, encode([[[c]]], "f32"), (kind, kind, "f32"))[0, 0, 0])

    assert of((inf, one), (one, one)) == 0x7F800000
    assert of((inf, one), (inf | 1 << (inf.itemsize * 8 - 1), one)) == 0x7FFFFFFF
    assert of((inf, zero)) == 0x7FFFFFFF
    assert of((nan, one)) == 0x7FFFFFFF
    assert of((one, one), c=-np.inf) == 0xFF800000
    assert of((zero, one), c=-0.0) == 0


def test_overflow_is_infinity_and_nothing_is_flushed():
    assert cut(np.array([2.0**128, -(2.0**130)])).tolist() == [0x7F800000, 0xFF800000]
    assert cut(np.array([2.0**128 - 2.0**100])).tolist() == [0x7F7FFFFF]
    assert cut(np.array([2.0**-149, 1.75 * 2.0**-148, -(2.0**-149)])).tolist() == [1, 3, 0x80000001]


def test_what_underflows_is_a_positive_zero():
    assert cut(np.array([-(2.0**-150), 2.0**-150, -0.0])).tolist() == [0, 0, 0]
    assert tensor_core.to_half(np.array([-(2.0**-26), -(2.0**-24)])).tolist() == [0, 0x8001]


@pytest.mark.parametrize("kind", ["f16", "bf16", "tf32", "e4m3", "e5m2"])
def test_what_sparse_a_leaves_out_meets_no_nan(kind):
    """A zero that was given makes a NaN of it."""
    nan, one, zero = (encode([x], kind)[0] for x in (np.nan, 1.0, 0.0))
    a, b = np.array([[[one, zero, zero, one]]]), np.array([[[one, nan, one, one]]])
    c = encode([[[0.5]]], "f32")
    for given, due in (((1, 0, 0, 1), 0x40200000), ((1, 1, 0, 0), 0x7FFFFFFF)):
        present = np.array([[given]], np.bool_)
        assert int(multiply_floats(a, b, c, (kind, kind, "f32"), present=present)[0, 0, 0]) == due


@pytest.mark.parametrize("ctype", ["f32", "f16"])
def test_eight_bit_floats_are_two_sums_and_an_addition(ctype):
    rng = np.random.default_rng(3)
    kinds = ("e4m3", "e5m2", ctype)
    a, b, c = draw(rng, (2, 16, 32), "e4m3"), draw(rng, (2, 8, 32), "e5m2"), draw(rng, (2, 16, 8), ctype)
    found = multiply_floats(a, b, c, kinds)
    x, y, z = decode(a, "e4m3"), decode(b, "e5m2"), decode(c, ctype)
    early = np.arange(32) % 4 < 2
    for w, i, j in np.ndindex(2, 16, 8):
        total = 0.0
        for half in (early, ~early):
            exact = model(x[w, i, half], y[w, j, half], total, kinds, 25)
            if ctype == "f32":
                total = float(toward_zero(exact, Fraction(2) ** (exponent(abs(exact), -126) - 23)))
            else:
                total = float(np.float16(float(exact)))
        held = TYPES[ctype][0]
        assert found.view(held)[w, i, j] == held(total) + held(z[w, i, j])


def test_eight_bit_floats_of_warpgroups_keep_thirteen_bits():
    rng = np.random.default_rng(4)
    a, b, c = draw(rng, (1, 16, 32), "e4m3"), draw(rng, (1, 8, 32), "e4m3"), draw(rng, (1, 16, 8), "f32")
    left, right = factor(a, "e4m3"), factor(b, "e4m3")
    found = tensor_core.multiply_async(left, right, c, "f32", True).view(np.float32)
    x, y, z = decode(a, "e4m3"), decode(b, "e4m3"), decode(c, "f32")
    for i, j in np.ndindex(16, 8):
        exact = model(x[0, i], y[0, j], z[0, i, j], ("e4m3", "e4m3", "f32"), 13)
        step = Fraction(2) ** (exponent(abs(exact), -126) - 13)
        assert Fraction(float(found[0, i, j])) == toward_zero(exact, step)


def test_integers_wrap_or_saturate():
    a, b = np.full((1, 8, 16), 255, np.uint8), np.full((1, 8, 16), 128, np.uint8)
    c = np.full((1, 8, 8), 0x7FFFFFFF, np.uint32)
    wrapped = tensor_core.multiply_integers(a, b, c, ("u8", "u8"), False)
    assert (wrapped == np.uint32((0x7FFFFFFF + 16 * 255 * 128) & 0xFFFFFFFF)).all()
    assert (tensor_core.multiply_integers(a, b, c, ("u8", "u8"), True) == 0x7FFFFFFF).all()
    signed = tensor_core.multiply_integers(a, b, np.zeros_like(c), ("s8", "s8"), False)
    assert (signed.view(np.int32) == 16 * -1 * -128).all()
    least = tensor_core.multiply_integers(a, b, np.full_like(c, 0x80000000), ("u8", "s8"), True)
    assert (least == 0x80000000).all()


def test_doubles_are_a_chain_of_fma():
    rng = np.random.default_rng(5)
    a, b, c = rng.standard_normal((1, 8, 4)), rng.standard_normal((1, 8, 4)), rng.standard_normal((1, 8, 8))
    found = tensor_core.multiply_doubles(*(x.view(np.uint64) for x in (a, b, c)), "rn").view(np.float64)
    for i, j in np.ndindex(8, 8):
        total = c[0, i, j]
        for k in range(4):
            total = float(Fraction(a[0, i, k]) * Fraction(b[0, j, k]) + Fraction(total))
        assert found[0, i, j] == total


def test_a_batch_is_done_in_pieces(monkeypatch):
    rng = np.random.default_rng(6)
    a, b, c = draw(rng, (6, 16, 16), "f16"), draw(rng, (6, 8, 16), "f16"), draw(rng, (6, 16, 8), "f32")
    whole = multiply_floats(a, b, c, ("f16", "f16", "f32"))
    monkeypatch.setattr(tensor_core, "CHUNK", 5000)
    assert (multiply_floats(a, b, c, ("f16", "f16", "f32")) == whole).all()


def test_quads_round_every_addition():
    """m8n8k4: a chain of f32, not one sum."""
    one, tiny = encode([1.0], "f16")[0], encode([2.0**-12], "f16")[0]
    a, b = np.array([[[one, tiny, tiny, 0]]], np.uint16), np.array([[[one, tiny, tiny, 0]]], np.uint16)
    assert tensor_core.multiply_quads(a, b, encode([[[0.0]]], "f32"), "f32", "f32").tolist() == [
        [[0x3F800000]]
    ]
    assert tensor_core.multiply_quads(a, b, encode([[[1.0]]], "f16"), "f16", "f32").tolist() == [
        [[0x40000000]]
    ]
    a = encode([[[1.0, 2.0**-11, 2.0**-13, 0.0]]], "f16")
    b = encode([[[1.0, 1.0, 2.0**-13, 0.0]]], "f16")
    assert tensor_core.multiply_quads(a, b, encode([[[0.0]]], "f16"), "f16", "f16").tolist() == [[[0x3C00]]]


def test_subnormals_of_e4m3_are_normal_in_the_f16_that_mma_multiplies():
    a, b = encode([[[2.0**15, 2.0**-16, 0, 0]]], "e5m2"), encode([[[2.0**-9, 0.5, 0, 0]]], "e4m3")
    found = multiply_floats(a, b, encode([[[0.0]]], "f32"), ("e5m2", "e4m3", "f32"))
    assert found.tolist() == [[[0x42800001]]]
