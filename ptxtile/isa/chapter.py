"""The chapters of the table, compiled: for each opcode its lines, ready for use.

What `line` and `rules` make of a chapter is kept in the user's cache as `marshal` writes it, code of clauses
included, so that another process takes a line in microseconds. It is the kind of file that Python's own cache of
byte code is made of, and like those it belongs to one release of Python.
"""

from __future__ import annotations

import contextlib
import functools
import marshal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ptxtile import resources
from ptxtile.isa import cache, notation, rules, targets
from ptxtile.isa.line import Clause, Declaration, Line, Piece, lines_of
from ptxtile.isa.targets import Floors

Packed = Any
"""A Line as nested tuples."""

_MADE_BY = ("notation", "line", "rules", "condition", "variants", "types", "targets", "chapter")
_TABLES = ("types.isa", "targets.isa")


def lines(path: Path, opcode: str) -> Iterator[Line]:
    """The lines that the chapter has for an opcode.

    Raises NotationError for a chapter that does not follow the notation.
    """
    packed = _chapter(path).get(opcode)
    if packed is not None:
        yield from map(_unpacked, marshal.loads(packed))


@functools.cache
def _made_by() -> bytes:
    """What every chapter depends on besides its own text."""
    folder = resources.grammar()
    texts = [(folder / name).read_bytes() for name in _TABLES]
    return b"\0".join([sys.version.encode(), cache.grammar_text(), cache.code(*_MADE_BY), *texts])


@functools.cache
def _chapter(path: Path) -> dict[str, bytes]:
    """Opcode → its lines, packed."""
    text = path.read_bytes()
    kept = cache.place(path.stem, "lines", _made_by(), text)
    payload = cache.read(kept)
    if payload is not None:
        with contextlib.suppress(ValueError, EOFError, TypeError):  # written by who knows whom
            known = marshal.loads(payload)
            if isinstance(known, dict):
                return known
    found = _compiled(text.decode("utf-8"), path.name)
    cache.write(kept, marshal.dumps(found))
    return found


def _compiled(text: str, filename: str) -> dict[str, bytes]:
    found: dict[str, list[Packed]] = {}
    floors: dict[str, Floors] = {}
    for record in notation.parse(text, "chapter", filename):
        made = lines_of(record, filename)
        found.setdefault(record[0].split(".")[0], []).extend(_packed(line, floors) for line in made)
    return {name: marshal.dumps(tuple(each)) for name, each in found.items()}


def _packed(line: Line, floors: dict[str, Floors]) -> Packed:
    """A line as values that `marshal` takes. `floors` remembers what alternatives mean."""
    clauses: list[Packed] = []
    for clause in line.clauses:
        known: Floors | None = None
        if clause.kind != "where":
            key = repr(clause.alternatives)
            known = floors.get(key)
            if known is None:
                known = floors[key] = targets.floors(clause.alternatives)
        clauses.append(tuple(clause._replace(floors=known)))
    fields = (line.opcode, line.summary, line.section, line.source, line.text)
    return (
        *(fields, tuple(map(tuple, line.pieces)), dict(line.sets), line.slots, line.operands),
        {name: tuple(map(tuple, each)) for name, each in line.declarations.items()},
        *(tuple(clauses), dict(line.places), line.needs, line.ambiguous, line.must, line.omissible),
        *(line.later, line.repeats, rules.compiled(line)),
    )


def _unpacked(packed: Packed) -> Line:
    fields, pieces, sets, slots, operands, declarations, clauses, *rest, compiled = packed
    values: tuple[Any, ...] = (
        *fields,
        tuple([Piece(*each) for each in pieces]),
        sets,
        slots,
        operands,
        {name: tuple([Declaration(*each) for each in some]) for name, some in declarations.items()},
        tuple([Clause(*each) for each in clauses]),
        *rest,
        {"rules": rules.revived(*compiled)},
    )
    return Line(*values)
