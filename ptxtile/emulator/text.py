"""PTX text to a Module and the line of each of its instructions, in order."""

from __future__ import annotations

from ptxtile.ir.instruction import Instruction
from ptxtile.ir.module import Module
from ptxtile.ir.reader import Lines, reading
from ptxtile.ir.writer import lines as written_lines


def read(text: str) -> tuple[Module, tuple[int, ...]]:
    """The Module that a text says, and the line (from 1) on which each instruction begins.

    Raises ModuleSyntaxError like `ir.parse`.
    """
    reader = reading(text)
    module = reader.read()
    lines = Lines(text)
    return module, tuple(
        lines.place(offset)[0] for offset, use in reader.uses if isinstance(use, Instruction)
    )


def lines_of(module: Module) -> tuple[int, ...]:
    """The line of `str(module)` that holds each instruction."""
    _, origins = written_lines(module)
    return tuple(line for line, use in sorted(origins.items()) if isinstance(use, Instruction))
