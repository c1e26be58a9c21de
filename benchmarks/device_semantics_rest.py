"""What `device_semantics_cases` does not write out: every other value form that the table has on sm_90a."""

from __future__ import annotations

from collections.abc import Iterator

from device_semantics_cases import CHAPTERS, Case

from ptxtile import isa
from ptxtile.emulator import semantics
from ptxtile.emulator.support import supports

TARGET = "sm_90a"
PTX_VERSION = "9.0"
CARRIES = ("addc", "subc", "madc")
TABLES = (0x96, 0x1B)
"""Truth tables for lop3, whose last operand but the predicate is an immediate."""


def spellings() -> Iterator[str]:
    """Every value form of the table that the emulator has and that sm_90a takes in PTX 9.0."""
    for opcode in sorted(semantics.names()):
        for glob in (opcode, f"{opcode}.*"):
            for spelling in isa.forms(glob, target=TARGET):
                if supports(spelling) and isa.is_valid(spelling, TARGET, PTX_VERSION):
                    yield spelling


def rest() -> Iterator[Case]:
    """One case for each such form that no chapter names: its signature with most operands."""
    named = {isa.validate(case.spelling).spelling for name in CHAPTERS for case in CHAPTERS[name]()}
    for spelling in spellings():
        if spelling not in named:
            yield from _cases(spelling)


def _cases(spelling: str) -> Iterator[Case]:
    form = isa.validate(spelling)
    signature = max(form.signatures, key=lambda s: sum(len(o.elements) or 1 for o in s.operands))
    targets: list[str] = []
    sources: list[str] = []
    for operand in signature.operands:
        types = [part.type or "" for part in operand.elements] or [operand.type or ""]
        (targets if operand.role == "out" else sources).extend(name.lstrip(".") for name in types)
    carry = form.opcode in CARRIES or ".cc" in form.modifiers
    for immediate in TABLES if form.opcode == "lop3" else (None,):
        yield Case(spelling, tuple(targets), tuple(sources), carry=carry, immediate=immediate)
