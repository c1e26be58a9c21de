"""What others have published of compute capability 9.0, to hold measurements against.

Rates: results per clock per multiprocessor, from the table of arithmetic throughput in the CUDA C++ Programming
Guide's chapter on instruction performance (CUDA 12.9; in the Best Practices Guide since CUDA 13). The guide counts
operations in source code, so that a form which the assembler spreads over two pipes may be faster, and one that takes
several instructions slower; then the SASS says why. Rows of 16-, 32- and 64-bit multiply-adds, of integers and of
conversions were checked against sources that quote the guide's column for 9.0; the others are as its readers remember.

Latencies, bandwidth and matrix rates: Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture"
(IPDPS 2024, arXiv 2402.13499, tables IV, V, VII, VIII) and its longer version (arXiv 2501.12084), measured on an H800
PCIe. That GPU has 114 of these SMs and another memory, so that only what lies within an SM should agree. Matrix rates
per clock are those of NVIDIA's H100 white paper.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ptxtile.measure.records import Record

__all__ = ["NEAR", "PAPERS_90", "TABLE_90", "Comparison", "Published", "against"]

NEAR = 0.03
"""Share of the published value by which a measured one may differ without a reason."""


@dataclass(frozen=True, slots=True)
class Published:
    """One published value.

    row      the source's words in short
    pattern  spellings, or points of scenarios, that are of it
    value    results per clock per SM, or what `field` has
    lanes    how many results of the source's one thread's result is: 2 of a packed half
    field    which field of a record it is held against
    reason   why another value is right for this GPU or this measurement; "" if none is known
    """

    row: str
    pattern: str
    value: float
    lanes: int = 1
    field: Literal["rate", "latency", "flop"] = "rate"
    reason: str = ""


TABLE_90 = (
    Published("16-bit floating-point add, multiply, multiply-add", r"(add|mul|fma\.rn)\.f16x2", 256, 2),
    Published("32-bit floating-point add, multiply, multiply-add", r"(add|sub|mul|fma\.rn)\.f32", 128),
    Published("64-bit floating-point add, multiply, multiply-add", r"(add|sub|mul|fma\.rn)\.f64", 64),
    Published(
        "32-bit reciprocal, root, logarithm, exponential, sine, cosine",
        r"(rcp|rsqrt|sqrt|lg2|ex2|sin|cos)\.approx\.ftz\.f32",
        16,
    ),
    Published("32-bit integer add, subtract", r"(add|sub)\.[us]32", 64),
    Published("32-bit integer multiply, multiply-add", r"(mul|mad)\.lo\.[us]32", 64),
    Published("32-bit integer shift", r"sh[lr]\.[bus]32|shf\.[lr]\.(wrap|clamp)\.b32", 64),
    Published("compare, minimum, maximum", r"(min|max)\.[us]32", 64),
    Published("32-bit bit reverse", r"brev\.b32", 16),
    Published("32-bit bitwise and, or, exclusive or", r"lop3\.b32", 64),
    Published("count of leading zeros, most significant bit", r"bfind\.u32", 16),
    Published("population count", r"popc\.b32", 16),
    Published("warp shuffle", r"shfl\.sync\.\w+\.b32", 32),
    Published("warp reduce", r"redux\.sync\.\w+\.[bus]32", 16),
    Published("warp vote", r"vote\.sync\.(all|any|uni)\.pred", 64),
    Published(
        "conversions from and to 64-bit types", r"cvt\.(f64\.f32|rn\.f32\.f64|rn\.f64\.s32|rzi\.s32\.f64)", 16
    ),
    Published("all other conversions", r"cvt\.(rn\.f32\.[us]32|f32\.f16)", 64),
)

_BOARD = "another board: its caches are wired to other numbers of SMs and other memory"

_PAIR = "pairs of SMs lie at different distances: clusters of 4 and 8 blocks give 7% more than pairs"


def _cycles(row: str, pattern: str, value: float, reason: str = "") -> Published:
    return Published(f"{row}, cycles", pattern, value, field="latency", reason=reason)


def _operations(types: str, value: float, kind: str = r"dense\.(shared|registers)") -> Published:
    pattern = rf"wgmma\.{kind}\.{re.escape(types)}/256"
    return Published(f"tensor cores {types}, operations/clk/SM", pattern, value, field="flop")


PAPERS_90 = (
    _cycles("arithmetic pipes", r"fma\.rn\.f32|(add|mul)\.f32|mad\.lo\.u32|prmt\.b32", 4),
    _cycles("shared memory, an index chased", r"memory\.latency\.shared\.indexed/4KiB", 29.0),
    _cycles("first-level cache, an index chased", r"memory\.latency\.global\.indexed/4KiB", 40.7),
    _cycles("second-level cache", r"memory\.latency\.global\.cg/4KiB", 263.0, _BOARD),
    _cycles("device memory", r"memory\.latency\.global\.cg\.ordered/1GiB", 478.8, _BOARD),
    _cycles(
        "device memory, mean of the near and the far partition",
        r"memory\.latency\.global\.cg/1GiB",
        649.6,
        _BOARD,
    ),
    _cycles("distributed shared memory", r"memory\.latency\.distributed\.generic/2", 180, _PAIR),
    Published("first-level cache, bytes/clk/SM", r"memory\.bandwidth\.ld\.l1\.v4\.b32/1", 124.1),
    _cycles("mma m16n8k16 f16", r"mma\.sync\.aligned\.m16n8k16\.row\.col\.f16\.f16\.f16\.f16", 24.1),
    _cycles("mma.sp m16n8k32 f16", r"mma\.sp\.sync\.aligned\.m16n8k32\.row\.col\.f16\.f16\.f16\.f16", 24.0),
    _operations("f32.f16.f16", 4096),
    _operations("f32.bf16.bf16", 4096),
    _operations("f32.tf32.tf32", 2048),
    _operations("f32.e4m3.e4m3", 8192),
    _operations("s32.s8.s8", 8192),
    _operations("f32.f16.f16", 8192, r"sparse\.registers"),
    _operations("f32.f16.f16", 2 * 64 * 256 * 32 / 144, r"sparse\.shared"),  # 144 cycles an instruction
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A record beside its row; `ratio` is measured ÷ published."""

    record: Record
    row: Published
    measured: float
    ratio: float

    @property
    def near(self) -> bool:
        """Whether the two agree."""
        return abs(self.ratio - 1) <= NEAR


def against(records: Iterable[Record], table: Iterable[Published] = TABLE_90) -> list[Comparison]:
    """The records that the table has a row for, by row."""
    held = list(records)
    found: list[Comparison] = []
    for row in table:
        for record in held:
            value = getattr(record, row.field)
            if value is not None and re.fullmatch(row.pattern, record.spelling):
                measured = value * row.lanes
                found.append(Comparison(record, row, measured, measured / row.value))
    return found
