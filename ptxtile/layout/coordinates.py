"""Coordinates: Python ints, or NumPy integer arrays (which bring NumPy along; nothing here imports it)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from ptxtile.errors import LayoutError
from ptxtile.layout.axis import counted, whole
from ptxtile.layout.iters import weights

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    IntArray = NDArray[np.integer]
    Values = NDArray[np.int64]
    Number = int | Values

__all__ = ["checked_shape", "digits"]


def checked_shape(shape: object, size: int | None = None, what: str = "shape") -> tuple[int, ...]:
    """A shape as a tuple of positive ints; with `size`, one that holds that many elements."""
    if isinstance(shape, (str, bytes)) or not isinstance(shape, Sequence):
        raise LayoutError(f"{what} must be a tuple of ints, not {shape!r}")
    dims = tuple(whole(dim, f"an extent of {what}") for dim in shape)
    if any(dim < 1 for dim in dims):
        raise LayoutError(f"{what} {dims} has an extent below 1")
    if size is not None and math.prod(dims) != size:
        raise LayoutError(f"{what} {dims} has {counted(math.prod(dims), 'element')}, the layout has {size}")
    return dims


def _array(coordinate: object) -> Values | None:
    """The coordinate as an int64 array, where it is a NumPy array of one or more dimensions."""
    if not getattr(coordinate, "ndim", 0) or not hasattr(coordinate, "astype"):
        return None
    array = cast("Values", coordinate)
    if array.dtype.kind not in "iu":
        raise LayoutError(f"a coordinate array must hold integers, not {array.dtype}")
    return array


def _checked(coordinate: object, extent: int, where: str) -> Number:
    array = _array(coordinate)
    if array is None:
        number = whole(coordinate, f"{where}coordinate")
        if not 0 <= number < extent:
            raise LayoutError(f"{where}coordinate {number} is out of range: 0 to {extent - 1}")
        return number
    wrong = (array < 0) | (array >= extent)
    if wrong.any():
        raise LayoutError(f"{where}coordinate {array[wrong].flat[0]} is out of range: 0 to {extent - 1}")
    # Narrow dtypes would wrap when strides are multiplied in.
    return array.astype("int64")


def _split(index: Number, extents: Sequence[int]) -> tuple[Number, ...]:
    places = weights(extents)
    return tuple(index // place % extent for place, extent in zip(places, extents, strict=True))


def digits(coord: tuple[object, ...], extents: tuple[int, ...], shape: object) -> tuple[Number, ...]:
    """The coordinate as one count for each extent.

    One coordinate is a linear (row-major) index; several match `extents`, or `shape` where it is given.
    Raises LayoutError for a wrong count, a wrong type, or a value out of range.
    """
    size = math.prod(extents)
    dims = extents if shape is None else checked_shape(shape, size)
    if len(coord) == 1:
        return _split(_checked(coord[0], size, ""), extents)
    if len(coord) != len(dims):
        named = f"extents {extents}" if shape is None else f"shape {dims}"
        advice = "one linear index, one coordinate for each extent" + (", or shape=" if shape is None else "")
        raise LayoutError(f"{counted(len(coord), 'coordinate')} for {named}\n  give {advice}")
    values = tuple(
        _checked(c, dim, f"dimension {i}: ") for i, (c, dim) in enumerate(zip(coord, dims, strict=True))
    )
    if shape is None:
        return values
    index: Number = 0
    for value, place in zip(values, weights(dims), strict=True):
        index = index + value * place
    return _split(index, extents)
