"""`pt.printf(format, *values)`: the device's `vprintf` (CUDA C++ Programming Guide, formatted output).

The driver links it. The format is a zero-ended string in global memory, the values lie in a buffer of local memory as
C's varargs would: integers of up to 32 bits in 4 bytes, those of 64 bits and pointers in 8, floats as float64, each
aligned to its size.

    st.local.b32 [k$printf], %r0;                 once a value (floats: cvt.f64.… first; narrow integers: cvt.….…)
    mov.u64 %rd0, k$text_0;
    cvta.global.u64 %rd1, %rd0;
    mov.u64 %rd2, k$printf;
    cvta.local.u64 %rd3, %rd2;
    {
        .param .b64 $format;                      and .b64 $values, .b32 $count
        st.param.b64 [$format], %rd1;
        st.param.b64 [$values], %rd3;
        call ($count), vprintf, ($format, $values);
    }
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ptxtile.builder import convert
from ptxtile.builder.casting import cast
from ptxtile.builder.trace import Trace
from ptxtile.builder.values import constant, current, dtype_in, scalar, where, word
from ptxtile.dtypes import DType, float64, int32, int64, uint32, uint64
from ptxtile.errors import OperandError
from ptxtile.ir.module import Block, Function, Parameter, Statement, Variable
from ptxtile.ir.operand import Address, Arguments, Integer, Operand, Register, Symbol

__all__ = ["printf"]

_CONVERSION = re.compile(r"%(?:%|([-+ #0]*)(\*|\d+)?(?:\.(\*|\d*))?(hh|h|ll|l|j|z|t|L)?(.?))", re.DOTALL)
_GREATEST = 32
_WIDE = ("l", "ll", "j", "z", "t")
_SIGNED, _UNSIGNED, _FLOATS = "di", "uoxX", "fFeEgGaA"


@dataclass(frozen=True, slots=True)
class _Due:
    """What a conversion prints. `kind`: "int", "uint", "char", "float", "text" or "address"; `bits` of its place."""

    text: str
    kind: str
    bits: int


def printf(format: str, *values: object) -> None:
    """Print from every thread that gets here, as C's printf does; the output appears when the host synchronises.

    format   Python text. %d %i take int8 to int32, %u %o %x %X uint8 to uint32, with l or ll the 64-bit ones; %c an
             integer; %f %e %g %a (and capitals) every float, which is printed as a float64; %p a 64-bit integer; %s
             Python text. Flags, widths and precisions as in C; a width of * takes an int32. %% is a per cent sign.
    values   one for each conversion, at most 32; Python numbers take the conversion's type

    OperandError where a value is not what its conversion prints, and for %n.
    """
    trace = current("pt.printf")
    if not isinstance(format, str):
        raise OperandError(
            f"pt.printf: the format is Python text, not {convert.given(format)}" + where(trace)
        )
    wanted = _conversions(trace, format)
    if len(wanted) != len(values):
        plural = "" if len(wanted) == 1 else "s"
        raise OperandError(
            f"pt.printf: {format!r} prints {len(wanted)} value{plural}, and there are {len(values)}"
            + where(trace)
        )
    if len(values) > _GREATEST:
        raise OperandError(f"pt.printf prints at most {_GREATEST} values, not {len(values)}" + where(trace))
    words = [_value(trace, number, due, value) for number, (due, value) in enumerate(zip(wanted, values))]
    text = _text_address(trace, _text(trace, format))
    _call(trace, text, _store(trace, words))


# --- the format -----------------------------------------------------------------------------------------------------
def _conversions(trace: Trace, format: str) -> list[_Due]:
    """What the format prints, a * first."""
    found: list[_Due] = []
    for match in _CONVERSION.finditer(format):
        _, width, precision, length, letter = match.groups()
        if match.group() == "%%":
            continue
        if precision == "*":
            raise OperandError(
                f"pt.printf: {match.group()!r} takes its precision from a value, which CUDA's printf does not (an "
                "H200 prints it as it stands); write it into the format" + where(trace)
            )
        found += [_Due("*", "int", 32)] * (width == "*")
        found.append(_conversion(trace, match.group(), length or "", letter or ""))
    return found


def _conversion(trace: Trace, text: str, length: str, letter: str) -> _Due:
    bits = 64 if length in _WIDE else 32
    if letter and letter in _SIGNED + _UNSIGNED and length != "L":
        return _Due(text, "int" if letter in _SIGNED else "uint", bits)
    if letter and letter in _FLOATS and length in ("", "l"):
        return _Due(text, "float", 64)
    kinds = {"c": ("char", 32), "p": ("address", 64), "s": ("text", 64)}
    if letter in kinds and not length:
        return _Due(text, *kinds[letter])
    why = (
        "%n writes to memory, and the device has it not"
        if letter == "n"
        else "there are d i u o x X c f F e E g G a A p s"
    )
    raise OperandError(f"pt.printf: {text!r} is no conversion: {why}; a per cent sign is %%" + where(trace))


# --- the values -----------------------------------------------------------------------------------------------------
def _value(trace: Trace, number: int, due: _Due, value: object) -> tuple[DType, Operand]:
    """A value as it lies in the buffer: its dtype there, and its word."""
    if due.kind == "text":
        if not isinstance(value, str):
            raise _refused(trace, number, due, value, "Python text, which is known while tracing")
        return uint64, _text_address(trace, _text(trace, value))
    held: DType = {
        ("int", 32): int32, ("int", 64): int64, ("uint", 32): uint32, ("char", 32): int32, ("float", 64): float64,
    }.get((due.kind, due.bits), uint64)  # fmt: skip
    own = dtype_in(value)
    if own is None:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise _refused(trace, number, due, value, _named(due))
        if isinstance(value, float) and due.kind != "float":
            raise _refused(trace, number, due, value, _named(due))
        return held, word(
            trace, constant(trace, held, value, f"pt.printf: value {number}, printed by {due.text}")
        )
    if not _prints(due, own):
        raise _refused(trace, number, due, value, _named(due))
    made = scalar(trace, own, value, f"pt.printf: value {number}")
    if own.kind == "float":
        return float64, word(trace, made if own is float64 else cast(made, float64))
    if own.bits < 32:
        own = int32 if own.kind == "int" else uint32
        made = cast(made, own)
    return own, word(trace, made)


def _prints(due: _Due, own: DType) -> bool:
    if due.kind == "float":
        return own.kind == "float"
    if due.kind in ("char", "address"):
        return own.kind in ("int", "uint") and (own.bits == 64) is (due.bits == 64)
    return own.kind == due.kind and (own.bits == 64) is (due.bits == 64)


def _named(due: _Due) -> str:
    many = {
        ("int", 32): "int8, int16 or int32",
        ("uint", 32): "uint8, uint16 or uint32",
        ("char", 32): "an integer of up to 32 bits",
        ("address", 64): "uint64 or int64",
        ("float", 64): "a float",
    }
    return many.get((due.kind, due.bits), f"{due.kind}64")


_LETTERS = {"int": "d", "uint": "u", "float": "f"}


def _refused(trace: Trace, number: int, due: _Due, value: object, takes: str) -> OperandError:
    own, fits = dtype_in(value), ""
    if own is not None and own.kind in _LETTERS:
        fits = f"; %{'ll' if own.bits == 64 and own.kind != 'float' else ''}{_LETTERS[own.kind]} prints it"
    elif own is not None:
        fits = "; pt.cast(value, pt.int32) makes it 0 or 1"
    elif isinstance(value, str):
        fits = "; %s prints it"
    return OperandError(
        f"pt.printf: {due.text} prints {takes}, and value {number} is {convert.given(value)}{fits}"
        + where(trace)
    )


# --- what is emitted ------------------------------------------------------------------------------------------------
def _text(trace: Trace, text: str) -> Symbol:
    """A string in global memory, the same for equal texts of an entry."""
    raw = text.encode()
    if 0 in raw:
        raise OperandError(
            "pt.printf: a text ends at its first zero byte, and this one has one inside" + where(trace)
        )
    initial = tuple(Integer(byte) for byte in (*raw, 0))
    texts = [each for each in trace.globals if isinstance(each, Variable)]
    for each in texts:
        if each.initial == initial:
            return Symbol(each.name, "global")
    name = f"{trace.name}$text_{len(texts)}"
    trace.globals.append(Variable("global", "b8", name, (len(initial),), 1, initial=initial))
    return Symbol(name, "global")


def _text_address(trace: Trace, symbol: Symbol) -> Register:
    found = trace.computed((symbol, "generic"))
    if found is None:
        near, found = trace.register("b64"), trace.register("b64")
        trace.instruction("mov.u64", near, symbol)
        trace.instruction("cvta.global.u64", found, near)
        trace.remember_value((symbol, "generic"), found)
    return found


def _store(trace: Trace, words: Sequence[tuple[DType, Operand]]) -> Register | Integer:
    """The generic address of the buffer, which holds the values; 0 if there are none."""
    if not words:
        return Integer(0)
    buffer, end = Symbol(f"{trace.name}$printf", "local"), 0
    for dtype, value in words:
        size = dtype.bits // 8
        end = -(-end // size) * size
        trace.instruction(
            f"st.local.{'f64' if dtype is float64 else f'b{dtype.bits}'}", Address(buffer, end), value
        )
        end += size
    _reserve(trace, buffer.name, end)
    near, made = trace.register("b64"), trace.register("b64")
    trace.instruction("mov.u64", near, buffer)
    trace.instruction("cvta.local.u64", made, near)
    return made


def _reserve(trace: Trace, name: str, size: int) -> None:
    """One buffer serves all calls of an entry: it is as long as the longest needs."""
    for at, each in enumerate(trace.variables):
        if each.name == name:
            size = max(size, each.shape[0])
            del trace.variables[at]
            break
    trace.variables.append(Variable("local", "b8", name, (size,), 8))


_NAMES = ("$format", "$values", "$count")
_VPRINTF = Function(
    "vprintf",
    False,
    (Parameter("format", "b64"), Parameter("values", "b64")),
    (Parameter("count", "b32"),),
    (),
    "extern",
    None,
)


def _call(trace: Trace, text: Register, values: Register | Integer) -> None:
    if _VPRINTF not in trace.globals:
        trace.globals.insert(0, _VPRINTF)
    before = len(trace.records)
    format, buffer, count = (Symbol(name, "param") for name in _NAMES)
    trace.instruction("st.param.b64", Address(format), text)
    trace.instruction("st.param.b64", Address(buffer), values)
    function = Symbol("vprintf", "func")
    trace.instruction("call", Arguments((count,)), function, Arguments((format, buffer)))
    inside: list[Statement] = [
        Variable("param", "b64", _NAMES[0]),
        Variable("param", "b64", _NAMES[1]),
        Variable("param", "b32", _NAMES[2]),
        *trace.records[before:],
    ]
    trace.records[before:] = [Block(tuple(inside))]
