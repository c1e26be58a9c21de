"""Frequent and long pieces, read without the grammar; what is read here, the grammar reads the same.

Labels, plain `.loc` lines, declarations that differ from an earlier one in their name alone, long lists of values, and
debug sections. Anything unusual in them goes to the grammar.
"""

from __future__ import annotations

import re
from typing import Optional, Union, cast

from ptxtile.ir import constant, syntax
from ptxtile.ir.constant import Fault, Number
from ptxtile.ir.instructions import Context, parse
from ptxtile.isa import REGISTER_BITS

# A header longer than this is not remembered.
_LONGEST_HEADER = 1 << 14
_MOST = 4096
# A list has one level for each extent of its array.
DEEPEST = 64
# Where a row of a section may end: at a line's end, and before what can only begin one.
_ROWS = re.compile(r"\n|[ \t]+(?=\.b(?:8|16|32|64)[ \t])")
_TOKEN = re.compile(r"[{},]|[^{},\s][^{},]*")


class Numbers(dict[str, Number]):
    """Memo from the text of a literal to its value."""

    __slots__ = ()

    def __missing__(self, text: str) -> Number:
        if len(self) >= _MOST:
            self.clear()
        found = self[text] = constant.number(text)
        return found


NUMBERS = Numbers()


def read(context: Context, kind: str, text: str, start: int) -> object | None:
    """The node of a piece of this kind, which starts at offset `start` of the whole text; None to ask the grammar."""
    if kind == "label":
        return syntax.LabelNode(syntax.Word(text[:-1].rstrip(), 0)) if text[-1] == ":" else None
    if kind == "line":
        return loc(context, text) if text.startswith(".loc") else None
    if kind != "directive":
        return None
    if text.startswith(".section"):
        return _section(context, text)
    last = text[-1]
    if last == ";" and "=" in text:
        return _list(context, text, start) if "{" in text else None
    return _single(context, text, start) or _header(context, text, start)


def loc(context: Context, text: str) -> Optional[syntax.LocNode]:
    """`.loc` with decimal numbers."""
    found = context.scanner.loc.fullmatch(text)
    if found is None:
        return None
    file, line, column, name, offset, *inlined = found.groups()
    function = (
        None if name is None else syntax.Place(syntax.Word(name, found.start(4)), int(offset or 0), False)
    )
    place = None if inlined[0] is None else (int(inlined[0]), int(inlined[1]), int(inlined[2]))
    return syntax.LocNode((int(file), int(line), int(column)), function, place)


def _single(context: Context, text: str, start: int) -> object | None:
    """A declaration of one name: its qualifiers are remembered, by their text."""
    found = context.scanner.single.fullmatch(text)
    if found is None:
        return None
    before, name, count, extent = found.groups()
    known = context.prefixes
    prefixes = known.get(before)
    if prefixes is None:
        node = parse(context, text, start)
        if isinstance(node, syntax.DeclarationNode):
            if len(known) >= _MOST:
                known.clear()
                context.registers.clear()
            known[before] = node.prefixes
            register = _plain_register(node.prefixes)
            if register is not None:
                context.registers[before] = register
        return node
    shape = (int(extent),) if extent else ()
    declarator = syntax.Declarator(
        syntax.Word(name, found.start(2)), int(count) if count else None, shape, None
    )
    return syntax.DeclarationNode(prefixes, (declarator,), prefixes[0].start)


def _plain_register(prefixes: tuple[syntax.Prefix, ...]) -> Optional[tuple[str, int]]:
    """Type and vector length, if the qualifiers are .reg and a type of registers."""
    words = [each.text for each in prefixes if isinstance(each, syntax.Qualifier)]
    if len(words) == len(prefixes) == 2 and words[0] == ".reg" and words[1][1:] in REGISTER_BITS:
        return words[1][1:], 1
    return None


def _header(context: Context, text: str, start: int) -> object | None:
    """The header of a function that differs from an earlier one only in names."""
    parts = context.scanner.names.split(text)
    key = "\0".join(parts[::2])
    node = context.headers.get(key)
    if node is None:
        new = parse(context, text, start)
        if (
            isinstance(new, syntax.HeaderNode)
            and len(text) <= _LONGEST_HEADER
            and parts[1::2] == [each.text for each in _words(new)]
        ):
            if len(context.headers) >= _MOST:
                context.headers.clear()
            context.headers[key] = new
        return new
    words: list[syntax.Word] = []
    at = 0
    for i, part in enumerate(parts):
        if i & 1:
            words.append(syntax.Word(part, at))
        at += len(part)
    count = len(node.returns)
    return node._replace(
        returns=_renamed(node.returns, words),
        name=words[count],
        parameters=_renamed(node.parameters, words[count + 1 :]),
    )


def _words(node: syntax.HeaderNode) -> list[syntax.Word]:
    """The names in a header, in order."""
    returns, parameters = node.returns, node.parameters
    return [
        *(each.declarator.name for each in returns),
        node.name,
        *(each.declarator.name for each in parameters),
    ]


def _renamed(
    nodes: tuple[syntax.ParameterNode, ...], words: list[syntax.Word]
) -> tuple[syntax.ParameterNode, ...]:
    return tuple(
        [each._replace(declarator=each.declarator._replace(name=word)) for each, word in zip(nodes, words)]
    )


Rows = tuple[tuple[str, str, tuple[Union[Number, syntax.Datum], ...]], ...]


def _section(context: Context, text: str) -> Optional[syntax.SectionNode]:
    """A debug section, row by row."""
    found = context.scanner.section.match(text)
    if found is None:
        return None
    known: dict[str, Rows] = {}
    rows: list[tuple[str, str, tuple[Union[Number, syntax.Datum], ...]]] = []
    for line in _ROWS.split(text[found.end() : -1]):
        stripped = line.strip()
        if not stripped:
            continue
        some = known.get(stripped)
        if some is None:
            some = _row(context, stripped)
            if some is None:
                return None
            known[stripped] = some
        rows.extend(some)
    return syntax.SectionNode(found[1], tuple(rows))


def _row(context: Context, line: str) -> Optional[Rows]:
    """One line of a section."""
    found = context.scanner.row.fullmatch(line)
    if found is not None:
        try:
            return (("", found[1], tuple([NUMBERS[each.strip()] for each in found[2].split(",")])),)
        except Fault:
            return None
    found = context.scanner.place_row.fullmatch(line)
    if found is not None:
        return (("", found[1], (syntax.Datum(found[2], int(found[3] or 0), ""),)),)
    name = line[:-1].rstrip()
    if line[-1] == ":" and context.scanner.word.fullmatch(name):
        return ((name, "", ()),)
    try:
        node = context.statement(f".section .x {{{line}}}")
    except Fault:
        return None
    return node.rows if isinstance(node, syntax.SectionNode) else None


def _list(context: Context, text: str, start: int) -> object | None:
    """A declaration that ends in `= { … };`, lists within it or not, read element by element."""
    before, _, after = text.partition("=")
    inner = after[:-1].strip()
    if not inner.startswith("{"):
        return None
    values = _values(context, inner, start, text.index("{", len(before)))
    if values is None:
        return None
    node = _single(context, before.rstrip() + ";", start) or parse(context, before + "= 0;", start)
    if not isinstance(node, syntax.DeclarationNode):
        return None
    last = node.declarators[-1]._replace(initial=values)
    return node._replace(declarators=(*node.declarators[:-1], last))


def _values(context: Context, text: str, start: int, at: int) -> Optional[tuple[syntax.InitialNode, ...]]:
    """The elements of a brace group, nested ones too; None if its braces and commas are not right.

    The group begins at offset `at` of its declaration, which begins at `start` of the whole text.
    """
    stack: list[list[syntax.InitialNode]] = [[]]
    known: dict[str, syntax.InitialNode] = {}
    before = ","
    for found in _TOKEN.finditer(text):
        token = found[0]
        if token == "{":
            if before not in "{," or len(stack) > DEEPEST:
                return None
            stack.append([])
        elif token == "}":
            if before == "," or len(stack) < 2:
                return None
            inner = stack.pop()
            stack[-1].append(tuple(inner))
        elif token == ",":
            if before in "{,":
                return None
        else:
            if before not in "{,":
                return None
            value = known.get(token)
            if value is None:
                value = known[token] = _element(context, token, start, at + found.start())
            stack[-1].append(value)
        before = token if token in "{}," else "value"
    if len(stack) != 1 or len(stack[0]) != 1 or before != "}":
        return None
    return cast("tuple[syntax.InitialNode, ...]", stack[0][0])


def _element(context: Context, text: str, start: int, at: int) -> syntax.InitialNode:
    """An element of a list, at offset `at` of the declaration at `start`."""
    text = text.rstrip()
    if context.scanner.number.fullmatch(text):
        try:
            return NUMBERS[text]
        except Fault as fault:
            raise Fault(fault.message, start + at, fault.hint) from None
    before = ".global .b8 x ="
    try:
        node = context.statement(f"{before}{text};")
    except Fault as fault:
        raise Fault(fault.message, start + at + fault.position - len(before), fault.hint) from None
    assert isinstance(node, syntax.DeclarationNode)
    initial = node.declarators[0].initial
    assert initial is not None
    return _moved(initial, at - len(before))


def _moved(node: syntax.InitialNode, by: int) -> syntax.InitialNode:
    """The node with the place of its name moved to where it stands in the whole declaration."""
    if isinstance(node, syntax.Masked):
        return node._replace(place=_placed(node.place, by))
    return _placed(node, by) if isinstance(node, syntax.Place) else node


def _placed(node: syntax.Place, by: int) -> syntax.Place:
    return node._replace(word=node.word._replace(start=node.word.start + by))
