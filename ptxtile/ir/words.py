"""Memos of what texts mean in one scope: words, literals, and whatever stands between two commas of an instruction.

They read what is plain. Mismatch says that the grammar must look: it reads everything, and says what is wrong.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Optional

from ptxtile.ir import constant
from ptxtile.ir.constant import Fault
from ptxtile.ir.instruction import Guard
from ptxtile.ir.operand import (
    Arguments,
    Float,
    Integer,
    Label,
    Negated,
    Operand,
    Pair,
    Register,
    Selected,
    Sink,
    Special,
    Symbol,
    Vector,
    address_of,
    registers_of,
)
from ptxtile.isa.form import Shape

if TYPE_CHECKING:
    from ptxtile.ir.scan import Scanner
    from ptxtile.ir.scope import Scope

_DIGITS = "0123456789"
# What a text may say is without end; what is remembered of it beyond one scope is not.
_LIMIT = 1 << 16


class Mismatch(Exception):
    """A statement has the shape of an earlier one, but a word where that had a number, or the reverse."""


class Words(dict[str, Operand]):
    """Memo from the text of a word or literal to the operand it is in one scope.

    The scope holds its memos, so they only refer to it: a cycle would keep all of a module's words until the collector
    comes, and `collector_paused` keeps it away.
    """

    __slots__ = ("_scope",)

    def __init__(self, scope: Scope) -> None:
        super().__init__()
        self._scope = weakref.ref(scope)

    @property
    def scope(self) -> Scope:
        scope = self._scope()
        assert scope is not None
        return scope

    def __missing__(self, text: str) -> Operand:
        scope = self.scope
        found: Optional[Operand] = scope.declared.get(text)
        if found is None:
            found = scope.numbered_register(text) or scope.meaning(text)
        self[text] = found
        return found


class Shapes(dict[str, Shape]):
    """Memo from the text of a word or literal to the shape of the operand that it is in one scope."""

    __slots__ = ("words",)

    def __init__(self, words: Words) -> None:
        super().__init__()
        self.words = words

    def __missing__(self, text: str) -> Shape:
        found = self[text] = self.words[text].shape
        return found


class Operands(dict[str, Operand]):
    """Memo from what stands between two commas to the operand: a word, a literal, an address in brackets, a vector of
    words in braces, a list of them, a pair, a negated predicate.

    `shapes` are theirs. Mismatch for anything that the grammar must read.
    """

    __slots__ = ("declared", "ranges", "scanner", "shapes", "words")

    def __init__(self, words: Words, scanner: Scanner) -> None:
        super().__init__()
        self.words = words
        self.declared = words.scope.declared
        self.ranges = words.scope.ranges
        self.scanner = scanner
        self.shapes: dict[str, Shape] = {}

    def __missing__(self, text: str) -> Operand:
        found = _LITERALS.get(text)
        if found is None:
            found = self._register(text) or _READERS.get(text[:1], _atom)(self, text)
        self[text] = found
        if text not in self.shapes:
            self.shapes[text] = found.shape
        return found

    def _register(self, text: str) -> Optional[Operand]:
        """The register of that name, of a range of this scope; None for anything less frequent."""
        prefix = text.rstrip(_DIGITS)
        known = self.ranges.get(prefix)
        if known is None or text in self.declared:
            return None
        count, type_, vector = known
        digits = text[len(prefix) :]
        if (
            vector != 1
            or not 0 < len(digits) < 10
            or int(digits) >= count
            or (digits[0] == "0" and digits != "0")
        ):
            return None
        self.shapes[text] = type_
        return Register(text, type_)

    def clear(self) -> None:
        super().clear()
        self.shapes.clear()

    def foresee(self, prefix: str, count: int, type_: str) -> None:
        """Make `prefix0` to `prefix(count-1)`, registers of this type declared in this scope, at once: that takes a
        fifth of the time.
        """
        known = _FORESEEN.get((prefix, type_))
        if known is None or len(known) < count:
            if len(_FORESEEN) >= _MOST_RANGES:
                _FORESEEN.clear()
            known = _FORESEEN[prefix, type_] = registers_of(prefix, count, type_)
        if len(known) == count:
            self.update(known)
            self.shapes.update(dict.fromkeys(known, type_))
        else:
            names = list(known)[:count]
            self.update(zip(names, known.values()))
            self.shapes.update(dict.fromkeys(names, type_))


_LITERALS: dict[str, Operand] = {}
# Registers are values, the same in every scope that declares them.
_FORESEEN: dict[tuple[str, str], dict[str, Register]] = {}
_MOST_RANGES = 64


def _atom(memo: Operands, text: str) -> Operand:
    """A word, a literal or a pair."""
    if memo.scanner.atom.fullmatch(text):
        found = memo.words[text]
        if isinstance(found, (Integer, Float)) and text != "WARP_SZ":
            if len(_LITERALS) >= _LIMIT:
                _LITERALS.clear()
            _LITERALS[text] = found
        return found
    first, bar, second = text.partition("|")
    if not bar or not memo.scanner.atom.fullmatch(first) or not memo.scanner.atom.fullmatch(second):
        raise Mismatch
    a, b = memo[first], memo[second]
    if not isinstance(a, (Register, Sink)) or not isinstance(b, (Register, Sink)):
        raise Mismatch
    return Pair(a, b)


def _negated(memo: Operands, text: str) -> Operand:
    if not memo.scanner.atom.fullmatch(text, 1):
        raise Mismatch
    found = memo[text[1:]]
    if not isinstance(found, Register):
        raise Mismatch
    return Negated(found)


def _vector(memo: Operands, text: str) -> Operand:
    if text[-1] != "}":
        raise Mismatch
    return Vector(_elements(memo, text, "{"))


def _arguments(memo: Operands, text: str) -> Operand:
    if text[-1] != ")":
        raise Mismatch
    if not text[1:-1].strip():
        return Arguments(())
    return Arguments(_elements(memo, text, "("))


def _elements(memo: Operands, text: str, mark: str) -> tuple[Operand, ...]:
    """The words and literals of a vector or list, whose shape is put down as well."""
    parts = [each.strip() for each in text[1:-1].split(",")]
    elements: list[Operand] = []
    for part in parts:
        found = memo.get(part)
        if found is None:
            if not memo.scanner.atom.fullmatch(part):
                raise Mismatch
            found = memo[part]
        if not isinstance(found, _ELEMENTS):
            raise Mismatch
        elements.append(found)
    memo.shapes[text] = (mark, *map(memo.shapes.__getitem__, parts))
    return tuple(elements)


def _address(memo: Operands, text: str) -> Operand:
    written, plus, distance = text[1:-1].partition("+")
    base, offset = memo.get(written), OFFSETS.get(distance)
    if base is None or text[-1] != "]" or (plus and offset is None):  # the first time
        parts = memo.scanner.address.fullmatch(text)
        if parts is None:
            raise Mismatch
        written, distance = parts[1], parts[2]
        base, offset = memo[written], None if distance is None else OFFSETS[distance]
    allowed = _BASES if offset is None else _MOVED
    if not isinstance(base, allowed):
        raise Mismatch
    memo.shapes[text] = ("[", memo.shapes[written])
    return address_of(base, offset or 0, offset == 0)


_ELEMENTS = (Register, Integer, Float, Sink, Special, Symbol, Selected, Label)
_BASES = (Register, Symbol, Integer, Special)
_MOVED = (Register, Symbol, Special)
_READERS: dict[str, Callable[[Operands, str], Operand]] = {
    "[": _address,
    "{": _vector,
    "(": _arguments,
    "!": _negated,
}


class Guards(dict[str, Guard]):
    """Memo from `@p` or `@!p` to the guard that it is in one scope."""

    __slots__ = ("operands",)

    def __init__(self, operands: Operands) -> None:
        super().__init__()
        self.operands = operands

    def __missing__(self, text: str) -> Guard:
        negated = text[1:2] == "!"
        name = text[2:] if negated else text[1:]
        register = self.operands.get(name)
        if register is None:
            if not self.operands.scanner.atom.fullmatch(name):
                raise Mismatch
            register = self.operands[name]
        if not isinstance(register, Register) or register.type != "pred":
            raise Mismatch
        found = self[text] = Guard(register, negated)
        return found


class Offsets(dict[str, int]):
    """Memo from the text of an integer literal to its value."""

    __slots__ = ()

    def __missing__(self, text: str) -> int:
        if text[0] not in "0123456789-.":
            raise Mismatch
        value = constant.number(text)
        if not isinstance(value, Integer):
            raise Fault("an offset is an integer")
        if len(self) >= _LIMIT:
            self.clear()
        found = self[text] = value.value
        return found


OFFSETS = Offsets()
