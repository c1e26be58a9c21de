"""The spelling table: which chapter has which opcode, its lines, and the interned Forms.

A chapter is read when an opcode of it is first asked for; only its `instruction` lines are scanned before.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ptxtile import resources
from ptxtile.isa import chapter, match, signature
from ptxtile.isa.form import Form
from ptxtile.isa.match import Opcode, Reading

LIMIT = 200_000
"""Spellings remembered before the memory of them is emptied."""


class Analysis(NamedTuple):
    """A spelling that the table has: its canonical spelling, whether it was written so, and its readings."""

    spelling: str
    canonical: bool
    readings: tuple[Reading, ...]


_HEADER = re.compile(r"^instruction[ \t]+([A-Za-z_]\w*)", re.MULTILINE)


@functools.lru_cache(maxsize=1)
def chapters() -> dict[str, tuple[Path, ...]]:
    """Each opcode, to the chapters that have a block of it, in alphabetical order of the files."""
    found: dict[str, tuple[Path, ...]] = {}
    for path in sorted((resources.grammar() / "instructions").glob("*.isa")):
        for name in dict.fromkeys(_HEADER.findall(path.read_text(encoding="utf-8"))):
            found[name] = (*found.get(name, ()), path)
    return found


_opcodes: dict[str, Opcode | None] = {}


def opcode(name: str) -> Opcode | None:
    """The lines of an opcode; None if there is no such instruction."""
    if name not in _opcodes:
        paths = chapters().get(name)
        if paths is None:
            return None
        _opcodes[name] = Opcode(name, [line for path in paths for line in chapter.lines(path, name)])
    return _opcodes[name]


_analyses: dict[str, Analysis | None] = {}


def analyse(spelling: str) -> Analysis | None:
    """How the table reads a spelling; None if it has no such form on any target in any version."""
    try:
        return _analyses[spelling]
    except KeyError:
        pass
    if len(_analyses) >= LIMIT:
        _analyses.clear()
    found = _analyses[spelling] = _analyse(spelling)
    return found


def split(spelling: str) -> tuple[str, list[str]]:
    """("fma.rn.f32") → ("fma", [".rn", ".f32"])."""
    if " " in spelling:
        name, *rest = spelling.split(".")
        return name, [f".{word}" for word in rest]
    name, *words = spelling.replace(".", " .").split(" ")  # twice as fast
    return name, words


_readings: dict[str, Sequence[Reading]] = {}


def readings(spelling: str) -> Sequence[Reading]:
    """What `analyse` says of a spelling, but for its canonical spelling; () for None."""
    try:
        return _readings[spelling]
    except KeyError:
        pass
    name, words = split(spelling)
    known = opcode(name)
    found: Sequence[Reading] = () if known is None else match.readings(known, words)
    if not found:
        found = ()
    elif not found[0].canonical:
        found = _tolerated(spelling, found).readings
    if len(_readings) >= LIMIT:
        _readings.clear()
    _readings[spelling] = found
    return found


def _analyse(spelling: str) -> Analysis | None:
    name, words = split(spelling)
    known = opcode(name)
    if known is None:
        return None
    found = match.readings(known, words)
    if not found:
        return None
    if found[0].canonical:
        return Analysis(spelling, True, tuple(found))
    return _tolerated(spelling, found)


def _tolerated(spelling: str, found: Sequence[Reading]) -> Analysis:
    """The analysis of a spelling that is not canonical: it means what its shortest canonical spelling means."""
    chosen = found[0]
    if len(found) > 1:
        chosen = min(found, key=lambda each: sum(value is not None for value in each.values))
    canonical = chosen.spelling
    if canonical != spelling:
        exact = analyse(canonical)
        if exact is not None:
            return Analysis(exact.spelling, False, exact.readings)
    same = tuple(each for each in found if each.spelling == canonical)
    return Analysis(canonical, False, same)


_forms: dict[str, Form] = {}


def form(analysis: Analysis) -> Form:
    """The interned Form of an analysed spelling."""
    known = _forms.get(analysis.spelling)
    if known is None:
        known = _forms.setdefault(analysis.spelling, signature.form(analysis.spelling, analysis.readings))
    return known


def find(spelling: str) -> Form | None:
    """The Form of a spelling, read leniently, or None."""
    found = analyse(spelling)
    return None if found is None else form(found)
