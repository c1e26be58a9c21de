"""Operands for a signature, from what the table says of each: as text for the assembler and as shapes for `bind`."""

from __future__ import annotations

from dataclasses import dataclass, field

from ptxtile.isa import Operand, Shape, Signature
from ptxtile.isa.bind import elements
from tests.oracle.assembler import BANKS

_SPACES = {
    ".param": "in_param",
    ".param::entry": "in_param",
    ".param::func": "out_param",
    ".texref": "a_texref",
    ".samplerref": "a_samplerref",
    ".surfref": "a_surfref",
}
"""Spaces whose addresses are best given by name."""


@dataclass(slots=True)
class Registers:
    """Hands out registers, each once, so that no two operands are the same."""

    used: dict[str, int] = field(default_factory=dict)

    def next(self, carrier: str) -> str:
        bank = BANKS[carrier]
        self.used[bank] = self.used.get(bank, 0) + 1
        return f"{bank}{self.used[bank]}"


def write(signature: Signature) -> tuple[list[str], tuple[Shape, ...]]:
    """The operands' texts and shapes: registers where they may stand, else the least literal."""
    registers = Registers()
    lists = sum(operand.kind == "list" for operand in signature.operands)
    if lists == 1 and signature.operands[0].kind == "list":
        lists = 3  # results, and no arguments
    # What writes nothing to a register and names more than an address writes to memory.
    stores = len(signature.operands) > 1 and all(operand.role != "out" for operand in signature.operands)
    pairs = [_one(operand, registers, lists, stores) for operand in signature.operands]
    return [text for text, _ in pairs], tuple(shape for _, shape in pairs)


def statement(spelling: str, signature: Signature) -> str:
    """One instruction, with its semicolon."""
    return " ".join([spelling, ", ".join(write(signature)[0])]).strip() + ";"


def _one(operand: Operand, registers: Registers, lists: int, stores: bool) -> tuple[str, Shape]:
    kind = operand.kind
    if operand.negative:
        text, shape = _value(operand, registers)
        return f"-{text}", ("-", shape)
    if kind == "value":
        return _value(operand, registers)
    if kind == "sink":
        return "_", "_"
    if kind == "pair":
        first, second = (_one(each, registers, lists, stores) for each in operand.elements)
        return f"{first[0]}|{second[0]}", ("|", first[1], second[1])
    if kind == "vector":
        each = [_one(e, registers, lists, stores) for e in elements(operand)]
        return "{" + ", ".join(text for text, _ in each) + "}", ("{", *(shape for _, shape in each))
    if kind == "address":
        return _address(operand, registers, lists, stores)
    names: dict[str, tuple[str, Shape]] = {
        "label": ("there", "label"),
        "labels": ("targets", "label"),
        "function": (f"called{lists}", "sym:func"),
        "prototype": (f"like{lists}", "label"),
        "symbol": ("in_global", "sym:global"),
    }
    if kind == "list":
        register = registers.next("b32")
        return f"({register})", ("(", "b32")
    return names[kind]


def _value(operand: Operand, registers: Registers) -> tuple[str, Shape]:
    if operand.whole:
        return "%tid", "sreg:%tid"
    if operand.register:
        carrier = operand.carrier or "b32"
        if carrier not in operand.registers:
            carrier = min(operand.registers & BANKS.keys())
        register = registers.next(carrier)
        if operand.selected:
            return f"{register}.{operand.selector[0]}", (".", operand.selector[0], carrier)
        return register, carrier
    if operand.type in (".f32", ".f64"):
        return "1.0", "f64lit"
    least = operand.choices[0] if operand.choices else operand.bounds[0] if operand.bounds else 1
    return str(least), "int"


def _address(operand: Operand, registers: Registers, lists: int, stores: bool) -> tuple[str, Shape]:
    space = operand.space or ""
    if space in _SPACES:
        name = "out_param" if space == ".param" and stores else _SPACES[space]
        base: tuple[str, Shape] = (name, f"sym:{space[1:].partition('::')[0]}")
    else:
        carrier = operand.carrier or "b64"
        base = (registers.next(carrier), carrier)
    inside = [_one(each, registers, lists, stores) for each in operand.elements]
    text = ", ".join([base[0], *(each[0] for each in inside)])
    return f"[{text}]", ("[", base[1], *(each[1] for each in inside))
