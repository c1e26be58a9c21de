"""Frequent and long pieces, read without the grammar; what is read here, the grammar reads the same.

Labels, plain `.loc` lines, declarations that differ from an earlier one in their name alone, long lists of values, and
debug sections. Anything unusual in them goes to the grammar.
"""

from __future__ import annotations

from typing import Optional

from ptxtile.ir import syntax
from ptxtile.ir.constant import Fault
from ptxtile.ir.instructions import Context, parse
from ptxtile.isa import REGISTER_BITS

# A declaration longer than this is looked at for a list of values.
_LONG = 4096
_MOST = 4096


def read(context: Context, kind: str, text: str, start: int) -> object | None:
    """The node of a piece of this kind, which starts at offset `start` of the whole text; None to ask the grammar."""
    if kind == "label" and text[-1] == ":":
        return syntax.LabelNode(syntax.Word(text[:-1].rstrip(), 0))
    if kind == "line" and text.startswith(".loc"):
        numbers = text.split()[1:]
        if len(numbers) == 3 and all(each.isdigit() and len(each) < 10 and each[0] != "0" for each in numbers):
            return syntax.LocNode((int(numbers[0]), int(numbers[1]), int(numbers[2])), None, None)
    if kind == "directive":
        return _long_list(context, text, start) if len(text) > _LONG else _single(context, text, start)
    return None


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


def _long_list(context: Context, text: str, start: int) -> object | None:
    found = context.scanner.elements(text)
    if found is None:
        return None
    before, elements = found
    node = parse(context, before + "= 0;", start)
    if not isinstance(node, syntax.DeclarationNode):
        return None
    values: list[syntax.InitialNode] = []
    known: dict[str, syntax.InitialNode] = {}
    for element in elements:
        if not isinstance(element, tuple):
            values.append(element)
            continue
        part, at = element
        if part not in known:
            known[part] = _element(context, part, start + at)
        values.append(known[part])
    last = node.declarators[-1]._replace(initial=tuple(values))
    return node._replace(declarators=(*node.declarators[:-1], last))


def _element(context: Context, text: str, start: int) -> syntax.InitialNode:
    """An element that is not a plain number."""
    before = ".global .b8 x ="
    try:
        node = context.statement(f"{before}{text};")
    except Fault as fault:
        raise Fault(fault.message, start + fault.position - len(before), fault.hint) from None
    assert isinstance(node, syntax.DeclarationNode)
    initial = node.declarators[0].initial
    assert initial is not None
    return initial
