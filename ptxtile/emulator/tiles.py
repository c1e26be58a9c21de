"""Tiles of tensors: which bytes of global memory, and which of shared memory, a tensor copy moves (PTX ISA 5.5).

A box lies in shared memory dense, innermost dimension first; the swizzle then permutes 16-byte chunks by the bits of
their address. Coordinates outside the tensor are read as zero or NaN, and not written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptxtile.ir.tensor_map import TiledMap

Offsets = NDArray[np.int64]
CHUNK = 16
MASKS = {0: 0, 32: 0x10, 64: 0x30, 128: 0x70}
"""By the swizzle's span in bytes: the address bits that change. Those three bits higher are added to them."""
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


def gathered_tile(map_: TiledMap, column: int, lines: Sequence[int]) -> Tile:
    """Rows of a matrix that need not be neighbours (tile::gather4, tile::scatter4)."""
    places = np.array(lines, np.int64)
    present = (places >= 0) & (places < map_.extents[1])
    return _row_tile(map_, column, places * map_.strides[0], present, map_.itemsize)


def pixel_tile(map_: TiledMap, coordinates: Sequence[int], offsets: Sequence[int]) -> Tile:
    """A column of pixels (im2col): from the given one on, along the bounding box, row after row, image after image.

    coordinates   channel, pixel, …, image     offsets   by which every pixel is moved, such as a filter's tap
    """
    assert map_.im2col is not None
    first = list(map_.im2col.lower)
    last = [extent - 1 + upper for extent, upper in zip(map_.extents[1:-1], map_.im2col.upper)]
    *pixel, image = coordinates[1:]
    rows, present = [], []
    for _ in range(map_.box[1]):
        place = [*(at + offset for at, offset in zip(pixel, offsets)), image]
        rows.append(sum(at * stride for at, stride in zip(place, map_.strides)))
        present.append(all(0 <= at < extent for at, extent in zip(place, map_.extents[1:])))
        for dim in range(len(pixel)):
            pixel[dim] += map_.element_strides[dim + 1]
            if pixel[dim] <= last[dim]:
                break
            pixel[dim] = first[dim]
        else:
            image += 1
    return _row_tile(map_, coordinates[0], np.array(rows, np.int64), np.array(present), map_.itemsize)


def _row_tile(map_: TiledMap, first: int, rows: Offsets, present: NDArray[np.bool_], unit: int) -> Tile:
    low = min(max(-first, 0), map_.box[0])
    high = max(min(map_.box[0], map_.extents[0] - first), low)
    return Tile(rows + first * unit, present, low * unit, high * unit, map_.box[0] * unit)


def chunks(address: int, size: int, swizzle: int) -> Offsets:
    """Where the 16-byte chunks of a tile go that begins at a shared address: their addresses, in the tile's order."""
    places = address + np.arange(0, size, CHUNK, dtype=np.int64)
    return places ^ (places >> 3 & MASKS[swizzle])
