"""ld and st over tensors: one instruction a repeat, its vector the atom (PTX ISA 9.7.9.8 and 9.7.9.12).

Operands: ld takes (registers, memory[, cache_policy]), st (memory, registers[, cache_policy]); both tensors end in the
atom (N,), N being 1 or the .vN of the form. Memory atoms are consecutive, aligned to their size, and in bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ptxtile.builder import convert
from ptxtile.builder.convert import Mismatch
from ptxtile.builder.storage import Memory
from ptxtile.builder.tensors import Tensor
from ptxtile.builder.trace import Trace
from ptxtile.errors import OperandError, TileError
from ptxtile.ir.operand import Operand, Vector
from ptxtile.isa import type_bits
from ptxtile.isa.form import Form, Operand as Slot, Signature
from ptxtile.tile import operand, overlap, places, predicate, registers
from ptxtile.tile.family import Call, Family, Parameter
from ptxtile.tile.operand import Split
from ptxtile.tile.places import Region
from ptxtile.tile.scope import Group, coordinate


@dataclass(frozen=True, slots=True)
class Access:
    """One ld or st, its operands told apart."""

    form: Form
    signature: Signature
    register_slot: Slot
    memory_slot: Slot
    registers: Tensor | None
    value: object
    memory: Tensor
    policy: object

    @property
    def loads(self) -> bool:
        return self.register_slot.role == "out"

    def name(self, which: str) -> str:
        slot = self.memory_slot if which == "memory" else self.register_slot
        return f"{self.form.spelling}: operand {slot.name}"


def apply(
    trace: Trace,
    form: Form,
    operands: Sequence[object],
    group: Group,
    pred: object,
    preserve_dst: bool,
    cache_policy: object = None,
) -> None:
    """See the module's docstring."""
    access = _access(form, operands, cache_policy)
    length = access.register_slot.length
    predicate.check_preserve(form.spelling, preserve_dst, pred, access.loads)
    parts = operand.split(access.name("memory"), access.memory, group, (length,))
    values = _values(trace, access, group, parts)
    region = _region(trace, access, pred)
    found = places.of_repeats(trace, region, parts, coordinate(group))
    guards = predicate.guards(trace, form.spelling, pred, group, parts.repeat, parts.issues)
    columns: list[Sequence[Operand]] = [values, found] if access.loads else [found, values]
    if access.policy is not None:
        slot = access.signature.operands[2]
        word = convert.settle(trace, convert.convert(trace, form, slot, access.policy))
        columns.append([word] * parts.issues)
    registers.emit(trace, form, columns, guards)


def _access(form: Form, operands: Sequence[object], policy: object) -> Access:
    wants_policy = ".L2::cache_hint" in form.modifiers
    if wants_policy and policy is None:
        raise TileError(
            f"{form.spelling}: .L2::cache_hint needs cache_policy=, a 64-bit value made by createpolicy"
        )
    if policy is not None and not wants_policy:
        raise TileError(f"{form.spelling}: cache_policy= is only for forms with .L2::cache_hint")
    due = 3 if wants_policy else 2
    signature = next(s for s in form.signatures if len(s.operands) == due)
    first, second = signature.operands[:2]
    loads = first.role == "out"
    order = "registers, memory" if loads else "memory, registers"
    if len(operands) != 2:
        raise OperandError(
            f"{form.spelling} takes 2 operands ({order}); {convert.counted(len(operands))} given"
        )
    held, memory = operands if loads else reversed(operands)
    slot, memory_slot = (first, second) if loads else (second, first)
    if not isinstance(memory, Tensor) or not isinstance(memory.bound, Memory):
        found = memory.space if isinstance(memory, Tensor) else convert.given(memory)
        raise OperandError(
            f"{form.spelling}: operand {memory_slot.name} takes a tensor in memory, not {found}; the order is {order}"
        )
    if isinstance(held, Tensor):
        why = registers.tensor_why_not(slot, held)
        if why:
            raise OperandError(f"{form.spelling}: {why}; the order is {order}")
    elif loads or slot.kind == "vector":
        raise OperandError(
            f"{form.spelling}: operand {slot.name} takes a register tensor, not {convert.given(held)}"
        )
    tensor = held if isinstance(held, Tensor) else None
    return Access(form, signature, slot, memory_slot, tensor, held, memory, policy)


def _values(trace: Trace, access: Access, group: Group, parts: Split) -> Sequence[Operand]:
    """The register operand of each repeat."""
    slot = access.register_slot
    if access.registers is None:
        try:
            word = convert.settle(trace, convert.convert(trace, access.form, slot, access.value))
        except Mismatch as reason:
            raise OperandError(
                f"{access.form.spelling}: {convert.refusal(slot, access.value, reason)}"
            ) from None
        return [word] * parts.issues
    what = access.name("registers")
    held = operand.split(what, access.registers, group, (slot.length,))
    if held.repeat != parts.repeat:
        raise TileError(
            f"{what} has repeats {held.repeat}, and {access.memory_slot.name} has {parts.repeat}: both repeat alike"
        )
    operand.check_owner(what, access.registers, group)
    rows = operand.issue_registers(access.registers, held)
    if access.loads and not operand.surely_distinct(access.registers, held):
        overlap.check_distinct(what, rows)
    if slot.kind == "vector":
        return [Vector(row) for row in rows]
    return [row[0] for row in rows]


def _region(trace: Trace, access: Access, pred: object) -> Region:
    """The memory operand, checked."""
    what, tensor, slot = access.name("memory"), access.memory, access.register_slot
    space = access.memory_slot.space or ""
    assert isinstance(tensor.bound, Memory)
    places.check_space(what, tensor.bound, space)
    width = type_bits(slot.type or "")
    if tensor.dtype.itemsize * 8 != width:
        raise OperandError(
            f"{what}: the form moves elements of {width} bits and the tensor's are {tensor.dtype.name}; "
            f"view(…) it as a dtype of {width} bits"
        )
    region = Region(what, tensor, space, slot.length, slot.length * tensor.dtype.itemsize)
    places.check(trace, region, pred)
    if not access.loads:
        places.check_store(region)
    return region


def _issue(call: Call) -> None:
    apply(
        call.trace,
        call.form,
        call.operands,
        call.group,
        call.pred,
        call.preserve_dst,
        call.parameters.get("cache_policy"),
    )


FAMILY = Family(
    name="ld, st",
    section="9.7.9.8 and 9.7.9.12",
    starts=("ld.", "st."),
    without=(".async", ".bulk"),
    operands=("ld: registers, memory", "st: memory, registers"),
    atoms="(N,): 1, or the N of .vN; consecutive and aligned in memory",
    carriers="elements of the form's width",
    parameters=(Parameter("cache_policy", "uint64 of createpolicy; due with .L2::cache_hint"),),
    judges=("ptxas", "emulator", "H200"),
    issue=_issue,
)
