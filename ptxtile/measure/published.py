"""NVIDIA's own rates for compute capability 9.0, to hold measurements against.

Results per clock per multiprocessor, from the table of arithmetic throughput in the CUDA C++ Programming Guide's
chapter on instruction performance. The guide counts operations in source code, so that a form which the assembler
spreads over two pipes may be faster, and one that takes several instructions slower; then the SASS says why.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ptxtile.measure.records import Record

__all__ = ["TABLE_90", "Comparison", "Rate", "against"]


@dataclass(frozen=True, slots=True)
class Rate:
    """One row: the guide's words in short, the spellings that are of it, results per clock per SM.

    `lanes` is how many results of the guide's one thread's result is: 2 of a packed half.
    """

    row: str
    pattern: str
    results: float
    lanes: int = 1


TABLE_90 = (
    Rate("16-bit floating-point add, multiply, multiply-add", r"(add|mul|fma\.rn)\.f16x2", 256, 2),
    Rate("32-bit floating-point add, multiply, multiply-add", r"(add|sub|mul|fma\.rn)\.f32", 128),
    Rate("64-bit floating-point add, multiply, multiply-add", r"(add|sub|mul|fma\.rn)\.f64", 64),
    Rate(
        "32-bit reciprocal, root, logarithm, exponential, sine, cosine",
        r"(rcp|rsqrt|sqrt|lg2|ex2|sin|cos)\.approx\.ftz\.f32",
        16,
    ),
    Rate("32-bit integer add, subtract", r"(add|sub)\.[us]32", 64),
    Rate("32-bit integer multiply, multiply-add", r"(mul|mad)\.lo\.[us]32", 64),
    Rate("32-bit integer shift", r"sh[lr]\.[bus]32|shf\.[lr]\.(wrap|clamp)\.b32", 64),
    Rate("compare, minimum, maximum", r"(min|max)\.[us]32", 64),
    Rate("32-bit bit reverse", r"brev\.b32", 16),
    Rate("32-bit bitwise and, or, exclusive or", r"lop3\.b32", 64),
    Rate("count of leading zeros, most significant bit", r"bfind\.u32", 16),
    Rate("population count", r"popc\.b32", 16),
    Rate("warp shuffle", r"shfl\.sync\.\w+\.b32", 32),
    Rate("warp reduce", r"redux\.sync\.\w+\.[bus]32", 16),
    Rate("warp vote", r"vote\.sync\.(all|any|uni)\.pred", 64),
    Rate(
        "conversions from and to 64-bit types", r"cvt\.(f64\.f32|rn\.f32\.f64|rn\.f64\.s32|rzi\.s32\.f64)", 16
    ),
    Rate("all other conversions", r"cvt\.(rn\.f32\.[us]32|f32\.f16)", 64),
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A record beside its row; `ratio` is measured ÷ published."""

    record: Record
    row: Rate
    measured: float
    ratio: float


def against(records: Iterable[Record], table: Iterable[Rate] = TABLE_90) -> list[Comparison]:
    """The records that the table has a row for, by row."""
    held = list(records)
    found: list[Comparison] = []
    for row in table:
        for record in held:
            if record.rate is not None and re.fullmatch(row.pattern, record.spelling):
                measured = record.rate * row.lanes
                found.append(Comparison(record, row, measured, measured / row.results))
    return found
