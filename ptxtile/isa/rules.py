"""What a line's clauses say of one way of filling its pieces: whether it exists, and from when on each
target.

The clauses of a line are compiled once into one function from its modifiers to the truths of all clauses;
what those truths mean (floors, removals, which operand lists remain) is remembered by them, so that most
spellings cost one call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CodeType
from typing import NamedTuple

from ptxtile.isa import condition, targets, variants
from ptxtile.isa.condition import Values
from ptxtile.isa.line import Clause, Line
from ptxtile.isa.targets import Floors


class Available(NamedTuple):
    """An operand list that exists: its place in `variants.of(line)` (-1: all of them), its floors, from which
    version on it is gone, and whether some supported target has it in the newest version.
    """

    variant: int
    floors: Floors
    removed: Floors
    now: bool


class Rules(NamedTuple):
    """The clauses of a line, compiled.

    truths   from the modifiers of a line to the truths of all clauses, of no meaning without the rest
    common   the places of the clauses that hold for every operand list, but `where`
    own      those that ask for operands
    written  the operands written in each operand list, if any clause asks
    memo     what truths meant, as far as they came up
    """

    truths: Callable[[Values], object]
    common: tuple[int, ...]
    own: tuple[int, ...]
    written: tuple[frozenset[str], ...]
    memo: dict[object, tuple[Available, ...]]


def scope(line: Line, written: frozenset[str] = frozenset()) -> condition.Scope:
    """The meaning of names in a condition of `line`, in the signature that writes the operands `written`."""
    known = line.cached.get(("scope", written))
    if isinstance(known, condition.Scope):
        return known
    names = {name for each in variants.of(line) for name in each.written}
    names.update(line.declarations)
    found = condition.Scope(line.slots, line.by_name(), names, written, line.source)
    line.cached["scope", written] = found
    return found


def available(line: Line, values: Values) -> tuple[Available, ...]:
    """The operand lists that exist for this filling, () if the filling itself does not."""
    found = line.cached.get("rules")
    if not isinstance(found, Rules):
        found = line.cached["rules"] = revived(*compiled(line))
    truths = found.truths(values)
    if not truths:
        return ()
    known = found.memo.get(truths)
    if known is None:
        known = found.memo[truths] = _resolve(line.clauses, found, truths)  # type: ignore[arg-type]
    return known


Compiled = tuple[CodeType, tuple[int, ...], tuple[int, ...], tuple[frozenset[str], ...]]


def revived(
    made: CodeType, common: tuple[int, ...], own: tuple[int, ...], written: tuple[frozenset[str], ...]
) -> Rules:
    """What `compiled` gave, here or in an earlier process, ready for use."""
    return Rules(condition.function(made), common, own, written, {})


def compiled(line: Line) -> Compiled:
    """The clauses of a line, compiled, as values that `marshal` takes."""
    common: list[int] = []
    own: list[int] = []
    for place, clause in enumerate(line.clauses):
        (own if _mentions_operand(clause) else common).append(place)
    # operand lists need not be written out for a line whose clauses name no operand
    plain = scope(line) if own else condition.Scope(line.slots, line.by_name(), (), frozenset(), line.source)
    chosen = [line.clauses[place] for place in common]
    wheres = [condition.truth(clause.condition, plain) for clause in chosen if clause.kind == "where"]
    floors = [place for place in common if line.clauses[place].kind != "where"]
    parts = [_expression(line.clauses[place], plain) for place in floors]
    written = tuple([each.written for each in variants.of(line)]) if own else ()
    for names in written:
        inside = scope(line, names)
        parts.extend(_expression(line.clauses[place], inside) for place in own)
    text = f"({' and '.join(wheres) or 'True'}) and (True, {''.join(part + ', ' for part in parts)})"
    return condition.code(text, line.source), tuple(floors), tuple(own), written


_mentions: dict[int, tuple[object, bool]] = {}


def _mentions_operand(clause: Clause) -> bool:
    """`condition.mentions_operand`, remembered by identity: the condition is kept, so the identity stays taken."""
    known = _mentions.get(id(clause.condition))
    if known is None:
        known = clause.condition, condition.mentions_operand(clause.condition)
        _mentions[id(clause.condition)] = known
    return known[1]


def _expression(clause: Clause, inside: condition.Scope) -> str:
    return "True" if clause.condition is None else f"bool({condition.truth(clause.condition, inside)})"


def _resolve(clauses: Sequence[Clause], rules: Rules, truths: Sequence[bool]) -> tuple[Available, ...]:
    count = len(rules.common) + 1
    active = [clauses[place] for place, true in zip(rules.common, truths[1:count]) if true]
    if not rules.own:
        return (_available(-1, active),)
    found: list[Available] = []
    for number in range(len(rules.written)):
        mine = truths[count + number * len(rules.own) : count + (number + 1) * len(rules.own)]
        asked = [(clauses[place], true) for place, true in zip(rules.own, mine)]
        if all(true for clause, true in asked if clause.kind == "where"):
            more = [clause for clause, true in asked if true and clause.kind != "where"]
            found.append(_available(number, active + more))
    return tuple(found)


def _available(variant: int, clauses: Sequence[Clause]) -> Available:
    floors, removed = combine(clauses)
    version = targets.newest()
    return Available(
        variant, floors, removed, any(floors[i] <= version < removed[i] for i in targets.supported())
    )


_combined: dict[tuple[tuple[str, Floors], ...], tuple[Floors, Floors]] = {}


def combine(clauses: Sequence[Clause]) -> tuple[Floors, Floors]:
    """Floors and removals of several clauses together with the targets' own floors. A target that loses a
    thing no later than it would get it never has it.
    """
    each = [
        (one.kind, targets.floors(one.alternatives) if one.floors is None else one.floors) for one in clauses
    ]
    key = tuple(each)
    known = _combined.get(key)
    if known is None:
        base = targets.facts().base
        never: Floors = (targets.NEVER,) * len(base)
        floors = tuple(map(max, base, base, *[found for kind, found in each if kind == "since"]))
        removed = tuple(map(min, never, never, *[found for kind, found in each if kind != "since"]))
        if removed != never:
            floors = tuple([targets.NEVER if low >= gone else low for low, gone in zip(floors, removed)])
        known = _combined[key] = floors, removed
    return known


def broken(line: Line, values: Values) -> list[Clause]:
    """The `where` clauses that this filling breaks: those that are false in every signature."""
    found: list[Clause] = []
    for clause in line.clauses:
        if clause.kind != "where":
            continue
        scopes = [scope(line, each.written) for each in variants.of(line)]
        tests = [condition.compile_(condition.truth(clause.condition, each), line.source) for each in scopes]
        if not any(test(values) for test in tests):
            found.append(clause)
    return found


def active(line: Line, values: Values, variant: int) -> list[Clause]:
    """The `since` and `removed` clauses that apply to this filling in this signature (-1: any)."""
    inside = scope(line, variants.of(line)[max(variant, 0)].written)
    return [
        clause
        for clause in line.clauses
        if clause.kind != "where"
        and (
            clause.condition is None
            or condition.compile_(condition.truth(clause.condition, inside), line.source)(values)
        )
    ]
