"""What a line's clauses say of one way of filling its pieces: whether it exists, and from when on each
target.

The clauses of a line are compiled once into one function from its modifiers to the truths of all clauses;
what those truths mean (floors, removals, which operand lists remain) is remembered by them, so that most
spellings cost one call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ptxtile.isa import condition, targets, variants
from ptxtile.isa.condition import Values
from ptxtile.isa.line import Clause, Line
from ptxtile.isa.targets import Floors


@dataclass(frozen=True, slots=True)
class Available:
    """An operand list that exists: its place in `variants.of(line)` (-1: all of them), its floors, from which
    version on it is gone, and whether some supported target has it in the newest version.
    """

    variant: int
    floors: Floors
    removed: Floors
    now: bool


@dataclass(frozen=True, slots=True)
class _Compiled:
    truths: Callable[[Values], object]
    memo: dict[object, tuple[Available, ...]]
    common: tuple[Clause, ...]
    own: tuple[Clause, ...]
    written: tuple[frozenset[str], ...]


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
    compiled = found if isinstance(found, _Compiled) else _compile(line)
    truths = compiled.truths(values)
    if not truths:
        return ()
    known = compiled.memo.get(truths)
    if known is None:
        known = compiled.memo[truths] = _resolve(compiled, truths)  # type: ignore[arg-type]
    return known


def _compile(line: Line) -> _Compiled:
    common: list[Clause] = []
    own: list[Clause] = []
    for clause in line.clauses:
        (own if _mentions_operand(clause) else common).append(clause)
    # operand lists need not be written out for a line whose clauses name no operand
    plain = scope(line) if own else condition.Scope(line.slots, line.by_name(), (), frozenset(), line.source)
    wheres = [condition.truth(clause.condition, plain) for clause in common if clause.kind == "where"]
    floors = [clause for clause in common if clause.kind != "where"]
    parts = [_expression(clause, plain) for clause in floors]
    written = tuple(each.written for each in variants.of(line)) if own else ()
    for names in written:
        inside = scope(line, names)
        parts.extend(_expression(clause, inside) for clause in own)
    text = f"({' and '.join(wheres) or 'True'}) and (True, {''.join(part + ', ' for part in parts)})"
    made = _Compiled(condition.compile_(text, line.source), {}, tuple(floors), tuple(own), written)
    line.cached["rules"] = made
    return made


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


def _resolve(compiled: _Compiled, truths: Sequence[bool]) -> tuple[Available, ...]:
    count = len(compiled.common) + 1
    active = [clause for clause, true in zip(compiled.common, truths[1:count]) if true]
    if not compiled.own:
        return (_available(-1, active),)
    found: list[Available] = []
    for number in range(len(compiled.written)):
        mine = truths[count + number * len(compiled.own) : count + (number + 1) * len(compiled.own)]
        if all(true for clause, true in zip(compiled.own, mine) if clause.kind == "where"):
            more = [clause for clause, true in zip(compiled.own, mine) if true and clause.kind != "where"]
            found.append(_available(number, active + more))
    return tuple(found)


def _available(variant: int, clauses: Sequence[Clause]) -> Available:
    floors, removed = combine(clauses)
    version = targets.newest()
    return Available(
        variant, floors, removed, any(floors[i] <= version < removed[i] for i in targets.supported())
    )


_combined: dict[tuple[str, ...], tuple[Floors, Floors]] = {}


def combine(clauses: Sequence[Clause]) -> tuple[Floors, Floors]:
    """Floors and removals of several clauses together with the targets' own floors. A target that loses a
    thing no later than it would get it never has it.
    """
    key = tuple(f"{clause.kind}{clause.alternatives}" for clause in clauses)
    known = _combined.get(key)
    if known is None:
        floors = targets.facts().base
        removed: Floors = (targets.NEVER,) * len(floors)
        for clause in clauses:
            each = targets.floors(clause.alternatives)
            if clause.kind == "since":
                floors = tuple(map(max, floors, each))
            else:
                removed = tuple(map(min, removed, each))
        floors = tuple(targets.NEVER if low >= gone else low for low, gone in zip(floors, removed))
        known = _combined[key] = (floors, removed)
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
