"""mma.sync of eight-, six- and four-bit floats, and with scale factors of blocks (PTX ISA 9.7.14.3, 9.7.14.5.14).

The forms with a .kind are of sm_100 and later. The numbers are one aligned sum with 25 fraction bits, which nobody has
measured there. Which lanes and bytes hold the scale factors, the manual's text says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator import tensor_core
from ptxtile.emulator.actions.bulk import named
from ptxtile.emulator.actions.warps import by_warp
from ptxtile.emulator.fragments import (
    densified,
    factor_matrix,
    given_places,
    lost_registers,
    metadata_nibbles,
    sum_matrix,
    sum_registers,
)
from ptxtile.emulator.mma_shape import Shape, deliver_to, scalars, shape_of
from ptxtile.emulator.operands import reader, writer
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.scaling import scaled, vector_of
from ptxtile.emulator.step import Control
from ptxtile.emulator.tensor_core import FLOATS, Factor
from ptxtile.emulator.widths import Bits, bits_of
from ptxtile.ir.operand import Integer, Operand

Marks = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Plan:
    """One such mma: its shape, the types of D, A, B and C, and what else its modifiers say.

    counts     registers of A, B and C, of the metadata (0 or 1), and the words that place the scale factors (0 or 6)
    selector   of the metadata's lanes
    """

    shape: Shape
    types: tuple[str, str, str, str]
    packed: bool
    counts: tuple[int, ...]
    selector: int
    scale: str
    vector: int

    @property
    def bits(self) -> int:
        """Bits that an element takes in a register."""
        return 4 if self.packed else 8


def small(program: Program, site: Site) -> Control:
    """mma with .kind, dense and sparse, scaled or not."""
    modifiers, operands = site.instruction.form.modifiers, named(site)
    floats = [m[1:] for m in modifiers if m[1:] in FLOATS or m == ".f32"]
    d, a, b, c = floats[:4]
    selector = operands.get("selector")
    sparse, scales = isinstance(selector, Integer), ".block_scale" in modifiers
    vectors: list[Sequence[Operand]] = [scalars(operands[name]) for name in "abc"]
    vectors.append(scalars(operands["metadata"]) if sparse else ())
    reads = [reader(program, site, part, ".b32") for vector in vectors for part in vector]
    counts = (*(len(vector) for vector in vectors), 6 if scales else 0)
    if scales:
        for name in "ab":
            (word,) = scalars(operands[f"scale_{name}"])
            byte, thread = scalars(operands[f"{{byte_{name}, thread_{name}}}"])
            reads.append(reader(program, site, word, ".b32"))
            reads.extend(reader(program, site, part, ".u16") for part in (byte, thread))
    plan = Plan(
        shape_of(next(m for m in modifiers if m[:2] == ".m" and m[2:3].isdigit())),
        (d, a, b, c),
        ".kind::mxf4" in modifiers or ".kind::mxf4nvf4" in modifiers,
        counts,
        selector.value if isinstance(selector, Integer) else 0,
        modifiers[-1][1:] if scales else "",
        vector_of(modifiers),
    )
    writes = [writer(site, part, ".b32") for part in scalars(operands["d"])]

    def compute(sources: list[Bits]) -> list[Bits]:
        found = sum_registers(_product(plan, _Sources(plan, sources)), bits_of(d), 32)
        return [found[..., i] for i in range(found.shape[-1])]

    def lost(shadows: list[Bits], results: list[Bits]) -> list[Bits]:
        marks = lost_registers(_lost(plan, _Sources(plan, shadows)), bits_of(d), 32)
        if marks is None:
            return [np.zeros_like(result) for result in results]
        return [np.ascontiguousarray(marks[..., i]) for i in range(marks.shape[-1])]

    return by_warp(site, reads, compute, deliver_to(writes), lost)


class _Sources:
    """The operands by warp: a, b, c (warps, 32, registers), metadata (warps, 32), scale factors and their places."""

    def __init__(self, plan: Plan, sources: list[Bits]) -> None:
        parts, start = [], 0
        for count in plan.counts[:3]:
            parts.append(np.stack(sources[start : start + count], axis=-1))
            start += count
        self.a, self.b, self.c = parts
        self.metadata: Bits | None = None
        if plan.counts[3]:
            self.metadata = sources[start]
            start += 1
        self.scales = [sources[start : start + 3], sources[start + 3 : start + 6]] if plan.counts[4] else []


def contained(codes: Bits, kind: str, packed: bool) -> Bits:
    """Elements as they lie in a byte: four bits in the middle, six at the bottom; `packed`: without padding."""
    if packed:
        return codes
    if kind == "e2m1":
        return codes >> 2 & 15
    return codes & 63 if kind in ("e2m3", "e3m2") else codes


def _product(plan: Plan, sources: _Sources) -> Bits:
    d, atype, btype, ctype = plan.types
    a = contained(factor_matrix(sources.a, 16, plan.bits), atype, plan.packed)
    b = contained(factor_matrix(sources.b, 8, plan.bits), btype, plan.packed)
    present: Marks | None = None
    if sources.metadata is not None:
        kind = "s4" if plan.packed else "f16"
        nibbles = metadata_nibbles(sources.metadata, plan.selector, 16, plan.bits)
        present = given_places(a, nibbles, kind)
        a = densified(a, nibbles, kind)
    left, right = tensor_core.sparse_factor(a, atype, present), tensor_core.factor(b, btype)
    if sources.scales:
        left, right = _scaled(plan, sources, left, right)
    start = sum_matrix(sources.c, 16, bits_of(ctype))
    total = tensor_core.aligned_sum(left, right, tensor_core.factor(start, ctype), tensor_core.FRACTION)
    return tensor_core.to_half(total) if d == "f16" else tensor_core.cut(total)


def _scaled(plan: Plan, sources: _Sources, left: Factor, right: Factor) -> tuple[Factor, Factor]:
    by_a, by_b = (_factors(plan, scale, which) for which, scale in enumerate(sources.scales))
    return scaled(left, by_a, plan.scale), scaled(right, by_b, plan.scale)


def _factors(plan: Plan, scale: list[Bits], which: int) -> Bits:
    """Scale factors of A's 16 rows (`which` 0), or of B's 8 columns: (warps, lines, vector).

    Row m's are in lane 4 (m % 8) + 2 thread + m / 8, column n's in lane 4 n + thread.
    """
    words, byte, thread = scale
    chosen = thread[:, :1].astype(np.intp)
    line = np.arange(8 if which else 16)[None, :]
    lane = 4 * line + chosen if which else line % 8 * 4 + 2 * chosen + line // 8
    held = np.take_along_axis(words, lane & 31, axis=1)
    place = (byte[:, :1].astype(np.uint32) + np.arange(plan.vector, dtype=np.uint32)[None, :]) & np.uint32(3)
    found: Bits = (held[:, :, None] >> (place * np.uint32(8))[:, None, :]).astype(np.uint8)
    return found


def _lost(plan: Plan, shadows: _Sources) -> Marks:
    """An element of D is undefined if its row, its column, a scale factor of either, or its element of C is."""
    rows = np.any(factor_matrix(shadows.a, 16, plan.bits) != 0, axis=2)
    columns = np.any(factor_matrix(shadows.b, 8, plan.bits) != 0, axis=2)
    marks: Marks = np.logical_or(rows[:, :, None], columns[:, None, :])
    marks = np.logical_or(marks, sum_matrix(shadows.c, 16, bits_of(plan.types[3])) != 0)
    if shadows.metadata is not None:
        marks = marks | np.any(shadows.metadata != 0, axis=1)[:, None, None]
    for words, byte, thread in shadows.scales:
        undefined = (words != 0) | (byte != 0) | (thread != 0)
        marks = marks | np.any(undefined, axis=1)[:, None, None]
    return marks
