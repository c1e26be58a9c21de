"""Conditions of `where`, `since … when` and vector lengths → Python expressions over the tuple of a line's
modifiers.

A condition is compiled for one syntax line: `v` is a tuple with one entry per piece of the line, the modifier
written there (".f32") or None. What operands are written is known for each signature, so operand names become
constants. Slots that the line does not have are None; words that it has are asked at their piece.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from types import CodeType, FunctionType

from ptxtile.errors import NotationError
from ptxtile.isa import types
from ptxtile.isa.notation import Raw

Values = tuple["str | None", ...]


@dataclass(frozen=True, slots=True)
class Scope:
    """What the names in a condition mean in one line.

    slots     names of the sets in scope
    places    each slot or word of the line, to the indices of its pieces
    operands  the operand names that any line of the instruction has
    written   the operands written in the signature asked about
    source    "float.isa:7", for errors
    """

    slots: Collection[str]
    places: Mapping[str, tuple[int, ...]]
    operands: Collection[str]
    written: Collection[str]
    source: str


def mentions_operand(condition: Raw) -> bool:
    """Whether the condition asks about operands, so that it must be asked of each signature."""
    if not isinstance(condition, list):
        return False
    return condition[0] == "operand" or any(mentions_operand(part) for part in condition[1:])


def modifiers_in(condition: Raw) -> list[str]:
    """Every modifier that the condition names, in order."""
    if not isinstance(condition, list):
        return []
    if condition[:1] == ["mod"]:
        return [condition[1]]
    return [name for part in condition for name in modifiers_in(part)]


def truth(condition: Raw, scope: Scope) -> str:
    """The Python expression of a condition where a truth is wanted."""
    kind = condition[0]
    if kind == "mod":
        name = condition[1]
        if name in scope.places:
            return _any(f"v[{place}] is not None" for place in scope.places[name])
        return "False" if name in scope.slots else _word_anywhere(name, scope)
    if kind == "operand":
        if condition[1] not in scope.operands:
            raise NotationError(
                f"{scope.source}:1: the condition names {condition[1]!r}, which is no operand here"
            )
        return str(condition[1] in scope.written)
    if kind in ("and", "or"):
        return "(" + f" {kind} ".join(truth(part, scope) for part in condition[1:]) + ")"
    if kind == "not":
        return f"(not {truth(condition[1], scope)})"
    if kind == "implies":
        left, right = truth(condition[2], scope), truth(condition[3], scope)
        return f"(bool({left}) == bool({right}))" if condition[1] == "<->" else f"(not {left} or {right})"
    if kind == "cmp":
        return f"({value(condition[2], scope)} {condition[1]} {value(condition[3], scope)})"
    if kind == "in":
        return f"({value(condition[1], scope)} in ({''.join(value(part, scope) + ', ' for part in condition[2])}))"
    if kind == "call" and condition[1] == "covers":
        return value(condition, scope)
    raise NotationError(f"{scope.source}:1: a number stands where a truth is wanted")


def value(expression: Raw, scope: Scope) -> str:
    """The Python expression of a value: text of a modifier, None, or a number."""
    kind = expression[0]
    if kind == "mod":
        name = expression[1]
        if name in scope.slots:
            return f"v[{scope.places[name][0]}]" if name in scope.places else "None"
        return repr(name)
    if kind == "int":
        return str(expression[1])
    if kind == "absent":
        return "None"
    if kind == "call":
        arguments = ", ".join(value(part, scope) for part in expression[2:])
        return f"{expression[1]}({arguments})"
    if kind == "arith":
        first, *rest = expression[1:]
        text = value(first, scope)
        for sign, part in zip(rest[::2], rest[1::2]):
            text += f" {'//' if sign == '/' else sign} {value(part, scope)}"
        return f"({text})"
    raise NotationError(f"{scope.source}:1: a truth or an operand stands where a value is wanted")


def _any(parts: Iterable[str]) -> str:
    return "(" + " or ".join(parts) + ")"


def _word_anywhere(name: str, scope: Scope) -> str:
    """A bare word that is no piece of its own: it may be the value of a slot of the line."""
    places = sorted({place for slot, found in scope.places.items() if slot in scope.slots for place in found})
    return _any(f"v[{place}] == {name!r}" for place in places) if places else "False"


@functools.cache
def compile_(expression: str, source: str) -> Callable[[Values], object]:
    """A function of `v`, made once. `source` appears in tracebacks."""
    return function(code(expression, source))


def code(expression: str, source: str) -> CodeType:
    """What `function` makes a function of."""
    # The text comes from a parsed condition, nothing of it from a user.
    found = compile(f"lambda v: {expression}", f"<{source}>", "eval").co_consts[0]
    assert isinstance(found, CodeType)
    return found


def function(made: CodeType) -> Callable[[Values], object]:
    """The function of `v` that `code` compiled, here or in an earlier process."""
    return FunctionType(made, _FUNCTIONS)


# The closed list of functions. Each takes a modifier or None.


@functools.cache
def _bits(name: str | None) -> int:
    known = None if name is None else types.all_types().get(name)
    return 0 if known is None else known.bits


@functools.cache
def _length(name: str | None) -> int:
    if name is None:
        return 1
    match = re.fullmatch(r"\.[vx](\d+)", name)
    return int(match[1]) if match else 1


@functools.cache
def _dimensions(name: str | None) -> int:
    match = None if name is None else re.fullmatch(r"\.(a?)(\d)d(?:ms)?|\.(a?)cube", name)
    if match is None:
        return 0
    return int(match[2]) if match[2] else 3


def _extent(letter: str) -> Callable[[str | None], int]:
    pattern = re.compile(rf"\.(?:[a-z]\d+)*?{letter}(\d+)(?:[a-z]\d+)*")

    @functools.cache
    def extent(name: str | None) -> int:
        match = None if name is None else pattern.fullmatch(name)
        return int(match[1]) if match else 0

    return extent


@functools.cache
def _covers(wide: str | None, narrow: str | None) -> bool:
    known = types.all_types()
    if wide not in known or narrow not in known:
        return False
    a, b = known[wide], known[narrow]
    if a.kind == b.kind:
        return a.bits >= b.bits
    return a.kind == "s" and b.kind == "u" and a.bits > b.bits


_FUNCTIONS: dict[str, object] = {
    "__builtins__": {"bool": bool},
    "bits": _bits,
    "len": _length,
    "dim": _dimensions,
    "m": _extent("m"),
    "n": _extent("n"),
    "k": _extent("k"),
    "covers": _covers,
}
