"""The .approx functions: within the ISA's bounds, and the hardware's special values."""

from __future__ import annotations

import math
import random
import struct

import pytest

H, W, D = ".b16", ".b32", ".b64"
INF, NAN, ONE, MINUS = 0x7F800000, 0x7FFFFFFF, 0x3F800000, 1 << 31


def _bits(x: float) -> int:
    return struct.unpack("<I", struct.pack("<f", x))[0]


def _float(x: int) -> float:
    return struct.unpack("<f", struct.pack("<I", x))[0]


FUNCTIONS = {
    "rcp": (lambda x: 1 / x, lambda rng: rng.uniform(-1e5, 1e5), 1.0),
    "sqrt": (math.sqrt, lambda rng: rng.uniform(0, 1e30), 1.0),
    "rsqrt": (lambda x: 1 / math.sqrt(x), lambda rng: rng.uniform(1e-30, 1e3), 2.0),
    "ex2": (lambda x: 2.0**x, lambda rng: rng.uniform(-120, 120), 2.0),
    "lg2": (math.log2, lambda rng: rng.uniform(2, 1e9), 1.0),
    "tanh": (math.tanh, lambda rng: rng.uniform(-9, 9), 2.0**13),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_within_the_bound(name, run):
    exact, draw, ulps = FUNCTIONS[name]
    rng = random.Random(name)
    inputs = [_bits(draw(rng)) for _ in range(300)]
    [results] = run(f"{name}.approx.f32", (W, W), inputs)
    for x, got in zip(inputs, results):
        want = exact(_float(x))
        ulp = 2.0 ** (math.frexp(want)[1] - 24)
        assert abs(_float(got) - want) <= ulps * ulp


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_sine_and_cosine_are_within_2_to_the_minus_20_5(name, run):
    rng = random.Random(name)
    inputs = [_bits(rng.uniform(-2 * math.pi, 2 * math.pi)) for _ in range(500)]
    [results] = run(f"{name}.approx.f32", (W, W), inputs)
    for x, got in zip(inputs, results):
        assert abs(_float(got) - getattr(math, name)(_float(x))) <= 2.0**-20.5


def test_sine_and_cosine_at_the_ends(run):
    inputs = [0, MINUS, _bits(2.0**-24), _bits(-(2.0**-24)), INF, NAN, _bits(1e30)]
    assert run("sin.approx.f32", (W, W), inputs) == [[0, MINUS, 0, MINUS, NAN, NAN, 0]]
    assert run("cos.approx.f32", (W, W), inputs) == [[ONE, ONE, ONE, ONE, NAN, NAN, ONE]]


def test_special_values(run):
    cases = {
        "rcp.approx.f32": ([0, MINUS, INF, 0x7F7FFFFF], [INF, INF | MINUS, 0, 0x00200000]),
        "rcp.approx.ftz.f32": ([1, 0x7F7FFFFF], [INF, 0]),
        "sqrt.approx.f32": ([MINUS, 0x80000001, INF], [MINUS, NAN, INF]),
        "sqrt.approx.ftz.f32": ([0x80000001], [MINUS]),
        "rsqrt.approx.f32": ([0, MINUS, 0x80000001, INF], [INF, INF | MINUS, NAN, 0]),
        "rsqrt.approx.ftz.f32": ([0x80000001], [INF | MINUS]),
        "lg2.approx.f32": ([0, MINUS, ONE, INF, 0x80000001], [INF | MINUS, INF | MINUS, 0, INF, NAN]),
        "lg2.approx.ftz.f32": ([0x80000001], [INF | MINUS]),
        "ex2.approx.f32": ([INF | MINUS, INF, 0, 1, _bits(-149)], [0, INF, ONE, ONE, 1]),
        "ex2.approx.ftz.f32": ([_bits(-149)], [0]),
        "tanh.approx.f32": ([INF, INF | MINUS, MINUS], [ONE, ONE | MINUS, MINUS]),
    }
    for spelling, (inputs, want) in cases.items():
        assert run(spelling, (W, W), inputs) == [want], spelling


def test_division_by_large_numbers(run):
    large = 0x7E800001
    assert run("div.approx.f32", (W, W, W), [ONE, ONE | MINUS, INF], [large] * 3) == [[0, MINUS, NAN]]
    assert run("div.full.f32", (W, W, W), [large], [large]) == [[ONE]]


def test_halves(run):
    assert run("ex2.approx.f16", (H, H), [0x3C00, 0xFC00, 0x7C00]) == [[0x4000, 0, 0x7C00]]
    assert run("ex2.approx.ftz.bf16x2", (W, W), [0x3F80BF80]) == [[0x40003F00]]
    assert run("tanh.approx.f16x2", (W, W), [0x7C00FC00]) == [[0x3C00BC00]]


def test_double_precision(run):
    four = 0x4010000000000000
    assert run("rsqrt.approx.f64", (D, D), [four, 1 << 63 | 1]) == [[0x3FE0000000000000, 0xFFF8000000000000]]
    assert run("rcp.approx.ftz.f64", (D, D), [four | 5, 1]) == [[0x3FD0000000000000, 0x7FF0000000000000]]
