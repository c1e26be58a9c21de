"""ldmatrix, stmatrix, movmatrix (PTX ISA 9.7.14.5.15 to 9.7.14.5.17): 8x8 matrices of 16 bits in shared memory.

Lanes exchange the addresses of rows; then each loads or stores its own pieces of four bytes, or of two if transposed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.actions.bulk import named
from ptxtile.emulator.actions.matrices_small import load_bytes, store_bytes
from ptxtile.emulator.actions.matrix_rows import load_part, row_addresses, row_count, store_pieces
from ptxtile.emulator.actions.warps import by_warp
from ptxtile.emulator.fragments import matrix_words
from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.mma_shape import deliver_to, scalars
from ptxtile.emulator.operands import reader, refuse_undefined, spread, writer
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.registers import Shadow
from ptxtile.emulator.step import Control, control
from ptxtile.emulator.widths import Bits


def _exchange(count: int, transposed: bool) -> tuple[NDArray[np.intp], NDArray[np.uint64]]:
    lane, byte = matrix_words(count, transposed)
    return lane, byte.astype(np.uint64)


@control("ldmatrix")
def ldmatrix(program: Program, site: Site) -> Control:
    """Matrices of 16-bit elements, perhaps transposed; those of bytes stand in `matrices_small`."""
    if ".m8n8" not in site.instruction.form.modifiers:
        return load_bytes(program, site)
    count, transposed = row_count(site), ".trans" in site.instruction.form.modifiers
    read, space = row_addresses(program, site, 8 * count, "reads")
    writes = [writer(site, part, ".b32") for part in scalars(named(site)["r"])]
    lane, byte = _exchange(count, transposed)
    width = 2 if transposed else 4

    def compute(sources: list[Bits]) -> list[Bits]:
        rows = sources[0][:, lane] + byte
        return [rows[..., piece] for piece in range(rows.shape[-1])]

    def deliver(lanes: Lanes, results: list[Bits], shadows: list[Bits] | None) -> None:
        pieces = [load_part(lanes, space, addresses, width) for addresses in results]
        if transposed:
            pieces = [_join(low, high) for low, high in zip(pieces[::2], pieces[1::2])]
        for write, (value, shadow) in zip(writes, pieces):
            write(lanes, value, shadow)

    return by_warp(site, [read], compute, deliver)


def _join(low: tuple[Bits, Shadow], high: tuple[Bits, Shadow]) -> tuple[Bits, Shadow]:
    """Two halves as one register."""
    kind = np.dtype(np.uint32)
    value = low[0].astype(kind) | high[0].astype(kind) << np.uint32(16)
    shadow: Shadow = None
    for half in (low[1], high[1]):
        if half is not None:
            shadow = spread(half, kind) if shadow is None else shadow | spread(half, kind)
    return value, shadow


@control("stmatrix")
def stmatrix(program: Program, site: Site) -> Control:
    """The inverse of ldmatrix; the elements are the executing threads' own."""
    if ".m8n8" not in site.instruction.form.modifiers:
        return store_bytes(program, site)
    count, transposed = row_count(site), ".trans" in site.instruction.form.modifiers
    read, space = row_addresses(program, site, 8 * count, "writes")
    parts = scalars(named(site)["r"])
    sources = [reader(program, site, part, ".b32") for part in parts]
    lane, byte = _exchange(count, transposed)

    def compute(laid: list[Bits]) -> list[Bits]:
        rows = laid[0][:, lane] + byte
        return [rows[..., piece] for piece in range(rows.shape[-1])]

    def deliver(lanes: Lanes, results: list[Bits], shadows: list[Bits] | None) -> None:
        values = []
        for part, source in zip(parts, sources):
            value, shadow = source(lanes)
            if shadow is not None:
                refuse_undefined(lanes, shadow, "the stored value", f"register {part}")
            values.append(value)
        store_pieces(lanes, space, results, _pieces(values, transposed), 2 if transposed else 4)

    return by_warp(site, [read], compute, deliver)


def _pieces(values: Sequence[Bits], transposed: bool) -> list[Bits]:
    if not transposed:
        return list(values)
    return [half for value in values for half in (value.astype(np.uint16), (value >> 16).astype(np.uint16))]


@control("movmatrix")
def movmatrix(program: Program, site: Site) -> Control:
    """The transpose of an 8x8 matrix that the warp holds in one register a lane."""
    operands = named(site)
    read = reader(program, site, operands["a"], ".b32")
    lane = np.arange(32)
    column = lane % 4 * 2

    def compute(sources: list[Bits]) -> list[Bits]:
        halves = np.ascontiguousarray(sources[0]).view(np.uint16).reshape(-1, 8, 8)
        turned = np.ascontiguousarray(halves.transpose(0, 2, 1))
        rows = turned[:, lane // 4]
        low, high = rows[:, lane, column].astype(np.uint32), rows[:, lane, column + 1].astype(np.uint32)
        return [low | high << np.uint32(16)]

    return by_warp(site, [read], compute, deliver_to([writer(site, operands["d"], ".b32")]))
