"""Tile operations whose operands are registers and literals: any form, without code of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Union

from ptxtile import location
from ptxtile.builder import convert, slots
from ptxtile.builder.convert import Mismatch
from ptxtile.builder.storage import Registers
from ptxtile.builder.tensors import Tensor
from ptxtile.builder.trace import Trace
from ptxtile.errors import OperandError, TileError
from ptxtile.ir.operand import Integer, Operand, Pair, Register, Vector
from ptxtile.isa import bind, check_literals
from ptxtile.isa.form import Form, Operand as Slot, Signature
from ptxtile.tile import operand, overlap, predicate
from ptxtile.tile.family import Call, Family
from ptxtile.tile.scope import Group

Given = Union[Tensor, object]


@dataclass(frozen=True, slots=True)
class Part:
    """One tensor of a call: where it stands, and the slot it fills."""

    what: str
    slot: Slot
    tensor: Tensor


def apply(
    trace: Trace, form: Form, operands: Sequence[object], group: Group, pred: object, preserve_dst: bool
) -> None:
    """One instruction a repeat, registers taken from the operands' layouts."""
    signature = choose(trace, form, operands)
    parts = [part for slot, given in zip(signature.operands, operands) for part in _parts(form, slot, given)]
    if not parts:
        raise TileError(
            f"{form.spelling}: no operand is a tensor; call the form itself for a single instruction"
        )
    predicate.check_preserve(form.spelling, preserve_dst, pred, any(part.slot.role != "in" for part in parts))
    repeat, tables = _tables(parts, group)
    issues = len(next(iter(tables.values())))
    columns = [
        _column(trace, form, slot, given, tables, issues) for slot, given in zip(signature.operands, operands)
    ]
    guards = predicate.guards(trace, form.spelling, pred, group, repeat, issues)
    written = [(part.what, tables[id(part.tensor)]) for part in parts if part.slot.role != "in"]
    read = [(slot.name, column) for slot, column in zip(signature.operands, columns) if slot.role != "out"]
    overlap.check(form.spelling, written, [*read, *overlap.guarded(guards)])
    emit(trace, form, columns, guards)


def emit(trace: Trace, form: Form, columns: Sequence[Sequence[Operand]], guards: predicate.Guards) -> None:
    """Append one instruction a row; every row has operands of the same kinds, so one binding serves all."""
    rows = list(zip(*columns))
    if rows:
        bound = bind(form, tuple(word.shape for word in rows[0]))
        check_literals(form, bound, [word.value if type(word) is Integer else None for word in rows[0]])
        trace.append_rows(form, bound, rows, guards, trace.source or location.mark(2))


def _parts(form: Form, slot: Slot, given: object) -> list[Part]:
    if isinstance(given, Tensor):
        return [Part(f"{form.spelling}: operand {slot.name}", slot, given)]
    if slot.kind == "pair" and isinstance(given, (tuple, list)):
        return [part for inner, item in zip(slot.elements, given) for part in _parts(form, inner, item)]
    return []


def _tables(
    parts: Sequence[Part], group: Group
) -> tuple[tuple[int, ...], dict[int, list[tuple[Register, ...]]]]:
    """The common repeat shape, and each tensor's registers a repeat, by the tensor's identity."""
    first: tuple[Part, tuple[int, ...]] | None = None
    tables: dict[int, list[tuple[Register, ...]]] = {}
    for part in parts:
        split = operand.split(part.what, part.tensor, group, (part.slot.length,))
        if first is None:
            first = part, split.repeat
        elif split.repeat != first[1]:
            raise TileError(
                f"{part.what} has repeats {split.repeat}, and {first[0].slot.name} has {first[1]}: all tensor operands "
                "repeat alike"
            )
        operand.check_owner(part.what, part.tensor, group)
        tables[id(part.tensor)] = operand.issue_registers(part.tensor, split)
    assert first is not None
    return first[1], tables


def _column(
    trace: Trace,
    form: Form,
    slot: Slot,
    given: object,
    tables: dict[int, list[tuple[Register, ...]]],
    issues: int,
) -> Sequence[Operand]:
    """The operand of each repeat."""
    if isinstance(given, Tensor):
        rows = tables[id(given)]
        if slot.kind == "vector":
            return [Vector(row) for row in rows]
        return [row[0] for row in rows]
    if slot.kind == "pair" and isinstance(given, (tuple, list)):
        halves = [
            _column(trace, form, inner, item, tables, issues) for inner, item in zip(slot.elements, given)
        ]
        return [Pair(p, q) for p, q in zip(*halves)]
    return [convert.settle(trace, convert.convert(trace, form, slot, given))] * issues


# --- choosing the signature -----------------------------------------------------------------------------------------
def choose(trace: Trace, form: Form, operands: Sequence[object]) -> Signature:
    """The one signature that these operands fit; OperandError that says what each slot takes otherwise."""
    fitting: list[Signature] = []
    reasons: list[str] = []
    for signature in form.signatures:
        if len(signature.operands) != len(operands):
            continue
        why = next(
            filter(None, (_why_not(trace, form, s, o) for s, o in zip(signature.operands, operands))), ""
        )
        if why:
            reasons.append(why)
        else:
            fitting.append(signature)
    if fitting:
        return fitting[0]
    if not reasons:
        counts = sorted({len(signature.operands) for signature in form.signatures})
        lists = dict.fromkeys(", ".join(slot.name for slot in s.operands) or "none" for s in form.signatures)
        raise OperandError(
            f"{form.spelling} takes {' or '.join(map(str, counts))} operands ({' or '.join(lists)}); "
            f"{convert.counted(len(operands))} given"
        )
    unique = list(dict.fromkeys(reasons))
    if len(unique) == 1:
        raise OperandError(f"{form.spelling}: {unique[0]}")
    raise OperandError(
        f"{form.spelling}: the operands fit none of its signatures" + "".join(f"\n  {r}" for r in unique)
    )


def _why_not(trace: Trace, form: Form, slot: Slot, given: object) -> str:
    """Why one operand does not fit one slot; empty if it does."""
    if slot.kind == "pair" and isinstance(given, (tuple, list)) and len(given) == 2:
        return next(filter(None, (_why_not(trace, form, s, g) for s, g in zip(slot.elements, given))), "")
    if isinstance(given, Tensor):
        return tensor_why_not(slot, given)
    if given is None and slot.sink:
        return ""
    if slot.role != "in":
        return f"operand {slot.name} is a destination and takes a register tensor, not {convert.given(given)}"
    if slot.kind == "vector":
        due = f"a register tensor whose last axis is {slot.length}"
        return f"operand {slot.name} takes {due}, not {convert.given(given)}"
    try:
        convert.convert(trace, form, slot, given)
    except Mismatch as reason:
        return convert.refusal(slot, given, reason)
    return ""


def tensor_why_not(slot: Slot, tensor: Tensor) -> str:
    """Why a tensor's registers do not fit a slot; empty if they do."""
    if slot.kind not in ("value", "vector") or not slot.register:
        return f"operand {slot.name} takes {slots.expected(slot)}, not a tensor"
    if not isinstance(tensor.bound, Registers):
        return (
            f"operand {slot.name} takes registers, and the tensor is in {tensor.space} memory: load it first"
        )
    if not slots.dtype_fits(slot, tensor.dtype, tensor.bound.registers[0].type):
        return f"operand {slot.name} takes {slots.expected(slot)}, not a tensor of {tensor.dtype.name}"
    return ""


def _issue(call: Call) -> None:
    apply(call.trace, call.form, call.operands, call.group, call.pred, call.preserve_dst)


FAMILY = Family(
    name="registers",
    section="9.7",
    starts=("",),
    operands=("as the manual writes them; a tuple for d|p",),
    atoms="(N,): 1, or the registers of a brace group",
    carriers="the slot's dtype; packed types in their unsigned carrier",
    judges=("ptxas", "emulator", "H200"),
    issue=_issue,
)
