"""The numbers that a dtype holds: rounding, ranges and bit patterns on the host."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Union

if TYPE_CHECKING:
    from ptxtile.dtypes import DType

Number = Union[int, float, bool]

_STRUCT = {"float16": "<e", "float32": "<f", "float64": "<d"}


def normalize(dtype: DType, value: Number) -> Number:
    """`value` as a Python number of `dtype`: rounded to a float type, refused where an integer would lose anything.

    OverflowError for an integer out of range, TypeError for a float that is no integer.
    """
    if not isinstance(value, (int, float)):
        item = getattr(value, "item", None)
        if item is None:
            raise TypeError(f"{dtype!r} takes a number, not {value!r}")
        value = item()
    if dtype.kind == "bool":
        if value not in (0, 1):
            raise OverflowError(f"{value!r} is neither False nor True")
        return bool(value)
    if dtype.kind == "float":
        return _round(dtype, value)
    if isinstance(value, float) and not value.is_integer():
        raise TypeError(f"{dtype!r} takes an integer, not {value!r}")
    integer = int(value)
    low, high = integer_range(dtype)
    if not low <= integer <= high:
        raise OverflowError(f"{integer} does not fit {dtype!r}, which holds {low} to {high}")
    return integer


def integer_range(dtype: DType) -> tuple[int, int]:
    """The least and the greatest value of an integer dtype."""
    if dtype.kind == "int":
        return -(1 << dtype.bits - 1), (1 << dtype.bits - 1) - 1
    return 0, (1 << dtype.bits) - 1


def _round(dtype: DType, value: Number) -> float:
    """Round to nearest even into a float dtype; overflow gives an infinity, as a conversion instruction does."""
    as_float = float(value)
    if dtype.name == "float64":
        return as_float
    if dtype.name in _STRUCT:
        try:
            result: float = struct.unpack(_STRUCT[dtype.name], struct.pack(_STRUCT[dtype.name], as_float))[0]
        except OverflowError:
            return float("inf") if as_float > 0 else float("-inf")
        return result
    return float(dtype.numpy.type(as_float))


def encode(dtype: DType, value: Number) -> int:
    """The bit pattern of a number of `dtype`, as an unsigned integer of its width."""
    if dtype.kind == "float":
        if dtype.name in _STRUCT:
            return int.from_bytes(struct.pack(_STRUCT[dtype.name], value), "little")
        return int.from_bytes(dtype.numpy.type(value).tobytes(), "little")
    return int(value) & ((1 << dtype.bits) - 1)
