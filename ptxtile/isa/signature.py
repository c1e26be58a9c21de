"""Readings of a spelling → its Form: every operand list, with the type, the registers and the literals of
each operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import cast

from ptxtile.errors import NotationError
from ptxtile.isa import condition, rules, targets, types, variants
from ptxtile.isa.condition import Values
from ptxtile.isa.form import Form, Kind, Operand, Signature
from ptxtile.isa.line import Declaration, Line
from ptxtile.isa.match import Reading
from ptxtile.isa.notation import Raw

_FLOATS = frozenset(["f16", "f16x2", "f32", "f64"])
_ADDRESS_64 = frozenset(["b64", "u64", "s64"])
_ADDRESS_32 = frozenset(["b32", "u32", "s32"])
_ADDRESS_NARROW = frozenset(["b8", "u8", "s8", "b16", "u16", "s16"])


def form(spelling: str, readings: Sequence[Reading]) -> Form:
    """The Form of a canonical spelling from everything that reads it."""
    signatures = tuple(each for reading in readings for each in _signatures(reading))
    opcode, *modifiers = spelling.split(".")
    lowest = tuple(
        map(
            min,
            *(a.floors for r in readings for a in r.available),
            (targets.NEVER,) * len(targets.facts().base),
        )
    )
    return Form(
        spelling=spelling,
        opcode=opcode,
        modifiers=tuple("." + word for word in modifiers),
        summary=readings[0].line.summary,
        section=readings[0].line.section,
        signatures=signatures,
        targets=targets.as_mapping(lowest),
    )


def _signatures(reading: Reading) -> list[Signature]:
    line, values = reading.line, reading.values
    choices = variants.of(line)
    slots = {
        piece.name[1:]: value for piece, value in zip(line.pieces, values) if piece.slot and value is not None
    }
    found: list[Signature] = []
    for available in reading.available:
        numbers = range(len(choices)) if available.variant < 0 else [available.variant]
        for number in numbers:
            operands = tuple(
                _operand(each, line, values, choices[number].written) for each in choices[number].operands
            )
            found.append(
                Signature(
                    operands=operands,
                    targets=targets.as_mapping(available.floors),
                    removed=targets.as_mapping(available.removed),
                    slots=MappingProxyType(slots),
                    syntax=line.text,
                    source=line.source,
                )
            )
    return found


def _operand(raw: Raw, line: Line, values: Values, written: frozenset[str]) -> Operand:
    kind = raw[0]
    if kind == "list":
        return Operand(raw[1], "in", "list", register=False)
    if kind == "plain" and raw[1] == "_":
        return Operand("_", "out", "sink", register=False, sink=True)
    if kind == "pair":
        first, second = (_declared(name, False, line, values, written) for name in raw[1:])
        return Operand(f"{first.name}|{second.name}", first.role, "pair", elements=(first, second))
    if kind == "vector":
        elements = tuple(_operand(each, line, values, written) for each in raw[1])
        name = "{" + ", ".join(each.name for each in elements) + "}"
        head = elements[0]
        return Operand(
            name,
            head.role,
            "vector",
            head.type,
            head.carrier,
            head.registers,
            len(elements),
            elements=elements,
        )
    if kind == "bracket":
        base = raw[1][1]
        inner = tuple(_operand(each, line, values, written) for each in raw[2])
        return replace(_declared(base, True, line, values, written), elements=inner)
    found = _declared(raw[1], False, line, values, written)
    if kind == "negatable":
        return replace(found, negatable=True)
    if kind in ("selected", "maybe_selected"):
        return replace(found, selector=_selector(raw[2], line), selected=kind == "selected")
    return found


def _selector(name: str, line: Line) -> tuple[str, ...]:
    if name not in line.sets:
        raise NotationError(f"{line.source}:1: there is no set {name} of part selectors")
    return tuple(word[1:] for word in line.sets[name])


def _declared(name: str, address: bool, line: Line, values: Values, written: frozenset[str]) -> Operand:
    inside = rules.scope(line, written)
    chosen: Declaration | None = None
    for each in line.declarations.get(name, ()):
        if each.address != address:
            continue
        if each.condition is None or condition.compile_(condition.truth(each.condition, inside), each.source)(
            values
        ):
            chosen = each
    if chosen is None:
        what = f"[{name}]" if address else name
        raise NotationError(f"{line.source}:1: the operand {what} is not declared")
    return _address(chosen, inside, values) if address else _value(chosen, line, inside, values)


def _type_name(kind: Raw, line_scope: condition.Scope, values: Values, source: str) -> str | None:
    if kind[0] == "last":
        words = [word for word in values if word is not None and word in types.all_types()]
        if not words:
            raise NotationError(f"{source}:1: `type` stands for the last type of a spelling that has none")
        return words[-1]
    name: str = kind[1]
    if name in line_scope.slots:
        places = line_scope.places.get(name, ())
        found = values[places[0]] if places else None
    else:
        found = name
    if kind[0] == "double" and found is not None:
        return types.double(found)
    return found


def _address(declared: Declaration, inside: condition.Scope, values: Values) -> Operand:
    found = _type_name(declared.kind, inside, values, declared.source)
    known = types.all_types().get(found) if found is not None else None
    if known is not None and found not in (".texref", ".samplerref", ".surfref"):
        return Operand(
            declared.name,
            "in",
            "address",
            carrier=known.carrier,
            registers=_registers(known, declared, inside) - (_FLOATS if known.name == ".b32" else set()),
            space="",
        )
    # ptxas takes an integer alone between brackets for .local only.
    flags = {each[1] for each in declared.attributes if each[0] == "flag"}
    exact = "exact" in flags or known is not None
    registers = _ADDRESS_64 if exact else _ADDRESS_64 | _ADDRESS_32
    if "loose" in flags:
        registers = frozenset(types.REGISTER_BITS)
    elif not exact and "wide" not in flags:
        registers |= _ADDRESS_NARROW  # extended, in any space
    return Operand(
        declared.name,
        "in",
        "address",
        carrier="b64",
        registers=registers,
        immediate=found == ".local" or "either" in flags,
        symbol=True,
        unified="unified" in flags,
        space="" if found in (None, ".generic") else found,
    )


def _value(declared: Declaration, line: Line, inside: condition.Scope, values: Values) -> Operand:
    name, role = declared.name, declared.role
    flags = {each[1] for each in declared.attributes if each[0] == "flag"}
    if declared.kind[0] == "other":
        kind = declared.kind[1]
        return Operand(name, cast("object", role), cast(Kind, kind), register=False, symbol=kind == "symbol")  # type: ignore[arg-type]
    type_name = _type_name(declared.kind, inside, values, declared.source)
    known = types.all_types().get(type_name) if type_name is not None else None
    if known is None:
        raise NotationError(
            f"{declared.source}:1: {name} has the type {type_name}, which is none, in {line.text}"
        )
    length = _length(declared, inside, values)
    literals = _literals(known, flags, role == "in")
    limits = {each[0]: each[1:] for each in declared.attributes if each[0] != "flag"}
    return Operand(
        name=name,
        role=cast("object", role),  # type: ignore[arg-type]
        kind="vector" if length > 1 or "braced" in flags else "value",
        type=known.name,
        carrier=known.carrier,
        registers=_registers(known, declared, inside),
        length=length,
        single=length == 1 and declared.kind[0] in ("type", "last") and declared.kind[-1] is not None,
        register=flags.isdisjoint(("imm", "whole")),
        immediate=bool(literals),
        bounds=cast("tuple[int, int]", tuple(limits["range"])) if "range" in limits else None,
        sink="sink" in flags,
        special=not flags.isdisjoint(("special", "whole")),
        symbol="symbolic" in flags,
        literals=literals,
        choices=tuple(limits.get("among", ())),
        multiple=limits.get("multiple", (1,))[0],
        loose="loose" in flags,
        strict="strict" in flags,
        pure="pure" in flags,
        whole="whole" in flags,
        minus="minus" in flags,
        negative="negative" in flags,
        most=limits.get("most", ("",))[0],
    )


def _literals(known: types.Type, flags: set[str], read: bool) -> frozenset[str]:
    """The kinds of literal that may stand for a value."""
    if flags.isdisjoint(("imm", "either")) and not (
        read and flags.isdisjoint(("reg", "whole")) and known.literals
    ):
        return frozenset()
    literals = known.literals or frozenset(["int"])
    return literals & {"int"} if "integer" in flags else literals


def _registers(known: types.Type, declared: Declaration, inside: condition.Scope) -> frozenset[str]:
    """The register types that may stand for the operand: its type's, wider ones, or the carrier alone."""
    flags = {each[1] for each in declared.attributes if each[0] == "flag"}
    if "exact" in flags:
        return frozenset([known.carrier])
    if {"wide", "loose"} <= flags:
        return frozenset(types.REGISTER_BITS) - {"pred"}
    registers = types.wider(known.name) if "wide" in flags else known.registers
    if declared.kind[1] in (".u32", ".s32") and declared.kind[1] not in inside.places:
        registers -= {"f16x2"}  # stands for an integer only where the type is a modifier
    if "predicate" in flags:
        registers |= {"pred"}
    return registers - _FLOATS if "integer" in flags else registers


def _length(declared: Declaration, inside: condition.Scope, values: Values) -> int:
    expression = declared.kind[-1] if declared.kind[0] in ("type", "last") else None
    if expression is None:
        return 1
    length = condition.compile_(condition.value(expression, inside), declared.source)(values)
    if not isinstance(length, int) or length < 1:
        raise NotationError(f"{declared.source}:1: {declared.name} would have {length} elements")
    return length
