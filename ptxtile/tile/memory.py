"""ld and st over tensors: one instruction a repeat, its vector the atom (PTX ISA 9.7.9.8 and 9.7.9.12).

Operands: ld takes (registers, memory[, cache_policy]), st (memory, registers[, cache_policy]); both tensors end in the
atom (N,), N being 1 or the .vN of the form. Memory atoms are consecutive, aligned to their size, and in bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ptxtile.builder import addresses, convert, elements, ranges
from ptxtile.builder.convert import Mismatch
from ptxtile.builder.ranges import Comparison, Extent
from ptxtile.builder.storage import SPACES, Memory
from ptxtile.builder.tensors import Tensor
from ptxtile.builder.trace import Trace
from ptxtile.dtypes import Scalar
from ptxtile.errors import OperandError, TileError
from ptxtile.ir.operand import Address, Operand, Vector
from ptxtile.isa import type_bits
from ptxtile.isa.form import Form, Operand as Slot, Signature
from ptxtile.layout import ComposeLayout
from ptxtile.tile import operand, overlap, predicate, registers
from ptxtile.tile.family import Call, Family, Parameter
from ptxtile.tile.operand import Split
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
    _check_memory(trace, access, group, parts, pred)
    places = _addresses(trace, access, group, parts)
    guards = predicate.guards(trace, form.spelling, pred, group, parts.repeat, parts.issues)
    columns: list[Sequence[Operand]] = [values, places] if access.loads else [places, values]
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
    if access.loads:
        overlap.check_destination(what, rows)
    if slot.kind == "vector":
        return [Vector(tuple(row)) for row in rows]
    return [row[0] for row in rows]


# --- memory ---------------------------------------------------------------------------------------------------------
def _check_memory(trace: Trace, access: Access, group: Group, parts: Split, pred: object) -> None:
    what, tensor, slot = access.name("memory"), access.memory, access.register_slot
    storage = tensor.bound
    assert isinstance(storage, Memory)
    space = access.memory_slot.space or ""
    if storage.space not in SPACES.get(space, (space[1:],)):
        raise OperandError(
            f"{what} is {space or 'generic'} memory and the tensor is in {storage.space} memory"
        )
    width = type_bits(slot.type or "")
    if tensor.dtype.itemsize * 8 != width:
        raise OperandError(
            f"{what}: the form moves elements of {width} bits and the tensor's are {tensor.dtype.name}; "
            f"view(…) it as a dtype of {width} bits"
        )
    if tensor.layout is not None and any(axis.name != "m" for axis in tensor.layout.axes):
        owners = ", ".join(axis.name for axis in tensor.layout.axes if axis.name != "m")
        raise TileError(f"{what}: a memory tensor's layout lies on m alone, and this one names {owners}")
    extra = [pred.extent] if isinstance(pred, Scalar) and isinstance(pred.extent, Comparison) else []
    operand.prove_claims(trace, what, tensor, extra)
    _check_run(trace, what, tensor, slot.length)
    if not access.loads:
        _check_store(what, tensor)


def _check_run(trace: Trace, what: str, tensor: Tensor, length: int) -> None:
    """Consecutive elements, and every atom aligned to its size in bytes."""
    if length == 1:
        return
    storage = tensor.bound
    size = length * tensor.dtype.itemsize
    facts = [fact for known in trace.facts() for fact in ranges.facts_of(known)]
    if tensor.layout is None:
        consecutive = tensor.strides[-1].known == 1
        aligned = all(ranges.divisible(stride, length, facts) for stride in tensor.strides[:-1])
    else:
        consecutive = tensor.layout.is_run(tensor.static_shape, 1)
        aligned = consecutive and tensor.layout.run_alignment(tensor.static_shape, 1) % length == 0
    if not consecutive:
        raise TileError(
            f"{what}: the {length} elements of an atom must lie side by side in memory, and this layout puts them apart"
        )
    if storage.alignment % size:
        raise TileError(
            f"{what}: an atom of {size} bytes needs a base aligned to {size} bytes, and this tensor's is aligned to "
            f"{storage.alignment} (align=)"
        )
    if not aligned or not ranges.divisible(tensor.origin, length, facts):
        raise TileError(
            f"{what}: an atom of {size} bytes must start at a multiple of {size} bytes, which is not proven of every "
            "atom here" + _alignment_hint(tensor, length)
        )


def _alignment_hint(tensor: Tensor, length: int) -> str:
    if tensor.layout is None and any(stride.divisor() % length for stride in tensor.strides[:-1]):
        return (
            f": a row's length is not known to be a multiple of {length}; say so with pt.dim(name, "
            f"multiple_of={length})"
        )
    if tensor.origin.divisor() % length:
        return f": the region starts at element {tensor.origin}"
    return ": the layout's strides are not multiples of the atom"


def _check_store(what: str, tensor: Tensor) -> None:
    if tensor.layout is not None and not tensor.layout.is_injective("m"):
        raise TileError(
            f"{what}: two elements of the destination are one place in memory, so the order of the stores would "
            "decide; a destination's layout must be injective (no zero strides)"
        )


def _addresses(trace: Trace, access: Access, group: Group, parts: Split) -> list[Address]:
    tensor = access.memory
    storage = tensor.bound
    assert isinstance(storage, Memory)
    unit = tensor.dtype.itemsize
    start = operand.group_place(tensor, coordinate(group))
    generic = not access.memory_slot.space
    if tensor.layout is None:
        places = [start.plus(step) for step in operand.strided_places(tensor, parts)]
        found = [addresses.address(trace, storage, place, unit) for place in places]
    elif isinstance(tensor.layout, ComposeLayout):
        swizzle = tensor.layout.swizzle
        steps = [atom[0] for atom in operand.issue_places(tensor, parts)]
        found = [elements.swizzled(trace, storage, start.plus(step), swizzle, unit) for step in steps]
    else:
        found = _linear(
            trace, storage, start, [atom[0] for atom in operand.issue_places(tensor, parts)], unit
        )
    return [addresses.generic(trace, storage, address) for address in found] if generic else found


def _linear(trace: Trace, storage: Memory, start: Extent, steps: Sequence[int], unit: int) -> list[Address]:
    """One base computation; every repeat is a constant offset from it."""
    first = addresses.address(trace, storage, start.plus(steps[0]), unit)
    return [Address(first.base, first.offset + (step - steps[0]) * unit) for step in steps]


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
