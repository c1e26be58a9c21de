"""From the Python values of a call to IR operands, guided by the signatures of the form.

The rules, which error messages repeat:
  a run-time value   stands in a slot of its own dtype: .f32 takes float32; .bN takes any dtype carried in N bits; an
                     integer type takes int or uint of its width; .f16 takes float16 or its uint16 carrier; packed types
                     take their unsigned carrier
  a Python number    stands for a constant of an integer or float slot that is not packed; a float never fits an integer
  a typed constant   stands as a literal if its dtype fits; where the slot takes registers only, a mov puts it in one
  a tuple            is a brace vector, or a pair p|q; None is the sink `_`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Union, runtime_checkable

from ptxtile import location
from ptxtile.builder.slots import destination_dtype, dtype_fits, expected, is_packed
from ptxtile.dtypes import DType, Scalar, bits_of, bool_, dtype_of
from ptxtile.encoding import normalize
from ptxtile.errors import OperandError
from ptxtile.ir.instruction import Guard
from ptxtile.ir.operand import (
    Address,
    Arguments,
    Float,
    Integer,
    Label,
    Negated,
    Operand,
    Pair,
    Register,
    Selected,
    Sink,
    Special,
    Symbol,
    Vector,
)
from ptxtile.isa import bind, check_literals, type_bits
from ptxtile.isa.form import Form, Named, Operand as Slot, Shape, Signature

if TYPE_CHECKING:
    from ptxtile.builder.trace import Trace

_IR = (
    Address,
    Arguments,
    Float,
    Integer,
    Label,
    Negated,
    Pair,
    Register,
    Selected,
    Sink,
    Special,
    Symbol,
    Vector,
)
_NARROW_SPACES = (".shared", ".shared::cta", ".shared::cluster", ".local")


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant that still has to be moved into a register, because its slot takes nothing else."""

    dtype: DType
    literal: Integer | Float


Converted = Union[Operand, Constant, "Group"]


@dataclass(frozen=True, slots=True)
class Group:
    """A vector or pair whose elements may still hold constants."""

    kind: str
    elements: tuple[Converted, ...]


@runtime_checkable
class Addressable(Protocol):
    """Anything in memory that an address operand may name: a tensor element, a pointer with an offset."""

    def address(self, trace: Trace, space: str) -> Address:
        """Its address for an instruction of that state space ("" is generic); OperandError if it lies elsewhere."""
        ...


class Mismatch(Exception):
    """Why a value does not fit a slot; never leaves the library. `whole`: the reason needs no word of what is due."""

    def __init__(self, reason: str, whole: bool = False) -> None:
        super().__init__(reason)
        self.whole = whole


def refusal(slot: Slot, value: object, reason: Mismatch) -> str:
    """Why a value does not stand in a slot, for a message."""
    if reason.whole:
        return f"operand {slot.name}: {reason}"
    detail = f": {reason}" if str(reason) else ""
    return f"operand {slot.name} takes {expected(slot)}, not {given(value)}{detail}"


def given(value: object) -> str:
    """What the user passed, briefly."""
    if isinstance(value, Scalar):
        return f"a run-time {type(value).name}" if value.value is None else repr(value)
    if isinstance(value, _IR):
        return str(value)
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, (int, float, str)) or value is None:
        return repr(value)
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"


# --- one value ------------------------------------------------------------------------------------------------------
def literal(dtype: DType, value: int | float) -> Integer | Float:
    """The literal of a constant: floats of 32 and 64 bits by their bits, all else as an integer."""
    bits = bits_of(dtype(value))
    if dtype.kind == "float" and dtype.bits >= 32:
        return Float(bits, dtype.bits)
    return Integer(int(value)) if dtype.kind in ("int", "uint") else Integer(bits)


def _number(slot: Slot, value: int | float) -> Converted:
    type_ = slot.type or ""
    if is_packed(type_):
        raise Mismatch(f"a plain number holds one value: pack it, pt.pack({value!r}, …, dtype=…)")
    if type_ == ".pred":
        raise Mismatch("a predicate is a run-time bool_")
    if isinstance(value, bool):
        raise Mismatch("a bool is no number here")
    if not slot.register or (type_[1:2] in ("u", "s", "b") and type_[2:].isdigit()):
        if not isinstance(value, int):
            raise Mismatch(f"{value!r} is no integer")
        width = type_bits(type_) if type_ else 64
        if not -(1 << width - 1) <= value < 1 << width:
            raise Mismatch(f"{value} does not fit {width} bits")
        return Integer(value) if slot.immediate else Constant(dtype_of(f"uint{width}"), Integer(value))
    try:
        dtype = next(d for d in _FLOATS if d.ptx == type_)
    except StopIteration:
        raise Mismatch(f"a plain {value!r} has no encoding in {type_}") from None
    word = literal(dtype, normalize(dtype, value))
    return word if slot.immediate and isinstance(word, Float) else Constant(dtype, word)


_FLOATS = tuple(dtype_of(name) for name in ("float16", "bfloat16", "float32", "float64"))


def _scalar(trace: Trace, form: Form, slot: Slot, value: Scalar) -> Converted:
    dtype = type(value)
    if slot.kind == "address":
        if dtype.kind not in ("int", "uint") or dtype.bits < 32:
            raise Mismatch("an address is an integer of 64 bits (32 in shared and local memory)")
        if value.value is not None:
            raise Mismatch("an address is a run-time value")
        if dtype.bits == 32 and slot.space not in _NARROW_SPACES:
            raise Mismatch("an address here has 64 bits")
        trace.live(value, form.spelling)
        return Address(value.operand)  # type: ignore[arg-type]
    if not dtype_fits(slot, dtype) and slot.register:
        raise Mismatch("")
    if not slot.register:
        if value.value is None:
            raise Mismatch("its value must be known while tracing")
        return _number(slot, value.value)
    if value.value is not None:
        if slot.role != "in":
            raise Mismatch(
                f"a destination must be a variable, and this is a constant; make one with pt.reg({dtype!r})",
                True,
            )
        word = literal(dtype, value.value)
        kind = f"f{word.width}" if isinstance(word, Float) else "int"
        return word if slot.immediate and kind in slot.literals else Constant(dtype, word)
    trace.live(value, form.spelling)
    if slot.role != "in" and not value.mutable:
        raise Mismatch(
            f"a destination must be a variable, and this {dtype.name} is a value; make one with pt.reg({dtype!r})",
            True,
        )
    return value.operand  # type: ignore[return-value]


def _group(trace: Trace, form: Form, slot: Slot, value: object) -> Converted:
    if not isinstance(value, (tuple, list)):
        raise Mismatch("")
    if slot.kind == "pair":
        if len(value) != 2:
            raise Mismatch("")
        return Group("|", tuple(convert(trace, form, part, item) for part, item in zip(slot.elements, value)))
    if len(value) != slot.length:
        raise Mismatch("")
    element = Slot(
        slot.name, slot.role, "value", slot.type, slot.carrier, slot.registers, immediate=slot.immediate,
        sink=slot.sink, register=slot.register, literals=slot.literals,
    )  # fmt: skip
    return Group("{", tuple(convert(trace, form, element, item) for item in value))


def convert(trace: Trace, form: Form, slot: Slot, value: object) -> Converted:
    """The IR operand of one Python value in one slot; Mismatch (with a reason, or an empty one) if it does not fit."""
    if isinstance(value, _IR):
        return value  # `bind` judges it
    if slot.kind in ("pair", "vector"):
        return _group(trace, form, slot, value)
    if isinstance(value, Scalar):
        return _scalar(trace, form, slot, value)
    if slot.kind == "address":
        if isinstance(value, Addressable):
            try:
                return value.address(trace, slot.space or "")
            except OperandError as error:
                raise Mismatch(str(error), True) from None
        if isinstance(value, (tuple, list)) and value and isinstance(value[0], Addressable):
            raise Mismatch("a tensor or a pointer stands alone; t[i : i + 1] begins at element i")
        raise Mismatch("")
    if slot.kind in ("label", "function") and isinstance(value, str):
        return Label(value) if slot.kind == "label" else Symbol(value, "func")
    if value is None and slot.sink:
        return Sink()
    item = getattr(value, "item", None)
    if item is not None and not isinstance(value, (int, float)) and getattr(value, "ndim", 1) == 0:
        return _scalar(trace, form, slot, dtype_of(value)(item()))
    if slot.kind == "value" and isinstance(value, (int, float)):
        return _number(slot, value)
    raise Mismatch("")


# --- a whole call ---------------------------------------------------------------------------------------------------
def guard(trace: Trace, what: str, pred: object) -> Guard | None:
    """The guard of `pred=`: a run-time bool_, or an IR Negated or Register of one."""
    if pred is None:
        return None
    if isinstance(pred, Negated):
        return Guard(pred.register, True)
    if isinstance(pred, Register) and pred.type == "pred":
        return Guard(pred)
    if isinstance(pred, bool_) and pred.value is None:
        trace.live(pred, what)
        return Guard(pred.operand)  # type: ignore[arg-type]
    raise OperandError(
        f"{what}: pred= takes a run-time bool_, such as a comparison gives, not {given(pred)}"
        + location.quote(location.here())
    )


def emit(trace: Trace, form: Form, operands: tuple[object, ...], pred: object) -> object:
    """Append one raw instruction; see Trace.emit."""
    guarded = guard(trace, form.spelling, pred)
    named = bool(operands) and isinstance(operands[0], Named)
    if named:
        operands = (operands[0].destination, *operands[1:])  # type: ignore[attr-defined]
    reasons: list[str] = []
    readings: list[tuple[Signature, list[Converted], bool]] = []
    for signature in form.signatures:
        slots = signature.operands
        if len(slots) == len(operands):
            _try(trace, form, signature, operands, slots, False, readings, reasons)
        elif len(slots) == len(operands) + 1 and _makes_register(slots) and not named:
            _try(trace, form, signature, operands, slots[1:], True, readings, reasons)
    full = [reading for reading in readings if not reading[2]]
    short = [reading for reading in readings if reading[2]]
    if not readings:
        raise OperandError(_no_fit(form, operands, reasons) + location.quote(location.here()))
    if short and (full or guarded is not None):
        why = (
            "with pred= its old value matters"
            if guarded
            else "its operands fit with and without one in front"
        )
        raise OperandError(
            f"{form.spelling}: name the destination with dst=: {why}" + location.quote(location.here())
        )
    signature, converted, makes = readings[0]
    result: object = (
        operands[0] if operands and signature.operands and signature.operands[0].role != "in" else None
    )
    if makes:
        made = trace.value(destination_dtype(signature.operands[0]))
        result = made
        converted = [made.operand, *converted]  # type: ignore[list-item]
    words = [settle(trace, word) for word in converted]
    bound = bind(form, tuple(word.shape for word in words))
    _check_literals(form, bound, words)
    trace.append(form, bound, words, guarded)
    if not makes and not named and all(isinstance(operand, Scalar) for operand in operands) and _plain(bound):
        trace.remember(form, tuple(map(type, operands)), bound)
    return result


def _check_literals(form: Form, bound: Signature, words: Sequence[Operand]) -> None:
    """OperandError, at the user's line, for an integer that the instruction has no room for."""
    if any(type(word) is Integer for word in words):
        try:
            check_literals(form, bound, [word.value if type(word) is Integer else None for word in words])
        except OperandError as error:
            raise OperandError(f"{error}{location.quote(location.here())}") from None


def _plain(signature: Signature) -> bool:
    """Whether every operand is the value's own register: an address or a vector is more than that."""
    return all(slot.kind == "value" for slot in signature.operands)


def _makes_register(slots: Sequence[Slot]) -> bool:
    first = slots[0]
    return first.role == "out" and first.kind == "value" and sum(slot.role != "in" for slot in slots) == 1


def _try(
    trace: Trace,
    form: Form,
    signature: Signature,
    operands: Sequence[object],
    slots: Sequence[Slot],
    makes: bool,
    readings: list[tuple[Signature, list[Converted], bool]],
    reasons: list[str],
) -> None:
    words: list[Converted] = []
    for slot, operand in zip(slots, operands):
        try:
            words.append(convert(trace, form, slot, operand))
        except Mismatch as reason:
            reasons.append(refusal(slot, operand, reason))
            return
    try:
        shapes = tuple(_shape(word) for word in words)
        if makes:
            shapes = (signature.operands[0].carrier or "", *shapes)
        if bind(form, shapes) is signature:
            readings.append((signature, words, makes))
    except OperandError as error:
        reasons.append(str(error).partition(": ")[2] or str(error))


def _shape(word: Converted) -> Shape:
    if isinstance(word, Constant):
        return word.dtype.register
    if isinstance(word, Group):
        return (word.kind, *(_shape(element) for element in word.elements))
    return word.shape


def settle(trace: Trace, word: Converted) -> Operand:
    """Move constants into registers where their slots take nothing else."""
    if isinstance(word, Constant):
        made = trace.register(word.dtype.register)
        if word.dtype is bool_:  # there is no mov.pred of a literal
            trace.instruction("setp.eq.b32", made, word.literal, Integer(1))
            return made
        bits = word.dtype.register[1:]
        type_ = word.dtype.register if word.dtype.register[0] == "f" else f"b{bits}"
        trace.instruction(f"mov.{type_}", made, word.literal)
        return made
    if isinstance(word, Group):
        parts = tuple(settle(trace, element) for element in word.elements)
        return Pair(*parts) if word.kind == "|" else Vector(parts)
    return word


def _no_fit(form: Form, operands: Sequence[object], reasons: Sequence[str]) -> str:
    if reasons:
        unique = list(dict.fromkeys(reasons))
        if len(unique) == 1:
            return f"{form.spelling}: {unique[0]}"
        return f"{form.spelling}: the operands fit none of its signatures" + "".join(
            f"\n  {r}" for r in unique
        )
    lists = dict.fromkeys(
        ", ".join(slot.name for slot in s.operands) or "no operands" for s in form.signatures
    )
    return f"{form.spelling} takes {' or '.join(lists)}; {counted(len(operands))} given"


def counted(count: int) -> str:
    """ "1 was", "2 were"."""
    return f"{count} was" if count == 1 else f"{count} were"
