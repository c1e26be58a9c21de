"""A Module to its one canonical text.

One statement a line, a tab for each level of braces, no comments, nothing that depends on the host: equal modules give
equal bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, Optional, Union

from ptxtile.ir import module as m
from ptxtile.ir.instruction import Guard, Instruction
from ptxtile.ir.lineinfo import Files
from ptxtile.ir.operand import Address, Float, Integer, Operand, Register, Symbol, Vector

if TYPE_CHECKING:
    from ptxtile.isa.form import Form

LineInfo = Optional[Literal["relative", "absolute"]]
Origin = tuple[int, Union[Instruction, m.Function]]


def write(module: m.Module, lineinfo: LineInfo = None) -> str:
    """The text of a module, ending in a newline.

    `lineinfo` adds `.file` and `.loc` for the Python lines that instructions were written at: "relative" names a file
    from its outermost package on, "absolute" by its path, as profilers want.
    """
    return "\n".join(_Writer(module, lineinfo).lines) + "\n"


def lines(
    module: m.Module, lineinfo: LineInfo = None
) -> tuple[str, dict[int, Union[Instruction, m.Function]]]:
    """The text, and for each line (from 1) that holds an instruction or begins a function, which one."""
    origins: list[Origin] = []
    writer = _Writer(module, lineinfo, origins)
    return "\n".join(writer.lines) + "\n", dict(origins)


def line(form: Form, operands: Sequence[Operand], guard: Optional[Guard] = None) -> str:
    """The text of one instruction, with its semicolon and without indentation."""
    head = f"{guard} {form.spelling}" if guard is not None else form.spelling
    if not operands:
        return head + ";"
    # class by identity first: nearly every operand is a register, and this line is on the path of every trace
    texts = [each.name if type(each) is Register else _operand(each) for each in operands]
    return f"{head} {', '.join(texts)};"


def _operand(operand: Operand) -> str:
    """As `str`, with the commonest address spelt out: writing is on the path of every trace."""
    if type(operand) is Address:
        base, offset = operand.base, operand.offset
        if type(base) is Register and not operand.rest:
            return f"[{base.name}+{offset}]" if offset or operand.zero else f"[{base.name}]"
        return str(operand)
    if isinstance(operand, Integer) and not operand.unsigned:
        return str(operand.value)
    if type(operand) is Vector:
        return f"{{{', '.join([e.name if type(e) is Register else str(e) for e in operand.elements])}}}"
    return str(operand)


def _shared(operand: Operand, written: dict[int, str]) -> str:
    """As `_operand`, and noted by identity, but for addresses: literals and fragments of matrices come again."""
    text = _operand(operand)
    if type(operand) is not Address:
        written[id(operand)] = text
    return text


# The directive came with PTX ISA 2.3 (11.1.3); before, a module says nothing.
_WITHOUT_ADDRESS_SIZE = frozenset(["1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "2.0", "2.1", "2.2"])


class _Writer:
    """`origins` are the lines of instructions and functions, if anybody asks."""

    def __init__(self, module: m.Module, lineinfo: LineInfo, origins: Optional[list[Origin]] = None) -> None:
        self.lines: list[str] = []
        self.origins = origins
        self.files = Files(module, lineinfo == "absolute") if lineinfo is not None else None
        self._module(module)

    def _module(self, module: m.Module) -> None:
        self.lines.append(f".version {module.version}")
        self.lines.append(f".target {', '.join([module.target, *module.modes])}")
        if module.address_size != 64 or module.version not in _WITHOUT_ADDRESS_SIZE:
            self.lines.append(f".address_size {module.address_size}")
        at = len(self.lines)
        for item in module.items:
            self._item(item)
        if self.files is not None:
            added = self.files.directives()
            self.lines[at:at] = added
            if self.origins is not None:
                self.origins[:] = [(number + len(added), what) for number, what in self.origins]

    def _item(self, item: m.Item) -> None:
        if isinstance(item, m.Function):
            self.lines.append("")
            self._function(item)
        elif isinstance(item, m.Variable):
            self.lines.append(variable(item))
        elif isinstance(item, m.Alias):
            self.lines.append(f".alias {item.name}, {item.aliasee};")
        elif isinstance(item, m.Directive):
            self.lines.append(directive(item))
        else:
            self._section(item)

    def _section(self, section: m.Section) -> None:
        self.lines.append(f".section {section.name}")
        self.lines.append("{")
        for label, type_, values in section.rows:
            self.lines.append(f"{label}:" if label else f"\t.{type_} {', '.join(map(_value, values))}")
        self.lines.append("}")

    def _function(self, function: m.Function) -> None:
        if self.origins is not None:
            self.origins.append((len(self.lines) + 1, function))
        head = [f".{function.linkage}"] if function.linkage else []
        head.append(".entry" if function.entry else ".func")
        if function.attributes:
            head.append(f".attribute({', '.join(function.attributes)})")
        if function.returns:
            head.append(f"({', '.join(map(parameter, function.returns))})")
        first = " ".join([*head, function.name])
        parameters = [parameter(each) for each in function.parameters]
        if function.entry and parameters:
            self.lines.append(first + "(")
            self.lines.extend(f"\t{each}," for each in parameters[:-1])
            self.lines.append(f"\t{parameters[-1]}")
            self.lines.append(")")
        else:
            self.lines.append(f"{first}({', '.join(parameters)})")
        self.lines.extend(map(directive, function.directives))
        if function.body is None:
            if self.lines[-1].endswith(";"):  # a pragma has a semicolon of its own
                self.lines.append(";")
            else:
                self.lines[-1] += ";"
            return
        self.lines.append("{")
        self._body(function.body)
        self.lines.append("}")

    def _body(self, body: tuple[m.Statement, ...]) -> None:
        """Statements and blocks, without recursion."""
        out, indent, files, origins = self.lines, "\t", self.files, self.origins
        written: dict[int, str] = {}
        stack: list[Iterator[m.Statement]] = [iter(body)]
        if files is not None:
            files.begin()
        while stack:
            for statement in stack[-1]:
                if type(statement) is Instruction:
                    if files is not None and statement.mark is not None:
                        out.extend(files.loc(statement.mark))
                    form, operands, guard, _signature, _mark = statement
                    if guard is None and operands:  # as `line` writes it, without the call
                        texts = [
                            each.name
                            if type(each) is Register
                            else written.get(id(each)) or _shared(each, written)
                            for each in operands
                        ]
                        out.append(f"{indent}{form.spelling} {', '.join(texts)};")
                    else:
                        out.append(indent + line(form, operands, guard))
                    if origins is not None:
                        origins.append((len(out), statement))
                elif isinstance(statement, m.Block):
                    out.append(indent + "{")
                    indent += "\t"
                    stack.append(iter(statement.body))
                    break
                else:
                    out.append(_statement(statement, indent))
            else:
                stack.pop()
                indent = indent[:-1]
                if stack:
                    out.append(indent + "}")


def _statement(statement: m.Statement, indent: str) -> str:
    """Any statement that is one line; labels stand at the margin."""
    if isinstance(statement, m.LabelMark):
        return f"{statement.name}:"
    if isinstance(statement, m.RegisterDeclaration):
        return indent + registers(statement)
    if isinstance(statement, m.Variable):
        return indent + variable(statement)
    if isinstance(statement, m.Targets):
        return f"{indent}{statement.name}: .{statement.kind} {', '.join(statement.labels)};"
    if isinstance(statement, m.Prototype):
        return indent + prototype(statement)
    if isinstance(statement, m.Loc):
        return indent + loc(statement)
    assert isinstance(statement, m.Directive)
    return indent + directive(statement)


def registers(declaration: m.RegisterDeclaration) -> str:
    """`.reg …;`"""
    count = "" if declaration.count is None else f"<{declaration.count}>"
    vector = f".v{declaration.vector} " if declaration.vector > 1 else ""
    return f".reg {vector}.{declaration.type} {', '.join([name + count for name in declaration.names])};"


def variable(item: m.Variable) -> str:
    """`.visible .global .align 4 .f32 name[3] = { … };`"""
    parts = [f".{item.linkage}"] if item.linkage else []
    parts.append(f".{item.space}")
    if item.attributes:
        parts.append(f".attribute({', '.join(item.attributes)})")
    parts += _typed(item.align, item.vector, item.type)
    count = "" if item.count is None else f"<{item.count}>"
    parts.append(f"{item.name}{count}{_extents(item.shape)}")
    if item.initial is not None:
        parts.append(f"= {initial(item.initial)}")
    return " ".join(parts) + ";"


def parameter(item: m.Parameter) -> str:
    """One parameter of a kernel, function or prototype."""
    parts = [f".{item.space}"]
    if item.pointer:
        parts += [f".{item.type}", ".ptr"]
        if item.pointer_space:
            parts.append(f".{item.pointer_space}")
        if item.pointer_align is not None:
            parts.append(f".align {item.pointer_align}")
    else:
        parts += _typed(item.align, item.vector, item.type)
    parts.append(item.name + _extents(item.shape))
    return " ".join(parts)


def _typed(align: Optional[int], vector: int, type_: str) -> list[str]:
    parts = [] if align is None else [f".align {align}"]
    if vector > 1:
        parts.append(f".v{vector}")
    return [*parts, f".{type_}"]


def _extents(shape: Iterable[int]) -> str:
    return "".join(f"[{extent}]" if extent else "[]" for extent in shape)


def initial(value: m.Initial) -> str:
    """What stands after `=`."""
    if isinstance(value, (Integer, Float, Symbol)):
        return str(value)
    if isinstance(value, m.GenericSymbol):
        return _generic(value)
    if isinstance(value, m.MaskedSymbol):
        inner = value.symbol
        return f"0x{value.mask:X}({_generic(inner) if isinstance(inner, m.GenericSymbol) else inner})"
    return "{" + ", ".join(map(initial, value)) + "}"


def _generic(value: m.GenericSymbol) -> str:
    symbol = value.symbol
    return f"generic({symbol.name})+{symbol.offset}" if symbol.offset else f"generic({symbol.name})"


def prototype(item: m.Prototype) -> str:
    """`name: .callprototype (…) _ (…);`"""
    returns = f"({', '.join(map(parameter, item.returns))}) " if item.returns else ""
    text = f"{item.name}: .callprototype {returns}_ ({', '.join(map(parameter, item.parameters))})"
    tail = [".noreturn"] if item.noreturn else []
    return " ".join([text, *tail, *map(directive, item.directives)]) + ";"


def loc(item: m.Loc) -> str:
    """`.loc file line column` and where it was inlined."""
    text = f".loc {item.file} {item.line} {item.column}"
    if item.function_name is not None:
        text += f", function_name {item.function_name}"
    if item.inlined_file is not None:
        text += f", inlined_at {item.inlined_file} {item.inlined_line} {item.inlined_column}"
    return text


def directive(item: m.Directive) -> str:
    """A directive with its values; `.pragma` has a semicolon, `.file` a space after its number."""
    if item.name == "pragma":
        return f".pragma {', '.join([_quoted(value) for value in item.values])};"
    if item.name == "file":
        number, name, *rest = item.values
        return ", ".join([f".file {number} {_quoted(name)}", *map(str, rest)])
    values = ", ".join(map(_value, item.values))
    return f".{item.name} {values}" if values else f".{item.name}"


def _quoted(value: m.Value) -> str:
    return f'"{value}"'


def _value(value: m.Value) -> str:
    if isinstance(value, tuple):
        first, second = value
        return f"{_value(first)}-{_value(second)}"
    return str(value)
