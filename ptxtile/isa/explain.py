"""Why a spelling is refused: the text of a FormError, with every reason it has.

Nothing here runs for a spelling that is right, so that the answers stay cheap and the explanations may be
dear.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ptxtile.isa import condition, match, rules, suggest, table, targets
from ptxtile.isa.condition import Values
from ptxtile.isa.line import Clause, Line
from ptxtile.isa.match import Opcode, Reading
from ptxtile.isa.table import Analysis


@dataclass(frozen=True, slots=True)
class Fault:
    """A message and its reasons, one line each."""

    message: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """One reason, and the part of the spelling it points at (start and length in characters)."""

    start: int
    length: int
    reason: str


def _fault(head: str, spelling: str, marks: Sequence[Mark], tail: Iterable[str] = ()) -> Fault:
    lines = [head, f"  {spelling}"]
    lines += [f"  {' ' * mark.start}{'^' * mark.length} {mark.reason}" for mark in marks]
    lines += [f"  {text}" for text in tail]
    return Fault("\n".join(lines), tuple(mark.reason for mark in marks))


def _listed(words: Iterable[str], limit: int = 12) -> str:
    """ "one of .rn, .rz, .rm" for a message; a long list is cut."""
    shown = list(dict.fromkeys(words))
    text = ", ".join(shown[:limit])
    if len(shown) > limit:
        return f"one of {text}, … ({len(shown)} in all)"
    return text if len(shown) == 1 else f"one of {text}"


def _starts(name: str, words: Sequence[str]) -> list[int]:
    """Where each modifier begins in the spelling, behind its dot."""
    found, at = [], len(name)
    for word in words:
        found.append(at + 1)
        at += len(word)
    return found


def _close(spelling: str) -> list[str]:
    near = [each for each in suggest.nearest(spelling) if each != spelling]
    return [f"close by: {', '.join(near)}"] if near else []


def no_form(spelling: str) -> Fault:
    """Why the table has no such form on any target."""
    name, words = table.split(spelling)
    head = f"{spelling} is not a PTX form"
    known = table.opcode(name)
    if known is None:
        reason = f"there is no instruction {name!r}" if name else "a spelling begins with an opcode"
        return _fault(head, spelling, [Mark(0, max(len(name), 1), reason)], _close(spelling))
    wrong = _first_wrong(known, words)
    starts = _starts(name, words)
    if wrong is not None:
        at, reason = wrong
        return _fault(
            head, spelling, [Mark(starts[at], max(len(words[at]) - 1, 1), reason)], _close(spelling)
        )
    completing = _completing(known, words)
    if completing:
        return _fault(
            head, spelling, [Mark(len(spelling), 1, f"it lacks {_listed(completing)}")], _close(spelling)
        )
    broken = _broken(known, words)
    if broken is not None:
        marks = [_clause_mark(name, words, clause) for clause in broken]
        return _fault(head, spelling, marks, _close(spelling))
    return _fault(head, spelling, [Mark(len(spelling), 1, _missing(known, words))], _close(spelling))


def _first_wrong(opcode: Opcode, words: Sequence[str]) -> tuple[int, str] | None:
    """The first modifier that no line can take after those before it, and why; None if all can be placed."""
    for count in range(1, len(words) + 1):
        if any(
            match.fillings(line, words[:count], complete=False) for line in opcode.candidates(words[:count])
        ):
            continue
        word, before = words[count - 1], words[: count - 1]
        if word in before:
            return count - 1, f"{word} is written twice"
        here = opcode.name + "".join(before)
        may = may_follow(opcode, before)
        if word not in opcode.vocabulary:
            start = f"{word} is no modifier of {opcode.name}"
        else:
            start = f"{word} cannot stand in {here}"
        if not may:
            return count - 1, f"{start}; nothing may follow {here}"
        return count - 1, f"{start}; after {here} may stand {_listed(may)}"
    return None


def may_follow(opcode: Opcode, before: Sequence[str]) -> list[str]:
    """What may stand after these modifiers in the canonical order; in any order, if they are not in it."""
    found: dict[str, None] = {}
    for strict in (True, False):
        for line in opcode.candidates(before):
            for values, canonical in match.fillings(line, before, complete=False):
                if canonical or not strict:
                    found.update(dict.fromkeys(_next(line, values, strict)))
        if found:
            break
    return list(found)


def _next(line: Line, values: Values, strict: bool) -> list[str]:
    """The modifiers that may come next once `values` are written."""
    last = max((place for place, value in enumerate(values) if value is not None), default=-1)
    found: list[str] = []
    for place, piece in enumerate(line.pieces):
        if values[place] is not None or (strict and place < last):
            continue
        if strict or not any(
            line.later[place] >> other & 1 for other, v in enumerate(values) if v is not None
        ):
            found.extend(piece.values)
        if strict and piece.kind == "required":
            break
    return found


def _broken(opcode: Opcode, words: Sequence[str]) -> list[Clause] | None:
    """The clauses that a complete spelling breaks, of the line where they are fewest; None if none takes it
    whole.
    """
    best: list[Clause] | None = None
    for line in opcode.candidates(words):
        for values, _ in match.fillings(line, words):
            broken = rules.broken(line, values)
            if broken and (best is None or len(broken) < len(best)):
                best = broken
    return best


def _clause_mark(name: str, words: Sequence[str], clause: Clause) -> Mark:
    """The caret goes under the first modifier written that the clause names, as a word or through its slot."""
    starts = _starts(name, words)
    reason = f"the table says: {clause.text} ({clause.source})"
    named = _named(name, words, clause)
    for place, word in enumerate(words):
        if word in named:
            return Mark(starts[place], max(len(word) - 1, 1), reason)
    return Mark(0, len(name), reason)


def _named(name: str, words: Sequence[str], clause: Clause) -> set[str]:
    known = table.opcode(name)
    mods = condition.modifiers_in(clause.condition)
    found = set(mods)
    for line in known.candidates(words) if known is not None else ():
        if clause in line.clauses:
            for mod in mods:
                found.update(line.sets.get(mod, ()))
    return found


def _completing(opcode: Opcode, words: Sequence[str]) -> list[str]:
    """The modifiers of which a single one more makes a form."""
    found: dict[str, None] = {}
    for line in opcode.candidates(words):
        for values, _ in match.fillings(line, words, complete=False):
            lacks = [
                place
                for place, piece in enumerate(line.pieces)
                if piece.kind == "required" and values[place] is None
            ]
            for word in line.pieces[lacks[0]].values if len(lacks) == 1 else ():
                whole = [word if place == lacks[0] else value for place, value in enumerate(values)]
                if table.analyse(opcode.name + "".join(filter(None, whole))) is not None:
                    found[word] = None
    return list(found)


def _missing(opcode: Opcode, words: Sequence[str]) -> str:
    """What a spelling lacks that could be completed: of the lines that lack least."""
    lacking: list[list[tuple[str, ...]]] = []
    for line in opcode.candidates(words):
        for values, _ in match.fillings(line, words, complete=False):
            lacks = [
                piece.values
                for place, piece in enumerate(line.pieces)
                if piece.kind == "required" and values[place] is None
            ]
            if lacks:
                lacking.append(lacks)
    if not lacking:
        return "its modifiers do not go together"
    least = min(map(len, lacking))
    fewest = [each for each in lacking if len(each) == least]
    parts = [_listed(word for lacks in fewest for word in lacks[number]) for number in range(least)]
    return f"it lacks {' and '.join(parts)}"


def not_available(
    spelling: str, found: Analysis, target: str | None, place: int | None, version: int
) -> Fault:
    """Why a form that exists is not on the target, or not in the version."""
    versions = targets.facts().versions
    where = "any target" if target is None else target
    newest = version == targets.newest()
    head = f"{spelling} is not available on {where}{'' if newest else f' in PTX ISA {versions[version]}'}"
    if target is not None and place is not None and targets.facts().base[place] > version:
        since = targets.target(target).since
        return _fault(head, spelling, [Mark(0, len(spelling), f"{target} needs PTX ISA {since}")])
    marks: dict[Mark, None] = {}
    for reading in found.readings:
        for clause in _refusing(reading, place, version):
            marks[_floor_mark(spelling, reading, clause, place, version)] = None
    if not marks:
        marks[Mark(0, len(spelling), "no target has all that it needs at once")] = None
    said = sorted(marks, key=lambda mark: mark.start)
    name, words = table.split(spelling)
    known = table.opcode(name)
    lacking = _completing(known, words) if known is not None and _is_gone(found) else ()
    if not lacking:
        return _fault(head, spelling, said)
    return _fault(
        head, spelling, [Mark(len(spelling), 1, f"it lacks {_listed(lacking)}"), *said], _close(spelling)
    )


def _is_gone(found: Analysis) -> bool:
    """Whether only targets of old ever had it."""
    places = targets.supported()
    return not any(
        each.floors[place] < targets.NEVER
        for reading in found.readings
        for each in reading.available
        for place in places
    )


def _refusing(reading: Reading, place: int | None, version: int) -> list[Clause]:
    """The clauses of a reading that exclude the target and version."""
    places = targets.supported() if place is None else (place,)
    refusing: list[Clause] = []
    for available in reading.available:
        for clause in rules.active(reading.line, reading.values, available.variant):
            floors = targets.floors(clause.alternatives)
            within = [floors[each] <= version for each in places]
            excludes = not any(within) if clause.kind == "since" else all(within)
            if excludes and clause not in refusing:
                refusing.append(clause)
    return refusing


def _floor_mark(spelling: str, reading: Reading, clause: Clause, place: int | None, version: int) -> Mark:
    """`.f32x2 needs sm_100 or later (PTX ISA 8.6)`, under the modifier that asks for it."""
    name, words = table.split(spelling)
    starts = _starts(name, words)
    at = _asking(reading, words, clause, place, version)
    described = targets.describe(clause.alternatives)
    verb = "needs" if clause.kind == "since" else "was removed for"
    if at is None:
        return Mark(0, len(spelling), f"{name} {verb} {described}")
    return Mark(starts[at], max(len(words[at]) - 1, 1), f"{words[at]} {verb} {described}")


def _asking(
    reading: Reading, words: Sequence[str], clause: Clause, place: int | None, version: int
) -> int | None:
    """The modifier to blame: one that the clause names; else the first one that no available line of the
    opcode has.
    """
    if clause.condition is not None:
        named = set(condition.modifiers_in(clause.condition))
        for mod in list(named):
            named.update(reading.line.sets.get(mod, ()))
        for at, word in enumerate(words):
            if word in named:
                return at
    known = table.opcode(reading.line.opcode)
    places = targets.supported() if place is None else (place,)
    for at, word in enumerate(words):
        lines = known.candidates([word]) if known is not None else ()
        if not any(_plainly_there(line, places, version) for line in lines):
            return at
    for at, word in enumerate(words):
        if any(piece.name == word for piece in reading.line.pieces):
            return at
    return None


def _plainly_there(line: Line, places: Sequence[int], version: int) -> bool:
    """Whether the unconditional floors of a line include one of the targets."""
    floors, removed = rules.combine([c for c in line.clauses if c.kind != "where" and c.condition is None])
    return any(floors[place] <= version < removed[place] for place in places)


def tolerated(spelling: str, found: Analysis) -> tuple[str, ...]:
    """What is unusual about a spelling that the assembler takes."""
    _, words = table.split(spelling)
    _, whole = table.split(found.spelling)
    reasons = [f"{word} may be left out, but the manual asks for it" for word in whole if word not in words]
    if [word for word in whole if word in words] != words:
        reasons.append(f"the modifiers are not in the order of the manual: {found.spelling}")
    if not reasons:
        lacking = [
            _listed(piece.values)
            for reading in found.readings[:1]
            for value, piece in zip(reading.values, reading.line.pieces)
            if piece.kind == "omissible" and value is None
        ]
        reasons.append(f"the manual asks for {' and '.join(lacking)}")
    return tuple(reasons)
