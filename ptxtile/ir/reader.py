"""PTX text to a Module.

`grammar/module.lark` is the truth about the text. A whole module is not given to its parser: a scanner made of the
grammar's own terminals cuts the text into statements, the grammar parses each, and an instruction that differs from an
earlier one only in words and numbers is read by the plan made of that one.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from ptxtile import resources
from ptxtile.errors import ModuleSyntaxError
from ptxtile.ir.callbacks import Callbacks
from ptxtile.ir.collector import collector_paused
from ptxtile.ir.constant import Fault
from ptxtile.ir.instructions import Context
from ptxtile.ir.module import Module
from ptxtile.ir.reading import Reading
from ptxtile.ir.scan import Scanner

if TYPE_CHECKING:
    from lark import Lark
    from lark.exceptions import UnexpectedInput

    from ptxtile.ir.syntax import ModuleNode


@lru_cache(maxsize=1)
def _lark() -> Lark:
    from lark import Lark

    return Lark(
        (resources.grammar() / "module.lark").read_text(encoding="utf-8"),
        start=["module", "statement"],
        parser="lalr",
        lexer="contextual",
        transformer=Callbacks(),
        maybe_placeholders=False,
        g_regex_flags=int(re.ASCII),
    )


@lru_cache(maxsize=1)
def context() -> Context:
    """The scanner, the grammar's statement parser and the plans, shared by all readings of the process."""
    terminals = {each.name: each.pattern.to_regexp() for each in _lark().terminals}
    return Context(Scanner(terminals), lambda text: _parse(text, "statement"))


def _parse(text: str, start: str) -> object:
    from lark.exceptions import UnexpectedInput

    try:
        return _lark().parse(text, start=start)
    except UnexpectedInput as error:
        raise _fault(error, text) from None


_NAMES = {
    "WORD": "a name",
    "DOTTED": "a word with a dot",
    "NUMBER": "a number",
    "STRING": "a string",
    "VERSION": "a version such as 8.0",
    "$END": "the end",
}


def _fault(error: UnexpectedInput, text: str) -> Fault:
    """What the parser found wrong, in the words of this house."""
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken

    position = error.pos_in_stream or 0
    if isinstance(error, UnexpectedCharacters):
        return Fault(f"{text[position]!a} cannot stand here", position)
    assert isinstance(error, UnexpectedToken)
    if error.token.type == "$END":
        return Fault("the statement ends too early" + _expected(error.expected), max(len(text) - 1, 0))
    shown = error.token.value if len(error.token.value) <= 40 else error.token.value[:37] + "..."
    return Fault(f"{str(shown)!a} cannot stand here{_expected(error.expected)}", position)


def _expected(names: set[str]) -> str:
    """`: , or ; is expected`, if the choice is small."""
    marks = {each.name: each.pattern.value for each in _lark().terminals if each.pattern.type == "str"}
    found = sorted(_NAMES.get(name) or marks.get(name, name) for name in names if name not in _OPERATORS)
    if not 1 <= len(found) <= 5:
        return ""
    return (
        ": "
        + (" or ".join([", ".join(found[:-1]), found[-1]]) if len(found) > 1 else found[0])
        + " is expected"
    )


# An operator may nearly always follow a number, and a subscript a name; naming all of them helps nobody.
_OPERATORS = frozenset(
    [
        *("OROR", "ANDAND", "BAR", "CARET", "AMPERSAND", "EQUALITY", "RELATION", "LESS", "GREATER", "SHIFT"),
        *("PLUS", "MINUS", "TIMES", "OVER", "PERCENT", "QMARK", "LSQB"),
    ]
)


class Lines:
    """Offsets of a text to lines and columns, both from 1."""

    def __init__(self, text: str) -> None:
        self.starts = [0, *(found.end() for found in re.finditer("\n", text))]

    def place(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1


def reading(text: str) -> Reading:
    """A reading that raises ModuleSyntaxError at the first fault."""

    def report(fault: Fault) -> None:
        line, column = Lines(text).place(fault.position)
        message = f"{fault.message}\n  {fault.hint}" if fault.hint else fault.message
        raise ModuleSyntaxError(message, line=line, column=column) from None

    return Reading(text, context(), report)


def parse(text: str) -> Module:
    """The Module that a PTX text says.

    Raises ModuleSyntaxError, with line and column, for text that is no module: wrong syntax, an undeclared or twice
    declared name, a spelling that PTX does not have, operands that it does not take. Targets and versions are not
    looked at: `check_text` does. TypeError for what is no text.
    """
    require_text(text, "parse")
    with collector_paused():
        return reading(text).read()


def require_text(text: object, function: str) -> None:
    """TypeError, with words for what `function` was given, unless it is a str."""
    if isinstance(text, str):
        return
    advice = "give what a .ptx file holds, or str(module)"
    if isinstance(text, (bytes, bytearray)):
        advice = "decode it: PTX is ASCII"
    kind = type(text).__name__
    raise TypeError(f"{function} takes the text of a PTX module, a str, but was given {kind}; {advice}")


def parse_whole(text: str) -> ModuleNode:
    """The syntax of a whole module by the grammar alone, without the scanner: the measure of `parse`, and slow."""
    try:
        return cast("ModuleNode", _parse(text, "module"))
    except Fault as fault:
        line, column = Lines(text).place(fault.position)
        raise ModuleSyntaxError(fault.message, line=line, column=column) from None
