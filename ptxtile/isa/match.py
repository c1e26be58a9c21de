"""A spelling → the lines that it fits, and how: the modifiers at their pieces, in the canonical order or
another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ptxtile.isa import rules
from ptxtile.isa.condition import Values
from ptxtile.isa.line import Line


class Reading(NamedTuple):
    """One way to read a spelling: a line, the modifier at each of its pieces, and the operand lists that
    exist for it.

    `canonical` tells whether the spelling was written in the line's own order and in full.
    """

    line: Line
    values: Values
    canonical: bool
    available: tuple[rules.Available, ...]

    @property
    def spelling(self) -> str:
        """The canonical spelling of this reading."""
        return self.line.opcode + "".join(value for value in self.values if value is not None)


class Opcode:
    """All lines of one opcode, with an index from each modifier to the lines (bits) that know it.

    `repeatable` are the modifiers that some line has at several pieces: no other can be written twice.
    """

    __slots__ = ("chosen", "every", "lines", "name", "repeatable", "vocabulary")

    def __init__(self, name: str, lines: Sequence[Line]) -> None:
        self.name = name
        self.lines = tuple(lines)
        self.every = (1 << len(lines)) - 1
        self.vocabulary: dict[str, int] = {}
        self.chosen: dict[int, tuple[Line, ...]] = {0: ()}
        self.repeatable: set[str] = set()
        for number, line in enumerate(lines):
            bit = 1 << number
            for word in line.places:
                self.vocabulary[word] = self.vocabulary.get(word, 0) | bit
            self.repeatable |= line.ambiguous

    def candidates(self, words: Sequence[str]) -> tuple[Line, ...]:
        """The lines that know every one of the words."""
        bits = self.every
        vocabulary = self.vocabulary
        try:
            for word in words:
                bits &= vocabulary[word]
        except KeyError:
            return ()
        found = self.chosen.get(bits)
        if found is None:
            found = tuple([line for number, line in enumerate(self.lines) if bits >> number & 1])
            self.chosen[bits] = found
        return found


def readings(opcode: Opcode, words: Sequence[str]) -> list[Reading]:
    """Every reading that exists, canonical ones alone if there are any."""
    found: list[Reading] = []
    lines = opcode.candidates(words)
    if not lines:
        return found
    written = set(words)
    if len(written) < len(words) and opcode.repeatable.isdisjoint(written):
        return found
    strict = False
    for line in lines:
        if not line.needs <= written:
            continue
        for values, canonical in fillings(line, words):
            if strict and not canonical:
                continue
            available = rules.available(line, values)
            if not available:
                continue
            if canonical and not strict:
                strict, found = True, []
            found.append(Reading(line, values, canonical, available))
            break
    return found


def fillings(line: Line, words: Sequence[str], complete: bool = True) -> list[tuple[Values, bool]]:
    """The ways to put the words at the line's pieces, each once, canonical ones first.

    The line knows every word. With `complete` every piece that must be written is, and what may be left out
    is filled in.
    """
    if not line.ambiguous.isdisjoint(words):
        return _search(line, words, complete)
    places = line.places
    slots: list[str | None] = [None] * len(line.pieces)
    used = 0
    canonical = True
    for word in words:
        place, bit, bar = places[word][0]
        if used & bar:
            return []
        if used >= bit:
            canonical = False
        used |= bit
        slots[place] = word
    if not complete:
        return [(tuple(slots), canonical)]
    if line.must & ~used:
        return []
    if not (line.omissible or line.repeats):
        return [(tuple(slots), canonical)]
    found: list[tuple[Values, bool]] = []
    _finish(line, slots, used, canonical, found)
    return found


def _search(line: Line, words: Sequence[str], complete: bool) -> list[tuple[Values, bool]]:
    """The same where a word may stand at several pieces: all ways, side by side, word after word."""
    places = line.places
    states: list[tuple[int, bool, tuple[int, ...]]] = [(0, True, ())]
    for word in words:
        states = [
            (used | bit, canonical and used < bit, (*chosen, place))
            for used, canonical, chosen in states
            for place, bit, bar in places[word]
            if not used & bar
        ]
        if not states:
            return []
    found: list[tuple[Values, bool]] = []
    for used, canonical, chosen in states:
        if complete and line.must & ~used:
            continue
        slots: list[str | None] = [None] * len(line.pieces)
        for word, place in zip(words, chosen):
            slots[place] = word
        if complete:
            _finish(line, slots, used, canonical, found)
        else:
            found.append((tuple(slots), canonical))
    found.sort(key=lambda each: not each[1])
    return found


def _finish(
    line: Line, slots: Sequence[str | None], used: int, canonical: bool, found: list[tuple[Values, bool]]
) -> None:
    """Fill in what may be left out; refuse a slot with two values."""
    missing = line.omissible & ~used
    values = tuple(slots)
    if missing:
        canonical = False
        values = tuple(
            (piece.default or (None if piece.slot else piece.name)) if missing >> place & 1 else values[place]
            for place, piece in enumerate(line.pieces)
        )
    for first, second in line.repeats:
        if values[first] != values[second]:
            return
    found.append((values, canonical))
