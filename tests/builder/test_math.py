"""The math library: errors in ulp against wider arithmetic, special values as in C, text, and the messages."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import ptxtile as pt
from builder.running import failure, instructions, module_of, run, spellings

COUNT = 1 << 12
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, math.inf, -math.inf, math.nan)
_erf = np.vectorize(math.erf, otypes=[np.float64])


def single(low: float, high: float, seed: int = 1) -> np.ndarray:
    """Numbers evenly in [low, high], numbers of any exponent, and special ones."""
    rng = np.random.default_rng(seed)
    anywhere = rng.integers(0, 1 << 32, COUNT, np.uint64).astype(np.uint32).view(np.float32)
    edges = np.array([*SPECIAL, 1e-45, -1e-45, 2.0**-126, 3.4028235e38, -3.4028235e38], np.float32)
    return np.concatenate([edges, rng.uniform(low, high, COUNT).astype(np.float32), anywhere])


def double(low: float, high: float) -> np.ndarray:
    rng = np.random.default_rng(2)
    return np.concatenate([np.array([*SPECIAL, 5e-324]), rng.uniform(low, high, COUNT)])


def worst(got: np.ndarray, exact: np.ndarray) -> float:
    """The largest error, in ulp of the exact result. NaNs, signs of zeros and infinities must be met."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(got.dtype)
        ulp = np.spacing(np.abs(rounded)).astype(exact.dtype)
        error = np.abs(got.astype(exact.dtype) - exact) / ulp
    assert np.array_equal(np.isnan(got), np.isnan(rounded))
    settled = (got == rounded) | np.isnan(rounded)
    assert np.array_equal(np.signbit(got)[got == 0], np.signbit(rounded)[got == 0])
    return float(np.where(settled & ~(error <= 1), 0, error).max())


SINGLE: list[tuple[str, Callable[..., object], tuple[float, float], float]] = [
    ("exp", np.exp, (-104, 90), 1.0),
    ("exp2", np.exp2, (-150, 129), 0.51),
    ("exp10", lambda x: np.power(10.0, x), (-46, 39), 1.0),
    ("tanh", np.tanh, (-10, 10), 1.4),
    ("sinh", np.sinh, (-90, 90), 1.5),
    ("cosh", np.cosh, (-90, 90), 1.3),
    ("log", np.log, (0.5, 2), 0.9),
    ("log2", np.log2, (0.5, 2), 1.5),
    ("log10", np.log10, (0.5, 2), 1.1),
    ("sqrt", np.sqrt, (0, 100), 0.5),
    ("rsqrt", lambda x: 1 / np.sqrt(x), (0, 100), 0.51),
    ("sin", np.sin, (-100, 100), 1.6),
    ("cos", np.cos, (-100, 100), 1.6),
    ("tan", np.tan, (-100, 100), 3.1),
    ("atan", np.arctan, (-10, 10), 1.3),
    ("erf", _erf, (-4, 4), 1.0),
    ("floor", np.floor, (-100, 100), 0.0),
    ("ceil", np.ceil, (-100, 100), 0.0),
    ("trunc", np.trunc, (-100, 100), 0.0),
    ("round", np.rint, (-100, 100), 0.0),
    ("abs", np.abs, (-100, 100), 0.0),
]


@pytest.mark.parametrize(("name", "reference", "interval", "bound"), SINGLE, ids=[row[0] for row in SINGLE])
def test_float32_errors(
    name: str, reference: Callable[..., object], interval: tuple[float, float], bound: float
) -> None:
    x = single(*interval)
    with np.errstate(all="ignore"):
        exact = np.asarray(reference(x.astype(np.float64)))
    assert worst(run(getattr(pt, name), x), exact) <= bound


def test_sigmoid_error() -> None:
    x = np.random.default_rng(3).uniform(-87, 90, COUNT).astype(np.float32)
    assert worst(run(pt.sigmoid, x), 1 / (1 + np.exp(-x.astype(np.float64)))) <= 2.1


def test_large_angles_are_reduced_exactly() -> None:
    x = np.random.default_rng(4).uniform(-2e5, 2e5, COUNT).astype(np.float32)
    assert worst(run(pt.sin, x), np.sin(x.astype(np.float64))) <= 1.6


def pairs(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of special values, and random ones."""
    a, b = (grid.ravel() for grid in np.meshgrid(SPECIAL, SPECIAL))
    rng = np.random.default_rng(seed)
    wide = rng.standard_normal((2, COUNT)) * 10.0 ** rng.integers(-38, 38, (2, COUNT))
    near = rng.uniform(-4, 4, (2, COUNT))
    return (np.concatenate(side).astype(np.float32) for side in zip((a, b), wide, near))  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("name", "reference", "bound"),
    [
        ("atan2", np.arctan2, 1.5),
        ("hypot", np.hypot, 0.51),
        ("fmod", np.fmod, 0.0),
        ("copysign", np.copysign, 0.0),
    ],
)
def test_float32_errors_of_two(name: str, reference: Callable[..., object], bound: float) -> None:
    a, b = pairs(5)
    with np.errstate(all="ignore"):
        exact = np.asarray(reference(a.astype(np.float64), b.astype(np.float64)))
    assert worst(run(getattr(pt, name), a, b), exact) <= bound


def test_pow_error() -> None:
    rng = np.random.default_rng(6)
    a, b = pairs(6)
    a = np.concatenate([a, rng.uniform(0, 10, COUNT).astype(np.float32)])
    b = np.concatenate([b, rng.uniform(-40, 40, COUNT).astype(np.float32)])
    with np.errstate(all="ignore"):
        exact = np.power(a.astype(np.float64), b.astype(np.float64))
    assert worst(run(pt.pow, a, b), exact) <= 0.51


DOUBLE: list[tuple[str, Callable[..., object], tuple[float, float], float]] = [
    ("exp", np.exp, (-745, 710), 1.0),
    ("exp2", np.exp2, (-1075, 1024), 1.0),
    ("log", np.log, (0.5, 2), 0.9),
    ("log2", np.log2, (0.5, 2), 1.1),
    ("log10", np.log10, (0.5, 2), 1.1),
    ("sqrt", np.sqrt, (0, 100), 0.5),
    ("rsqrt", lambda x: 1 / np.sqrt(x), (0, 100), 1.5),
    ("round", np.rint, (-100, 100), 0.0),
]


@pytest.mark.skipif(
    np.finfo(np.longdouble).nmant < 63, reason="no arithmetic wider than float64 to compare with"
)
@pytest.mark.parametrize(("name", "reference", "interval", "bound"), DOUBLE, ids=[row[0] for row in DOUBLE])
def test_float64_errors(
    name: str, reference: Callable[..., object], interval: tuple[float, float], bound: float
) -> None:
    x = double(*interval)
    with np.errstate(all="ignore"):
        exact = np.asarray(reference(x.astype(np.longdouble)))
    assert worst(run(getattr(pt, name), x), exact) <= bound


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "floor", "copysign"])
def test_float16_is_rounded_once(name: str) -> None:
    x = np.linspace(-8, 8, 1000).astype(np.float16)
    operands = (x, x[::-1].copy()) if name == "copysign" else (x,)
    with np.errstate(all="ignore"):
        exact = getattr(np, name)(*(operand.astype(np.float64) for operand in operands))
    assert worst(run(getattr(pt, name), *operands), exact) <= 0.502


def test_text() -> None:
    assert instructions(pt.exp2, pt.float32) == ["ex2.approx.f32 %f1, %f0"]
    assert instructions(pt.exp, pt.float32) == [
        "mul.rn.f32 %f1, %f0, 0f3FB8AA3B",
        "max.f32 %f2, %f1, 0fC2FC0000",
        "min.f32 %f3, %f2, 0f42FE0000",
        "add.rn.f32 %f4, %f3, 0f4B40007F",
        "sub.rn.f32 %f5, %f4, 0f4B40007F",
        "mul.rn.f32 %f6, %f5, 0f3F317200",
        "sub.rn.f32 %f7, %f0, %f6",
        "mul.rn.f32 %f8, %f5, 0f35BFBE8E",
        "sub.rn.f32 %f9, %f7, %f8",
        "mul.rn.f32 %f10, %f9, 0f3FB8AA3B",
        "ex2.approx.f32 %f11, %f10",
        "mov.b32 %r0, %f4",
        "shl.b32 %r1, %r0, 23",
        "mov.b32 %f12, %r1",
        "mul.rn.f32 %f13, %f11, %f12",
    ]
    assert spellings(pt.sqrt, pt.float32) == ["sqrt.rn.f32"]
    assert spellings(pt.floor, pt.float16) == ["cvt.rmi.f16.f16"]
    assert spellings(pt.floor, pt.bfloat16) == ["cvt.f32.bf16", "cvt.rmi.f32.f32", "cvt.rn.bf16.f32"]
    assert spellings(pt.copysign, pt.float32, pt.float32) == ["copysign.f32"]
    assert spellings(pt.abs, pt.int32) == ["abs.s32"]


def test_functions_take_typed_constants() -> None:
    x = np.ones(4, np.float32)
    assert np.array_equal(run(lambda v: v * pt.exp(pt.float32(1)), x), x * np.float32(math.e))


@pytest.mark.parametrize("name", ["sin", "fmod", "pow", "erf", "exp", "log"])
def test_nvidia_assembles_it(name: str) -> None:
    count = 2 if name in ("fmod", "pow") else 1
    module = module_of(getattr(pt, name), [pt.float32] * count, pt.float32)
    assert module.target == "sm_75"
    try:
        assert pt.assemble(str(module), "sm_90a")
    except pt.AssemblerError as error:
        if "nvJitLink" in str(error):
            pytest.skip("no assembler installed")
        raise


@pytest.mark.parametrize(
    ("source", "dtype", "message"),
    [
        (
            "pt.exp(2.0)",
            "float32",
            (
                "pt.exp: no operand has a dtype, so it is not known which instruction is meant; write "
                "pt.float32(…)"
            ),
        ),
        ("pt.exp(a)", "int32", "pt.exp takes a float, not int32; write pt.cast(x, pt.float32)"),
        ("pt.sin(a)", "float64", "pt.sin has no sequence for float64; it has float16, bfloat16, float32"),
        (
            "pt.pow(a, pt.float64(2))",
            "float32",
            (
                "pt.pow: float32 and float64 never mix; convert one side with pt.cast(value, pt.float32) "
                "or pt.cast(value, pt.float64)"
            ),
        ),
        (
            "pt.exp(a)",
            "float8_e5m2",
            ("pt.exp has no sequence for float8_e5m2; it has float16, bfloat16, float32, float64"),
        ),
    ],
)
def test_messages(source: str, dtype: str, message: str) -> None:
    error = failure(lambda a: eval(source, {"pt": pt, "a": a}), getattr(pt, dtype))
    assert str(error) == message + "\n  <string>:1"
