"""An entry's parameter list as places in memory, and Python numbers as the values that go there.

A number is converted to the declared type or refused: nothing wraps, overflows or loses its fraction.
"""

from __future__ import annotations

import math
import operator
import re
import struct
from dataclasses import dataclass
from typing import SupportsFloat, SupportsIndex, Union, cast

from ptxtile.dtypes import Scalar, bits_of
from ptxtile.errors import OperandError
from ptxtile.ir.module import Function, Parameter

__all__ = ["Place", "Value", "blob_value", "describe", "places", "scalar_value", "signature"]

Value = Union[int, float, bytes]

_TYPE = re.compile(r"([usbf])(8|16|32|64)")
_CODES = {"u": "BHIQ", "s": "bhiq", "b": "BHIQ", "f": " efd"}
_FIELDS = {"f16": (5, 10), "f32": (8, 23), "f64": (11, 52)}


@dataclass(frozen=True, slots=True)
class Place:
    """One `.param` of an entry: where it lies in the parameter block and how a value is written there.

    kind    "u", "s", "b" or "f" for a scalar, "" for an array, which takes raw bytes
    offset, size    bytes
    code    of `struct`
    low, high   the integers it holds; an empty range if it holds none
    holds_address   whether an array may be given: it is an integer of 64 bits
    alignment   bytes, of what `.ptr .align` says an address here has; 1 where it says nothing
    """

    index: int
    name: str
    type: str
    kind: str
    offset: int
    size: int
    code: str
    low: int = 0
    high: int = -1
    holds_address: bool = False
    alignment: int = 1

    def __str__(self) -> str:
        return f"argument {self.index + 1} ({self.name!r}, {self.declared})"

    @property
    def declared(self) -> str:
        """`.u32`, or `.b8[128]` for an array."""
        return f".{self.type}" if self.kind else f".{self.type}[{self.size // _width(self.type)}]"


def _width(type_name: str) -> int:
    match = _TYPE.fullmatch(type_name)
    if match is None:
        raise OperandError(
            f"a kernel parameter cannot have the type .{type_name}: it takes .u8 to .u64, .f32 and the like"
        )
    return int(match.group(2)) // 8


def _place(index: int, parameter: Parameter, end: int) -> Place:
    width = _width(parameter.type)
    count = math.prod(parameter.shape) * parameter.vector
    align = max(parameter.align or 0, width)
    offset = (end + align - 1) // align * align
    if parameter.shape or parameter.vector > 1:
        size = width * count
        return Place(index, parameter.name, parameter.type, "", offset, size, f"{size}s")
    kind = parameter.type[0]
    code = _CODES[kind][(8, 16, 32, 64).index(width * 8)]
    bits = width * 8
    low = -(1 << bits - 1) if kind in ("s", "b") else 0
    high = -1 if kind == "f" else (1 << bits - (kind == "s")) - 1
    return Place(
        index,
        parameter.name,
        parameter.type,
        kind,
        offset,
        width,
        code,
        low,
        high,
        holds_address=kind != "f" and width == 8,
        alignment=parameter.pointer_align or 1,
    )


def places(function: Function) -> tuple[Place, ...]:
    """The places of an entry's parameters, each aligned to its own size or `.align` (PTX ISA 5.1.6).

    Raises:
        OperandError: a parameter of a type that no entry can take.
    """
    found: list[Place] = []
    end = 0
    for index, parameter in enumerate(function.parameters):
        place = _place(index, parameter, end)
        found.append(place)
        end = place.offset + place.size
    return tuple(found)


def signature(taken: tuple[Place, ...]) -> str:
    """`A: .u64, n: .u32` for a message."""
    return ", ".join(f"{place.name}: {place.declared}" for place in taken) or "none"


def describe(value: object) -> str:
    """`the float 2.5`, for a message: type and value, cut short."""
    text = repr(value)
    if len(text) > 40:
        text = text[:37] + "..."
    kind = type(value)
    shown = (
        kind.__name__
        if kind.__module__ in ("builtins", "ptxtile.dtypes")
        else f"{kind.__module__}.{kind.__name__}"
    )
    return text if isinstance(value, Scalar) else f"{shown} {text}"


def _refuse(place: Place, value: object, why: str) -> OperandError:
    return OperandError(f"{place} cannot be {describe(value)}: {why}")


def _integer(place: Place, given: object, value: int) -> int:
    if not place.low <= value <= place.high:
        raise _refuse(place, given, f"it holds {place.low} to {place.high}")
    return value & place.high if place.kind == "b" else int(value)


def _float(place: Place, given: object, value: float) -> float:
    if isinstance(value, int):
        exponent, fraction = _FIELDS[place.type]
        size = abs(value)
        lost = max(size.bit_length() - fraction - 1, 0)
        if size >> lost << lost != size or size.bit_length() > 1 << exponent - 1:
            raise _refuse(place, given, f"no .{place.type} is exactly that; pass a float to have it rounded")
        return float(value)
    try:
        struct.pack("<" + place.code, value)
    except OverflowError:
        raise _refuse(place, given, f"it is beyond the largest .{place.type}") from None
    return value


def _untyped_bits(place: Place, given: object) -> int | None:
    """The bits of a typed float (`pt.bfloat16(2)`, `numpy.float16(2)`, ml_dtypes) of just the place's width."""
    if isinstance(given, Scalar):
        dtype = type(given)
        return bits_of(given) if dtype.kind == "float" and dtype.bits == place.size * 8 else None
    as_bytes = getattr(given, "tobytes", None)
    if as_bytes is None or getattr(given, "itemsize", 0) != place.size:
        return None
    return int.from_bytes(as_bytes(), "little")


def _number(place: Place, given: object) -> int | float:
    """The Python number of anything that is one; OperandError for the rest."""
    value: object = given
    if isinstance(given, Scalar):
        value = given.value
        if value is None:
            raise _refuse(place, given, "it is a run-time value of a trace")
    elif not isinstance(given, (int, float)):
        item = getattr(given, "item", None)
        if item is not None and getattr(given, "ndim", 0) == 0 and hasattr(given, "dtype"):
            value = item()
    if isinstance(value, (int, float)):
        return value
    try:
        return operator.index(cast("SupportsIndex", value))
    except TypeError:
        pass
    if type(value).__module__ == "ml_dtypes":
        return float(cast("SupportsFloat", value))
    due = "an array or an address" if place.holds_address else "a number"
    raise _refuse(place, given, f"{due} is due")


def scalar_value(place: Place, given: object) -> int | float:
    """A number as the value that is packed into a scalar place.

    Integers (bool, NumPy's and ptxtile's too) go to integer places that hold them and to float places that are
    exactly that. Floats go to float places, rounded to nearest; never to an integer place. Typed floats
    (`pt.bfloat16(2)`, NumPy and ml_dtypes scalars) also go to an untyped place (`.b16`) of their width, as bits.

    Raises:
        OperandError: names the argument, what was given and what is due.
    """
    value = _number(place, given)
    if place.kind == "f":
        return _float(place, given, value)
    if isinstance(value, int):
        return _integer(place, given, value)
    if place.kind == "b":
        bits = None if type(given) is float else _untyped_bits(place, given)
        if bits is not None:
            return bits
        raise _refuse(
            place,
            given,
            f"it takes {place.size * 8} bits: pass a typed constant of that width, or the bits as an int",
        )
    raise _refuse(place, given, "a float never becomes an integer here; pass int(…) if that is meant")


def blob_value(place: Place, given: object) -> bytes:
    """The bytes of an array place such as a tensor map: any contiguous buffer of exactly its size.

    Raises:
        OperandError: no buffer, or one of another size.
    """
    try:
        data = bytes(memoryview(cast("bytes", given)))
    except (TypeError, ValueError):
        raise _refuse(place, given, f"a buffer of {place.size} bytes is due") from None
    if len(data) != place.size:
        raise OperandError(f"{place} cannot be a buffer of {len(data)} bytes: it takes exactly {place.size}")
    return data
