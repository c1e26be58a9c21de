"""Tiles of tensors: which bytes of global memory, and which of shared memory, a tensor copy moves (PTX ISA 5.5).

A box lies in shared memory dense, innermost dimension first; the swizzle then permutes 16-byte chunks by the bits of
their address. Coordinates outside the tensor are read as zero or NaN, and not written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ptxtile.ir.tensor_map import TiledMap

Offsets = NDArray[np.int64]
CHUNK = 16
MASKS = {0: 0, 32: 0x10, 64: 0x30, 128: 0x70}
"""By the swizzle's span in bytes: the address bits that change. Those three bits higher are added to them."""
WIDE = 128
"""Pixels of im2col::w::128."""
FLIPPED = 2
"""The swizzle atomicity that exchanges the halves of 16 bytes in every other line of 128."""
NAN_PATTERN = b"\xf7\x7f"
"""What fills elements outside the tensor that are to be NaN."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A box at a place.

    rows     byte offsets of its rows from the tensor's address, in the order of shared memory
    present  by row: whether it lies in the tensor
    low, high, pitch   of each row of `pitch` bytes, those from `low` up to `high` lie in the tensor
    """

    rows: Offsets
    present: NDArray[np.bool_]
    low: int
    high: int
    pitch: int

    @property
    def size(self) -> int:
        """Bytes in shared memory, those outside the tensor included."""
        return len(self.rows) * self.pitch


def tile_of(map_: TiledMap, coordinates: Sequence[int]) -> Tile:
    """The box whose first element has these coordinates, innermost first."""
    unit = map_.itemsize
    rows: Offsets = np.zeros(1, np.int64)
    present: NDArray[np.bool_] = np.ones(1, np.bool_)
    for dim in range(1, map_.rank):
        step = map_.element_strides[dim]
        places = coordinates[dim] + step * np.arange(-(-map_.box[dim] // step), dtype=np.int64)
        inside = (places >= 0) & (places < map_.extents[dim])
        rows = (places[:, None] * map_.strides[dim - 1] + rows[None, :]).reshape(-1)
        present = (inside[:, None] & present[None, :]).reshape(-1)
    return _row_tile(map_, coordinates[0], rows, present, unit)


def unit_tile(map_: TiledMap, coordinates: Sequence[int]) -> Tile:
    """The box of an interleaved map: units of 16 or 32 bytes, of one slice of channels whatever the box says, as an
    H200 copies it. The slices are the last dimension but one."""
    unit = map_.interleave // map_.itemsize
    plain = replace(
        map_,
        extents=(unit, *map_.extents),
        strides=(map_.interleave, *map_.strides),
        box=(unit, *map_.box[:-2], 1, map_.box[-1]),
        element_strides=(1, *map_.element_strides),
        interleave=0,
    )
    return tile_of(plain, (0, *coordinates))


def gathered_tile(map_: TiledMap, column: int, lines: Sequence[int]) -> Tile:
    """Rows of a matrix that need not be neighbours (tile::gather4, tile::scatter4)."""
    places = np.array(lines, np.int64)
    present = (places >= 0) & (places < map_.extents[1])
    return _row_tile(map_, column, places * map_.strides[0], present, map_.itemsize)


def pixel_tile(map_: TiledMap, coordinates: Sequence[int], offsets: Sequence[int]) -> Tile:
    """A column of pixels (im2col): from the given one on, along the bounding box, row after row, image after image.

    coordinates   channel, pixel, …, image     offsets   by which every pixel is moved, such as a filter's tap

    An interleaved map has the pixel, …, a slice of channels and the image, and a copy moves one slice.
    """
    assert map_.im2col is not None
    strides, extents, steps = map_.strides, map_.extents[1:], map_.element_strides[1:]
    pixel, slices, image = list(coordinates[1:-1]), coordinates[1:1], coordinates[-1]
    if map_.interleave:
        strides, extents, steps = (map_.interleave, *map_.strides), map_.extents, map_.element_strides
        pixel, slices = list(coordinates[:-2]), coordinates[-2:-1]
    first = list(map_.im2col.lower)
    last = [extent - 1 + upper for extent, upper in zip(extents, map_.im2col.upper)]
    rows, present = [], []
    for _ in range(map_.box[1]):
        place = [*(at + offset for at, offset in zip(pixel, offsets)), *slices, image]
        rows.append(sum(at * stride for at, stride in zip(place, strides)))
        present.append(all(0 <= at < extent for at, extent in zip(place, extents)))
        for dim in range(len(pixel)):
            pixel[dim] += steps[dim]
            if pixel[dim] <= last[dim]:
                break
            pixel[dim] = first[dim]
        else:
            image += 1
    if map_.interleave:
        return Tile(np.array(rows, np.int64), np.array(present), 0, map_.interleave, map_.interleave)
    return _row_tile(map_, coordinates[0], np.array(rows, np.int64), np.array(present), map_.itemsize)


def _row_tile(map_: TiledMap, first: int, rows: Offsets, present: NDArray[np.bool_], unit: int) -> Tile:
    low = min(max(-first, 0), map_.box[0])
    high = max(min(map_.box[0], map_.extents[0] - first), low)
    return Tile(rows + first * unit, present, low * unit, high * unit, map_.box[0] * unit)


def column_tile(map_: TiledMap, coordinates: Sequence[int], halo: int, move: int, wide: bool) -> Tile:
    """Pixels along the width alone (im2col::w), one image after the other, and `halo` more after the last.

    move   by which the first pixel and the bounding box are moved
    wide   im2col::w::128: 128 pixels, and a halo after every 32
    """
    assert map_.im2col is not None
    step, extent = map_.element_strides[1], map_.extents[1]
    first, last = map_.im2col.lower[0] + move, extent - 1 + map_.im2col.upper[0] + move
    at, image, fixed = coordinates[1] + move, coordinates[-1], coordinates[2:-1]
    count = WIDE if wide else map_.box[1]
    places: list[tuple[int, ...]] = []
    for i in range(count):
        places.append((at, *fixed, image))
        if i == count - 1 or (wide and i % 32 == 31):
            places.extend((at + step * (j + 1), *fixed, image) for j in range(halo))
        at += step
        if at > last:
            at, image = first, image + 1
    rows = [sum(x * stride for x, stride in zip(place, map_.strides)) for place in places]
    present = [all(0 <= x < most for x, most in zip(place, map_.extents[1:])) for place in places]
    return _row_tile(map_, coordinates[0], np.array(rows, np.int64), np.array(present), map_.itemsize)


def pieces(address: int, size: int, swizzle: int, atomicity: int) -> tuple[Offsets, int]:
    """Where the pieces of a tile go, in the tile's order, and their bytes: `chunks`, whatever the swizzle keeps
    together."""
    if atomicity == FLIPPED:
        places = address + np.arange(0, size, CHUNK // 2, dtype=np.int64)
        return places ^ (places >> 2 & 0x60) ^ (places >> 4 & 8), CHUNK // 2
    if not atomicity:
        return chunks(address, size, swizzle), CHUNK
    places = address + np.arange(0, size, CHUNK, dtype=np.int64)
    return places ^ (places >> 2 & 0x60 if atomicity == 1 else places >> 1 & 0x40), CHUNK


def chunks(address: int, size: int, swizzle: int) -> Offsets:
    """Where the 16-byte chunks of a tile go that begins at a shared address: their addresses, in the tile's order."""
    places = address + np.arange(0, size, CHUNK, dtype=np.int64)
    return places ^ (places >> 3 & MASKS[swizzle])
