"""Targets and operands in words, for `explain` and for the pages of docs/isa."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import ptxtile as pt

if TYPE_CHECKING:
    from ptxtile.isa import Operand, Signature

__all__ = ["floors_text", "names_text", "operand_rows", "registers_text"]


def _ordered() -> list[str]:
    known = pt.isa.target_facts().targets
    return sorted(known, key=lambda name: (known[name].number, known[name].suffix))


def names_text(names: Iterable[str]) -> str:
    """Targets in few words: "sm_80 and later", "the sm_100f family and sm_120a", "sm_75 to sm_89".

    "and later" takes in every target of a higher or the same number, with its `a` and `f` ones.
    """
    left = set(names)
    parts: list[str] = []
    if not any(re.fullmatch(r"sm_\d+", name) for name in left):
        families = pt.isa.target_facts().families
        for family in sorted(families, key=lambda f: -len(families[f])):
            if families[family] <= left:
                parts.append(f"the {family} family")
                left -= families[family]
    parts.sort(key=_ordered_by_number)
    parts += _runs([name for name in _ordered() if name in left])
    return (
        parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else "no target"
    )


def _ordered_by_number(part: str) -> int:
    found = re.search(r"\d+", part)
    return int(found[0]) if found else 0


def _runs(names: Sequence[str]) -> list[str]:
    """Neighbours in the order of all targets, three or more of them joined."""
    order = {name: place for place, name in enumerate(_ordered())}
    runs: list[list[str]] = []
    for name in names:
        if runs and order[name] == order[runs[-1][-1]] + 1:
            runs[-1].append(name)
        else:
            runs.append([name])
    parts: list[str] = []
    for run in runs:
        if order[run[-1]] == len(order) - 1 and run[0][-1].isdigit() and len(run) > 1:
            parts.append(f"{run[0]} and later")
        elif len(run) > 2:
            parts.append(f"{run[0]} to {run[-1]}")
        else:
            parts += run
    return parts


def floors_text(targets: Mapping[str, str]) -> str:
    """Targets with their first PTX versions: "sm_90 and later (from PTX ISA 8.0 on sm_90)".

    A version is named only where it is not the one that a target itself came with.
    """
    if not targets:
        return "no target"
    known = pt.isa.target_facts().targets
    later: dict[str, list[str]] = {}
    for name, version in targets.items():
        if version != known[name].since:
            later.setdefault(version, []).append(name)
    if not later:
        return names_text(targets)
    if len(later) == 1 and len(next(iter(later.values()))) == len(targets):
        return f"{names_text(targets)} (from PTX ISA {next(iter(later))})"
    parts = [f"{version} on {names_text(names)}" for version, names in later.items()]
    return f"{names_text(targets)} (from PTX ISA {'; '.join(parts)})"


def registers_text(operand: Operand) -> str:
    """Register types that may stand at an operand: "f32 or b32 register"."""
    first = [operand.carrier] if operand.carrier in operand.registers else []
    names = [name for name in first if name] + sorted(operand.registers - set(first))
    return f"{' or '.join(names)} register" if names else ""


def operand_rows(signature: Signature) -> list[tuple[str, str, str, str]]:
    """(name, "written"/"read"/"both", type, what may stand there) of each operand; equal neighbours are joined."""
    rows: list[tuple[str, str, str, str]] = []
    for each in signature.operands:
        role = {"out": "written", "in": "read", "inout": "both"}[each.role]
        rest = (role, each.type or "", _may_be(each))
        if rows and rows[-1][1:] == rest:
            rows[-1] = (f"{rows[-1][0]}, {each.name}", *rest)
        else:
            rows.append((each.name, *rest))
    return rows


def _may_be(each: Operand) -> str:
    if each.kind == "address":
        return _address(each)
    if each.kind == "vector":
        inner = each.elements[0] if each.elements else each
        count = f"{each.length} elements" if each.length != 1 else "1 element"
        return f"{{…}} of {count}, each {_value(inner) or 'a value'}"
    if each.kind == "pair":
        return " | ".join(_value(element) for element in each.elements)
    plain = {
        "label": "a label",
        "labels": "the name of a list of labels",
        "function": "a function, or a register that holds its address",
        "list": "(…), arguments or results of the call",
        "prototype": "a prototype or a list of functions",
        "sink": "_",
    }
    return plain.get(each.kind) or _value(each) or "a name"


def _address(each: Operand) -> str:
    space = {None: "", "": " in any space (generic)"}.get(each.space, f" in {each.space}")
    inner = "".join(f", {element.name}" for element in each.elements)
    base = registers_text(each)
    symbol = "a variable" if each.symbol else ""
    number = "an integer" if each.immediate else ""
    return f"[address{inner}]{space}: {' or '.join(filter(None, [base, symbol, number]))}"


def _value(each: Operand) -> str:
    """A scalar: its registers, literals and what else may stand there."""
    parts = [registers_text(each)] if each.register else []
    if each.special and each.register:
        parts.append("special register")
    if each.immediate:
        parts.append(_literal(each))
    if each.symbol:
        parts.append("address of a variable")
    if each.sink:
        parts.append("_")
    text = " or ".join(filter(None, parts))
    if each.negatable:
        text += ", may be negated with !"
    if each.selector:
        text += f", with a part: .{' .'.join(each.selector)}"
    return text


def _literal(each: Operand) -> str:
    if each.choices:
        return "one of " + ", ".join(map(str, each.choices))
    if each.bounds is not None:
        step = f", a multiple of {each.multiple}" if each.multiple != 1 else ""
        return f"integer {each.bounds[0]} to {each.bounds[1]}{step}"
    if each.multiple != 1:
        return f"multiple of {each.multiple}"
    kinds = {"int": "integer", "f32": "0f float", "f64": "float"}
    named = [kinds[kind] for kind in ("int", "f64", "f32") if kind in each.literals]
    if "float" in named:
        named = [name for name in named if name != "0f float"]
    return " or ".join(named) or "literal"
