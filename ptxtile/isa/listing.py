"""Canonical spellings, one after the other, for those who ask for all of them. Nothing else enumerates."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator

from ptxtile.errors import FormError
from ptxtile.isa import match, rules, table, targets
from ptxtile.isa.line import Line
from ptxtile.isa.match import Opcode


def forms(pattern: str = "*", target: str | None = None) -> Iterator[str]:
    """The canonical spellings that match a glob ("cvt.*", "mma.*.m16n8k16.*"), lazily, in the order of the
    table.

    With a target, those that it has in the newest PTX version; without, those that any supported target has.
    TargetError, at once, for an unknown target.
    """
    places = targets.supported() if target is None else (targets.facts().index[targets.target(target).name],)
    if not isinstance(pattern, str):
        raise FormError(f"a pattern is text such as 'cvt.*', not {pattern!r}")
    return _forms(pattern, places)


def _forms(pattern: str, places: tuple[int, ...]) -> Iterator[str]:
    wanted = re.compile(fnmatch.translate(pattern))
    prefix = re.split(r"[*?\[]", pattern, maxsplit=1)[0]
    version = targets.newest()
    for name in table.chapters():
        if not (name.startswith(prefix) or prefix.startswith(name)):
            continue
        opcode = table.opcode(name)
        for line in opcode.lines if opcode is not None else ():
            for values, spelling in spellings(line, prefix):
                if wanted.match(spelling) is None:
                    continue
                available = rules.available(line, values)
                if not any(
                    a.floors[place] <= version < a.removed[place] for a in available for place in places
                ):
                    continue
                if opcode is not None and not _said_before(opcode, line, spelling, places):
                    yield spelling


def spellings(line: Line, prefix: str = "") -> Iterator[tuple[tuple[str | None, ...], str]]:
    """Every filling of a line's pieces in the canonical order, whether its clauses allow it or not, with its
    spelling.

    Those that cannot begin with `prefix` are not visited.
    """
    count = len(line.pieces)
    values: list[str | None] = [None] * count
    twice = {second: first for first, second in line.repeats}

    def walk(place: int, text: str) -> Iterator[tuple[tuple[str | None, ...], str]]:
        if not (text.startswith(prefix) or prefix.startswith(text)):
            return
        if place == count:
            if text.startswith(prefix):
                yield tuple(values), text
            return
        piece = line.pieces[place]
        options: tuple[str | None, ...] = piece.values
        if place in twice:
            options = (values[twice[place]],)
        elif piece.kind == "optional":
            options = (None, *options)
        for option in options:
            values[place] = option
            yield from walk(place + 1, text + (option or ""))
        values[place] = None

    return walk(0, line.opcode)


def _said_before(opcode: Opcode, line: Line, spelling: str, places: tuple[int, ...]) -> bool:
    """Whether an earlier line gives the same canonical spelling on one of the targets."""
    version = targets.newest()
    words = table.split(spelling)[1]
    for other in opcode.candidates(words):
        if other is line:
            return False
        for values, canonical in match.fillings(other, words):
            if canonical and any(
                a.floors[place] <= version < a.removed[place]
                for a in rules.available(other, values)
                for place in places
            ):
                return True
    return False
