"""Text of a `.isa` file → plain nested lists, the only place in `isa` that needs lark.

The lists hold strings, integers and None alone, so that the user cache can keep them as JSON. What they look
like:

    instruction   [name, summary, section, line, groups]; a group is a list of statements
    statement     [kind, line, …]:
        section   number
        set       names, [[value, alternatives or None], …]
        line      opcode, [[piece kind, modifier, default or None], …], operand list, text
        declare   role or None, [[is address, name], …], type, attributes, condition or None
        where     condition, text
        since     alternatives, condition or None, text          (removed: the same)
        pinned    modifiers                                     (ordered: the same)
    alternatives  [[version or None, target or None], …]
    operand list  [[optional, operand, more operand list], …]
    operand       [kind, …]: plain name; negatable name; selected name set; maybe_selected name set; list
                  name;
                  pair p q; maybe_pair p q; vector [operand, …]; bracket base [[mode, operand, …], …]
    type          ["type", modifier, expression]; ["last", expression]; ["double", modifier]; ["other", word]
    condition     ["mod", ".x"], ["int", 3], ["absent"], ["operand", "a"], ["call", function, …], ["not", c],
                  ["and", …], ["or", …], ["implies", arrow, a, b], ["cmp", sign, a, b], ["in", a, [b, …]],
                  ["arith", a, sign, b, …]
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ptxtile import resources
from ptxtile.errors import NotationError

if TYPE_CHECKING:
    from lark import Lark

Raw = Any
"""Nested lists of strings, integers and None; see above. A type of its own would be checked nowhere but here.
"""

Node = Any
"""A tree or a token of lark, whose own annotations leave open which of the two a child is."""

STARTS = ("chapter", "types", "targets", "registers")


@functools.lru_cache(maxsize=1)
def _parser() -> Lark:
    import lark

    text = (resources.grammar() / "notation.lark").read_text(encoding="utf-8")
    return lark.Lark(
        text, parser="lalr", start=list(STARTS), propagate_positions=True, maybe_placeholders=True
    )


def parse(text: str, start: str, filename: str) -> list[Raw]:
    """The records of `text`, in the form the module docstring describes.

    Raises NotationError, "file:line:column: …", where the text does not follow `notation.lark`.
    """
    import lark

    try:
        tree = _parser().parse(text, start=start)
    except lark.exceptions.UnexpectedCharacters as error:
        at = error.pos_in_stream or 0
        found = text[at : at + 1]
        raise NotationError(
            f"{filename}:{error.line}:{error.column}: unexpected {found!r}{_wanted(error.allowed)}"
        ) from None
    except lark.exceptions.UnexpectedToken as error:
        what = "the end of the file" if error.token.type == "$END" else repr(str(error.token))
        raise NotationError(
            f"{filename}:{error.line}:{error.column}: unexpected {what}{_wanted(error.accepts)}"
        ) from None
    reader = {"chapter": _chapter, "types": _types, "targets": _targets, "registers": _registers}[start]
    return reader(tree, text)


def _wanted(names: set[str] | None) -> str:
    """What could stand there, for a message: the words and signs of the notation, or the names of its
    terminals.
    """
    if not names:
        return ""
    patterns = {terminal.name: terminal.pattern for terminal in _parser().terminals}
    shown = sorted(
        repr(patterns[name].value)
        if name in patterns and patterns[name].type == "str"
        else name.lower().strip("$")
        for name in names
    )
    return f"; here may stand {', '.join(shown)}"


def _rule(tree: Node) -> str:
    return str(tree.data)


def _chapter(tree: Node, text: str) -> list[Raw]:
    return [_instruction(child, text) for child in tree.children]


def _instruction(tree: Node, text: str) -> Raw:
    words = [child for child in tree.children if not hasattr(child, "data")]
    name = "".join(str(word) for word in words if word.type in ("NAME", "MOD"))
    summary = next(str(word)[1:-1] for word in words if word.type == "STRING")
    section = next(str(word) for word in words if word.type == "SECTION")
    groups: list[Raw] = [
        [_statement(statement, text) for statement in child.children]
        for child in tree.children
        if hasattr(child, "data")
    ]
    return [name, summary, section, words[0].line, groups]


def _statement(tree: Node, text: str) -> Raw:
    rule, line, parts = _rule(tree), tree.meta.line, tree.children
    source = " ".join(text[tree.meta.start_pos : tree.meta.end_pos].rstrip(";").split())
    if rule == "section":
        return ["section", line, str(parts[0])]
    if rule == "setdef":
        names: list[Raw] = [str(part) for part in parts if not hasattr(part, "data")]
        values: list[Raw] = [
            [str(part.children[0]), _alternatives(part.children[1])]
            for part in parts
            if hasattr(part, "data")
        ]
        return ["set", line, names, values]
    if rule == "line":
        pieces: list[Raw] = [_piece(part) for part in parts[1:-1]]
        return ["line", line, str(parts[0]), pieces, _operands(parts[-1]), source]
    if rule == "declare":
        return ["declare", line, *_declare(parts)]
    if rule == "where":
        return ["where", line, _condition(parts[0]), source]
    if rule in ("since", "removed"):
        return [
            rule,
            line,
            _alternatives(parts[0]),
            None if parts[1] is None else _condition(parts[1]),
            source,
        ]
    return [rule, line, [str(part) for part in parts]]


def _piece(tree: Node) -> Raw:
    default = str(tree.children[1]) if len(tree.children) > 1 else None
    return [_rule(tree), str(tree.children[0]), default]


def _alternatives(tree: Node | None) -> Raw:
    if tree is None:
        return None
    found: list[Raw] = []
    version: str | None = None
    for alternative in tree.children:
        if not hasattr(alternative, "data"):
            continue
        target: str | None = None
        for word in alternative.children:
            if word is not None and word.type == "VERSION":
                version = str(word)
            elif word is not None:
                target = str(word)
        found.append([version, target])
    return found


def _operands(tree: Node | None) -> list[Raw]:
    """[optional, operand, what follows only if it is there] for each operand of the list."""
    if tree is None:
        return []
    first, *more = tree.children
    return [[False, _operand(first), []], *(_more(child) for child in more)]


def _more(tree: Node) -> Raw:
    parts = [child for child in tree.children if hasattr(child, "data")]
    first, *rest = parts
    return [_rule(tree) == "maybe", _operand(first), [_more(child) for child in rest]]


def _operand(tree: Node) -> Raw:
    rule = _rule(tree)
    if rule == "single":
        return _item(tree.children[0])
    names = [str(word) for word in tree.children if word.type == "NAME"]
    return [rule, *names]


def _item(tree: Node) -> Raw:
    rule = _rule(tree)
    if rule == "vector":
        return ["vector", [_item(child) for child in tree.children]]
    if rule == "bracket":
        base, *inner = tree.children
        return ["bracket", _item(base), [_inner(child) for child in inner]]
    return [rule, *(str(word) for word in tree.children if word.type in ("NAME", "MOD"))]


def _inner(tree: Node) -> Raw:
    return [_rule(tree), *(_item(child) for child in tree.children if hasattr(child, "data"))]


def _declare(parts: list[Node]) -> list[Raw]:
    role = None if parts[0] is None else str(parts[0])
    names: list[Raw] = [[_rule(name) == "address_name", str(name.children[0])] for name in parts[1].children]
    kind: Raw = None
    attributes: list[Raw] = []
    for part in parts[2:-1]:
        rule = _rule(part)
        if rule in ("flag", "range", "among", "multiple", "most"):
            words = rule in ("flag", "most")
            values: list[Raw] = [str(v) if words else int(str(v), 0) for v in part.children]
            attributes.append([rule, *values])
        else:
            kind = _kind(part)
    condition = None if parts[-1] is None else _condition(parts[-1])
    return [role, names, kind, attributes, condition]


def _kind(tree: Node) -> Raw:
    rule, parts = _rule(tree), tree.children
    if rule == "type":
        return ["type", str(parts[0]), None if parts[1] is None else _condition(parts[1])]
    if rule == "last_type":
        return ["last", None if parts[0] is None else _condition(parts[0])]
    return [rule, str(parts[0])]


_LEAVES = {"mod": "mod", "operand_name": "operand"}


def _condition(tree: Node) -> Raw:
    rule, parts = _rule(tree), tree.children
    if rule in _LEAVES:
        return [_LEAVES[rule], str(parts[0])]
    if rule == "integer":
        return ["int", int(str(parts[0]))]
    if rule == "absent":
        return ["absent"]
    if rule == "plain":
        return _condition(parts[0])
    if rule == "implies":
        return ["implies", str(parts[1]), _condition(parts[0]), _condition(parts[2])]
    if rule == "compared":
        return ["cmp", str(parts[1]), _condition(parts[0]), _condition(parts[2])]
    if rule == "member":
        return ["in", _condition(parts[0]), [_condition(part) for part in parts[1:]]]
    if rule == "negated":
        return ["not", _condition(parts[0])]
    if rule == "call":
        return ["call", str(parts[0]), *(_condition(part) for part in parts[1:])]
    if rule in ("either", "both"):
        return ["or" if rule == "either" else "and", *(_condition(part) for part in parts)]
    return ["arith", *(_condition(part) if hasattr(part, "data") else str(part) for part in parts)]


def _types(tree: Node, text: str) -> list[Raw]:
    """[names, bits, elements or None, element type or None, carrier, register types, literal kinds] each."""
    found: list[Raw] = []
    for record in tree.children:
        mods, bits, count, element, carrier, takes, literals = record.children
        found.append(
            [
                [str(mod) for mod in mods.children],
                int(bits),
                None if count is None else int(count),
                None if element is None else str(element),
                str(carrier),
                [str(word) for word in takes.children],
                [] if literals is None else [str(word) for word in literals.children],
            ]
        )
    return found


def _targets(tree: Node, text: str) -> list[Raw]:
    """["versions", …], ["target", names, version, old], ["family", name, members], ["driver", branch,
    version].
    """
    found: list[Raw] = []
    for record in tree.children:
        rule, parts = _rule(record), record.children
        if rule == "versions":
            found.append([rule, *(str(part) for part in parts)])
        elif rule == "target":
            found.append(
                [rule, [str(arch) for arch in parts[0].children], str(parts[1]), int(parts[2] is not None)]
            )
        elif rule == "family":
            found.append([rule, str(parts[0]), [str(arch) for arch in parts[1].children]])
        else:
            found.append([rule, int(parts[0]), str(parts[1])])
    return found


def _registers(tree: Node, text: str) -> list[Raw]:
    """[names, type, narrower type or None, elements, alternatives or None] each."""
    found: list[Raw] = []
    for record in tree.children:
        names, kind, narrow, elements, alternatives = record.children
        found.append(
            [
                [str(name) for name in names.children],
                str(kind),
                None if narrow is None else str(narrow),
                [] if elements is None else [str(word) for word in elements.children],
                _alternatives(alternatives),
            ]
        )
    return found
