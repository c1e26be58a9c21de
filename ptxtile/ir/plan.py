"""From the syntax of an instruction to its operands, once per shape of statement.

Most statements of a module differ from an earlier one only in their words and numbers. A Plan is what the grammar found
in the first of a shape; `leaves` are the words and literals of a statement, in order of appearance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Optional

from ptxtile.ir.constant import Fault
from ptxtile.ir.operand import (
    Address,
    Arguments,
    Float,
    Integer,
    Minus,
    Negated,
    Operand,
    Pair,
    Register,
    Selected,
    Sink,
    Special,
    Symbol,
    UnifiedAddress,
    Vector,
)
from ptxtile.ir.syntax import (
    AddressNode,
    ArgumentsNode,
    InstructionNode,
    Literal,
    MinusNode,
    Node,
    Not,
    PairNode,
    Shifted,
    SubscriptNode,
    VectorNode,
    Word,
)
from ptxtile.ir.words import OFFSETS, Mismatch, Words
from ptxtile.isa.form import Form, Shape, Signature

Build = Callable[[Sequence[str], Words], Operand]


class Leaf(NamedTuple):
    text: str
    start: int


class Bound(NamedTuple):
    """The form and signature of a statement; whether its literals have limits, to be looked at each time."""

    form: Form
    signature: Signature
    limited: bool


class Plan(NamedTuple):
    """How to make the operands of a statement from its leaves.

    guarded   whether the first leaf is a guard
    spelling  the leaf of the spelling
    builds    one function an operand; None if every operand is just a leaf, from spelling + 1 on
    lists     whether an operand is in parentheses, or an array's element
    subscripts  whether there is such an element
    known     spelling → the shapes of the leaves after it → what the operands were bound to
    """

    guarded: bool
    negated: bool
    spelling: int
    builds: Optional[tuple[Build, ...]]
    lists: bool
    subscripts: bool
    known: dict[str, dict[tuple[Shape, ...], Bound]]


class Planner:
    """Compiles one instruction node. `exact` says whether leaves are all there is: no computed constant among them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.leaves: list[Leaf] = []
        self.exact = True

    def plan(self, node: InstructionNode) -> Plan:
        if node.guard is not None:
            self._word(node.guard)
        at = len(self.leaves)
        self.leaves.append(Leaf(node.spelling, node.start))
        self.exact = node.simple_spelling
        builds = tuple(map(self.operand, node.operands))
        plain = self.exact and all(isinstance(each, (Word, Literal)) for each in node.operands)
        lists = any(isinstance(each, ArgumentsNode) or _enclosed(each) for each in node.operands)
        indexed = any(isinstance(each, SubscriptNode) for each in node.operands)
        return Plan(
            node.guard is not None, node.negated, at, None if plain else builds, lists or indexed, indexed, {}
        )

    def operand(self, node: Node) -> Build:
        """The function that makes this operand."""
        if isinstance(node, Word):
            return _leaf(self._word(node))
        if isinstance(node, Literal):
            return self._literal(node)
        if isinstance(node, Shifted):
            return _shifted(self._word(node.word), self._offset(node.offset))
        if isinstance(node, Not):
            return _negated(self._word(node.word))
        if isinstance(node, MinusNode):
            return _minus(self._word(node.word))
        if isinstance(node, PairNode):
            if isinstance(node.first, VectorNode):
                return _vector_pair(self.operand(node.first), self._word(node.second))
            return _pair(self._word(node.first), self._word(node.second))
        if isinstance(node, VectorNode):
            return _vector(tuple(map(self.operand, node.elements)))
        if isinstance(node, AddressNode):
            return self._address(node)
        if isinstance(node, SubscriptNode):
            self.exact = False
            return _subscript(self._word(node.word), node.element)
        assert isinstance(node, ArgumentsNode)
        return _arguments(tuple(map(self.operand, node.elements)))

    def _word(self, word: Word) -> int:
        self.leaves.append(Leaf(word.text, word.start))
        return len(self.leaves) - 1

    def _literal(self, node: Literal) -> Build:
        if node.end < 0:
            self.exact = False
            value: Operand = Arguments((node.value,)) if node.enclosed else node.value
            return lambda leaves, words: value
        return _leaf(self._word(Word(self.text[node.start : node.end], node.start)))

    def _offset(self, node: Literal) -> Callable[[Sequence[str]], int]:
        if not isinstance(node.value, Integer):
            raise Fault("an offset is an integer", node.start)
        if node.end < 0:
            self.exact = False
            value = node.value.value
            return lambda leaves: value
        at = self._word(Word(self.text[node.start : node.end], node.start))
        return lambda leaves: OFFSETS[leaves[at]]

    def _address(self, node: AddressNode) -> Build:
        base = node.base
        if isinstance(base, Shifted):
            at, offset = self._word(base.word), self._offset(base.offset)
            return _marked(node, _moved_address(at, offset, tuple(map(self.operand, node.rest))))
        if isinstance(base, Literal) and base.enclosed:
            base = base._replace(enclosed=False)
        return _marked(node, _address(self.operand(base), tuple(map(self.operand, node.rest))))


def _marked(node: AddressNode, build: Build) -> Build:
    if not node.unified:
        return build

    def marked(leaves: Sequence[str], words: Words) -> Operand:
        plain = build(leaves, words)
        assert isinstance(plain, Address)
        return UnifiedAddress(plain.base, plain.offset, plain.rest, plain.zero)

    return marked


def _enclosed(node: Node) -> bool:
    return isinstance(node, Literal) and node.enclosed


def start_of(node: Node) -> int:
    """Where an operand begins, but for a bracket or sign before its first word; -1 if it does not say."""
    if isinstance(node, (Word, Literal)):
        return node.start
    if isinstance(node, (Shifted, Not, MinusNode, SubscriptNode)):
        return node.word.start
    if isinstance(node, PairNode):
        return start_of(node.first)
    if isinstance(node, AddressNode):
        return start_of(node.base)
    return start_of(node.elements[0]) if node.elements else -1


def _leaf(at: int) -> Build:
    return lambda leaves, words: words[leaves[at]]


def _shifted(at: int, offset: Callable[[Sequence[str]], int]) -> Build:
    def build(leaves: Sequence[str], words: Words) -> Operand:
        found = words[leaves[at]]
        if isinstance(found, (Integer, Float)):
            raise Mismatch
        if not isinstance(found, Symbol):
            raise Fault(
                f"{leaves[at]} is no variable: only the address of one takes an offset outside brackets"
            )
        return Symbol(found.name, found.space, offset(leaves))

    return build


def _subscript(at: int, index: int) -> Build:
    """`array[3]`, the address of an element."""

    def build(leaves: Sequence[str], words: Words) -> Operand:
        found, size = words[leaves[at]], words.scope.element(leaves[at])
        if not isinstance(found, Symbol) or not size:
            raise Fault(f"{leaves[at]} is no array: only an array takes a subscript")
        return Symbol(found.name, found.space, index * size)

    return build


def _negated(at: int) -> Build:
    def build(leaves: Sequence[str], words: Words) -> Operand:
        found = words[leaves[at]]
        if isinstance(found, (Integer, Float)):
            raise Mismatch
        if not isinstance(found, Register):
            raise Fault(f"! belongs before a predicate register; {leaves[at]} is none")
        return Negated(found)

    return build


def _minus(at: int) -> Build:
    def build(leaves: Sequence[str], words: Words) -> Operand:
        found = words[leaves[at]]
        if isinstance(found, (Integer, Float)):
            raise Mismatch
        if not isinstance(found, (Register, Selected)):
            raise Fault(f"- belongs before a register or a number; {leaves[at]} is neither")
        return Minus(found)

    return build


def _pair(first: int, second: int) -> Build:
    def build(leaves: Sequence[str], words: Words) -> Operand:
        a, b = words[leaves[first]], words[leaves[second]]
        if isinstance(a, (Integer, Float)) or isinstance(b, (Integer, Float)):
            raise Mismatch
        if not isinstance(a, (Register, Sink)) or not isinstance(b, (Register, Sink)):
            raise Fault(f"{leaves[first]}|{leaves[second]}: both sides of a pair are registers or _")
        return Pair(a, b)

    return build


def _vector_pair(first: Build, second: int) -> Build:
    def build(leaves: Sequence[str], words: Words) -> Operand:
        b = words[leaves[second]]
        if not isinstance(b, (Register, Sink)):
            raise Fault(f"{leaves[second]}: what follows a vector and | is a predicate register or _")
        return Pair(first(leaves, words), b)

    return build


def _vector(parts: tuple[Build, ...]) -> Build:
    def build(leaves: Sequence[str], words: Words) -> Operand:
        elements = tuple([part(leaves, words) for part in parts])
        for element in elements:
            if isinstance(element, (Vector, Arguments)):
                raise Fault("an element of a vector is one register or number")
        return Vector(elements)

    return build


def _arguments(parts: tuple[Build, ...]) -> Build:
    return lambda leaves, words: Arguments(tuple([part(leaves, words) for part in parts]))


def _base(found: Operand) -> Register | Symbol | Integer | Special:
    if isinstance(found, (Register, Symbol, Integer, Special)):
        return found
    raise Fault(f"{found} is no address: a register, a variable or an integer is")


def _address(base: Build, rest: tuple[Build, ...]) -> Build:
    if not rest:
        return lambda leaves, words: Address(_base(base(leaves, words)))

    def build(leaves: Sequence[str], words: Words) -> Operand:
        found = base(leaves, words)
        others = tuple([part(leaves, words) for part in rest])
        if isinstance(found, Symbol) and found.offset:
            return Address(Symbol(found.name, found.space), found.offset, others)
        return Address(_base(found), 0, others)

    return build


def _moved_address(at: int, offset: Callable[[Sequence[str]], int], rest: tuple[Build, ...]) -> Build:
    def build(leaves: Sequence[str], words: Words) -> Operand:
        found = words[leaves[at]]
        if isinstance(found, (Integer, Float)):
            raise Mismatch
        distance = offset(leaves)
        others = tuple([part(leaves, words) for part in rest])
        return Address(_base(found), distance, others, distance == 0)

    return build
