"""The values that operators and functions take: constants and run-time values of one dtype, and their IR operands."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ptxtile import location, tracing
from ptxtile.builder import convert, folding
from ptxtile.dtypes import DType, Scalar, bool_, dtype_of
from ptxtile.encoding import normalize
from ptxtile.errors import OperandError
from ptxtile.ir.operand import Integer, Operand, Register

if TYPE_CHECKING:
    from ptxtile.builder.trace import Trace


def current(what: str) -> Trace:
    """The trace of this thread, as the builder's own class; TraceError outside one, naming `what`."""
    return cast("Trace", tracing.emitter(what))


def where(trace: Trace) -> str:
    """The user's line, quoted for the end of a message: in a @pt.function, the function's own."""
    return location.quote(location.resolve(trace.source) if trace.source else location.here(2))


_MEMO_LIMIT = 4096
_constants: dict[tuple[DType, type, int | float], Scalar] = {}
_literals: dict[tuple[DType, int | float], Operand] = {}


# --- operands -------------------------------------------------------------------------------------------------------
def constant(trace: Trace, dtype: DType, value: int | float, use: str) -> Scalar:
    """A Python number as a constant of `dtype`; OperandError where it does not fit."""
    key = dtype, type(value), value
    found = _constants.get(key)
    if found is not None and value:  # 0.0 and -0.0 are one key
        return found
    if isinstance(value, float) and dtype.kind != "float":
        raise OperandError(f"{use}: {value!r} is a float and the other side is {dtype.name}" + where(trace))
    try:
        made = folding.make(dtype, normalize(dtype, value))
    except (OverflowError, TypeError) as error:
        raise OperandError(f"{use}: {error}" + where(trace)) from None
    if len(_constants) < _MEMO_LIMIT:
        _constants[key] = made
    return made


def scalar(trace: Trace, dtype: DType, value: object, use: str) -> Scalar:
    """`value` as a constant or live run-time value of `dtype`. Numbers take it; other dtypes are an OperandError."""
    if isinstance(value, Scalar):
        if dtype_in(value) is not dtype:
            raise OperandError(
                f"{use}: {dtype.name} is wanted and this is {type(value).name}; nothing is converted silently: write "
                f"pt.cast(value, {dtype!r})" + where(trace)
            )
        if value.value is None:
            trace.live(value, use)
        return value
    if isinstance(value, (int, float)):
        return constant(trace, dtype, value, use)
    if is_numpy_scalar(value):
        return scalar(trace, dtype, dtype_of(value)(value), use)
    raise OperandError(f"{use}: {convert.given(value)} is no number" + where(trace))


def common(trace: Trace, use: str, values: tuple[object, ...]) -> tuple[DType, tuple[Scalar, ...]]:
    """The one dtype of several operands, and the operands in it. Python numbers take the dtype of the others."""
    dtypes: list[DType] = []
    for value in values:
        own = dtype_in(value)
        if own is not None and own not in dtypes:
            dtypes.append(own)
    if not dtypes:
        raise OperandError(
            f"{use}: no operand has a dtype, so it is not known which instruction is meant; write pt.float32(…)"
            + where(trace)
        )
    if len(dtypes) > 1:
        names = " and ".join(dtype.name for dtype in dtypes)
        ways = " or ".join(f"pt.cast(value, {dtype!r})" for dtype in dtypes)
        raise OperandError(f"{use}: {names} never mix; convert one side with {ways}" + where(trace))
    dtype = dtypes[0]
    return dtype, tuple([scalar(trace, dtype, value, use) for value in values])


def dtype_in(value: object) -> DType | None:
    """The dtype that a value brings along; None for a Python number."""
    if isinstance(value, Scalar):
        return type(value)
    return dtype_of(value) if is_numpy_scalar(value) else None


def is_numpy_scalar(value: object) -> bool:
    """Whether this is one number of NumPy's or ml_dtypes', which has a dtype (np.float64 is a Python float as well)."""
    return (
        not isinstance(value, (int, float, Scalar))
        and hasattr(value, "dtype")
        and hasattr(value, "item")
        and getattr(value, "ndim", None) == 0
    )


def word(trace: Trace, value: Scalar) -> Operand:
    """The IR operand of a value: its register, its literal, or a new register where PTX has no such literal."""
    if value.value is None:
        return home(value)
    dtype = type(value)
    found = _literals.get((dtype, value.value))
    if found is not None and value.value:
        return found
    if dtype is bool_ or (dtype.kind == "float" and dtype.bits < 32):
        return register(trace, value)
    made = convert.literal(dtype, value.value)
    if len(_literals) < _MEMO_LIMIT:
        _literals[dtype, value.value] = made
    return made


def home(value: Scalar) -> Register:
    """The register of a run-time value."""
    return cast(Register, value.operand)


def register(trace: Trace, value: Scalar) -> Register:
    """The register of a value; a constant is moved into a new one."""
    if value.value is None:
        return home(value)
    made = trace.register(type(value).register)
    move(trace, type(value), made, value)
    return made


def move(trace: Trace, dtype: DType, into: Register, value: Scalar) -> None:
    """Copy a value into a register: one mov (a constant bool_: one setp)."""
    if value.value is not None and dtype is bool_:
        trace.instruction("setp.eq.b32", into, Integer(int(value.value)), Integer(1))
    elif value.value is not None:
        trace.instruction(f"mov.{dtype.register}", into, convert.literal(dtype, value.value))
    else:
        trace.instruction(f"mov.{dtype.register}", into, home(value))


def result(trace: Trace, dtype: DType, into: Scalar | None = None, extent: object = None) -> Scalar:
    """Where a sequence writes: the variable `into`, or a new value."""
    return trace.value(dtype, extent=extent) if into is None else into
