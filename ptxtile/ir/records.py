"""From the syntax of declarations and directives to the records of `module`, and the names they declare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Union

from ptxtile import isa
from ptxtile.ir import module as m, syntax
from ptxtile.ir.constant import Fault
from ptxtile.ir.directives import directives
from ptxtile.ir.operand import Float, Integer, Symbol
from ptxtile.ir.scope import Scope
from ptxtile.ir.syntax import Align, Attribute, DeclarationNode, Declarator, ParameterNode, Prefix, Qualifier

_LINKAGE = frozenset(["visible", "extern", "weak", "common"])
_SPACES = frozenset(["reg", "const", "global", "local", "param", "shared", "tex"])
_VECTORS = {"v2": 2, "v4": 4}
_FLOATS = frozenset(["f16", "f16x2", "f32", "f64"])
_ADDRESSES = frozenset(["u32", "u64"])
_BYTES = frozenset(0xFF << 8 * i for i in range(8))
_MOST_VARIABLES = 1 << 16
_MOST_SORTED = 1 << 12
_OPAQUE = frozenset(["texref", "samplerref", "surfref"])


@dataclass(slots=True)
class Prefixes:
    """The qualifiers before a declared name, each in its place."""

    linkage: str = ""
    space: str = ""
    type: str = ""
    vector: int = 1
    align: int | None = None
    pointer: bool = False
    pointer_space: str = ""
    pointer_align: int | None = None
    attributes: list[str] = field(default_factory=list)
    start: int = 0


def _once(already: object, text: str, start: int) -> None:
    if already:
        raise Fault(f"{text} after .{already}: one of them is too many", start)


def sort(prefixes: Sequence[Prefix], is_type: Callable[[str], bool]) -> Prefixes:
    """Qualifiers in any order to fields; a Fault for one that is unknown or too many."""
    found = Prefixes(start=prefixes[0].start if prefixes else 0)
    for prefix in prefixes:
        if isinstance(prefix, Align):
            _align(found, prefix)
        elif isinstance(prefix, Attribute):
            found.attributes.append(prefix.text)
        else:
            _qualifier(found, prefix, is_type)
    return found


def _align(found: Prefixes, prefix: Align) -> None:
    if prefix.value <= 0 or prefix.value & (prefix.value - 1):
        raise Fault(f"an alignment is a power of two, not {prefix.value}", prefix.start)
    if found.pointer:
        found.pointer_align = prefix.value
    elif found.align is not None:
        raise Fault("a second .align", prefix.start)
    else:
        found.align = prefix.value


def _qualifier(found: Prefixes, prefix: Qualifier, is_type: Callable[[str], bool]) -> None:
    name = prefix.text[1:]
    if found.pointer and name in _SPACES:
        _once(found.pointer_space, prefix.text, prefix.start)
        found.pointer_space = name
    elif name in _LINKAGE:
        _once(found.linkage, prefix.text, prefix.start)
        found.linkage = name
    elif name in _SPACES:
        _once(found.space, prefix.text, prefix.start)
        found.space = name
    elif name in _VECTORS:
        found.vector = _VECTORS[name]
    elif name == "ptr":
        found.pointer = True
    elif name in _OPAQUE or is_type(name):
        _once(found.type, prefix.text, prefix.start)
        found.type = name
    else:
        raise Fault(f"{prefix.text} is no state space, type or linkage", prefix.start)


class Declarer:
    """Makes records of declarations and enters their names into a scope."""

    def __init__(self, is_type: Callable[[str], bool]) -> None:
        self.is_type = is_type
        self.sorted: dict[tuple[Prefix, ...], Prefixes] = {}

    def _sort(self, prefixes: tuple[Prefix, ...]) -> Prefixes:
        """`sort`, remembered: many declarations begin alike."""
        found = self.sorted.get(prefixes)
        if found is None:
            if len(self.sorted) >= _MOST_SORTED:
                self.sorted.clear()
            found = self.sorted[prefixes] = sort(prefixes, self.is_type)
        return found

    def declaration(
        self, node: DeclarationNode, scope: Scope
    ) -> list[Union[m.RegisterDeclaration, m.Variable]]:
        """`.reg …;` or a variable, or several of them in one statement."""
        prefixes = self._sort(node.prefixes)
        if not prefixes.space:
            raise Fault("a declaration needs a state space, such as .reg or .global", node.start)
        if not prefixes.type:
            raise Fault(f".{prefixes.space} declares nothing without a type", node.start)
        if prefixes.space == "param" and scope.parent is None:
            raise Fault("a .param variable belongs in a function", node.start)
        if prefixes.space == "reg":
            return list(_registers(prefixes, node.declarators, scope))
        return [variable(prefixes, each, scope) for each in node.declarators]

    def parameter(self, node: ParameterNode, scope: Scope | None) -> m.Parameter:
        """One parameter; its name is declared if a scope is given and the name is not `_`."""
        prefixes = self._sort(node.prefixes)
        name, declarator = node.declarator.name, node.declarator
        space = prefixes.space or "param"
        if space not in ("param", "reg") or not prefixes.type or declarator.initial is not None:
            raise Fault("a parameter is .param or .reg with a type and a name", prefixes.start)
        if scope is not None and name.text != "_":
            if space == "reg":
                scope.register(name.text, prefixes.type, prefixes.vector, name.start)
            else:
                scope.declare_variable(
                    name.text, _symbol_space(prefixes), "", name.start, _element(prefixes, declarator)
                )
        return m.Parameter(
            name.text,
            prefixes.type,
            declarator.shape,
            prefixes.align,
            space,
            prefixes.vector,
            prefixes.pointer,
            prefixes.pointer_space,
            prefixes.pointer_align,
        )

    def function(
        self, node: syntax.HeaderNode, module: Scope, scope: Scope, body: tuple[m.Statement, ...] | None
    ) -> m.Function:
        """A header; parameters are declared in `scope`, the function itself in `module`."""
        prefixes = self._sort(node.prefixes)
        if prefixes.space or prefixes.type:
            raise Fault(
                f".{prefixes.space or prefixes.type} does not belong before a function", prefixes.start
            )
        if node.entry and node.returns:
            raise Fault("a kernel returns nothing", node.name.start)
        return m.Function(
            node.name.text,
            node.entry,
            parameters=tuple(self.parameter(each, scope) for each in node.parameters),
            returns=tuple(self.parameter(each, scope) for each in node.returns),
            directives=directives(node.directives, node.entry, bool(node.returns)),
            linkage=prefixes.linkage,
            body=body,
            attributes=tuple(prefixes.attributes),
        )

    def prototype(self, node: syntax.PrototypeNode) -> m.Prototype:
        """`name: .callprototype …;`"""
        found = directives(node.directives, False, bool(node.returns))
        return m.Prototype(
            node.name.text,
            tuple(self.parameter(each, None) for each in node.returns),
            tuple(self.parameter(each, None) for each in node.parameters),
            any(each.name == "noreturn" for each in found),
            tuple(each for each in found if each.name != "noreturn"),
        )


def _registers(
    prefixes: Prefixes, declarators: Sequence[Declarator], scope: Scope
) -> list[m.RegisterDeclaration]:
    """Neighbours with the same count share a record."""
    if prefixes.type in _OPAQUE:
        raise Fault(f"there are no registers of type .{prefixes.type}", prefixes.start)
    found: list[m.RegisterDeclaration] = []
    for each in declarators:
        if each.shape or each.initial is not None:
            raise Fault(f"the register {each.name.text} takes neither extents nor a value", each.name.start)
        if each.number is None:
            scope.register(each.name.text, prefixes.type, prefixes.vector, each.name.start)
        elif each.number < 1:
            raise Fault(f"{each.name.text}<{each.number}> declares no register", each.name.start)
        else:
            scope.range(each.name.text, each.number, prefixes.type, prefixes.vector, each.name.start)
        if found and found[-1].count == each.number:
            last = found.pop()
            names = (*last.names, each.name.text)
            found.append(m.RegisterDeclaration(last.type, names, last.count, last.vector))
        else:
            found.append(
                m.RegisterDeclaration(prefixes.type, (each.name.text,), each.number, prefixes.vector)
            )
    return found


def _symbol_space(prefixes: Prefixes) -> str:
    return (
        prefixes.type if prefixes.type in _OPAQUE and prefixes.space != "param" else prefixes.space or "param"
    )


def _element(prefixes: Prefixes, node: Declarator) -> int:
    """Bytes of an element of what is declared; 0 if it is no array."""
    return isa.REGISTER_BITS.get(prefixes.type, 0) // 8 * prefixes.vector if node.shape else 0


def variable(prefixes: Prefixes, node: Declarator, scope: Scope) -> m.Variable:
    """One variable, whose name is declared before its initialiser is read: it may hold its own address."""
    name, space = node.name, _symbol_space(prefixes)
    if prefixes.type == "pred":
        raise Fault("a predicate is a register; no variable has the type .pred", prefixes.start)
    if prefixes.linkage == "common" and prefixes.space != "global":
        raise Fault("a .common variable is in .global", prefixes.start)
    if prefixes.type in _OPAQUE and prefixes.space not in ("global", "param"):
        raise Fault(f"a variable of type .{prefixes.type} is in .global", prefixes.start)
    if node.number is None:
        scope.declare_variable(name.text, space, prefixes.linkage, name.start, _element(prefixes, node))
    elif not 0 < node.number <= _MOST_VARIABLES:
        raise Fault(f"{name.text}<{node.number}>: 1 to {_MOST_VARIABLES} variables are possible", name.start)
    else:
        for i in range(node.number):
            scope.declare_variable(f"{name.text}{i}", space, prefixes.linkage, name.start)
    initial = None if node.initial is None else _initial(node.initial, scope)
    _check_initial(prefixes, node, initial)
    return m.Variable(
        prefixes.space,
        prefixes.type,
        name.text,
        node.shape,
        prefixes.align,
        prefixes.vector,
        prefixes.linkage,
        initial,
        tuple(prefixes.attributes),
        node.number,
    )


def _check_initial(prefixes: Prefixes, node: Declarator, initial: m.Initial | None) -> None:
    """Whether the variable may have a value, and of this form (5.4.4)."""
    name = node.name
    if initial is None:
        if 0 in node.shape and prefixes.linkage != "extern" and prefixes.space != "param":
            raise Fault(
                f"{name.text}[] has an extent left open, which only an .extern variable may", name.start
            )
        return
    if prefixes.space not in ("global", "const"):
        raise Fault(f"a .{prefixes.space} variable takes no initial value", name.start)
    if prefixes.linkage == "extern":
        raise Fault("an .extern variable takes no initial value", name.start)
    shape = node.shape if prefixes.vector == 1 else (*node.shape, prefixes.vector)
    stack: list[tuple[m.Initial, int]] = [(initial, 0)]
    while stack:
        value, depth = stack.pop()
        if isinstance(value, tuple):
            extent = shape[depth] if depth < len(shape) else 1
            if extent and len(value) > extent:
                raise Fault(
                    f"{name.text} has {extent} elements where {len(value)} values are given", name.start
                )
            stack.extend((each, depth + 1) for each in value)
        elif isinstance(value, (Symbol, m.GenericSymbol)) and prefixes.type not in _ADDRESSES:
            raise Fault(f"{name.text} takes no address: only .u32 and .u64 do", name.start)
        elif isinstance(value, m.MaskedSymbol) and (
            (prefixes.type not in _ADDRESSES and prefixes.type != "u8") or value.mask not in _BYTES
        ):
            raise Fault("a byte of an address is one .u8, of a mask such as 0xFF or 0xFF00", name.start)
        elif prefixes.type in _OPAQUE or isinstance(value, Float) != (prefixes.type in _FLOATS):
            raise Fault(f"{value} is no value of type .{prefixes.type}", name.start)


def _initial(node: syntax.InitialNode, scope: Scope) -> m.Initial:
    if isinstance(node, (Integer, Float)):
        return node
    if isinstance(node, syntax.Place):
        return _place(node, scope)
    if isinstance(node, syntax.Masked):
        return m.MaskedSymbol(node.mask, _place(node.place, scope))
    return tuple([_initial(each, scope) for each in node])


def _place(node: syntax.Place, scope: Scope) -> Symbol | m.GenericSymbol:
    found = scope.find(node.word.text)
    if not isinstance(found, Symbol):
        raise Fault(f"{node.word.text} is no variable or function declared before", node.word.start)
    symbol = Symbol(found.name, found.space, node.offset)
    return m.GenericSymbol(symbol) if node.generic else symbol


def loc(node: syntax.LocNode) -> m.Loc:
    """`.loc`; its function name is a label of a debug section."""
    function = node.function and Symbol(node.function.word.text, "label", node.function.offset)
    inlined = node.inlined or (None, 0, 0)
    return m.Loc(*node.numbers, function, *inlined)


def section(node: syntax.SectionNode) -> m.Section:
    """`.section`; names inside it are not resolved, they may be declared anywhere."""
    rows = tuple([(label, type_, tuple(map(_datum, values))) for label, type_, values in node.rows])
    for _, type_, values in rows:
        if not type_:
            continue
        low, high = _DATA.get(type_, (1, 0))
        for value in values:
            if type(value) is int and not low <= value <= high:
                raise Fault(f"{value} is no value of type .{type_} in a section")
    return m.Section(node.name, rows)


# The values of 32 bits and more may have 64, of which the assembler keeps the lower ones.
_DATA = {
    "b8": (-(1 << 7), (1 << 8) - 1),
    "b16": (-(1 << 15), (1 << 16) - 1),
    "b32": (-(1 << 31), (1 << 64) - 1),
    "b64": (-(1 << 63), (1 << 64) - 1),
}


def _datum(value: Union[Integer, Float, syntax.Datum]) -> m.Value:
    if isinstance(value, Integer):
        return value.value
    if isinstance(value, Float):
        return value
    first = Symbol(value.name, "section" if value.name[0] == "." else "label", value.offset)
    return (first, Symbol(value.minus, "label")) if value.minus else first


def with_body(function: m.Function, body: tuple[m.Statement, ...]) -> m.Function:
    """The function, with what its braces hold."""
    return replace(function, body=body)
