"""Conversions that an author writes: `cast` changes the number's type, `bitcast` keeps its bits, `pack` and `unpack`
put several values into one carrier and take them out again.

cast(value, dtype), by the pair (PTX ISA 9.7.9.22):
    float to integer         cvt.rzi   toward zero, as int() does; PTX clamps out-of-range values, a NaN gives 0 (or the
                                       sign bit alone for float64 sources and 64-bit results)
    integer to float         cvt.rn
    float to narrower float  cvt.rn    (float16 and bfloat16 into each other as well)
    float to wider float     cvt       exact
    integer to integer       cvt       the low bits; widening extends by the sign of the source
    same width, other sign   mov       the same bits
    to bool_                 setp.ne   (setp.neu for floats): true for every non-zero
    from bool_               selp      1 or 0
    float32 to an 8-bit float  cvt.rn.satfinite.T x2.f32 with a zero in the upper half; back to float16 and float32
                             through cvt.rn.f16x2.T x2
"""

from __future__ import annotations

from typing import cast as typed

from ptxtile import location
from ptxtile.builder import folding, ranges
from ptxtile.builder.convert import given
from ptxtile.builder.trace import Trace
from ptxtile.builder.values import current, dtype_in, home, move, register, scalar, where, word
from ptxtile.dtypes import DType, Scalar, bfloat16, bits_of, bool_, dtype_of, float16, float32
from ptxtile.encoding import integer_range, normalize
from ptxtile.errors import OperandError, TraceError
from ptxtile.ir.operand import Float, Integer, Operand, Vector

TO_FLOAT = ("rn", "rz", "rm", "rp")
TO_INTEGER = ("rni", "rzi", "rmi", "rpi")
_SMALL = ("float8_e4m3fn", "float8_e5m2")


def _wanted(use: str, dtype: object) -> None:
    if not isinstance(dtype, DType) or dtype is Scalar:
        raise OperandError(
            f"{use} takes a dtype such as pt.float32, not {given(dtype)}" + location.quote(location.here())
        )


def cast(value: object, dtype: DType, rounding: str | None = None) -> Scalar:
    """`value` converted to `dtype`, by one documented instruction (see the module's table).

    rounding   "rn rz rm rp" where the result is a float, "rni rzi rmi rpi" where it is an integer; None takes the
               table's. OperandError where the pair does not round.
    """
    _wanted("pt.cast", dtype)
    if isinstance(value, (int, float)) and not isinstance(value, Scalar):
        return folding.make(dtype, value)
    trace = current("pt.cast")
    if not isinstance(value, Scalar):
        raise OperandError(f"pt.cast: {value!r} is no number or run-time value" + where(trace))
    source = type(value)
    use = f"pt.cast from {source.name} to {dtype.name}"
    suffix = _rounding(trace, use, source, dtype, rounding)
    scalar(trace, source, value, use)
    if value.value is not None and rounding is None:
        return _constant(value, dtype)
    made = trace.value(dtype, extent=_kept(value, dtype))
    _convert(trace, use, value, made, suffix)
    return made


def _kept(value: Scalar, dtype: DType) -> ranges.Extent | None:
    """What is known of an integer, where the other integer dtype holds every value it may have."""
    extent = ranges.of_value(value)
    if extent is None or dtype.kind not in ("int", "uint"):
        return None
    low, high = extent.bounds()
    least, greatest = integer_range(dtype)
    return extent if least <= low and high <= greatest else None


def _rounding(trace: Trace, use: str, source: DType, dtype: DType, rounding: str | None) -> str:
    """The rounding modifier with its dot, or "" where the conversion is exact."""
    integers = ("int", "uint")
    if source.kind == "float" and dtype.kind in integers:
        choices, default = TO_INTEGER, "rzi"
    elif dtype.kind == "float" and (source.kind in integers or _narrows(source, dtype)):
        choices, default = TO_FLOAT, "rn"
    else:
        if rounding is not None:
            raise OperandError(f"{use} is exact: it takes no rounding, not {rounding!r}" + where(trace))
        return ""
    if rounding is not None and rounding not in choices:
        raise OperandError(f"{use}: rounding is one of {', '.join(choices)}, not {rounding!r}" + where(trace))
    return "." + (rounding or default)


def _narrows(source: DType, dtype: DType) -> bool:
    return source.kind == "float" and source is not dtype and (dtype.bits <= source.bits)


def _convert(trace: Trace, use: str, value: Scalar, made: Scalar, suffix: str) -> None:
    source, dtype = type(value), type(made)
    d = typed(Operand, made.operand)
    if source is dtype:
        move(trace, dtype, home(made), value)
    elif source is bool_:
        _from_bool(trace, value, made)
    elif dtype is bool_:
        _to_bool(trace, use, value, d)
    elif source.kind == "float" and (source.bits == 8 or (dtype.bits == 8 and dtype.kind == "float")):
        _small_float(trace, use, value, made)
    elif source.kind != "float" and dtype.kind != "float" and source.bits == dtype.bits and dtype.bits > 8:
        trace.instruction(f"mov.{dtype.register}", d, word(trace, value))
    elif dtype.kind == "float" and dtype.bits == 8:
        raise TraceError(f"{use}: PTX converts to 8-bit floats from float32 only" + where(trace))
    elif {source, dtype} & {bfloat16} and 8 in (source.bits, dtype.bits):
        raise TraceError(f"{use}: PTX has no such cvt; go through pt.float32" + where(trace))
    else:
        trace.instruction(f"cvt{suffix}{dtype.ptx}{source.ptx}", d, register(trace, value))


def _from_bool(trace: Trace, value: Scalar, made: Scalar) -> None:
    dtype = type(made)
    one, zero = word(trace, dtype(1)), word(trace, dtype(0))
    trace.instruction(f"selp.{dtype.register}", home(made), one, zero, register(trace, value))


def _to_bool(trace: Trace, use: str, value: Scalar, d: Operand) -> None:
    dtype = type(value)
    if dtype.kind == "float":
        if dtype.bits == 8:
            raise TraceError(f"{use}: PTX compares no 8-bit floats; cast to float32 first" + where(trace))
        trace.instruction(f"setp.neu{dtype.ptx}", d, register(trace, value), word(trace, dtype(0)))
        return
    number = register(trace, value)
    if dtype.bits == 8:
        wide = trace.register("b16")
        trace.instruction(f"cvt{dtype.ptx[:2]}16{dtype.ptx}", wide, number)
        number = wide
    trace.instruction(f"setp.ne.b{max(dtype.bits, 16)}", d, number, Integer(0))


def _small_float(trace: Trace, use: str, value: Scalar, made: Scalar) -> None:
    source, dtype = type(value), type(made)
    d = typed(Operand, made.operand)
    if source is float32 and dtype.name in _SMALL:
        trace.instruction(f"cvt.rn.satfinite{dtype.ptx}x2.f32", d, Float(0, 32), word(trace, value))
        return
    if source.name not in _SMALL or dtype not in (float16, float32):
        raise TraceError(
            f"{use}: PTX converts 8-bit floats e4m3 and e5m2 from float32, and to float16 (and from there to float32)"
            + where(trace)
        )
    pair = trace.register("b32")
    low = d if dtype is float16 else trace.register("b16")
    trace.instruction(f"cvt.rn.f16x2{source.ptx}x2", pair, register(trace, value))
    trace.instruction("mov.b32", Vector((low, trace.register("b16"))), pair)
    if dtype is float32:
        trace.instruction("cvt.f32.f16", d, low)


def _constant(value: Scalar, dtype: DType) -> Scalar:
    """A constant converted on the host, as the instruction would."""
    number = value.value
    assert number is not None
    if dtype is bool_:
        return bool_(number != 0)
    if dtype.kind == "float":
        return folding.make(dtype, normalize(dtype, number))
    if isinstance(number, float):
        low, high = integer_range(dtype)
        if number != number:
            return folding.make(
                dtype, 0 if dtype.bits < 64 and value.bits < 64 else (low or 1 << dtype.bits - 1)
            )
        if low - 1 < number < high + 1:
            return folding.make(dtype, int(number))
        return folding.make(dtype, high if number > 0 else low)
    return folding.make(dtype, folding.wrap(dtype, int(number)))


# --- bits -----------------------------------------------------------------------------------------------------------
def bitcast(value: Scalar, dtype: DType) -> Scalar:
    """The same bits as another dtype of the same width: one mov. Constants stay constants."""
    trace = current("pt.bitcast")
    _wanted("pt.bitcast", dtype)
    if not isinstance(value, Scalar):
        raise OperandError(
            f"pt.bitcast: {value!r} has no dtype; write pt.float32(…) or another" + where(trace)
        )
    source = type(value)
    use = f"pt.bitcast from {source.name} to {dtype.name}"
    if source.bits != dtype.bits or bool_ in (source, dtype):
        raise OperandError(f"{use}: the widths differ ({source.bits} and {dtype.bits} bits)" + where(trace))
    scalar(trace, source, value, use)
    if value.value is not None:
        return _of_bits(dtype, bits_of(value))
    made = trace.value(dtype)
    trace.instruction(f"mov.b{max(dtype.bits, 16)}", home(made), home(value))
    return made


def _of_bits(dtype: DType, bits: int) -> Scalar:
    if dtype.kind in ("int", "uint"):
        return folding.make(dtype, folding.wrap(dtype, bits))
    import numpy

    return folding.make(dtype, numpy.array([bits], f"<u{dtype.itemsize}").view(dtype.numpy)[0].item())


def pack(*values: object, dtype: DType | None = None) -> Scalar:
    """Values side by side in one unsigned carrier, the first in the lowest bits.

    Constants make a constant, also outside a trace: pt.pack(2.0, 2.0, dtype=pt.float16) is a uint32. Run-time values
    of 16 bits or more are packed by one `mov.bN d, {a, b, …}`; `dtype` may then be left out.
    """
    if dtype is None:
        dtype = next((type(value) for value in values if isinstance(value, Scalar)), None)
        if dtype is None:
            raise OperandError("pt.pack: say what the numbers are, as in pt.pack(2.0, 2.0, dtype=pt.float16)")
    _wanted("pt.pack", dtype)
    total = dtype.bits * len(values)
    if total not in (16, 32, 64) or len(values) < 2 or dtype is bool_:
        raise OperandError(
            f"pt.pack: {len(values)} values of {dtype.name} are {total} bits; a carrier has 16, 32 or 64 bits"
        )
    carrier = dtype_of(f"uint{total}")
    if all(not isinstance(value, Scalar) or value.value is not None for value in values):
        return folding.make(carrier, _packed_bits(dtype, values))
    trace = current("pt.pack")
    parts = [scalar(trace, dtype, value, "pt.pack") for value in values]
    if dtype.bits < 16:
        raise TraceError(
            f"pt.pack: PTX packs no run-time {dtype.name}; shift and or them as uint32" + where(trace)
        )
    made = trace.value(carrier)
    elements = Vector(tuple(register(trace, part) for part in parts))
    trace.instruction(f"mov.b{total}", home(made), elements)
    return made


def _packed_bits(dtype: DType, values: tuple[object, ...]) -> int:
    packed = 0
    for index, value in enumerate(values):
        if isinstance(value, Scalar) and dtype_in(value) is not dtype:
            raise OperandError(f"pt.pack: {dtype.name} is wanted and this is {type(value).name}")
        if not isinstance(value, Scalar):
            try:
                value = dtype(value)
            except (OverflowError, TypeError) as error:
                raise OperandError(f"pt.pack: {error}") from None
        packed |= bits_of(value) << index * dtype.bits
    return packed


def unpack(value: Scalar, dtype: DType) -> tuple[Scalar, ...]:
    """The values of `dtype` in a carrier, the lowest first: one `mov.bN {a, b, …}, r`."""
    trace = current("pt.unpack")
    _wanted("pt.unpack", dtype)
    if not isinstance(value, Scalar):
        raise OperandError(
            f"pt.unpack takes a uint32 or uint64 that carries the values, not {given(value)}" + where(trace)
        )
    source = type(value)
    count, rest = divmod(source.bits, dtype.bits)
    if source.kind != "uint" or source.bits < 32 or dtype.bits < 16 or rest or count < 2:
        raise OperandError(
            f"pt.unpack: a {source.name} holds no whole number of {dtype.name}; a carrier is a uint32 or uint64 and "
            "its parts have 16 bits or more" + where(trace)
        )
    packed = register(trace, scalar(trace, source, value, "pt.unpack"))
    parts = tuple(trace.value(dtype) for _ in range(count))
    trace.instruction(f"mov.b{source.bits}", Vector(tuple(home(part) for part in parts)), packed)
    return parts
