"""What the operand slots of a form take, in dtypes: which fit, which a new destination gets, and the words for both."""

from __future__ import annotations

from ptxtile.dtypes import DType, bool_, dtype_of
from ptxtile.isa import type_bits
from ptxtile.isa.form import Operand as Slot

_PACKED_NAMES = ("x2", "x4", "x8", "x16", "x32")


def is_packed(type_: str) -> bool:
    """Whether a PTX type holds several values in one register (".f16x2")."""
    return type_.endswith(_PACKED_NAMES)


def dtype_fits(slot: Slot, dtype: DType, register: str | None = None) -> bool:
    """Whether a run-time value of `dtype`, in its own kind of register or in a `register`, may stand in the slot."""
    if slot.type is None or (register or dtype.register) not in slot.registers:
        return False
    type_ = slot.type
    if type_ == ".pred" or dtype is bool_:
        return type_ == ".pred" and dtype is bool_
    if type_[1] == "b" and type_[2:].isdigit():
        return dtype.kind != "float" or dtype.bits == type_bits(type_)
    if is_packed(type_):
        return dtype.kind == "uint"
    if type_[1] in "us" and type_[2:].isdigit():
        return dtype.kind in ("int", "uint") and (
            dtype.bits == type_bits(type_) or dtype.bits > type_bits(type_)
        )
    return dtype.ptx == type_ or (dtype.kind == "uint" and type_ not in (".f32", ".f64"))


def expected(slot: Slot) -> str:
    """What a slot takes, in the words of the library's user."""
    if slot.kind == "address":
        return f"an address{f' in {slot.space}' if slot.space else ''}"
    if slot.kind == "vector":
        return f"a tuple of {slot.length} values of type {slot.type}"
    if slot.kind == "pair":
        return "a tuple (p, q) of two destinations"
    if slot.kind != "value" or slot.type is None:
        return f"a {slot.kind}"
    type_ = slot.type
    if is_packed(type_):
        return f"{type_} packed in a uint{type_bits(type_)}"
    if not slot.register:
        return f"an integer constant{f' from {slot.bounds[0]} to {slot.bounds[1]}' if slot.bounds else ''}"
    return f"{type_}"


def destination_dtype(slot: Slot) -> DType:
    """The dtype of a new register for a destination slot: the slot's own type, or the unsigned carrier of its width."""
    type_ = slot.type or ""
    names = {".f16": "float16", ".bf16": "bfloat16", ".f32": "float32", ".f64": "float64", ".pred": "bool_"}
    if type_ in names:
        return dtype_of(names[type_])
    bits = type_bits(type_)
    if type_[1:2] in ("s", "u") and type_[2:].isdigit() and bits <= 64:
        return dtype_of(f"{'int' if type_[1] == 's' else 'uint'}{bits}")
    width = {8: 16, 4: 16, 6: 16}.get(bits, bits)
    return dtype_of(f"uint{width}")
