"""The operand lists of a syntax line: each choice of its optional operands, written out."""

from __future__ import annotations

from dataclasses import dataclass

from ptxtile.isa.line import Line
from ptxtile.isa.notation import Raw


@dataclass(frozen=True, slots=True)
class Variant:
    """One operand list without options left. `operands` as in `notation`, but for the maybe kinds; `written`
    their names.
    """

    operands: tuple[Raw, ...]
    written: frozenset[str]


def of(line: Line) -> tuple[Variant, ...]:
    """The operand lists of `line`, fewest operands first in the order of its options."""
    known = line.cached.get("variants")
    if isinstance(known, tuple):
        return known
    found = tuple(Variant(tuple(each), frozenset(_names(each))) for each in _expand(line.operands))
    line.cached["variants"] = found
    return found


def _expand(entries: Raw) -> list[list[Raw]]:
    found: list[list[Raw]] = [[]]
    for optional, operand, inner in entries:
        rest = _expand(inner)
        here = [[each, *more] for each in _choices(operand) for more in rest]
        found = [[*before, *each] for before in found for each in ([[], *here] if optional else here)]
    return found


def _choices(operand: Raw) -> list[Raw]:
    kind = operand[0]
    if kind == "maybe_pair":
        return [["plain", operand[1]], ["pair", operand[1], operand[2]]]
    if kind != "bracket":
        return [operand]
    found: list[list[Raw]] = [[]]
    for mode, *items in operand[2]:
        choices = {"always": [items], "maybe": [[], items], "before": [items[1:], items]}[mode]
        found = [[*before, *each] for before in found for each in choices]
    return [["bracket", operand[1], inside] for inside in found]


def _names(operands: Raw) -> list[str]:
    found: list[str] = []
    for kind, *rest in operands:
        if kind == "vector":
            found.extend(_names(rest[0]))
        elif kind == "bracket":
            found.extend(_names([rest[0], *rest[1]]))
        elif kind == "pair":
            found.extend(rest)
        else:
            found.append(rest[0])
    return found
