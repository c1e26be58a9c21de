"""One syntax line of the table, with everything that holds for it: its pieces, its operand lists, its
clauses.

A Line knows which modifier may stand at which pieces, which of them at several (`ambiguous`), which words it
cannot do without (`needs`), which pieces must be there (`must`), which may be missing though the manual wants
them (`omissible`) and which pieces may not come before which (`later`). Sets of pieces are integers, one bit
a piece. `places` gives for each modifier its pieces: number, bit, and the bits that must not be there yet
(the piece itself and those that may only come later).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ptxtile.errors import NotationError
from ptxtile.isa import types
from ptxtile.isa.notation import Raw

SPACES = frozenset(
    (
        *(".const", ".global", ".local", ".param", ".param::entry", ".param::func"),
        *(".shared", ".shared::cta", ".shared::cluster"),
    )
)
"""State spaces that may be modifiers: those of one line keep their order."""

FREE = frozenset([".sync", ".aligned"])
"""Modifiers in an instruction's name that may nevertheless stand elsewhere."""


class Piece(NamedTuple):
    """One modifier position: a slot with several values, or a word (its own only value)."""

    name: str
    kind: str
    values: tuple[str, ...]
    slot: bool
    default: str | None


class Clause(NamedTuple):
    """A `where`, `since` or `removed` that holds for a line, or the gate of a value (a `since` with a
    condition). `floors` are what the alternatives mean, if that was worked out.
    """

    kind: str
    condition: Raw
    alternatives: Raw
    text: str
    source: str
    floors: tuple[int, ...] | None = None


class Declaration(NamedTuple):
    """A declared operand: `.type`, attributes, and the condition under which this overrides an earlier one."""

    name: str
    address: bool
    role: str
    kind: Raw
    attributes: Raw
    condition: Raw
    source: str


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """One syntax line in its scope. Made once, by `lines_of`; the compiled rules live in `rules`.

    `sets` are the sets in the line's scope; `slots` the names of all sets of the instruction, so that a
    clause of the whole instruction may ask for a slot that only some of its groups have.
    """

    opcode: str
    summary: str
    section: str
    source: str
    text: str
    pieces: tuple[Piece, ...]
    sets: Mapping[str, tuple[str, ...]]
    slots: frozenset[str]
    operands: Raw
    declarations: Mapping[str, tuple[Declaration, ...]]
    clauses: tuple[Clause, ...]
    places: Mapping[str, tuple[tuple[int, int, int], ...]]
    needs: frozenset[str]
    ambiguous: frozenset[str]
    must: int
    omissible: int
    later: tuple[int, ...]
    repeats: tuple[tuple[int, int], ...]
    cached: dict[object, object] = field(default_factory=dict, repr=False)
    """What `rules` and `variants` made for this line."""

    def by_name(self) -> dict[str, tuple[int, ...]]:
        """The pieces of each slot and word."""
        found: dict[str, tuple[int, ...]] = {}
        for place, piece in enumerate(self.pieces):
            found[piece.name] = (*found.get(piece.name, ()), place)
        return found


@dataclass(slots=True)
class _Scope:
    """Statements that hold for an instruction, a group or a line; a child adds to its parent's."""

    sets: dict[str, list[tuple[str, Raw]]] = field(default_factory=dict)
    statements: list[tuple[Raw, str]] = field(default_factory=list)


def lines_of(instruction: Raw, filename: str) -> list[Line]:
    """The lines of one `instruction` record of `notation.parse`."""
    name, summary, section, _, groups = instruction
    path = ["." + part for part in name.split(".")[1:]]
    whole = _Scope()
    header = _Scope()
    slots = frozenset(each for group in groups for s in group if s[0] == "set" for each in s[2])
    found: list[Line] = []
    for number, statements in enumerate(groups):
        group = _Scope()
        group_section = section
        pending: list[tuple[Raw, _Scope]] = []
        for statement in statements:
            kind, at, *rest = statement
            source = f"{filename}:{at}"
            if kind == "line":
                pending.append((statement, _Scope()))
            elif kind == "section":
                group_section = rest[0]
            elif kind == "set":
                _add_set(header if number == 0 and not pending else group, rest[0], rest[1], source)
            elif pending:
                pending[-1][1].statements.append((statement, source))
            else:
                (whole if number == 0 else group).statements.append((statement, source))
        sets = {**header.sets, **group.sets}
        for statement, own in pending:
            if statement[2] != name.split(".")[0]:
                raise NotationError(
                    f"{filename}:{statement[1]}:1: a line of {name} begins with {statement[2]!r}"
                )
            chain = [*whole.statements, *group.statements, *own.statements]
            found.append(_line(statement, (summary, group_section), sets, chain, path, slots, filename))
    return found


def _add_set(scope: _Scope, names: Sequence[str], values: Raw, source: str) -> None:
    for name in names:
        if name in scope.sets:
            raise NotationError(f"{source}:1: the set {name} is defined twice in one scope")
        seen = [value for value, _ in values]
        if len(set(seen)) != len(seen):
            raise NotationError(f"{source}:1: the set {name} has a value twice")
        scope.sets[name] = [(value, gate) for value, gate in values]


def _line(
    statement: Raw,
    titles: tuple[str, str],
    sets: Mapping[str, list[tuple[str, Raw]]],
    chain: list[tuple[Raw, str]],
    path: list[str],
    slots: frozenset[str],
    filename: str,
) -> Line:
    _, at, opcode, raw_pieces, operands, text = statement
    source = f"{filename}:{at}"
    for _, piece_name, _ in raw_pieces:
        if piece_name in slots and piece_name not in sets:
            raise NotationError(
                f"{source}:1: {piece_name} is a set in another group of the instruction, but not here"
            )
    pieces = tuple(
        Piece(name, kind, tuple(v for v, _ in sets[name]) if name in sets else (name,), name in sets, default)
        for kind, name, default in raw_pieces
    )
    for piece in pieces:
        if piece.default is not None and piece.default not in piece.values:
            raise NotationError(f"{source}:1: {piece.default} is no value of {piece.name}")
    later = _order(pieces, chain, path)
    places: dict[str, tuple[tuple[int, int, int], ...]] = {}
    for place, piece in enumerate(pieces):
        for word in piece.values:
            places[word] = (*places.get(word, ()), (place, 1 << place, 1 << place | later[place]))
    return Line(
        opcode=opcode,
        summary=titles[0],
        section=titles[1],
        source=source,
        text=text,
        pieces=pieces,
        slots=slots,
        sets={name: tuple(value for value, _ in values) for name, values in sets.items()},
        operands=operands,
        declarations=_declarations(chain),
        clauses=_clauses(pieces, sets, chain, source),
        places=places,
        ambiguous=frozenset(word for word, found in places.items() if len(found) > 1),
        needs=frozenset(piece.name for piece in pieces if piece.kind == "required" and not piece.slot),
        must=sum(1 << place for place, piece in enumerate(pieces) if piece.kind == "required"),
        omissible=sum(1 << place for place, piece in enumerate(pieces) if piece.kind == "omissible"),
        later=later,
        repeats=_repeats(pieces),
    )


def _declarations(chain: list[tuple[Raw, str]]) -> dict[str, tuple[Declaration, ...]]:
    found: dict[str, tuple[Declaration, ...]] = {}
    for statement, source in chain:
        if statement[0] != "declare":
            continue
        role, names, kind, attributes, condition = statement[2:]
        for address, name in names:
            declared = Declaration(name, bool(address), role or "in", kind, attributes, condition, source)
            found[name] = (*found.get(name, ()), declared)
    return found


def _clauses(
    pieces: tuple[Piece, ...],
    sets: Mapping[str, list[tuple[str, Raw]]],
    chain: list[tuple[Raw, str]],
    source: str,
) -> tuple[Clause, ...]:
    found: list[Clause] = []
    for statement, where in chain:
        if statement[0] == "where":
            found.append(Clause("where", statement[2], None, statement[3], where))
        elif statement[0] in ("since", "removed"):
            found.append(Clause(statement[0], statement[3], statement[2], statement[4], where))
    for name in dict.fromkeys(piece.name for piece in pieces if piece.slot):
        for value, gate in sets[name]:
            if gate is not None:
                condition = ["cmp", "==", ["mod", name], ["mod", value]]
                found.append(Clause("since", condition, gate, f"{value} in the set {name}", source))
    return tuple(found)


def _repeats(pieces: tuple[Piece, ...]) -> tuple[tuple[int, int], ...]:
    """Pairs of pieces that are one slot written twice."""
    first: dict[str, int] = {}
    found: list[tuple[int, int]] = []
    for place, piece in enumerate(pieces):
        if piece.slot and piece.name in first:
            found.append((first[piece.name], place))
        first.setdefault(piece.name, place)
    return tuple(found)


def _order(pieces: tuple[Piece, ...], chain: list[tuple[Raw, str]], path: list[str]) -> tuple[int, ...]:
    """For each piece the pieces that must not stand before it in a spelling: bits of later pieces."""
    known = types.all_types()
    classes = [
        {i for i, piece in enumerate(pieces) if all(value in known for value in piece.values)},
        {i for i, piece in enumerate(pieces) if all(value in SPACES for value in piece.values)},
    ]
    pinned = {
        i for i, name in enumerate(path) if name not in FREE and i < len(pieces) and pieces[i].name == name
    }
    for statement, _ in chain:
        if statement[0] == "ordered":
            classes.append({i for i, piece in enumerate(pieces) if piece.name in statement[2]})
        elif statement[0] == "pinned":
            pinned |= {i for i, piece in enumerate(pieces) if piece.name in statement[2]}
    later = [0] * len(pieces)
    for i in range(len(pieces)):
        for j in range(i + 1, len(pieces)):
            if i in pinned or j in pinned or any(i in each and j in each for each in classes):
                later[i] |= 1 << j
    return tuple(later)
