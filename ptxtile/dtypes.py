"""The scalar types a kernel author names: `pt.float32`, `pt.int8`, `pt.bool_`, …, each a class.

`pt.float32` in an annotation is a parameter's type, `pt.float32(2)` a constant, and an instance made while tracing a
run-time value: one class for all three, so that type checkers see what readers see. Operators on run-time values go
to the current trace; this module knows no instruction.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, Union

from ptxtile import tracing
from ptxtile.errors import TraceError

if TYPE_CHECKING:
    import numpy

T = TypeVar("T", bound="Scalar")
Number = Union[int, float, bool]


class DType(type):
    """The class of dtypes. Every dtype carries the same facts.

    name      "float32", as NumPy or ml_dtypes write it
    kind      "float", "int", "uint" or "bool"
    bits      width of the value
    ptx       the PTX type, ".f32"
    register  the PTX register type that carries it: "f32", "b16" for 16-bit floats, "b32" for integers of 32 bits …
    """

    name: str
    kind: str
    bits: int
    ptx: str
    register: str

    def __repr__(cls) -> str:
        return f"pt.{cls.__name__}" if "name" in cls.__dict__ else cls.__name__

    @property
    def itemsize(cls) -> int:
        """Bytes in memory; a bool_ takes one."""
        return (cls.bits + 7) // 8

    @property
    def numpy(cls) -> numpy.dtype[Any]:
        """The NumPy dtype (of ml_dtypes for the formats NumPy lacks)."""
        import numpy

        if cls.name in _ML_DTYPES:
            import ml_dtypes

            return numpy.dtype(getattr(ml_dtypes, cls.name))
        return numpy.dtype("bool" if cls.name == "bool_" else cls.name)


class Scalar(metaclass=DType):
    """A constant of a dtype, or a run-time value of a trace.

    value    the Python number of a constant; None for a run-time value
    operand  the IR operand of a run-time value; None for a constant
    block    the structured block of the trace that made it; None for a constant
    extent   what is known of a run-time integer (`builder.ranges`); None if nothing is
    mutable  made by `pt.reg`: the only run-time values that may be written again
    """

    __slots__ = ("value", "operand", "block", "extent", "mutable")

    name: ClassVar[str]
    kind: ClassVar[str]
    bits: ClassVar[int]
    ptx: ClassVar[str]
    register: ClassVar[str]

    value: Number | None
    operand: object
    block: object
    extent: object
    mutable: bool

    def __init__(self, value: Number | Scalar) -> None:
        if type(self) is Scalar:
            raise TypeError("pt.Scalar has no width: call a dtype such as pt.float32")
        if isinstance(value, Scalar):
            if value.value is None:
                raise TraceError(
                    f"{type(self)!r}(…) makes constants and does not convert run-time values: "
                    f"write the cvt form, or pt.cast(value, {type(self)!r})"
                )
            value = value.value
        self.value = normalize(type(self), value)
        self.operand = None
        self.block = None
        self.extent = None
        self.mutable = False

    def set(self, value: object) -> None:
        """Write a `pt.reg` variable in place (a mov)."""
        tracing.emitter("set()").assign(self, value)

    # Operators: one documented instruction sequence each (docs/operators.md), chosen by the trace from the dtype.
    def __add__(self: T, other: T | Number) -> T:
        return _operate("add", self, other)

    def __radd__(self: T, other: T | Number) -> T:
        return _operate("add", other, self)

    def __sub__(self: T, other: T | Number) -> T:
        return _operate("sub", self, other)

    def __rsub__(self: T, other: T | Number) -> T:
        return _operate("sub", other, self)

    def __mul__(self: T, other: T | Number) -> T:
        return _operate("mul", self, other)

    def __rmul__(self: T, other: T | Number) -> T:
        return _operate("mul", other, self)

    def __truediv__(self: T, other: T | Number) -> T:
        return _operate("truediv", self, other)

    def __rtruediv__(self: T, other: T | Number) -> T:
        return _operate("truediv", other, self)

    def __floordiv__(self: T, other: T | Number) -> T:
        return _operate("floordiv", self, other)

    def __rfloordiv__(self: T, other: T | Number) -> T:
        return _operate("floordiv", other, self)

    def __mod__(self: T, other: T | Number) -> T:
        return _operate("mod", self, other)

    def __rmod__(self: T, other: T | Number) -> T:
        return _operate("mod", other, self)

    def __and__(self: T, other: T | Number) -> T:
        return _operate("and", self, other)

    def __rand__(self: T, other: T | Number) -> T:
        return _operate("and", other, self)

    def __or__(self: T, other: T | Number) -> T:
        return _operate("or", self, other)

    def __ror__(self: T, other: T | Number) -> T:
        return _operate("or", other, self)

    def __xor__(self: T, other: T | Number) -> T:
        return _operate("xor", self, other)

    def __rxor__(self: T, other: T | Number) -> T:
        return _operate("xor", other, self)

    def __lshift__(self: T, other: Scalar | int) -> T:
        return _operate("shl", self, other)

    def __rlshift__(self: T, other: Number) -> T:
        return _operate("shl", other, self)

    def __rshift__(self: T, other: Scalar | int) -> T:
        return _operate("shr", self, other)

    def __rrshift__(self: T, other: Number) -> T:
        return _operate("shr", other, self)

    # `variable op= value` writes a pt.reg variable in place; on any other value it rebinds the name, as in Python.
    def __iadd__(self: T, other: T | Number) -> T:
        return _update("add", self, other)

    def __isub__(self: T, other: T | Number) -> T:
        return _update("sub", self, other)

    def __imul__(self: T, other: T | Number) -> T:
        return _update("mul", self, other)

    def __itruediv__(self: T, other: T | Number) -> T:
        return _update("truediv", self, other)

    def __ifloordiv__(self: T, other: T | Number) -> T:
        return _update("floordiv", self, other)

    def __imod__(self: T, other: T | Number) -> T:
        return _update("mod", self, other)

    def __iand__(self: T, other: T | Number) -> T:
        return _update("and", self, other)

    def __ior__(self: T, other: T | Number) -> T:
        return _update("or", self, other)

    def __ixor__(self: T, other: T | Number) -> T:
        return _update("xor", self, other)

    def __ilshift__(self: T, other: Scalar | int) -> T:
        return _update("shl", self, other)

    def __irshift__(self: T, other: Scalar | int) -> T:
        return _update("shr", self, other)

    def __neg__(self: T) -> T:
        return _operate("neg", self)

    def __pos__(self: T) -> T:
        return self

    def __abs__(self: T) -> T:
        return _operate("abs", self)

    def __invert__(self: T) -> T:
        return _operate("invert", self)

    def __lt__(self, other: Scalar | Number) -> bool_:
        return _operate("lt", self, other)

    def __le__(self, other: Scalar | Number) -> bool_:
        return _operate("le", self, other)

    def __gt__(self, other: Scalar | Number) -> bool_:
        return _operate("gt", self, other)

    def __ge__(self, other: Scalar | Number) -> bool_:
        return _operate("ge", self, other)

    def __eq__(self, other: object) -> Any:
        if tracing.active() is None and isinstance(other, Scalar) and self.value is not None:
            return type(self) is type(other) and bits_of(self) == bits_of(other)
        return _operate("eq", self, other) if isinstance(other, (Scalar, int, float)) else NotImplemented

    def __ne__(self, other: object) -> Any:
        if tracing.active() is None and isinstance(other, Scalar) and self.value is not None:
            return not (type(self) is type(other) and bits_of(self) == bits_of(other))
        return _operate("ne", self, other) if isinstance(other, (Scalar, int, float)) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), self.value)) if self.value is not None else id(self)

    def __bool__(self) -> bool:
        return bool(self._host("a Python condition", "pt.if_, pt.while_, pt.select or pred="))

    def __int__(self) -> int:
        return int(self._host("int()", "pt.cast"))

    def __float__(self) -> float:
        return float(self._host("float()", "pt.cast"))

    def __index__(self) -> int:
        value = self._host("an index", "pt.for_range, or the value itself in A[i]")
        if not isinstance(value, int):
            raise TypeError(f"{self!r} is no integer, so it cannot be an index")
        return value

    def _host(self, use: str, instead: str) -> Number:
        if self.value is None:
            raise TraceError(
                f"a run-time {type(self).name} was used as {use}: its value exists only when the kernel runs; "
                f"use {instead}"
            )
        return self.value

    def __repr__(self) -> str:
        if self.value is None:
            return f"<run-time {type(self).name}>"
        return f"{type(self)!r}({self.value!r})"


def _operate(name: str, *operands: object) -> Any:
    return tracing.emitter(f"operator {name!r} on ptxtile values").operate(name, operands)


def _update(name: str, target: Scalar, value: object) -> Any:
    if not target.mutable:
        return NotImplemented
    tracing.emitter(f"operator {name!r} on ptxtile values").update(name, target, value)
    return target


class float16(Scalar):
    """IEEE binary16, PTX .f16, carried in .b16 registers."""

    __slots__ = ()
    name, kind, bits, ptx, register = "float16", "float", 16, ".f16", "b16"


class bfloat16(Scalar):
    """bfloat16, PTX .bf16, carried in .b16 registers."""

    __slots__ = ()
    name, kind, bits, ptx, register = "bfloat16", "float", 16, ".bf16", "b16"


class float32(Scalar):
    """IEEE binary32, PTX .f32."""

    __slots__ = ()
    name, kind, bits, ptx, register = "float32", "float", 32, ".f32", "f32"


class float64(Scalar):
    """IEEE binary64, PTX .f64."""

    __slots__ = ()
    name, kind, bits, ptx, register = "float64", "float", 64, ".f64", "f64"


class int8(Scalar):
    """Signed 8 bits, PTX .s8 in memory, carried in .b16 registers."""

    __slots__ = ()
    name, kind, bits, ptx, register = "int8", "int", 8, ".s8", "b16"


class int16(Scalar):
    """Signed 16 bits, PTX .s16."""

    __slots__ = ()
    name, kind, bits, ptx, register = "int16", "int", 16, ".s16", "b16"


class int32(Scalar):
    """Signed 32 bits, PTX .s32."""

    __slots__ = ()
    name, kind, bits, ptx, register = "int32", "int", 32, ".s32", "b32"


class int64(Scalar):
    """Signed 64 bits, PTX .s64."""

    __slots__ = ()
    name, kind, bits, ptx, register = "int64", "int", 64, ".s64", "b64"


class uint8(Scalar):
    """Unsigned 8 bits, PTX .u8 in memory, carried in .b16 registers."""

    __slots__ = ()
    name, kind, bits, ptx, register = "uint8", "uint", 8, ".u8", "b16"


class uint16(Scalar):
    """Unsigned 16 bits, PTX .u16; also the carrier of two 8-bit floats."""

    __slots__ = ()
    name, kind, bits, ptx, register = "uint16", "uint", 16, ".u16", "b16"


class uint32(Scalar):
    """Unsigned 32 bits, PTX .u32; also the carrier of f16x2, bf16x2 and other 32-bit packed types."""

    __slots__ = ()
    name, kind, bits, ptx, register = "uint32", "uint", 32, ".u32", "b32"


class uint64(Scalar):
    """Unsigned 64 bits, PTX .u64; also the carrier of f32x2."""

    __slots__ = ()
    name, kind, bits, ptx, register = "uint64", "uint", 64, ".u64", "b64"


class bool_(Scalar):
    """A predicate at run time (PTX .pred); one byte, 0 or 1, in memory."""

    __slots__ = ()
    name, kind, bits, ptx, register = "bool_", "bool", 1, ".pred", "pred"


class float8_e4m3fn(Scalar):
    """8-bit float, 4 exponent and 3 mantissa bits, no infinities: PTX .e4m3."""

    __slots__ = ()
    name, kind, bits, ptx, register = "float8_e4m3fn", "float", 8, ".e4m3", "b16"


class float8_e5m2(Scalar):
    """8-bit float, 5 exponent and 2 mantissa bits: PTX .e5m2."""

    __slots__ = ()
    name, kind, bits, ptx, register = "float8_e5m2", "float", 8, ".e5m2", "b16"


class float8_e8m0fnu(Scalar):
    """8-bit power of two, used as a scale: PTX .ue8m0."""

    __slots__ = ()
    name, kind, bits, ptx, register = "float8_e8m0fnu", "float", 8, ".ue8m0", "b16"


ALL: tuple[DType, ...] = (
    float16, bfloat16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64, bool_,
    float8_e4m3fn, float8_e5m2, float8_e8m0fnu,
)  # fmt: skip
_ML_DTYPES = {"bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"}
_BY_NAME: dict[str, DType] = {dtype.name: dtype for dtype in ALL} | {"bool": bool_}
_STRUCT = {"float16": "<e", "float32": "<f", "float64": "<d"}


def dtype_of(what: object) -> DType:
    """The dtype of a ptxtile dtype, a scalar, a NumPy or ml_dtypes dtype or scalar type, an array, or a name.

    TypeError if ptxtile has no such dtype.
    """
    if isinstance(what, DType):
        return what
    if isinstance(what, Scalar):
        return type(what)
    if isinstance(what, str):
        name = what
    else:
        inner = what if isinstance(what, type) else getattr(what, "dtype", what)
        name = getattr(inner, "__name__", None) or getattr(inner, "name", None) or str(inner)
    found = _BY_NAME.get(name.removeprefix("torch."))
    if found is None:
        raise TypeError(f"ptxtile has no dtype {name!r}; it has {', '.join(dtype.name for dtype in ALL)}")
    return found


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


def bits_of(constant: Scalar) -> int:
    """The bit pattern of a constant, as an unsigned integer of its dtype's width."""
    value, dtype = constant.value, type(constant)
    if value is None:
        raise TraceError("a run-time value has no bit pattern on the host")
    if dtype.kind == "float":
        if dtype.name in _STRUCT:
            return int.from_bytes(struct.pack(_STRUCT[dtype.name], value), "little")
        return int.from_bytes(dtype.numpy.type(value).tobytes(), "little")
    return int(value) & ((1 << dtype.bits) - 1)
