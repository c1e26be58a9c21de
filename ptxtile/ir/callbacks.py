"""The callbacks by which the parser turns the rules of `grammar/module.lark` into the nodes of `syntax`.

A method has the name of its rule or alias and gets the children: tokens, and the nodes made of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Union, cast

from ptxtile.ir import constant, syntax
from ptxtile.ir.constant import Fault
from ptxtile.ir.operand import Float, Integer
from ptxtile.ir.syntax import (
    AddressNode,
    Align,
    ArgumentsNode,
    Attribute,
    BodyNode,
    Datum,
    DeclarationNode,
    Declarator,
    DirectiveNode,
    FunctionNode,
    HeaderNode,
    HeadNode,
    Literal,
    Node,
    ParameterNode,
    Place,
    Prefix,
    Qualifier,
    Token,
    Word,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    Children = Sequence[object]


# An initialiser has one level for each extent of its array.
_DEEPEST = 64


def _token(child: object) -> Token:
    return cast(Token, child)


def _is_token(child: object, type_: str = "") -> bool:
    found = getattr(child, "type", "")
    return bool(found) and (not type_ or found == type_)


def _word(child: object) -> Word:
    token = _token(child)
    return Word(token.value, token.start_pos)


def _int(child: object) -> int:
    """The integer of a NUMBER token, or of an expression."""
    if isinstance(child, Literal):
        return syntax.integer(child, "this")
    token = _token(child)
    value = constant.number(token.value)
    if not isinstance(value, Integer):
        raise Fault("an integer belongs here, not a float", token.start_pos)
    return value.value


def _string(child: object) -> str:
    return _token(child).value[1:-1]


class Callbacks(syntax.ExpressionCallbacks):
    """All rules of the grammar."""

    # ---- instructions

    def word(self, children: Children) -> Word:
        return _word(children[0])

    def shifted(self, children: Children) -> syntax.Shifted:
        return syntax.Shifted(_word(children[0]), cast(Literal, children[1]))

    def subscript(self, children: Children) -> syntax.SubscriptNode:
        return syntax.SubscriptNode(_word(children[0]), _int(children[1]))

    def negated(self, children: Children) -> syntax.Not:
        return syntax.Not(_word(children[1]))

    def minus(self, children: Children) -> syntax.MinusNode:
        return syntax.MinusNode(_word(children[1]))

    def pair(self, children: Children) -> syntax.PairNode:
        first = children[0]
        return syntax.PairNode(
            first if isinstance(first, syntax.VectorNode) else _word(first), _word(children[-1])
        )

    def vector(self, children: Children) -> syntax.VectorNode:
        return syntax.VectorNode(cast("tuple[Node, ...]", tuple(children)))

    def address(self, children: Children) -> AddressNode:
        if _is_token(children[-1], "UNIFIED"):
            return self.address(children[:-1])._replace(unified=True)
        base, *rest = cast("Sequence[Node]", children)
        if rest and isinstance(base, syntax.Shifted):
            raise Fault("an address with more than its base in the brackets takes no offset", base.word.start)
        return AddressNode(base, tuple(rest))

    def arguments(self, children: Children) -> ArgumentsNode:
        parts = [child for child in children if not _is_token(child)]
        return ArgumentsNode(cast("tuple[Node, ...]", tuple(parts)))

    def guard(self, children: Children) -> tuple[Word, bool]:
        return _word(children[-1]), len(children) == 2

    def instruction(self, children: Children) -> syntax.InstructionNode:
        guard: Word | None = None
        negated = False
        rest = list(children)
        if isinstance(rest[0], tuple):
            guard, negated = cast("tuple[Word, bool]", rest.pop(0))
        head = _token(rest.pop(0))
        spelling = head.value
        simple = True
        while rest and _is_token(rest[0], "DOTTED"):
            spelling += _token(rest.pop(0)).value
            simple = False
        operands = cast("tuple[Node, ...]", tuple(rest))
        return syntax.InstructionNode(guard, negated, spelling, head.start_pos, operands, simple)

    # ---- declarations

    def plain(self, children: Children) -> Qualifier:
        token = _token(children[0])
        return Qualifier(token.value, token.start_pos)

    def align(self, children: Children) -> Align:
        node = cast(Literal, children[0])
        return Align(syntax.integer(node, "an alignment"), node.start)

    def attribute(self, children: Children) -> Attribute:
        token = _token(children[0])
        values = ", ".join(str(cast(Literal, child).value) for child in children[1:])
        return Attribute(f"{token.value}({values})" if values else token.value, token.start_pos)

    def attributes(self, children: Children) -> tuple[Attribute, ...]:
        return cast("tuple[Attribute, ...]", tuple(children))

    after = attributes

    def range(self, children: Children) -> tuple[str, int]:
        return "range", _int(children[0])

    def extent(self, children: Children) -> tuple[str, int]:
        return "extent", _int(children[0]) if children else 0

    def place(self, children: Children) -> Place:
        return Place(_word(children[0]), _int(children[1]) if len(children) > 1 else 0, False)

    def generic(self, children: Children) -> Place:
        return Place(_word(children[0]), _int(children[1]) if len(children) > 1 else 0, True)

    def initial(self, children: Children) -> tuple[str, object]:
        return "initial", cast(Literal, children[0]).value

    def initial_place(self, children: Children) -> tuple[str, object]:
        return "initial", children[0]

    def initial_masked(self, children: Children) -> tuple[str, object]:
        return "initial", syntax.Masked(_int(children[0]), cast(Place, children[-1]))

    def initial_list(self, children: Children) -> tuple[str, object, int]:
        nested = cast("Sequence[tuple[object, ...]]", children)
        depth = 1 + max((cast(int, child[2]) for child in nested if len(child) > 2), default=0)
        if depth > _DEEPEST:
            raise Fault(f"an initialiser nested more than {_DEEPEST} deep")
        return "initial", tuple(child[1] for child in nested), depth

    def declarator(self, children: Children) -> Declarator:
        count: int | None = None
        shape: list[int] = []
        initial: syntax.InitialNode | None = None
        for kind, value, *_ in cast("Sequence[tuple[str, object]]", children[1:]):
            if kind == "range":
                count = cast(int, value)
            elif kind == "extent":
                shape.append(cast(int, value))
            else:
                initial = cast("syntax.InitialNode", value)
        return Declarator(_word(children[0]), count, tuple(shape), initial)

    def declaration(self, children: Children) -> DeclarationNode:
        declarators = tuple(child for child in children if isinstance(child, Declarator))
        prefixes = _prefixes(children)
        return DeclarationNode(prefixes, declarators, prefixes[0].start)

    def parameter(self, children: Children) -> ParameterNode:
        return ParameterNode(_prefixes(children), cast(Declarator, children[-1]))

    def parameters(self, children: Children) -> tuple[str, tuple[ParameterNode, ...]]:
        found = tuple(child for child in children if isinstance(child, ParameterNode))
        return "parameters", found

    # ---- functions and the module

    def value(self, children: Children) -> Union[int, str, Float]:
        child = children[0]
        if isinstance(child, Literal):
            return child.value.value if isinstance(child.value, Integer) else child.value
        return _token(child).value

    def directive(self, children: Children) -> DirectiveNode:
        token = _token(children[0])
        values = cast("tuple[Union[int, str, Float], ...]", tuple(children[1:]))
        return DirectiveNode(token.value[1:], values, token.start_pos)

    def performance(self, children: Children) -> DirectiveNode:
        return cast(DirectiveNode, children[0])

    def pragma(self, children: Children) -> DirectiveNode:
        return DirectiveNode("pragma", tuple(map(_string, children)), _token(children[0]).start_pos)

    def header(self, children: Children) -> HeaderNode:
        at = next(
            i for i, child in enumerate(children) if _is_token(child, "ENTRY") or _is_token(child, "FUNC")
        )
        name_at = next(i for i in range(at + 1, len(children)) if _is_token(children[i], "WORD"))
        prefixes = (*_prefixes(children[:at]), *_prefixes(children[at + 1 : name_at]))
        return HeaderNode(
            prefixes,
            _is_token(children[at], "ENTRY"),
            _parameters(children[at + 1 : name_at]),
            _word(children[name_at]),
            _parameters(children[name_at + 1 :]),
            tuple(child for child in children[name_at + 1 :] if isinstance(child, DirectiveNode)),
        )

    def function(self, children: Children) -> FunctionNode:
        body = children[1] if len(children) > 1 else None
        return FunctionNode(cast(HeaderNode, children[0]), cast("BodyNode | None", body))

    def body(self, children: Children) -> BodyNode:
        return BodyNode(tuple(children), 0)

    def version(self, children: Children) -> HeadNode:
        return HeadNode("version", (_token(children[0]).value,), _token(children[0]).start_pos)

    def target(self, children: Children) -> HeadNode:
        return HeadNode("target", tuple(_token(c).value for c in children), _token(children[0]).start_pos)

    def address_size(self, children: Children) -> HeadNode:
        return HeadNode("address_size", (str(_int(children[0])),), _token(children[0]).start_pos)

    def module(self, children: Children) -> syntax.ModuleNode:
        head = tuple(child for child in children if isinstance(child, HeadNode))
        return syntax.ModuleNode(head, tuple(children[len(head) :]))

    # ---- other statements

    def label(self, children: Children) -> syntax.LabelNode:
        return syntax.LabelNode(_word(children[0]))

    def targets(self, children: Children) -> syntax.TargetsNode:
        kind = _token(children[1]).value[1:]
        return syntax.TargetsNode(_word(children[0]), kind, tuple(map(_word, children[2:])))

    def prototype(self, children: Children) -> syntax.PrototypeNode:
        at = next(i for i in range(1, len(children)) if _is_token(children[i], "WORD"))
        directives = tuple(child for child in children if isinstance(child, DirectiveNode))
        return syntax.PrototypeNode(
            _word(children[0]), _parameters(children[1:at]), _parameters(children[at + 1 :]), directives
        )

    def alias(self, children: Children) -> syntax.AliasNode:
        return syntax.AliasNode(_word(children[0]), _word(children[1]))

    def file(self, children: Children) -> syntax.FileNode:
        number, name, *rest = children
        return syntax.FileNode((_int(number), _string(name), *map(_int, rest)), _token(number).start_pos)

    def loc_function(self, children: Children) -> Place:
        return Place(_word(children[0]), _int(children[-1]) if len(children) > 1 else 0, False)

    def loc_inlined(self, children: Children) -> tuple[int, int, int]:
        return (_int(children[0]), _int(children[1]), _int(children[2]))

    def loc(self, children: Children) -> syntax.LocNode:
        function: Place | None = None
        inlined: tuple[int, int, int] | None = None
        for child in children[3:]:
            if isinstance(child, Place):
                function = child
            else:
                inlined = cast("tuple[int, int, int]", child)
        return syntax.LocNode((_int(children[0]), _int(children[1]), _int(children[2])), function, inlined)

    def section(self, children: Children) -> syntax.SectionNode:
        rows = cast(
            "tuple[tuple[str, str, tuple[Union[constant.Number, Datum], ...]], ...]", tuple(children[1:])
        )
        return syntax.SectionNode(_token(children[0]).value, rows)

    def row(self, children: Children) -> tuple[str, str, tuple[object, ...]]:
        values = tuple(child.value if isinstance(child, Literal) else child for child in children[1:])
        return "", _token(children[0]).value[1:], values

    def row_label(self, children: Children) -> tuple[str, str, tuple[object, ...]]:
        return _token(children[0]).value, "", ()

    def datum_section(self, children: Children) -> Datum:
        return Datum(_token(children[0]).value, _int(children[-1]) if len(children) > 1 else 0, "")

    datum_label = datum_section

    def datum_difference(self, children: Children) -> Datum:
        return Datum(_token(children[0]).value, 0, _token(children[-1]).value)


def _prefixes(children: Children) -> tuple[Prefix, ...]:
    """Qualifiers among `children`, in order, those of one `.attribute( … )` flattened."""
    found: list[Prefix] = []
    for child in children:
        if isinstance(child, (Qualifier, Align)):
            found.append(child)
        elif isinstance(child, tuple) and child and isinstance(child[0], Attribute):
            found.extend(cast("tuple[Attribute, ...]", child))
    return tuple(found)


def _parameters(children: Children) -> tuple[ParameterNode, ...]:
    for child in children:
        if isinstance(child, tuple) and child and child[0] == "parameters":
            return cast("tuple[ParameterNode, ...]", child[1])
    return ()
