"""What the grammar finds in a text, before any name has a meaning: plain nodes, and the callbacks that build them.

Positions are offsets into the text that was parsed. The method names of `Callbacks` are the rule names and aliases of
`grammar/module.lark`; the parser calls them bottom-up while it reads, so no tree is ever built or walked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Optional, Protocol, Union

from ptxtile.ir import constant
from ptxtile.ir.constant import Fault, Number
from ptxtile.ir.operand import Float, Integer


class Token(Protocol):
    """What is used of the parser's tokens, which are strings."""

    type: str
    value: str
    start_pos: int
    end_pos: int


class Word(NamedTuple):
    text: str
    start: int


class Literal(NamedTuple):
    """A constant. `end` is -1 if it was computed, so that no single literal of the text stands for it."""

    value: Number
    start: int
    end: int
    enclosed: bool = False


class Shifted(NamedTuple):
    word: Word
    offset: Literal


class SubscriptNode(NamedTuple):
    """`array[3]`."""

    word: Word
    element: int


class Not(NamedTuple):
    word: Word


class MinusNode(NamedTuple):
    word: Word


class PairNode(NamedTuple):
    first: Word | VectorNode
    second: Word


class VectorNode(NamedTuple):
    elements: tuple[Node, ...]


class AddressNode(NamedTuple):
    base: Node
    rest: tuple[Node, ...]
    unified: bool = False


class ArgumentsNode(NamedTuple):
    elements: tuple[Node, ...]


Node = Union[
    Word, Literal, Shifted, SubscriptNode, Not, MinusNode, PairNode, VectorNode, AddressNode, ArgumentsNode
]


class InstructionNode(NamedTuple):
    guard: Optional[Word]
    negated: bool
    spelling: str
    start: int
    operands: tuple[Node, ...]
    simple_spelling: bool


class Attribute(NamedTuple):
    text: str
    start: int


class Align(NamedTuple):
    value: int
    start: int


class Qualifier(NamedTuple):
    """`.visible`, `.global`, `.v2`, `.f32`, …: its text with the dot."""

    text: str
    start: int


Prefix = Union[Qualifier, Align, Attribute]


class Place(NamedTuple):
    """A name in an initialiser."""

    word: Word
    offset: int
    generic: bool


class Masked(NamedTuple):
    mask: int
    place: Place


InitialNode = Union[Number, Place, Masked, tuple["InitialNode", ...]]


class Declarator(NamedTuple):
    name: Word
    number: Optional[int]
    shape: tuple[int, ...]
    initial: Optional[InitialNode]


class DeclarationNode(NamedTuple):
    prefixes: tuple[Prefix, ...]
    declarators: tuple[Declarator, ...]
    start: int


class ParameterNode(NamedTuple):
    prefixes: tuple[Prefix, ...]
    declarator: Declarator


class DirectiveNode(NamedTuple):
    name: str
    values: tuple[Union[int, str, Float], ...]
    start: int


class HeaderNode(NamedTuple):
    prefixes: tuple[Prefix, ...]
    entry: bool
    returns: tuple[ParameterNode, ...]
    name: Word
    parameters: tuple[ParameterNode, ...]
    directives: tuple[DirectiveNode, ...]


class LabelNode(NamedTuple):
    name: Word


class TargetsNode(NamedTuple):
    name: Word
    kind: str
    labels: tuple[Word, ...]


class PrototypeNode(NamedTuple):
    name: Word
    returns: tuple[ParameterNode, ...]
    parameters: tuple[ParameterNode, ...]
    directives: tuple[DirectiveNode, ...]


class AliasNode(NamedTuple):
    name: Word
    aliasee: Word


class FileNode(NamedTuple):
    values: tuple[Union[int, str], ...]
    start: int


class LocNode(NamedTuple):
    numbers: tuple[int, int, int]
    function: Optional[Place]
    inlined: Optional[tuple[int, int, int]]


class Datum(NamedTuple):
    """A value in a section: the name of a section or label with an offset, or the difference of two labels."""

    name: str
    offset: int
    minus: str


class SectionNode(NamedTuple):
    name: str
    rows: tuple[tuple[str, str, tuple[Union[Number, Datum], ...]], ...]


class BodyNode(NamedTuple):
    pieces: tuple[object, ...]
    start: int


class FunctionNode(NamedTuple):
    header: HeaderNode
    body: Optional[BodyNode]


class HeadNode(NamedTuple):
    """.version, .target or .address_size."""

    name: str
    values: tuple[str, ...]
    start: int


class ModuleNode(NamedTuple):
    head: tuple[HeadNode, ...]
    items: tuple[object, ...]


def integer(node: Literal, what: str) -> int:
    """The value of a literal that has to be an integer."""
    if not isinstance(node.value, Integer):
        raise Fault(f"{what} is an integer, not a float", node.start)
    return node.value.value


def _text(token: Token) -> str:
    """A string literal without its quotes; what a backslash means is not the reader's concern."""
    return token.value[1:-1]


def _word(token: Token) -> Word:
    return Word(token.value, token.start_pos)


def _plain_number(token: Token) -> int:
    value = constant.number(token.value)
    if not isinstance(value, Integer):
        raise Fault("an integer belongs here, not a float", token.start_pos)
    return value.value


class ExpressionCallbacks:
    """Constant expressions."""

    def number(self, children: Sequence[Token]) -> Literal:
        token = children[0]
        try:
            value = constant.number(token.value)
        except Fault as fault:
            raise Fault(fault.message, token.start_pos) from None
        return Literal(value, token.start_pos, token.end_pos)

    def warp_size(self, children: Sequence[object]) -> Literal:
        return Literal(Integer(32), -1, -1)

    def enclosed(self, children: Sequence[object]) -> Literal:
        _, inner, _ = children
        assert isinstance(inner, Literal)
        return Literal(inner.value, inner.start, -1, True)

    def unary(self, children: Sequence[object]) -> Literal:
        sign, operand = children
        assert isinstance(operand, Literal)
        text, start = str(sign), sign.start_pos  # type: ignore[attr-defined]
        try:
            value = constant.unary(text, operand.value)
        except Fault as fault:
            raise Fault(fault.message, start) from None
        whole = text == "-" and operand.end >= 0 and operand.start == start + 1
        return Literal(value, start, operand.end if whole else -1)

    def cast(self, children: Sequence[object]) -> Literal:
        type_, operand = children
        assert isinstance(operand, Literal)
        try:
            return Literal(constant.cast(str(type_), operand.value), operand.start, -1)
        except Fault as fault:
            raise Fault(fault.message, operand.start) from None

    def binary(self, children: Sequence[object]) -> Literal:
        left, sign, right = children
        assert isinstance(left, Literal) and isinstance(right, Literal)
        try:
            return Literal(constant.binary(left.value, str(sign), right.value), left.start, -1)
        except Fault as fault:
            raise Fault(fault.message, left.start) from None

    def choose(self, children: Sequence[object]) -> Literal:
        condition, then, otherwise = children
        assert isinstance(condition, Literal) and isinstance(then, Literal) and isinstance(otherwise, Literal)
        try:
            return Literal(constant.choose(condition.value, then.value, otherwise.value), condition.start, -1)
        except Fault as fault:
            raise Fault(fault.message, condition.start) from None
