"""Layouts of matrices in shared memory as tensor copies write them and the tensor cores read them (PTX ISA 5.5.6).

Rows of `swizzle` bytes follow each other; within each block of eight rows the 16-byte chunks of a row are permuted by
the row's number. A wider matrix is column blocks of that width, one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ptxtile.dtypes import dtype_of
from ptxtile.errors import LayoutError
from ptxtile.layout.axis import m
from ptxtile.layout.iters import Iter
from ptxtile.layout.layout import TileLayout
from ptxtile.layout.swizzle import ComposeLayout, Layout, Swizzle

__all__ = ["SWIZZLES", "shared_layout", "swizzle_of"]

SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
"""Swizzle spans in bytes, and how many bits of the chunk's number they permute."""

_CHUNK = 16
_ROW_BITS = 3


def swizzle_of(span: int, itemsize: int) -> Swizzle:
    """The XOR that a swizzle of `span` bytes is, in elements of `itemsize` bytes (1, 2, 4 or 8)."""
    if span not in SWIZZLES:
        raise LayoutError(f"a swizzle spans {', '.join(map(str, SWIZZLES))} bytes, not {span!r}")
    return Swizzle((_CHUNK // itemsize).bit_length() - 1, SWIZZLES[span], _ROW_BITS)


def shared_layout(shape: Sequence[int], dtype: object, swizzle: int = 128) -> Layout:
    """The layout of a matrix, or a stack of them, in shared memory.

    Args:
        shape: (*stack, rows, columns); rows a multiple of 8, columns a multiple of the span.
        dtype: of an element.
        swizzle: 32, 64 or 128 bytes; 0 for blocks of 16-byte columns without a permutation.

    The memory must be aligned to 8 * swizzle bytes (128 for 0). For a matrix whose rows run along the other dimension
    (MN-major), take the layout of the transposed shape and permute the tensor. LayoutError for a shape that does not
    fill whole spans.
    """
    extents = tuple(shape) if isinstance(shape, Sequence) else ()
    if len(extents) < 2 or not all(isinstance(part, int) and part > 0 for part in extents):
        raise LayoutError(f"a shared matrix has a shape (…, rows, columns), not {shape!r}")
    itemsize = dtype_of(dtype).itemsize
    found = swizzle_of(swizzle, itemsize)
    width = (swizzle or _CHUNK) // itemsize
    *stack, rows, columns = extents
    if rows % 8 or columns % width:
        raise LayoutError(
            f"a shared matrix with swizzle {swizzle} has a multiple of 8 rows and of {width} columns of "
            f"{dtype_of(dtype).name}, not {rows} x {columns}"
        )
    iters: list[Iter] = []
    step = math.prod(stack) * rows * columns
    for extent in stack:
        step //= extent
        iters.append(Iter(extent, step, m))
    iters += [Iter(rows, width, m), Iter(columns // width, rows * width, m), Iter(width, 1, m)]
    tile = TileLayout.from_iters(iters)
    if not swizzle:
        return tile
    return ComposeLayout(found.per_element, found.swizzle_len, found.atom_len, tile)
