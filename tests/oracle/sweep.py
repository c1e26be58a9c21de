"""Questions to the assembler, made from the whole table with no code for any instruction, and what it answered.

sound    what the table allows assembles
tight    what a clause drops is refused: the filling of a line, or one of its operand lists
floors   at its first version a signature assembles and in the version before it does not; where the table does not
         have it, it is refused
order    the modifiers in another order are taken, or not, as the table says
unique   one spelling and one operand list fit one signature (no assembler needed)
needed   each clause matters: without it, the table would allow something that the assembler refuses
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ptxtile.errors import NotationError
from ptxtile.isa import match, rules, signature, table, targets, variants
from ptxtile.isa.bind import fits
from ptxtile.isa.form import Signature
from ptxtile.isa.line import Clause, Line
from ptxtile.isa.listing import spellings
from tests.oracle.assembler import Assembler
from tests.oracle.operands import statement, write

NEWEST = targets.facts().versions[-1]
SUPPORTED = tuple(name for name, target in targets.facts().targets.items() if target.supported)
ONLY = os.environ.get("PTXTILE_SWEEP_OPCODE", "")

Filling = tuple["str | None", ...]


class Question(NamedTuple):
    """One statement for one target in one version, and what the table says."""

    sweep: str
    text: str
    target: str
    version: str
    wanted: bool
    source: str


@dataclass(frozen=True, slots=True)
class Case:
    """One operand list of one filling.

    floors   target → first version, as the table has it; empty: it must be refused
    removed  the targets that lost it
    twice    the signatures it fits, if more than one
    """

    spelling: str
    text: str
    floors: dict[str, str]
    removed: frozenset[str]
    source: str
    twice: tuple[str, ...]


def lines() -> Iterator[Line]:
    """Every syntax line of the table; of one opcode alone, if PTXTILE_SWEEP_OPCODE names it."""
    for name in [ONLY] if ONLY else table.chapters():
        opcode = table.opcode(name)
        if opcode is None:
            raise LookupError(
                f"PTXTILE_SWEEP_OPCODE: there is no opcode {name!r}; the opcode is what stands before the first dot"
            )
        yield from opcode.lines


def options(line: Line) -> list[tuple[str | None, ...]]:
    """What may stand at each piece."""
    return [
        (None, *piece.values) if piece.kind == "optional" else tuple(piece.values) for piece in line.pieces
    ]


def fillings(line: Line, limit: int, chance: random.Random) -> list[Filling]:
    """All fillings of a line if there are no more than `limit`, else so many at random."""
    choices = options(line)
    if math.prod(map(len, choices)) <= limit:
        return [values for values, _ in spellings(line)]
    repeated = {second: first for first, second in line.repeats}
    found: dict[Filling, None] = {}
    for _ in range(4 * limit):
        values = [chance.choice(each) for each in choices]
        for second, first in repeated.items():
            values[second] = values[first]
        found[tuple(values)] = None
        if len(found) >= limit:
            break
    return list(found)


def spelled(line: Line, values: Filling) -> str:
    return line.opcode + "".join(value for value in values if value is not None)


def every_signature(line: Line, values: Filling) -> tuple[Signature, ...]:
    """The operand lists of a filling that can be written, whether clauses allow them or not."""
    facts = targets.facts()
    never = (targets.NEVER,) * len(facts.base)
    everywhere = [
        rules.Available(number, facts.base, never, True) for number in range(len(variants.of(line)))
    ]
    return tuple(written(line, values, everywhere))


def written(line: Line, values: Filling, available: Iterable[rules.Available]) -> Iterator[Signature]:
    """The operand lists that can be written: a vector may come out with no elements, which only a clause keeps out."""
    for each in available:
        try:
            yield from signature.form(
                spelled(line, values), [match.Reading(line, values, True, (each,))]
            ).signatures
        except NotationError:
            continue


def cases(line: Line, values: Filling) -> Iterator[Case]:
    """The operand lists of a filling, each with what the whole table says of it."""
    spelling = spelled(line, values)
    analysis = table.analyse(spelling)
    known = table.form(analysis).signatures if analysis is not None and analysis.canonical else ()
    for each in every_signature(line, values):
        _, shapes = write(each)
        fitting = [
            one for one in known if len(one.operands) == len(shapes) and all(map(fits, one.operands, shapes))
        ]
        floors = dict(fitting[0].targets) if fitting else {}
        removed = frozenset(fitting[0].removed) if fitting else frozenset[str]()
        twice = tuple(one.source for one in fitting) if len(fitting) > 1 else ()
        yield Case(spelling, statement(spelling, each), floors, removed, line.source, twice)


def _now(case: Case) -> list[str]:
    """The targets that have it in the newest version."""
    return [target for target in SUPPORTED if target in case.floors and target not in case.removed]


def questions(case: Case, chance: random.Random, each: int | None) -> Iterator[Question]:
    """What to ask about a case: all of it, or `each` targets of each kind."""
    facts = targets.facts()

    def some(names: Sequence[str]) -> Sequence[str]:
        return names if each is None or len(names) <= each else chance.sample(names, each)

    have = _now(case)
    sweep = "sound" if case.floors else "tight"
    for target in some(have):
        yield Question("sound", case.text, target, NEWEST, True, case.source)
    for target in some([t for t in SUPPORTED if t not in case.floors or t in case.removed]):
        yield Question("floors" if sweep == "sound" else sweep, case.text, target, NEWEST, False, case.source)
    for target in some([t for t in have if case.floors[t] != facts.targets[t].since]):
        first = facts.ordinal[case.floors[target]]
        yield Question("floors", case.text, target, facts.versions[first], True, case.source)
        yield Question("floors", case.text, target, facts.versions[first - 1], False, case.source)


def reordered(line: Line, values: Filling, chance: random.Random) -> Iterator[Question]:
    """A filling that the newest version has, its modifiers shuffled: all of them, and two neighbours."""
    words = [value for value in values if value is not None]
    listed = [case for case in cases(line, values) if _now(case)]
    if len(words) < 2 or not listed:
        return
    case = chance.choice(listed)
    place = chance.randrange(len(words) - 1)
    swapped = [*words[:place], words[place + 1], words[place], *words[place + 2 :]]
    for order in (chance.sample(words, len(words)), swapped):
        spelling = line.opcode + "".join(order)
        found = table.analyse(spelling)
        if spelling == case.spelling or (found is not None and found.spelling != case.spelling):
            continue  # the same, or another form, which would take other operands
        have = _now(case)
        text = spelling + case.text[len(case.spelling) :]
        yield Question("order", text, chance.choice(have), NEWEST, found is not None, case.source)


def ask(assembler: Assembler, asked: Iterable[Question]) -> list[tuple[Question, str]]:
    """The questions that the assembler answers otherwise than the table, with its message, "" if it takes it."""
    # those to be taken by themselves: then one run is enough to hear of all that is wrong
    groups: dict[tuple[str, str, bool], list[Question]] = {}
    for question in dict.fromkeys(asked):
        groups.setdefault((question.target, question.version, question.wanted), []).append(question)
    differing: list[tuple[Question, str]] = []
    for (target, version, _), group in groups.items():
        refused = assembler.refusals([question.text for question in group], target, version)
        for number, question in enumerate(group):
            if question.wanted and number in refused:
                differing.append((question, refused[number]))
            elif not question.wanted and number not in refused and assembler.assembles(*question[1:4]):
                differing.append((question, ""))
    return differing


class Witness(NamedTuple):
    """A statement that only one clause keeps out: on this target in this version."""

    clause: Clause
    line: Line
    text: str
    target: str
    version: str


def clauses() -> Iterator[tuple[Clause, Line]]:
    """Each clause of the table once, with the lines in its scope."""
    for line in lines():
        for clause in line.clauses:
            yield clause, line


def _each(available: Iterable[rules.Available], line: Line) -> Iterator[rules.Available]:
    """One entry for each operand list, where an entry may stand for all of them."""
    for entry in available:
        if entry.variant >= 0:
            yield entry
        else:
            yield from (entry._replace(variant=number) for number in range(len(variants.of(line))))


def witnesses(clause: Clause, line: Line, limit: int, chance: random.Random) -> Iterator[Witness]:
    """Statements that the table would have without the clause, and has not with it."""
    without = replace(line, clauses=tuple(each for each in line.clauses if each is not clause), cached={})
    facts = targets.facts()
    for values in fillings(line, limit, chance):
        if rules.available(without, values) == rules.available(line, values):
            continue
        freed = written(without, values, _each(rules.available(without, values), line))
        truly = {case.text: case.floors for case in cases(line, values)}
        for each in freed:
            text = statement(spelled(line, values), each)
            floors = truly.get(text, {})
            for target in SUPPORTED:
                if target not in each.targets or target in each.removed:
                    continue
                if target not in floors:
                    yield Witness(clause, line, text, target, NEWEST)
                elif facts.ordinal[each.targets[target]] < facts.ordinal[floors[target]]:
                    yield Witness(clause, line, text, target, each.targets[target])
