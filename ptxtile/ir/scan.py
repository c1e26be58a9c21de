"""Cuts PTX text into pieces, one statement each, without parsing them: by the grammar's own terminals.

A piece is cut where it could end if it is right; whether it is right is for the grammar to say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ptxtile.ir.constant import Fault


class Scanner:
    """Regular expressions composed of the terminals WORD, NUMBER, STRING, VERSION and COMMENT of the grammar."""

    def __init__(self, terminals: Mapping[str, str]) -> None:
        word, number = terminals["WORD"], terminals["NUMBER"]
        string, version = terminals["STRING"], terminals["VERSION"]
        space = r"[ \t\r\n\f\v]"
        table = r"\.(?:branchtargets|calltargets|callprototype)"
        before = r"[^;{=\"]"
        flags = re.ASCII
        comma = rf"{space}*,{space}*"
        inlined = rf"inlined_at(?:{space}+{number}){{3}}"
        function = rf"function_name{space}+{word}(?:{space}*\+{space}*{number})?"
        loc = rf"\.loc(?:{space}+{number}){{3}}(?:{comma}(?:{function}|{inlined}))*"
        file = rf"\.file{space}+{number}{space}*{string}(?:{comma}{number}{comma}{number})?"
        target = rf"\.target{space}+{word}(?:{comma}{word})*"
        head = rf"\.version{space}+{version}|{target}|\.address_size{space}+{number}"
        self.atoms = re.compile(rf"({word}|-?{number})", flags)
        self.piece = re.compile(
            rf"{space}*(?:"
            rf"(?P<plain>[@A-Za-z_$%][^;:]*(?:::[^;:]*)*;)"  # without a colon it is no label
            rf"|(?P<label>{word}{space}*:(?!:)(?:{space}*{table}(?![A-Za-z0-9_$])[^;]*;)?)"
            rf"|(?P<instruction>[@A-Za-z_$%][^;]*;)"
            rf"|(?P<line>{loc}|{file}|{head})"
            rf"|(?P<directive>\.{before}*(?:{string}{before}*)*[;{{=])"
            rf"|(?P<open>\{{)|(?P<close>\}})|(?P<end>\Z))",
            flags,
        )
        self._parts(word, number, string, flags)

    def _parts(self, word: str, number: str, string: str, flags: int) -> None:
        """What stands inside a piece."""
        space = r"[ \t\r\n\f\v]"
        comma = rf"{space}*,{space}*"
        # operands and labels
        self.address = re.compile(
            rf"\[{space}*({word}|{number}){space}*(?:\+{space}*(-?{number}){space}*)?\]", flags
        )
        self.atom = re.compile(rf"{word}|-?{number}", flags)
        self.word = re.compile(word, flags)
        # the rest of a variable's declaration, after its `=`
        self.initial = re.compile(rf"[^;\"]*(?:{string}[^;\"]*)*;", flags)
        # one name, perhaps with a range or an extent, after any qualifiers
        self.single = re.compile(
            rf"((?:\.[A-Za-z0-9_]+{space}+(?:[0-9]{{1,4}}{space}+)?)+)([%$_][A-Za-z0-9_$]+|[A-Za-z][A-Za-z0-9_$]*)"
            rf"(?:<([1-9][0-9]{{0,8}})>|\[([1-9][0-9]{{0,8}})\])?{space}*;",
            flags,
        )
        # names in a header: words that no dot makes a type or directive
        self.names = re.compile(rf"(?<![.A-Za-z0-9_$%])({word})", flags)
        self.number = re.compile(rf"-?{number}", flags)
        decimal = r"(0|[1-9][0-9]{0,8})"
        self.loc = re.compile(
            rf"\.loc{space}+{decimal}{space}+{decimal}{space}+{decimal}(?:{comma}function_name{space}+({word})"
            rf"(?:{space}*\+{space}*{decimal})?{comma}inlined_at{space}+{decimal}{space}+{decimal}{space}+{decimal})?",
            flags,
        )
        self.section = re.compile(rf"\.section{space}+(\.?{word}){space}*\{{", flags)
        self.place_row = re.compile(
            rf"\.([A-Za-z_][A-Za-z0-9_]*){space}+(\.{word}|{word})(?:{space}*\+{space}*{decimal})?", flags
        )
        self.row = re.compile(rf"\.([A-Za-z_][A-Za-z0-9_]*){space}+(-?{number}(?:{comma}-?{number})*)", flags)
        # Both begin with one of a few signs, which is found many times faster than any of several patterns.
        rest = f'(?<="){string[1:]}'
        self.comment = re.compile(rf"[\"/](?:{rest}|(?<=/)(?:/[^\n]*|\*.*?(?:\*/|\Z)))?", flags | re.DOTALL)
        runs = r"(?<=:):+|(?<=\{)\{{300,}|(?<=\})\}{300,}"
        self.marks = re.compile(rf"[{{}}:\"](?:{rest}|(?<=\{{)[^{{}};:\"]*\}}|{runs})?", flags)

    def end_of_directive(self, text: str, start: int, end: int) -> int:
        """A piece is cut at the first `;`, `{` or `=`; some go on after it."""
        head_end = _end_of_header(text, start, end)
        if 0 < head_end < end:
            return head_end
        last = text[end - 1]
        if last == "=":
            more = self.initial.match(text, end)
            if more is None:
                raise Fault("this initialiser has no end", end - 1, endless=True)
            return more.end()
        if last == "{" and text.startswith(".section", start):
            return _end_of_section(text, end)
        while head_end and text[end - 1] == ";":
            head = text[start:end]
            more = _HEADER_END.match(text, end)
            if more is None or not _PRAGMA_END.search(head, 1):
                break
            end = more.end()
        return end

    def word_before(self, text: str, colon: int) -> str:
        """The name that ends right before the colon, or nothing."""
        before = text[max(colon - _LONG_NAME, 0) : colon].rstrip()
        rest = before.rstrip(_NAME)
        if not rest:  # as long as that
            before = text[:colon].rstrip()
            rest = before.rstrip(_NAME)
        return before[len(rest) :]

    def without_comments(self, text: str) -> str:
        """The text with every comment turned into blanks, so that offsets stay."""
        if "//" not in text and "/*" not in text:
            return text

        def blank(match: re.Match[str]) -> str:
            found = match[0]
            if len(found) == 1 or found[0] == '"':
                return found
            if found[1] == "/":
                return " " * len(found)
            if len(found) < 4 or not found.endswith("*/"):
                raise Fault("this comment is never closed", match.start())
            return _BLACK.sub(" ", found)

        return self.comment.sub(blank, text)


_HEADER_END = re.compile(r"[^;{]*[;{]")
_PRAGMA_END = re.compile(r"\.pragma[^;]*;\Z")
_HEADS = re.compile(
    r"[()]|\.(?:(entry|func)|visible|extern|weak|common|global|const|shared|local|tex|file|section|alias)"
    r"(?![A-Za-z0-9_$])"
)
_NAME = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_$%"
_LONG_NAME = 128
_BLACK = re.compile(r"[^\n]")


def _end_of_header(text: str, start: int, end: int) -> int:
    """Where a function's header ends in the piece from start to end; 0 if the piece is none.

    That is at the next item, outside parentheses, if the semicolon of a declaration is missing.
    """
    seen, depth = False, 0
    for found in _HEADS.finditer(text, start, end):
        if found[0] in "()":
            depth += 1 if found[0] == "(" else -1
        elif seen and depth == 0:
            return found.start()
        elif found[1]:
            seen = True
    return end if seen else 0


def _end_of_section(text: str, end: int) -> int:
    close = text.find("}", end)
    if close < 0:
        raise Fault("this { is never closed", end - 1, endless=True)
    return close + 1
