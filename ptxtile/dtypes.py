"""The scalar types a kernel author names: `pt.float32`, `pt.int8`, `pt.bool_`, …, each a class.

`pt.float32` in an annotation is a parameter's type, `pt.float32(2)` a constant, and an instance made while tracing a
run-time value: one class for all three, so that type checkers see what readers see. Operators on run-time values go
to the current trace; this module knows no instruction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from ptxtile import location, tracing
from ptxtile.encoding import Number, encode, normalize
from ptxtile.errors import TraceError

if TYPE_CHECKING:
    import numpy

T = TypeVar("T", bound="Scalar")


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

            found: numpy.dtype[Any] = numpy.dtype(getattr(ml_dtypes, cls.name))
            return found
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
    # `variable op= value` writes a pt.reg variable in place; on any other value it rebinds the name, as in Python.
    # They are made below from one table; this block is what type checkers read.
    if TYPE_CHECKING:

        def __add__(self: T, other: T | Number) -> T: ...
        def __radd__(self: T, other: T | Number) -> T: ...
        def __iadd__(self: T, other: T | Number) -> T: ...
        def __sub__(self: T, other: T | Number) -> T: ...
        def __rsub__(self: T, other: T | Number) -> T: ...
        def __isub__(self: T, other: T | Number) -> T: ...
        def __mul__(self: T, other: T | Number) -> T: ...
        def __rmul__(self: T, other: T | Number) -> T: ...
        def __imul__(self: T, other: T | Number) -> T: ...
        def __truediv__(self: T, other: T | Number) -> T: ...
        def __rtruediv__(self: T, other: T | Number) -> T: ...
        def __itruediv__(self: T, other: T | Number) -> T: ...
        def __floordiv__(self: T, other: T | Number) -> T: ...
        def __rfloordiv__(self: T, other: T | Number) -> T: ...
        def __ifloordiv__(self: T, other: T | Number) -> T: ...
        def __mod__(self: T, other: T | Number) -> T: ...
        def __rmod__(self: T, other: T | Number) -> T: ...
        def __imod__(self: T, other: T | Number) -> T: ...
        def __and__(self: T, other: T | Number) -> T: ...
        def __rand__(self: T, other: T | Number) -> T: ...
        def __iand__(self: T, other: T | Number) -> T: ...
        def __or__(self: T, other: T | Number) -> T: ...
        def __ror__(self: T, other: T | Number) -> T: ...
        def __ior__(self: T, other: T | Number) -> T: ...
        def __xor__(self: T, other: T | Number) -> T: ...
        def __rxor__(self: T, other: T | Number) -> T: ...
        def __ixor__(self: T, other: T | Number) -> T: ...
        def __lshift__(self: T, other: Scalar | int) -> T: ...
        def __rlshift__(self: T, other: Number) -> T: ...
        def __ilshift__(self: T, other: Scalar | int) -> T: ...
        def __rshift__(self: T, other: Scalar | int) -> T: ...
        def __rrshift__(self: T, other: Number) -> T: ...
        def __irshift__(self: T, other: Scalar | int) -> T: ...
        def __neg__(self: T) -> T: ...
        def __abs__(self: T) -> T: ...
        def __invert__(self: T) -> T: ...
        def __lt__(self, other: Scalar | Number) -> bool_: ...
        def __le__(self, other: Scalar | Number) -> bool_: ...
        def __gt__(self, other: Scalar | Number) -> bool_: ...
        def __ge__(self, other: Scalar | Number) -> bool_: ...

    def __pos__(self: T) -> T:
        return self

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
        return bool(
            self._host(
                "a Python condition",
                _CONDITION,
            )
        )

    def __int__(self) -> int:
        return int(self._host("int()", "pt.cast"))

    def __float__(self) -> float:
        return float(self._host("float()", "pt.cast, and pt.exp, pt.floor … for what math has"))

    def __index__(self) -> int:
        value = self._host("an index", "pt.for_range, or the value itself in A[i]")
        if not isinstance(value, int):
            raise TypeError(f"{self!r} is no integer, so it cannot be an index")
        return value

    def _host(self, use: str, instead: str) -> Number:
        if self.value is None:
            raise TraceError(
                f"a run-time {type(self).name} was used as {use}: its value exists only when the kernel runs; "
                f"use {instead}" + location.quote(location.here())
            )
        return self.value

    def __repr__(self) -> str:
        if self.value is None:
            return f"<run-time {type(self).name}>"
        return f"{type(self)!r}({self.value!r})"


_CONDITION = (
    "pt.if_, pt.while_, pt.select or pred=, & | ~ for and, or, not, pt.minimum and pt.maximum for min and max"
)


def _operate(name: str, *operands: object) -> Any:
    return tracing.emitter(f"operator {name!r} on ptxtile values").operate(name, operands)


def _update(name: str, target: Scalar, value: object) -> Any:
    if not target.mutable:
        return NotImplemented
    tracing.emitter(f"operator {name!r} on ptxtile values").update(name, target, value)
    return target


_BINARY = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "truediv", "floordiv": "floordiv", "mod": "mod", "and": "and",
    "or": "or", "xor": "xor", "lshift": "shl", "rshift": "shr",
}  # fmt: skip


def _define(method: str, function: Any) -> None:
    function.__name__ = f"__{method}__"
    function.__qualname__ = f"Scalar.__{method}__"
    setattr(Scalar, f"__{method}__", function)


def _define_operators() -> None:
    for method, name in _BINARY.items():
        _define(method, lambda self, other, name=name: _operate(name, self, other))
        _define("r" + method, lambda self, other, name=name: _operate(name, other, self))
        _define("i" + method, lambda self, other, name=name: _update(name, self, other))
    for name in ("pow", "matmul", "divmod"):  # no PTX: the trace says what to write
        _define(name, lambda self, other, name=name: _operate(name, self, other))
        _define("r" + name, lambda self, other, name=name: _operate(name, other, self))
    _define("round", lambda self, digits=None: _operate("round", self))
    for name in ("lt", "le", "gt", "ge"):
        _define(name, lambda self, other, name=name: _operate(name, self, other))
    for name in ("neg", "abs", "invert"):
        _define(name, lambda self, name=name: _operate(name, self))


_define_operators()


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


def bits_of(constant: Scalar) -> int:
    """The bit pattern of a constant, as an unsigned integer of its dtype's width."""
    if constant.value is None:
        raise TraceError("a run-time value has no bit pattern on the host")
    return encode(type(constant), constant.value)
