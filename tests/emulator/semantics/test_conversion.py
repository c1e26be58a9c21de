"""cvt against rational arithmetic, and what the hardware does with NaNs, infinities and narrow formats."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest

from ptxtile.emulator.numeric import BF16, E2M1, E2M3, E3M2, E4M3, E5M2, F16, F32, F64, TF32

FLOATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}
INTEGERS = [(family, bits) for family in "us" for bits in (8, 16, 32, 64)]
CARRIERS = {8: ".b8", 16: ".b16", 32: ".b32", 64: ".b64"}
B, H, W, D = CARRIERS.values()
NAN32 = 0x7FFFFFFF


def _limits(family: str, bits: int) -> tuple[int, int]:
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if family == "s" else (0, (1 << bits) - 1)


def _integers(bits: int, seed: str) -> list[int]:
    rng = random.Random(seed)
    ones = (1 << bits) - 1
    special = [0, 1, ones, ones >> 1, (ones >> 1) + 1, 0x7F & ones, 0x80 & ones]
    return [
        rng.choice(special) if i % 3 == 0 else rng.getrandbits(bits) >> rng.randrange(bits) for i in range(90)
    ]


def _number(x: int, family: str, bits: int) -> int:
    return x - (1 << bits) if family == "s" and x >> (bits - 1) else x


@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", INTEGERS)
def test_integer_to_integer(target, source, run):
    values = _integers(source[1], str(source))
    types = (CARRIERS[target[1]], CARRIERS[source[1]])
    names = f"{target[0]}{target[1]}.{source[0]}{source[1]}"
    numbers = [_number(x, *source) for x in values]
    mask, (low, high) = (1 << target[1]) - 1, _limits(*target)
    assert run(f"cvt.{names}", types, values) == [[x & mask for x in numbers]]
    assert run(f"cvt.sat.{names}", types, values) == [[max(low, min(high, x)) & mask for x in numbers]]


@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("mode", ["rni", "rzi", "rmi", "rpi"])
def test_float_to_integer_clamps(mode, name, target, rational, run):
    form = FLOATS[name]
    rng = random.Random(mode + name + str(target))
    low, high = _limits(*target)
    wanted = [
        Fraction(n) + Fraction(rng.randrange(-4, 5), 4)
        for n in (0, 1, 2, low, high, high // 3, high - high // 5)
        for _ in range(8)
    ]
    bits = [rational.encode(x, form, "rn") for x in wanted] + [
        row[0] for row in rational.operands(form, 1, name, 30)
    ]
    bits = [x for x in bits if rational.decode(x, form) is not None]
    [results] = run(
        f"cvt.{mode}.{target[0]}{target[1]}.{name}", (CARRIERS[target[1]], CARRIERS[form.bits]), bits
    )
    whole = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}[mode]
    for x, got in zip(bits, results):
        exact = max(low, min(high, whole(rational.decode(x, form))))
        assert got == exact & ((1 << target[1]) - 1), f"{x:#x} -> {got:#x}"


def test_infinities_clamp_and_nans_depend_on_widths(run):
    assert run("cvt.rzi.s32.f32", (W, W), [0x7F800000, 0xFF800000, NAN32]) == [[0x7FFFFFFF, 0x80000000, 0]]
    assert run("cvt.rni.u8.f32", (B, W), [0x7F800000, NAN32]) == [[0xFF, 0]]
    assert run("cvt.rni.s64.f32", (D, W), [NAN32]) == [[1 << 63]]
    assert run("cvt.rni.u64.f16", (D, H), [0x7FFF]) == [[1 << 63]]
    assert run("cvt.rni.s32.f64", (W, D), [0x7FF8000000000000]) == [[1 << 31]]
    assert run("cvt.rni.u16.f64", (H, D), [0x7FF8000000000000]) == [[1 << 15]]
    assert run("cvt.rpi.s32.f32", (W, W), [1]) == [[1]]
    assert run("cvt.rpi.ftz.s32.f32", (W, W), [1]) == [[0]]


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_integer_to_float(mode, name, source, rational, run):
    form, values = FLOATS[name], _integers(source[1], mode + name)
    types = (CARRIERS[form.bits], CARRIERS[source[1]])
    [results] = run(f"cvt.{mode}.{name}.{source[0]}{source[1]}", types, values)
    assert results == [rational.encode(Fraction(_number(x, *source)), form, mode) for x in values]


def test_saturated_integer_to_float(run):
    assert run("cvt.rn.sat.f32.s32", (W, W), [5, 0xFFFFFFFF, 0, 1]) == [[0x3F800000, 0, 0, 0x3F800000]]


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("target", FLOATS)
@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_float_to_float(mode, target, source, rational, run):
    if source == target:
        return
    to, of = FLOATS[target], FLOATS[source]
    rng = random.Random(mode + target + source)
    bits = [row[0] for row in rational.operands(of, 1, mode + target)]
    if of.bits > to.bits:
        # Ties and near-ties of the narrower format, and its subnormals.
        for row in rational.operands(to, 1, "ties", 60):
            middle = rational.encode(rational.decode(row[0], to), of, "rn")
            half = 1 << (of.precision - to.precision - 1)
            bits.append(max(0, (middle & (of.sign - 1)) + half + rng.randrange(-1, 2)) | (middle & of.sign))
    bits = [x for x in bits if rational.decode(x, of) is not None]
    exact = to.bits > of.bits
    spelling = f"cvt.{target}.{source}" if exact else f"cvt.{mode}.{target}.{source}"
    [results] = run(spelling, (CARRIERS[to.bits], CARRIERS[of.bits]), bits)
    for x, got in zip(bits, results):
        want = rational.encode(rational.decode(x, of), to, mode, False, x >= of.sign)
        assert got == want, f"{spelling} {x:#x}: {got:#x}, exactly {want:#x}"


def test_nans_between_floats(run):
    quiet, negative, low = 0x7FF8000000000000, 0xFFF8000000000000, 0x7FFFFFFFFFFFFFFF
    assert run("cvt.rn.f32.f64", (W, D), [quiet, negative, low]) == [[0x7FC00000, 0xFFC00000, NAN32]]
    assert run("cvt.rn.f16.f32", (H, W), [0xFFC12345]) == [[0x7FFF]]
    assert run("cvt.f32.f16", (W, H), [0xFE01]) == [[NAN32]]
    assert run("cvt.f32.bf16", (W, H), [0xFF81]) == [[0xFF810000]]
    assert run("cvt.f64.f32", (D, W), [0xFF800001]) == [[0xFFF8000020000000]]
    assert run("cvt.f64.f16", (D, H), [0x7C01]) == [[0x7FF8040000000000]]
    assert run("cvt.ftz.f64.f32", (D, W), [0xFF800001]) == [[0x7FFFFFFFE0000000]]
    assert run("cvt.rni.f64.f64", (D, D), [0xFFF0000000000001]) == [[0xFFF8000000000001]]
    assert run("cvt.f32.f32", (W, W), [0xFF800001]) == [[0xFF800001]]


def test_flushing(run):
    assert run("cvt.ftz.f64.f32", (D, W), [0x80000001]) == [[1 << 63]]
    assert run("cvt.rn.ftz.f32.f64", (W, D), [0x3800000000000000]) == [[0]]
    assert run("cvt.rp.f16.f32", (H, W), [1]) == [[1]]
    assert run("cvt.rp.ftz.f16.f32", (H, W), [1]) == [[1]]
    assert run("cvt.rm.ftz.f16.f32", (H, W), [0x80000201]) == [[0x8001]]
    assert run("cvt.rn.ftz.f16.f32", (H, W), [0x80000201]) == [[0x8000]]


def test_integral_values_keep_the_sign_of_zero(run):
    assert run("cvt.rni.f32.f32", (W, W), [0xBE800000, 0x40200000, NAN32]) == [[1 << 31, 0x40000000, NAN32]]
    assert run("cvt.rpi.f16.f16", (H, H), [0xB800, 0x3800]) == [[0x8000, 0x3C00]]
    assert run("cvt.sat.f32.f32", (W, W), [0x40000000, 0xBF800000, NAN32]) == [[0x3F800000, 0, 0]]


def test_packing_puts_the_first_operand_on_top(run):
    one, two = 0x3F800000, 0x40000000
    assert run("cvt.rn.f16x2.f32", (W, W, W), [one], [two]) == [[0x3C004000]]
    assert run("cvt.rn.bf16x2.f32", (W, W, W), [one], [two]) == [[0x3F804000]]
    assert run("cvt.rn.satfinite.e4m3x2.f32", (H, W, W), [one], [two]) == [[0x3840]]
    assert run("cvt.rn.satfinite.e2m1x2.f32", (B, W, W), [one], [two]) == [[0x24]]
    assert run("cvt.rn.satfinite.e5m2x2.f16x2", (H, W), [0x3C004000]) == [[0x3C40]]
    assert run("cvt.rn.f16x2.e4m3x2", (W, H), [0x3840]) == [[0x3C004000]]
    assert run("cvt.rn.f16x2.e2m1x2", (W, B), [0x24]) == [[0x3C004000]]


def test_clamps_of_halves(run):
    inputs = [0x7F800000, 0xFF800000, 0xFFC00001, 0xBF800000, 0x80000000]
    assert run("cvt.rn.satfinite.f16.f32", (H, W), inputs) == [[0x7BFF, 0xFBFF, 0x7FFF, 0xBC00, 0x8000]]
    assert run("cvt.rn.relu.f16.f32", (H, W), inputs) == [[0x7C00, 0, 0x7FFF, 0, 0]]
    assert run("cvt.rn.relu.satfinite.bf16.f32", (H, W), inputs) == [[0x7F7F, 0, 0x7FFF, 0, 0]]


def test_tf32(rational, run):
    bits = [row[0] for row in rational.operands(F32, 1, "tf32")]
    for mode in ("rn", "rz", "rna"):
        want = [rational.encode(rational.decode(x, F32), TF32, mode, False, x >> 31 == 1) << 13 for x in bits]
        assert run(f"cvt.{mode}.tf32.f32", (W, W), bits) == [want]
    # A NaN whose payload lies in the 13 bits that go becomes an infinity under .rna.
    assert run("cvt.rna.tf32.f32", (W, W), [0x7F800001]) == [[0x7F800000]]
    assert run("cvt.rna.satfinite.tf32.f32", (W, W), [0xFF800001, 0x7F800000]) == [[0xFF7FE000, 0x7F7FE000]]
    assert run("cvt.rna.satfinite.tf32.f32", (W, W), [0x7FC00001, 0x7F7FFFFF]) == [[0x7FBFE000, 0x7F7FE000]]
    assert run("cvt.rn.relu.tf32.f32", (W, W), [0xFFC00001, 0xBF800000]) == [[0x7FFFE000, 0]]


@pytest.mark.parametrize(
    ("name", "form", "carrier"),
    [("e4m3", E4M3, H), ("e5m2", E5M2, H), ("e2m3", E2M3, H), ("e3m2", E3M2, H), ("e2m1", E2M1, B)],
)
def test_narrow_formats_round_and_saturate(name, form, carrier, rational, run):
    rng = random.Random(name)
    lane = 4 if form.bits == 4 else 8
    bits = [rational.encode(rational.decode(x, form), F32, "rn") for x in range(form.largest + 1)]
    ties = [
        rational.encode((rational.decode(x, form) + rational.decode(x + 1, form)) / 2, F32, "rn")
        for x in range(form.largest)
    ]
    bits += ties + [x + 1 for x in ties] + [x - 1 for x in ties] + [0x47800000, 0x7F7FFFFF]
    bits = [x | rng.getrandbits(1) << 31 for x in bits]
    [results] = run(f"cvt.rn.satfinite.{name}x2.f32", (carrier, W, W), bits, bits)
    for x, got in zip(bits, results):
        top = rational.decode(form.largest, form)
        clamped = max(-top, min(top, rational.decode(x, F32)))
        want = rational.encode(clamped, form, "rn", False, x >> 31 == 1)
        assert got == want | want << lane, f"{x:#x} -> {got:#x}"


def test_narrow_formats_of_nan_and_infinity(run):
    special = [NAN32, 0xFF800000]
    for name, nan, infinity in (
        ("e4m3", 0x7F, 0xFE),
        ("e5m2", 0x7F, 0xFB),
        ("e2m3", 0x1F, 0x3F),
        ("e3m2", 0x1F, 0x3F),
    ):
        assert run(f"cvt.rn.satfinite.{name}x2.f32", (H, W, W), special, [0, 0]) == [
            [nan << 8, infinity << 8]
        ]
    assert run("cvt.rn.satfinite.relu.e4m3x2.f32", (H, W, W), [0xBF800000], [NAN32]) == [[0x007F]]


@pytest.mark.parametrize(("name", "form"), [("e4m3", E4M3), ("e5m2", E5M2), ("e2m3", E2M3), ("e3m2", E3M2)])
def test_narrow_formats_widen_exactly(name, form, rational, run):
    values = [sign | x for x in range(form.largest + 1) for sign in (0, form.sign)]
    [results] = run(f"cvt.rn.f16x2.{name}x2", (W, H), [x | x << 8 for x in values])
    for x, got in zip(values, results):
        want = rational.encode(rational.decode(x, form), F16, "rn", False, x >= form.sign)
        assert got == want | want << 16


def test_narrow_nans_and_infinities_widen(run):
    assert run("cvt.rn.f16x2.e4m3x2", (W, H), [0x7FFF]) == [[0x7FFF7FFF]]
    assert run("cvt.rn.f16x2.e5m2x2", (W, H), [0x7CFC]) == [[0x7C00FC00]]
    assert run("cvt.rn.relu.f16x2.e5m2x2", (W, H), [0x3CBC]) == [[0x3C000000]]


def test_scales(run):
    inputs = [0, 0x3F800000, 0x3F800001, 0x00000001, 0x00400001, NAN32, 0x7F800000]
    assert run("cvt.rz.satfinite.ue8m0x2.f32", (H, W, W), [0] * 7, inputs) == [[0, 127, 127, 0, 0, 255, 254]]
    assert run("cvt.rp.satfinite.ue8m0x2.f32", (H, W, W), [0] * 7, inputs) == [[0, 127, 128, 0, 1, 255, 254]]
    assert run("cvt.rn.bf16x2.ue8m0x2", (W, H), [0x7F80, 0xFF00]) == [[0x3F804000, 0x7FFF0040]]


def test_packed_integers(run):
    a, b, c = [0x12345, 0xFFFFFFFF], [0xFFFF0000, 5], [0x11112222, 0x33334444]
    assert run("cvt.pack.sat.u16.s32", (W, W, W), a, b) == [[0xFFFF0000, 0x00000005]]
    assert run("cvt.pack.sat.s16.s32", (W, W, W), a, b) == [[0x7FFF8000, 0xFFFF0005]]
    assert run("cvt.pack.sat.s8.s32.b32", (W, W, W, W), a, b, c) == [[0x22227F80, 0x4444FF05]]
    assert run("cvt.pack.sat.u4.s32.b32", (W, W, W, W), a, b, c) == [[0x112222F0, 0x33444405]]
