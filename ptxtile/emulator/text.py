"""PTX text to a Module and the line of each of its instructions, in order."""

from __future__ import annotations

import re

from ptxtile.ir.instruction import Instruction
from ptxtile.ir.module import Module
from ptxtile.ir.reader import Lines, reading
from ptxtile.ir.writer import lines as written_lines

_BLANKS = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)


def read(text: str) -> tuple[Module, tuple[int, ...]]:
    """The Module that a text says, and the line (from 1) on which each instruction begins.

    Raises ModuleSyntaxError like `ir.parse`.
    """
    reader = reading(text)
    module = reader.read()
    lines = Lines(text)
    places = [offset for offset, use in reader.uses if isinstance(use, Instruction)]
    return module, tuple(lines.place(_begin(text, offset))[0] for offset in places)


def _begin(text: str, offset: int) -> int:
    """Where a statement begins: the reader's offsets may lie in the blanks before it."""
    found = _BLANKS.match(text, offset)
    return offset if found is None else found.end()


def lines_of(module: Module) -> tuple[int, ...]:
    """The line of `str(module)` that holds each instruction."""
    _, origins = written_lines(module)
    return tuple(line for line, use in sorted(origins.items()) if isinstance(use, Instruction))
