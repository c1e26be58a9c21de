"""Which kernels of compilers run whole on both machines, and on what: entries of benchmarks/corpora, with arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

Chance = np.random.Generator
Make = Callable[[Chance], Any]
Size = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """An entry of a module `stem`, its geometry, and what makes its arguments.

    bound    largest difference that is allowed, relative, for results that go through `.approx`; 0: the same bytes
    mode     of compilation that it is for: O3 alone, or G (unoptimised) as well
    """

    stem: str
    entry: str
    arguments: tuple[Make, ...]
    grid: Size = (1, 1, 1)
    block: Size = (32, 1, 1)
    cluster: Size | None = None
    shared: int = 0
    bound: float = 0.0
    modes: tuple[str, ...] = ("O3", "G")
    sanitize: bool = True


def given(value: Any) -> Make:
    """The value itself."""
    return lambda chance: value


def zeros(count: int, kind: Any = np.uint32) -> Make:
    """An array for results."""
    return lambda chance: np.zeros(count, kind)


def ints(count: int, kind: Any = np.int32, low: int = -1000, high: int = 1000) -> Make:
    """Integers in a range."""
    return lambda chance: chance.integers(low, high, count).astype(kind)


def bits(count: int, kind: Any = np.uint32) -> Make:
    """Any bits."""
    return lambda chance: np.frombuffer(chance.bytes(count * np.dtype(kind).itemsize), kind).copy()


def floats(count: int, kind: Any = np.float32, scale: float = 1.0) -> Make:
    """Normally distributed numbers."""
    return lambda chance: (chance.standard_normal(count) * scale).astype(kind)


def positive(count: int, kind: Any = np.float32) -> Make:
    """Numbers from 0.25 to 4."""
    return lambda chance: chance.uniform(0.25, 4, count).astype(kind)


f32, f64, f16 = np.float32, np.float64, np.float16
i32, u32, i64, u64 = np.int32, np.uint32, np.int64, np.uint64
bf16, fp8 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn
BIG = given(np.arange(64, dtype=np.uint8).tobytes())


def _scalar(kind: Any, scale: float = 1.0) -> Make:
    return lambda chance: (chance.standard_normal(1) * scale).astype(kind)[0]


CUDA = [
    Case("arithmetic", "integers", (zeros(256, i64), bits(256, i64), given(256)), (2, 1, 1), (128, 1, 1)),
    Case(
        "arithmetic",
        "unsigned_wide",
        (zeros(10, u64), bits(16, np.uint8), bits(16, np.uint8)),
        block=(1, 1, 1),
    ),
    Case(
        "arithmetic",
        "bits",
        (zeros(13), given(0x12345678), given(0x9ABCDEF1), given(0x0F1E2D3C)),
        block=(1, 1, 1),
    ),
    Case("arithmetic", "bits64", (zeros(4, u64), given(0x00F0123456789ABC)), block=(1, 1, 1)),
    Case("arithmetic", "dots", (zeros(3), given(0x12345678), given(-559038737), given(77)), block=(1, 1, 1)),
    Case(
        "arithmetic",
        "floats",
        (zeros(18, f32), _scalar(f32), _scalar(f32), _scalar(f32)),
        block=(1, 1, 1),
        bound=1e-6,
    ),
    Case("arithmetic", "fast", (zeros(7, f32), positive(1)), block=(1, 1, 1), bound=1e-5),
    Case("arithmetic", "library", (zeros(12, f32), positive(1)), block=(1, 1, 1), bound=1e-5),
    Case(
        "arithmetic",
        "doubles",
        (zeros(13, f64), positive(1, f64), positive(1, f64), positive(1, f64)),
        block=(1, 1, 1),
        bound=1e-13,
    ),
    Case(
        "arithmetic",
        "conversions",
        (
            zeros(256, np.uint8),
            _scalar(f32, 50),
            _scalar(f64, 50),
            given(-77),
            given(1 << 63 | 99),
            given(-300),
            given(200),
        ),
        block=(1, 1, 1),
    ),
    Case("arithmetic", "halves", (zeros(12, f16), *[bits(2, np.uint8)] * 3), block=(1, 1, 1), bound=2e-3),
    Case("arithmetic", "half_pairs", (zeros(6), *[bits(4, np.uint8)] * 3), block=(1, 1, 1), bound=2e-3),
    Case(
        "arithmetic",
        "brains",
        (zeros(8, bf16), zeros(8), *[bits(2, np.uint8)] * 2, bits(4, np.uint8), _scalar(f32)),
        block=(1, 1, 1),
        bound=1e-2,
    ),
    Case("assembly", "predicates", (zeros(1), given(3), given(9)), block=(1, 1, 1)),
    Case("assembly", "labels", (zeros(1), given(100)), block=(1, 1, 1)),
    Case("assembly", "halves", (zeros(3), given(0x12345678)), block=(1, 1, 1)),
    Case("assembly", "carries", (zeros(3), given(0xFFFFFFF0), given(0x1234)), block=(1, 1, 1)),
    Case("assembly", "loads", (zeros(8, f32), floats(300)), block=(1, 1, 1)),
    Case("assembly", "fences", (ints(1), zeros(1)), block=(1, 1, 1)),
    Case("assembly", "doubled", (zeros(3, f64), _scalar(f64, 100)), block=(1, 1, 1)),
    Case("atomics", "integers", (ints(4), ints(3, u32, 0, 9), bits(3, u64), bits(1, i64)), block=(1, 1, 1)),
    Case(
        "atomics",
        "floats",
        (floats(2), floats(1, f64), floats(2, f16), floats(4, f16), floats(4, bf16)),
        block=(1, 1, 1),
    ),
    Case("atomics", "scopes", (ints(3),), block=(1, 1, 1)),
    Case("atomics", "in_shared", (zeros(1),), block=(128, 1, 1)),
    Case("atomics", "narrow", (given(np.array([1, 5], np.uint16)),), block=(1, 1, 1)),
    Case("atomics", "standard", (given(np.array([0], i32)), bits(1, i64), zeros(2)), block=(1, 1, 1)),
    Case("atomics", "lock", (zeros(1), floats(1)), (8, 1, 1), (1, 1, 1)),
    Case("control", "_Z9templatedIfEvPT_S0_", (zeros(1, f32), _scalar(f32)), block=(1, 1, 1)),
    Case("control", "_Z9templatedItEvPT_S0_", (zeros(1, np.uint16), given(7)), block=(1, 1, 1)),
    Case("control", "branches", (ints(4), given(5), given(5)), block=(1, 1, 1)),
    Case("control", "loops", (positive(64), given(20)), block=(1, 1, 1)),
    *(Case("control", "switches", (ints(13), given(n)), block=(1, 1, 1)) for n in range(8)),
    Case("control", "direct", (zeros(2), given(9), given(2.5)), block=(1, 1, 1)),
    Case("control", "indirect", (zeros(1), given(7), given(2.5)), block=(1, 1, 1)),
    Case("control", "virtuals", (zeros(1, f32), given(6)), block=(1, 1, 1)),
    Case("control", "asserts", (given(np.array([0, 9], i32)), given(1)), block=(1, 1, 1)),
    Case("control", "bounded", (floats(256),), block=(256, 1, 1)),
    Case("control", "few", (floats(64),), block=(64, 1, 1)),
    Case("control", "clustered", (zeros(1),), (2, 1, 1), (1, 1, 1), (2, 1, 1), sanitize=False),
    Case("control", "selects", (zeros(5), given(7), given(3.5), given(-2.25), given(5)), block=(1, 1, 1)),
    Case("hopper", "bulk", (zeros(256, f32), floats(256)), block=(256, 1, 1)),
    Case("hopper", "distributed", (zeros(4),), (2, 2, 1), (1, 1, 1), (2, 2, 1), sanitize=False),
    Case("hopper", "dependent", (floats(64),), block=(64, 1, 1)),
    Case("hopper", "elected", (ints(9),), block=(1, 1, 1)),
    Case("matrices", "wmma_half", (floats(256, f16), floats(256, f16), zeros(256, f32))),
    Case("matrices", "wmma_double", (floats(64, f64), floats(64, f64), zeros(64, f64))),
    Case("matrices", "wmma_tf32", (floats(256), floats(256), zeros(256, f32))),
    Case("matrices", "wmma_brain", (floats(256, bf16), floats(512, bf16), zeros(256, f32))),
    Case(
        "matrices",
        "mma_inline",
        (
            zeros(2, f32),
            given(np.array([0x3F803F80, 0x40004000, 0xBF803F00, 0x3E803F80, 0, 0, 0, 0, 0, 0x44444444], u32)),
            given(np.array([0x3F803F80, 0x40403F80, 0x3C003C00, 0x40003C00], u32)),
        ),
    ),
    Case("matrices", "copies", (zeros(256, f32), floats(256)), block=(64, 1, 1), sanitize=False, modes=()),
    Case("matrices", "pipeline", (zeros(512, f32), floats(512)), block=(128, 1, 1)),
    Case("matrices", "mbarriers", (zeros(96),), block=(96, 1, 1)),
    Case("memory", "constants", (zeros(40, f32), given(33)), block=(1, 1, 1)),
    Case(
        "memory",
        "vectors",
        (
            zeros(4, f32),
            floats(8),
            floats(4, f64),
            ints(16, np.int16),
            ints(4, np.uint8, 0, 9),
            bits(12, i64),
        ),
        block=(1, 1, 1),
    ),
    Case("memory", "caches", (zeros(6), ints(6), floats(4)), block=(1, 1, 1)),
    Case("memory", "shared_dynamic", (floats(64), given(64)), block=(64, 1, 1), shared=512),
    Case("memory", "locals", (zeros(1), given(17), given(17)), block=(1, 1, 1)),
    Case("memory", "volatiles", (given(np.array([1], i32)), floats(2, f64)), block=(1, 1, 1)),
    Case("memory", "by_value", (BIG, bits(12, np.uint8), given(3), zeros(8, f32)), block=(1, 1, 1)),
    Case("memory", "copies", (zeros(256, np.uint8), ints(128, np.uint8, 0, 255), given(40)), block=(1, 1, 1)),
    Case("memory", "grid_constant", (BIG, zeros(1, f32)), block=(1, 1, 1)),
    Case("warps", "shuffles", (zeros(32), given(1.5), given(2.25), given(11)), modes=()),
    Case("warps", "votes", (zeros(6), given(5)), block=(3, 1, 1), sanitize=False),
    Case("warps", "reductions", (zeros(5), given(13)), block=(2, 1, 1)),
    Case("warps", "groups", (zeros(7), given(4)), block=(1, 1, 1)),
    Case("warps", "coordinates", (zeros(2),), (1, 1, 1), (1, 1, 1), modes=()),
]
N = 1000
TRITON = [
    Case("triton_00_add", "add", (floats(1024), floats(1024), zeros(1024, f32), given(N))),
    Case("triton_01_add", "add", (floats(512, bf16), floats(512, bf16), zeros(512, bf16), given(500))),
    Case(
        "triton_02_add",
        "add",
        (ints(512, np.int8, -99, 99), ints(512, np.int8, -99, 99), zeros(512, np.int8), given(500)),
    ),
    Case(
        "triton_03_softmax",
        "softmax",
        (floats(4096, f16), zeros(4096, f16), given(2000)),
        (2, 1, 1),
        shared=16,
        bound=2e-3,
    ),
    Case(
        "triton_04_layer_norm",
        "layer_norm",
        (floats(2048, f16), floats(1024), floats(1024), zeros(2048, f16), given(1000)),
        (2, 1, 1),
        shared=16,
        bound=2e-3,
    ),
    *(
        Case(
            f"triton_{place:02}_matmul",
            "matmul",
            (
                floats(128 * 96, a),
                floats(96 * 128, a),
                zeros(128 * 128, c),
                given(128),
                given(128),
                given(96),
            ),
            (2, 2, 1),
            shared=shared,
        )
        for place, a, c, shared in (
            (5, f16, f16, 8192),
            (6, bf16, f32, 16384),
            (7, f32, f32, 49152),
            (8, fp8, f32, 16384),
        )
    ),
    Case("triton_09_histogram", "histogram", (ints(1024, i32, 0, 64), zeros(64)), (2, 1, 1), shared=256),
    Case("triton_10_scan", "scan", (floats(2048), zeros(2048, f32)), (2, 1, 1), shared=128),
    Case("triton_11_sort", "sort", (ints(128), zeros(128)), shared=512),
    Case("triton_12_atomics", "atomics", (floats(128), zeros(1), zeros(128, f32)), (4, 1, 1), shared=16),
    Case("triton_13_dropout", "dropout", (floats(1024), zeros(1024, f32), given(N), given(77)), (4, 1, 1)),
    Case("triton_14_transpose", "transpose", (floats(1024, f64), zeros(1024, f64), given(32)), shared=8192),
]
