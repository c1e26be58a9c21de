"""What an H200 was measured to do where the ISA leaves room: NaNs, zeros, flushing, clamps."""

from __future__ import annotations

import pytest

from ptxtile.emulator.numeric import FORMATS

H, W, D = ".b16", ".b32", ".b64"
NAN32, NAN16, NAN64 = 0x7FFFFFFF, 0x7FFF, 0xFFF8000000000000
INF32, INF64 = 0x7F800000, 0x7FF0000000000000
ONE32, ONE64 = 0x3F800000, 0x3FF0000000000000
QUIET_A, QUIET_B, QUIET_C = 0x7FF8000000000001, 0xFFF8000000000002, 0x7FF8000000000003
SIGNALLING = 0x7FF0000000000005


@pytest.mark.parametrize("op", ["add.rn", "sub.rz", "mul.rm", "div.rn", "min.NaN", "add.rn.ftz"])
def test_f32_nan_results_are_canonical(op, run):
    sources = ([0xFFC12345, ONE32, 0x7F800001], [ONE32, 0xFFFFFFFF, ONE32])
    assert run(f"{op}.f32", (W, W, W), *sources) == [[NAN32] * 3]


@pytest.mark.parametrize(
    "spelling", ["abs.f32", "neg.f32", "sqrt.rn.f32", "rcp.rn.f32", "ex2.approx.f32", "lg2.approx.f32"]
)
def test_f32_nan_of_one_operand_is_canonical(spelling, run):
    assert run(spelling, (W, W), [0xFFC12345, 0x7F800001]) == [[NAN32, NAN32]]


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_half_nan_results_are_canonical(name, run):
    nan = 0xFFD2
    one = 0x3C00 if name == "f16" else 0x3F80
    for op in ("add.rn", "mul.rn"):
        assert run(f"{op}.{name}", (H, H, H), [nan], [one]) == [[NAN16]]
    for op in ("abs", "neg", "tanh.approx"):
        assert run(f"{op}.{name}", (H, H), [nan]) == [[NAN16]]
    assert run(f"fma.rn.{name}", (H,) * 4, [one], [one], [nan]) == [[NAN16]]


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_f64_nan_payloads(mode, run):
    pair = ([QUIET_A, QUIET_A, ONE64, SIGNALLING], [QUIET_B, ONE64, QUIET_B, ONE64])
    b_wins = [[QUIET_B, QUIET_A, QUIET_B, SIGNALLING | 1 << 51]]
    a_wins = [[QUIET_A, QUIET_A, QUIET_B, SIGNALLING | 1 << 51]]
    for op, want in (("add", b_wins), ("sub", b_wins), ("mul", b_wins), ("div", a_wins)):
        assert run(f"{op}.{mode}.f64", (D, D, D), *pair) == want


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_f64_fma_prefers_b_then_c_then_a(mode, run):
    a, b, c = [QUIET_A] * 3 + [INF64], [QUIET_B, ONE64, ONE64, 0], [QUIET_C, QUIET_C, ONE64, QUIET_C]
    assert run(f"fma.{mode}.f64", (D,) * 4, a, b, c) == [[QUIET_B, QUIET_C, QUIET_A, QUIET_C]]


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_f64_new_nans(mode, run):
    negative = INF64 | 1 << 63
    assert run(f"add.{mode}.f64", (D, D, D), [INF64], [negative]) == [[NAN64]]
    assert run(f"mul.{mode}.f64", (D, D, D), [INF64], [0]) == [[NAN64]]
    assert run(f"div.{mode}.f64", (D, D, D), [0, INF64], [0, INF64]) == [[NAN64, NAN64]]
    assert run(f"fma.{mode}.f64", (D,) * 4, [INF64, INF64], [0, ONE64], [ONE64, negative]) == [[NAN64, NAN64]]
    assert run(f"sqrt.{mode}.f64", (D, D), [ONE64 | 1 << 63, 1 << 63]) == [[NAN64, 1 << 63]]


def test_f64_infinities_and_overflow(run):
    top = INF64 - 1
    assert run("fma.rz.f64", (D,) * 4, [top], [top], [0]) == [[top]]
    assert run("fma.rn.f64", (D,) * 4, [top, INF64], [top, ONE64], [INF64 | 1 << 63, 0]) == [
        [INF64 | 1 << 63, INF64]
    ]
    assert run("div.rz.f64", (D, D, D), [ONE64, INF64, ONE64], [0, ONE64, INF64]) == [[INF64, INF64, 0]]
    assert run("mul.rp.f64", (D, D, D), [top], [top]) == [[INF64]]


def test_abs_and_neg_of_f64_leave_the_sign_of_a_nan(run):
    assert run("abs.f64", (D, D), [QUIET_B, 1 << 63]) == [[QUIET_B, 0]]
    assert run("neg.f64", (D, D), [QUIET_A, SIGNALLING, 0]) == [[QUIET_A, SIGNALLING | 1 << 51, 1 << 63]]


def test_gross_f64_functions_write_only_the_high_word(run):
    for op in ("rcp", "rsqrt"):
        results = run(f"{op}.approx.ftz.f64", (D, D), [QUIET_A, 0x4008000000000000, 0])[0]
        assert results[0] == 0x7FFFFFFF00000000
        assert results[1] & 0xFFFFFFFF == 0
        assert results[2] == INF64


def test_copysign_moves_bits(run):
    assert run("copysign.f32", (W, W, W), [1 << 31, 0], [0x7FC00001, 0xFF800001]) == [
        [0xFFC00001, 0x7F800001]
    ]


@pytest.mark.parametrize(
    ("name", "kind", "bits"), [("f16", H, 16), ("bf16", H, 16), ("f32", W, 32), ("f64", D, 64)]
)
def test_min_max_order_zeros(name, kind, bits, run):
    zero, minus = 0, 1 << (bits - 1)
    assert run(f"min.{name}", (kind,) * 3, [zero, minus], [minus, zero]) == [[minus, minus]]
    assert run(f"max.{name}", (kind,) * 3, [zero, minus], [minus, zero]) == [[zero, zero]]


@pytest.mark.parametrize(("name", "kind"), [("f16", H), ("bf16", H), ("f32", W), ("f64", D)])
def test_min_max_of_numbers(name, kind, rational, run):
    form = FORMATS[name]
    rows = rational.operands(form, 2, name)
    for op, choose in (("min", min), ("max", max)):
        [results] = run(f"{op}.{name}", (kind,) * 3, *zip(*rows))
        for row, got in zip(rows, results):
            # Zeros tie as fractions; the sign decides among them.
            key = {x: (rational.decode(x, form), -(x >> (form.bits - 1))) for x in row}
            assert got == choose(row, key=key.__getitem__)


def test_min_max_nans(run):
    nan = 0xFFC00001
    assert run("min.f32", (W, W, W), [nan, ONE32, nan], [ONE32, nan, nan]) == [[ONE32, ONE32, NAN32]]
    assert run("max.f64", (D, D, D), [QUIET_A, ONE64, QUIET_A], [ONE64, QUIET_B, SIGNALLING]) == [
        [ONE64, ONE64, SIGNALLING | 1 << 51]
    ]
    assert run("max.NaN.f32", (W, W, W), [nan], [ONE32]) == [[NAN32]]


def test_xorsign_takes_signs_from_both_even_of_a_nan(run):
    minus_two = 0xC0000000
    assert run("min.xorsign.abs.f32", (W, W, W), [minus_two, 0xFFC00000], [ONE32, ONE32]) == [
        [0xBF800000, 0xBF800000]
    ]


def test_min_max_of_three(run):
    two, three = 0x40000000, 0x40400000
    assert run("max.f32", (W,) * 4, [ONE32, NAN32], [three, two], [two, NAN32]) == [[three, two]]
    assert run("min.NaN.f32", (W,) * 4, [ONE32], [NAN32], [two]) == [[NAN32]]


def test_exact_zero_sums(run):
    minus_one, minus_zero = ONE32 | 1 << 31, 1 << 31
    for mode, want in (("rn", 0), ("rz", 0), ("rp", 0), ("rm", minus_zero)):
        assert run(f"add.{mode}.f32", (W, W, W), [ONE32], [minus_one]) == [[want]]
        assert run(f"fma.{mode}.f32", (W,) * 4, [ONE32], [ONE32], [minus_one]) == [[want]]
    assert run("add.rm.f32", (W, W, W), [0, minus_zero], [0, minus_zero]) == [[0, minus_zero]]
    assert run("add.rm.f64", (D, D, D), [0, ONE64], [0, ONE64 | 1 << 63]) == [[0, 1 << 63]]


def test_ftz_flushes_what_is_tiny_after_rounding_to_full_precision(run):
    # 2**-126 * (1 - 2**-24) has 24 bits: it is subnormal, though rounded to the subnormals' grid it would not be.
    least, almost, minus = 0x00800000, 0x3F7FFFFF, 1 << 31
    assert run("mul.rn.f32", (W, W, W), [least], [almost]) == [[least]]
    assert run("mul.rn.ftz.f32", (W, W, W), [least, least | minus], [almost, almost]) == [[0, minus]]
    # 2**-126 less something much smaller rounds to 2**-126 at 24 bits.
    below = ([0xA173B73B, 0x00800000], [0x00800001, 0x80800000], [least, least])
    assert run("fma.rn.ftz.f32", (W,) * 4, *below) == [[least, least]]
    assert run("fma.rz.ftz.f32", (W,) * 4, *below) == [[0, 0]]
    assert run("fma.rm.ftz.f32", (W,) * 4, [0x80800000], [0x80800000], [0x80800000]) == [[0x80800000]]
    assert run("fma.rn.ftz.f16", (H,) * 4, [0x8400], [0x062E], [0x0400]) == [[0x0400]]
    assert run("add.rn.ftz.f32", (W, W, W), [0x80000001, 1], [0x80000001, least]) == [[minus, least]]


def test_oob_gives_zero_for_the_nan_of_a_tensor_copy(run):
    for name in ("f16", "bf16"):
        a = [0x7FF7, 0xFFF7, 0x0000, 0x7FFF, 0xFFFF]
        b = [0x3C00, 0x3C00, 0x7FF7, 0x3C00, 0x3C00]
        assert run(f"fma.rn.oob.{name}", (H,) * 4, a, b, [0x4000] * 5) == [[0, 0, 0, NAN16, NAN16]]


def test_saturation(run):
    minus_zero, two = 1 << 31, 0x40000000
    assert run("add.rn.sat.f32", (W, W, W), [NAN32, two, minus_zero, INF32], [0, 0, minus_zero, 0]) == [
        [0, ONE32, 0, ONE32]
    ]
    assert run("fma.rn.sat.f16", (H,) * 4, [NAN16, 0x4000], [0, 0x3C00], [0, 0]) == [[0, 0x3C00]]


def test_relu(run):
    assert run("fma.rn.relu.f16", (H,) * 4, [0xFFD2, 0xC000, 0x4000], [0x3C00] * 3, [0] * 3) == [
        [NAN16, 0, 0x4000]
    ]


def test_packed_bf16_fma_in_a_direction_rounds_to_nearest(run):
    sources = ([0x3F813F80], [0x3F833F80], [0x33803380])
    assert run("fma.rz.bf16x2", (W,) * 4, *sources) == run("fma.rn.bf16x2", (W,) * 4, *sources)


def test_scalar_bf16_fma_in_a_direction_is_of_f16_through_f32(run):
    a, b, c = [0x681C, 0x5A60, 0x3C00], [0xBF80, 0x5A60, 0x3C00], [0x807F, 0x0876, 0xBC00]
    assert run("fma.rz.bf16", (H,) * 4, a, b, c) == [[0xEBB4, 0x7914, 0]]
    assert run("fma.rm.bf16", (H,) * 4, a, b, c)[0][1:] == [0x7914, 0x8000]
    assert run("fma.rp.bf16", (H,) * 4, a, b, c)[0][1:] == [0x7915, 0]
    # .relu does nothing there.
    assert run("fma.rz.relu.bf16", (H,) * 4, a, b, c) == run("fma.rz.bf16", (H,) * 4, a, b, c)


def test_testp(run):
    values = [0, 1, 0x00800000, INF32, NAN32, 1 << 31]
    want = {
        "finite": [1, 1, 1, 0, 0, 1],
        "infinite": [0, 0, 0, 1, 0, 0],
        "number": [1, 1, 1, 1, 0, 1],
        "notanumber": [0, 0, 0, 0, 1, 0],
        "normal": [1, 0, 1, 0, 0, 1],
        "subnormal": [0, 1, 0, 0, 0, 0],
    }
    for test, results in want.items():
        assert run(f"testp.{test}.f32", (".pred", W), values) == [results]
