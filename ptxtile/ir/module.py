"""What a PTX module is: immutable records that the writer writes, the reader reads and the emulator runs.

Statement kinds of a body, in order of appearance: RegisterDeclaration, Variable, Block, LabelMark, Instruction,
Targets, Prototype, Directive.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Union

from ptxtile.ir.instruction import Instruction
from ptxtile.ir.operand import Float, Integer, Symbol
from ptxtile.location import Mark

Initial = Union[Integer, Float, Symbol, "MaskedSymbol", "GenericSymbol", tuple["Initial", ...]]


@dataclass(frozen=True, slots=True)
class GenericSymbol:
    """`generic(name)+offset` in an initialiser: the generic address of a variable."""

    symbol: Symbol


@dataclass(frozen=True, slots=True)
class MaskedSymbol:
    """`0xFF00(name)` in an initialiser: one byte of an address."""

    mask: int
    symbol: Symbol | GenericSymbol


@dataclass(frozen=True, slots=True)
class RegisterDeclaration:
    """`.reg .b32 %r<8>;` (count 8: %r0 to %r7) or `.reg .pred p, q;` (count None)."""

    type: str
    names: tuple[str, ...]
    count: int | None = None
    vector: int = 1


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a state space, at module scope or in a body (PTX ISA 5.4).

    space    "global", "shared", "const", "local", "param", "tex" …, without dot
    type     element type without dot: "f32", "b8", "texref", "samplerref", "surfref"
    shape    array extents: () for a scalar, 0 for an extent left open (`[]`)
    align    bytes, or None where the text has none
    vector   elements of a .v2/.v4 type, else 1
    linkage  "visible", "extern", "weak", "common", or ""
    attributes  `.managed`, `.unified(…)` texts inside .attribute( … ), without the wrapping
    """

    space: str
    type: str
    name: str
    shape: tuple[int, ...] = ()
    align: int | None = None
    vector: int = 1
    linkage: str = ""
    initial: Initial | None = None
    attributes: tuple[str, ...] = ()
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Parameter:
    """A kernel or function parameter (PTX ISA 5.1.6).

    space  "param", or "reg" for a function's register parameter
    shape  array extents, () for a scalar
    pointer, pointer_space, pointer_align   from `.ptr .global .align 16`: True, "global", 16
    """

    name: str
    type: str
    shape: tuple[int, ...] = ()
    align: int | None = None
    space: str = "param"
    vector: int = 1
    pointer: bool = False
    pointer_space: str = ""
    pointer_align: int | None = None


@dataclass(frozen=True, slots=True)
class LabelMark:
    """`name:`"""

    name: str


@dataclass(frozen=True, slots=True)
class Targets:
    """`name: .branchtargets a, b;` or `.calltargets`. `kind` has no dot."""

    name: str
    kind: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Prototype:
    """`name: .callprototype (…) _ (…);`"""

    name: str
    returns: tuple[Parameter, ...]
    parameters: tuple[Parameter, ...]
    noreturn: bool = False
    directives: tuple[Directive, ...] = ()


@dataclass(frozen=True, slots=True)
class Directive:
    """Any other directive, by name without dot and its values: `.maxntid 128, 1, 1` is ("maxntid", (128, 1, 1)),
    `.pragma "nounroll"` is ("pragma", ("nounroll",)). `statement` directives end in a semicolon where PTX wants one."""

    name: str
    values: tuple[Value, ...] = ()


Value = Union[int, str, Float, Symbol, tuple["Value", ...]]


@dataclass(frozen=True, slots=True)
class Loc:
    """`.loc file line column`, with the function_name, label and inlined_at attributes if present."""

    file: int
    line: int
    column: int = 0
    function_name: Symbol | None = None
    inlined_file: int | None = None
    inlined_line: int = 0
    inlined_column: int = 0


@dataclass(frozen=True, slots=True)
class Section:
    """`.section .debug_info { … }`: `rows` are (label or "", data type such as "b8", values)."""

    name: str
    rows: tuple[tuple[str, str, tuple[Value, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """`{ … }` inside a body: a scope of its own."""

    body: tuple[Statement, ...]


Statement = Union[
    RegisterDeclaration, Variable, Block, LabelMark, Instruction, Targets, Prototype, Loc, Directive
]


@dataclass(frozen=True, slots=True)
class Function:
    """An `.entry` or a `.func`. `body` is None for a declaration without one.

    directives   performance and cluster directives before the body: maxntid, reqntid, maxnreg, minnctapersm,
                 reqnctapercluster, explicitcluster, noreturn, pragma, …
    """

    name: str
    entry: bool
    parameters: tuple[Parameter, ...] = ()
    returns: tuple[Parameter, ...] = ()
    directives: tuple[Directive, ...] = ()
    linkage: str = ""
    body: tuple[Statement, ...] | None = ()
    attributes: tuple[str, ...] = ()
    mark: Mark | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Alias:
    """`.alias name, aliasee;`"""

    name: str
    aliasee: str


Item = Union[Variable, Function, Alias, Directive, Section]


@dataclass(frozen=True, slots=True)
class Module:
    """A whole PTX module. `str()` is its text.

    version        "8.0"
    target         "sm_90a"
    modes          what else `.target` lists: "texmode_independent", "debug", "map_f64_to_f32"
    address_size   64 (32 only where a target still takes it)
    """

    version: str
    target: str
    items: tuple[Item, ...] = ()
    modes: tuple[str, ...] = ()
    address_size: int = 64

    def __str__(self) -> str:
        from ptxtile.ir.writer import write

        return write(self)

    def __reduce__(self) -> tuple[object, tuple[str]]:
        """Pickled as its text: lines of Python are lost, which take no part in equality."""
        from ptxtile.ir.reader import parse

        return parse, (str(self),)

    def __deepcopy__(self, memo: object) -> Module:
        return self

    @property
    def functions(self) -> tuple[Function, ...]:
        """Every .entry and .func, in order."""
        return tuple(item for item in self.items if isinstance(item, Function))

    def function(self, name: str) -> Function:
        """The function with a body of that name; KeyError-free: ValueError that lists the names there are."""
        for item in self.functions:
            if item.name == name and item.body is not None:
                return item
        have = ", ".join(item.name for item in self.functions) or "none"
        raise ValueError(f"the module has no function {name!r} with a body; it has {have}")

    def explain(self) -> str:
        """Which form, directive or special register asked for the module's target and version."""
        from ptxtile.ir.inference import explain

        return explain(self)
