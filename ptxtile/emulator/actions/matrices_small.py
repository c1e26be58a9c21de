"""ldmatrix and stmatrix of bytes (PTX ISA 9.7.14.5.15, 9.7.14.5.16): .m8n16 and .m16n16, .m16n8.

Rows of 16 bytes hold 16 elements; of six and four bits they lie together at the row's start, and each goes to the low
bits of a byte. Lanes load whole rows and keep what is theirs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.actions.bulk import named
from ptxtile.emulator.actions.matrix_rows import load_part, row_addresses, row_count, store_pieces
from ptxtile.emulator.actions.warps import by_warp
from ptxtile.emulator.fragments import packed
from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.mma_shape import scalars
from ptxtile.emulator.operands import reader, refuse_undefined, writer
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.registers import Shadow
from ptxtile.emulator.shared_matrix import six_bits
from ptxtile.emulator.step import Control
from ptxtile.emulator.widths import Bits

Decode = Callable[[Bits], Bits]
LANE = np.arange(32)


def _four_bits(data: Bits) -> Bits:
    used = data[..., :8]
    return np.stack([used & 15, used >> 4], axis=-1).reshape(data.shape)


def _decoder(site: Site) -> Decode:
    modifiers = site.instruction.form.modifiers
    if ".b6x16_p32" in modifiers:
        return six_bits
    return _four_bits if ".b4x16_p64" in modifiers else lambda data: data


def load_bytes(program: Program, site: Site) -> Control:
    """.m8n16: four neighbours of a row a register. .m16n16: of four rows one column each, and the eighth after it."""
    square = ".m16n16" in site.instruction.form.modifiers
    count, rows = row_count(site), 16 if square else 8
    read, space = row_addresses(program, site, rows * count, "reads")
    writes = [writer(site, part, ".b32") for part in scalars(named(site)["r"])]
    decode = _decoder(site)
    group, place = LANE // 4, LANE % 4
    if square:
        row = np.stack([16 * i + 4 * place + j for i in range(count) for j in range(4)], axis=1)
    else:
        row = np.stack([8 * i + group for i in range(count)], axis=1)

    def compute(sources: list[Bits]) -> list[Bits]:
        found = sources[0][:, row]
        return [found[..., piece] for piece in range(found.shape[-1])]

    def deliver(lanes: Lanes, results: list[Bits], shadows: list[Bits] | None) -> None:
        lane = lanes.wave.lane[lanes.where]
        pieces = [_elements(load_part(lanes, space, addresses, 16), decode) for addresses in results]
        for number, write in enumerate(writes):
            if square:
                held = [_column(pieces[number // 2 * 4 + j], lane // 4 + number % 2 * 8) for j in range(4)]
                values, marks = (np.stack(each, axis=1) for each in zip(*held))
            else:
                values, marks = (_neighbours(each, lane % 4) for each in pieces[number])
            shadow: Shadow = packed(marks, 32) if marks.any() else None
            write(lanes, packed(values, 32), shadow)

    return by_warp(site, [read], compute, deliver)


def _elements(loaded: tuple[Bits, Shadow], decode: Decode) -> tuple[Bits, Bits]:
    """Rows of 16 bytes as their elements, (threads, 16), and the elements' undefined bits."""
    value, shadow = loaded
    data = decode(np.ascontiguousarray(value).view(np.uint8).reshape(-1, 16))
    if shadow is None:
        return data, np.zeros_like(data)
    return data, decode(np.ascontiguousarray(shadow).view(np.uint8).reshape(-1, 16))


def _column(piece: tuple[Bits, Bits], column: NDArray[np.int64]) -> tuple[Bits, Bits]:
    row = np.arange(len(column))
    return piece[0][row, column], piece[1][row, column]


def _neighbours(data: Bits, place: NDArray[np.int64]) -> Bits:
    found: Bits = np.take_along_axis(data, place[:, None] * 4 + np.arange(4)[None, :], axis=1)
    return found


def store_bytes(program: Program, site: Site) -> Control:
    """stmatrix.m16n8.trans.b8: an accumulator's bytes, each column to a row of 16."""
    count = row_count(site)
    read, space = row_addresses(program, site, 8 * count, "writes")
    parts = scalars(named(site)["r"])
    sources = [reader(program, site, part, ".b32") for part in parts]
    group, place = LANE // 4, LANE % 4
    row = np.stack([8 * i + 2 * place + j % 2 for i in range(count) for j in range(4)], axis=1)
    byte = np.stack([group + j // 2 * 8 for _ in range(count) for j in range(4)], axis=1).astype(np.uint64)

    def compute(laid: list[Bits]) -> list[Bits]:
        found = laid[0][:, row] + byte
        return [found[..., piece] for piece in range(found.shape[-1])]

    def deliver(lanes: Lanes, results: list[Bits], shadows: list[Bits] | None) -> None:
        pieces: list[Bits] = []
        for part, source in zip(parts, sources):
            value, shadow = source(lanes)
            if shadow is not None:
                refuse_undefined(lanes, shadow, "the stored value", f"register {part}")
            pieces.extend((value >> np.uint32(8 * j)).astype(np.uint8) for j in range(4))
        store_pieces(lanes, space, results, pieces, 1)

    return by_warp(site, [read], compute, deliver)
