"""Instructions with memory operands beside registers: atom, red, copies, prefetches. One issue a repeat.

A family says, for each address slot, what its atom is (`Place`); all else follows from the signature: tensors in memory
and register tensors repeat alike, other operands serve every repeat. An address may also be a register tensor of
addresses, (…, 1): uint64, or uint32 in shared memory; such addresses are the caller's, nothing is proven of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ptxtile.builder import convert
from ptxtile.builder.convert import Mismatch
from ptxtile.builder.hopper import cluster
from ptxtile.builder.storage import Memory, Registers
from ptxtile.builder.tensors import Tensor
from ptxtile.builder.trace import Trace
from ptxtile.errors import OperandError, TileError
from ptxtile.ir.operand import Address, Operand, Register, Symbol, Vector
from ptxtile.isa.form import Form, Operand as Slot, Signature
from ptxtile.tile import operand, overlap, places, predicate, registers
from ptxtile.tile.family import Call
from ptxtile.tile.operand import Shape
from ptxtile.tile.places import Region
from ptxtile.tile.scope import coordinate


@dataclass(frozen=True, slots=True)
class Place:
    """How an address slot takes its tensor.

    length     elements of the atom, the last axis; 0: as many as `size` bytes are
    bits       of an element; 0 for any
    size       bytes of the atom where `length` is 0
    alignment  bytes, of each atom
    writes     two atoms must not be one place
    remote     the address is of another CTA of the cluster, `remote=`
    """

    length: int
    bits: int
    alignment: int
    writes: bool = False
    size: int = 0
    remote: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """One operand of every repeat; `repeat` is None where it is the same in all."""

    name: str
    repeat: Shape | None
    words: Sequence[Operand]
    registers: Sequence[Sequence[Register]] = ()


def signature_of(form: Form, names: Sequence[str]) -> Signature:
    """The signature whose operands have these names. OperandError if there is none."""
    for signature in form.signatures:
        if [slot.name for slot in signature.operands] == list(names):
            return signature
    lists = " or ".join(", ".join(slot.name for slot in each.operands) for each in form.signatures)
    raise OperandError(f"{form.spelling} takes {lists}; given are {', '.join(names)}")


def issue(
    call: Call,
    signature: Signature,
    given: Sequence[object],
    atoms: Mapping[str, Place],
    remote: object = None,
) -> None:
    """One instruction a repeat; `given` has one entry a slot, `atoms` one Place for each tensor in memory."""
    form, trace = call.form, call.trace
    columns = [
        _column(call, slot, item, atoms.get(slot.name), remote)
        for slot, item in zip(signature.operands, given)
    ]
    repeating = [column for column in columns if column.repeat is not None]
    if not repeating:
        raise TileError(
            f"{form.spelling}: no operand is a tensor; call the form itself for a single instruction"
        )
    first = repeating[0]
    for column in repeating[1:]:
        if column.repeat != first.repeat:
            raise TileError(
                f"{form.spelling}: operand {column.name} has repeats {column.repeat}, and {first.name} has "
                f"{first.repeat}: all tensor operands repeat alike"
            )
    issues, repeat = len(first.words), first.repeat or ()
    outs = [slot.role != "in" for slot in signature.operands]
    held = [(c, out) for c, out in zip(columns, outs)]
    predicate.check_preserve(
        form.spelling, call.preserve_dst, call.pred, any(out and c.registers for c, out in held)
    )
    words = [c.words if c.repeat is not None else list(c.words) * issues for c in columns]
    guards = predicate.guards(trace, form.spelling, call.pred, call.group, repeat, issues)
    written = [(f"{form.spelling}: operand {c.name}", c.registers) for c, out in held if out and c.registers]
    read = [(c.name, column) for (c, out), column in zip(held, words) if not out]
    overlap.check(form.spelling, written, [*read, *overlap.guarded(guards)])
    registers.emit(trace, form, words, guards)


def _column(call: Call, slot: Slot, given: object, atom: Place | None, remote: object) -> Column:
    if slot.kind == "address" and atom is not None:
        return _address(call, slot, given, atom, remote)
    if isinstance(given, Tensor) and slot.kind in ("value", "vector"):
        return _registers(call, slot, given)
    form = call.form
    if isinstance(given, Tensor) and slot.kind != "address":
        raise OperandError(f"{form.spelling}: operand {slot.name} takes no tensor")
    try:
        word = convert.settle(call.trace, convert.convert(call.trace, form, slot, given))
    except Mismatch as reason:
        raise OperandError(f"{form.spelling}: {convert.refusal(slot, given, reason)}") from None
    if slot.kind == "address" and remote is not None and isinstance(word, Address):
        word = mapped(call.trace, [word], remote)[0]
    return Column(slot.name, None, [word])


def _registers(call: Call, slot: Slot, tensor: Tensor) -> Column:
    what = f"{call.form.spelling}: operand {slot.name}"
    why = registers.tensor_why_not(slot, tensor)
    if why:
        raise OperandError(f"{call.form.spelling}: {why}")
    parts = operand.split(what, tensor, call.group, (slot.length,))
    operand.check_owner(what, tensor, call.group)
    rows = operand.issue_registers(tensor, parts)
    words: list[Operand] = [Vector(row) if slot.kind == "vector" else row[0] for row in rows]
    return Column(slot.name, parts.repeat, words, rows)


def _address(call: Call, slot: Slot, given: object, atom: Place, remote: object) -> Column:
    form, trace = call.form, call.trace
    what = f"{form.spelling}: operand {slot.name}"
    space = slot.space or ""
    if isinstance(given, Tensor) and isinstance(given.bound, Registers):
        return _given_addresses(call, slot, given)
    tensor = places.memory_tensor(what, given, space, ", ".join(s.name for s in form.signatures[0].operands))
    assert isinstance(tensor.bound, Memory)
    unit = tensor.dtype.itemsize
    if atom.bits and unit * 8 != atom.bits:
        raise OperandError(
            f"{what}: the form takes elements of {atom.bits} bits and the tensor's are {tensor.dtype.name}; view(…) it "
            f"as a dtype of {atom.bits} bits"
        )
    if not atom.length and atom.size % unit:
        raise TileError(f"{what}: {atom.size} bytes are no whole number of {tensor.dtype.name} elements")
    length = atom.length or atom.size // unit
    parts = operand.split(what, tensor, call.group, (length,))
    region = Region(what, tensor, space, length, atom.alignment)
    places.check(trace, region, call.pred)
    if atom.writes:
        places.check_store(region)
    found = places.of_repeats(trace, region, parts, coordinate(call.group))
    if atom.remote and remote is not None:
        found = mapped(trace, found, remote)
    return Column(slot.name, parts.repeat, found)


def _given_addresses(call: Call, slot: Slot, tensor: Tensor) -> Column:
    what = f"{call.form.spelling}: operand {slot.name}"
    narrow = (slot.space or "").startswith((".shared", ".local"))
    widths = (32, 64) if narrow else (64,)
    if tensor.dtype.kind not in ("int", "uint") or tensor.dtype.bits not in widths:
        raise OperandError(
            f"{what} takes a tensor in memory, or a register tensor of addresses (uint64"
            f"{', or uint32 here' if narrow else ''}), not of {tensor.dtype.name}"
        )
    parts = operand.split(what, tensor, call.group, (1,))
    operand.check_owner(what, tensor, call.group)
    rows = operand.issue_registers(tensor, parts)
    return Column(slot.name, parts.repeat, [Address(row[0]) for row in rows])


def mapped(trace: Trace, found: Sequence[Address], cta: object) -> list[Address]:
    """The same places in another CTA of the cluster: one mapa for each base."""
    bases: dict[Register | Symbol, Address] = {}
    made = []
    for address in found:
        base = address.base
        assert isinstance(base, (Register, Symbol))
        if base not in bases:
            bases[base] = cluster.remote(trace, Address(base), cta)
        made.append(Address(bases[base].base, address.offset))
    return made
