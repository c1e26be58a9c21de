"""`ptxtile explain`: everything the table says of one form."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import ptxtile as pt
from ptxtile.cli import Answer
from ptxtile.cli.words import floors_text, names_text, operand_rows

if TYPE_CHECKING:
    from ptxtile.isa import Form, Operand, Signature

__all__ = ["answer"]


def answer(spelling: str) -> Answer:
    """The form's signatures; good unless there is no such form."""
    try:
        form = pt.validate(spelling)
    except pt.FormError as error:
        data = {"input": spelling, "valid": False, "message": str(error), "reasons": list(error.reasons)}
        return Answer(False, f"{error}\n{_hint(spelling)}".rstrip(), data)
    lines = [f"{form.spelling}: {form.summary} (PTX manual, section {form.section})"]
    if form.spelling != spelling:
        lines.append(f"{spelling} is tolerated; this is its canonical spelling")
    lines.append(f"targets: {floors_text(form.targets)}")
    for number, signature in enumerate(form.signatures, 1):
        lines += ["", *_signature(form, signature, f"{number} of {len(form.signatures)}")]
    return Answer(True, "\n".join(lines), _form_data(spelling, form))


def _hint(spelling: str) -> str:
    """An opcode alone is often meant as a question about the family."""
    first = next(iter(pt.forms(f"{spelling}.*")), None) if spelling.replace(".", "").isidentifier() else None
    return f"  ptxtile forms '{spelling}.*' lists what begins so: {first}, …" if first else ""


def _call(form: Form, signature: Signature) -> str:
    written = []
    for each in signature.operands:
        inner = "".join(f", {element.name}" for element in each.elements)
        written.append(f"[{each.name}{inner}]" if each.kind == "address" else each.name)
    return f"{form.spelling} {', '.join(written)}".rstrip()


def _signature(form: Form, signature: Signature, number: str) -> list[str]:
    rows = operand_rows(signature)
    name, role, kind = (max([len(row[i]) for row in rows], default=0) for i in range(3))
    lines = [f"signature {number}: {_call(form, signature)}"]
    lines += [f"  {row[0]:<{name}}  {row[1]:<{role}}  {row[2]:<{kind}}  {row[3]}" for row in rows]
    if signature.targets != form.targets:
        lines.append(f"  targets: {floors_text(signature.targets)}")
    for version, names in _removals(signature):
        lines.append(f"  removed: in PTX ISA {version} on {names_text(names)}")
    lines.append(f"  table:   {signature.syntax}  ({signature.source})")
    return lines


def _removals(signature: Signature) -> list[tuple[str, Sequence[str]]]:
    found: dict[str, list[str]] = {}
    for name, version in signature.removed.items():
        found.setdefault(version, []).append(name)
    return list(found.items())


def _form_data(spelling: str, form: Form) -> dict[str, object]:
    return {
        "input": spelling,
        "valid": True,
        "spelling": form.spelling,
        "opcode": form.opcode,
        "modifiers": list(form.modifiers),
        "summary": form.summary,
        "section": form.section,
        "targets": dict(form.targets),
        "signatures": [
            {
                "operands": [_operand_data(each) for each in signature.operands],
                "targets": dict(signature.targets),
                "removed": dict(signature.removed),
                "slots": dict(signature.slots),
                "syntax": signature.syntax,
                "source": signature.source,
            }
            for signature in form.signatures
        ],
    }


def _operand_data(each: Operand) -> dict[str, object]:
    """Every field of the record, under its own name: what the table learns to say is in the JSON at once."""
    data: dict[str, object] = {}
    for field in dataclasses.fields(each):
        value = getattr(each, field.name)
        if field.name == "elements":
            value = [_operand_data(element) for element in each.elements]
        elif isinstance(value, (frozenset, set)):
            value = sorted(value)
        data[field.name] = list(value) if isinstance(value, tuple) else value
    return data
