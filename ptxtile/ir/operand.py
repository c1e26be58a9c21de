"""What may stand in an operand position of an instruction: immutable values, never source text.

Each has `shape`, the key by which `isa` decides whether it fits a signature (see `isa.form`), and `str()` gives its
one canonical text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Union

from ptxtile.isa.form import Shape


@dataclass(frozen=True, slots=True)
class Register:
    """A declared register, with its name as written (`%r1`) and register type without dot (`b32`)."""

    name: str
    type: str

    @property
    def shape(self) -> Shape:
        return self.type

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Special:
    """A special register, `%tid.x` (PTX ISA 10)."""

    name: str

    @property
    def shape(self) -> Shape:
        return "sreg:" + self.name

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Integer:
    """An integer literal of 64 bits; `unsigned` if it is of type .u64 (PTX ISA 4.5.1)."""

    value: int
    unsigned: bool = False

    @property
    def shape(self) -> Shape:
        return "int"

    def __str__(self) -> str:
        return f"{self.value}U" if self.unsigned else str(self.value)


@dataclass(frozen=True, slots=True)
class Float:
    """A floating-point literal by its bits: `width` 32 is written 0f…, 64 is written 0d… (PTX ISA 4.5.2)."""

    bits: int
    width: int

    @property
    def shape(self) -> Shape:
        return "f32lit" if self.width == 32 else "f64lit"

    def __str__(self) -> str:
        return f"0f{self.bits:08X}" if self.width == 32 else f"0d{self.bits:016X}"


@dataclass(frozen=True, slots=True)
class Symbol:
    """The name of a variable, parameter or function, with a byte offset. `space` is what it was declared as:
    "global", "shared", "const", "local", "param", "func", "texref", "samplerref", "surfref", "proto", …"""

    name: str
    space: str
    offset: int = 0

    @property
    def shape(self) -> Shape:
        return "sym:" + self.space

    def __str__(self) -> str:
        return f"{self.name}+{self.offset}" if self.offset else self.name


@dataclass(frozen=True, slots=True)
class Label:
    """A branch target, or a list of them (.branchtargets, .calltargets)."""

    name: str

    @property
    def shape(self) -> Shape:
        return "label"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Sink:
    """`_`: the value is dropped."""

    @property
    def shape(self) -> Shape:
        return "_"

    def __str__(self) -> str:
        return "_"


@dataclass(frozen=True, slots=True)
class Negated:
    """`!p`, the complement of a predicate as a source."""

    register: Register

    @property
    def shape(self) -> Shape:
        return "!" + self.register.type

    def __str__(self) -> str:
        return "!" + self.register.name


@dataclass(frozen=True, slots=True)
class Selected:
    """Part of a register in a video instruction: `%r1.b0`, `%r1.h1`; `part` has no dot."""

    register: Register
    part: str

    @property
    def shape(self) -> Shape:
        return (".", self.part, self.register.type)

    def __str__(self) -> str:
        return f"{self.register.name}.{self.part}"


@dataclass(frozen=True, slots=True)
class Minus:
    """`-%r1` or `-%r1.h0`: a source of vmad, negated (PTX ISA 9.7.18.1.3)."""

    operand: Register | Selected

    @property
    def shape(self) -> Shape:
        return ("-", self.operand.shape)

    def __str__(self) -> str:
        return f"-{self.operand}"


@dataclass(frozen=True, slots=True)
class Vector:
    """A brace group `{a, b}`."""

    elements: tuple[Operand, ...]

    @property
    def shape(self) -> Shape:
        return ("{", *(element.shape for element in self.elements))

    def __str__(self) -> str:
        return "{" + ", ".join(map(str, self.elements)) + "}"


@dataclass(frozen=True, slots=True)
class Pair:
    """`p|q`, two destinations of one instruction; either may be a sink, and the first a vector: `{a, b}|p`."""

    first: Operand
    second: Operand

    @property
    def shape(self) -> Shape:
        return ("|", self.first.shape, self.second.shape)

    def __str__(self) -> str:
        return f"{self.first}|{self.second}"


@dataclass(frozen=True, slots=True)
class Address:
    """`[base+offset]`, or `[base, rest…]` for tensor maps and textures. `offset` counts bytes.

    `zero` keeps an offset of 0 that is written, `[base+0]`: where the assembler does not optimise, it adds it.
    """

    base: Register | Symbol | Integer | Special
    offset: int = 0
    rest: tuple[Operand, ...] = ()
    zero: bool = False

    @property
    def shape(self) -> Shape:
        if not self.rest:
            return ("[", self.base.shape)
        return ("[", self.base.shape, *(part.shape for part in self.rest))

    def __str__(self) -> str:
        base = f"{self.base}+{self.offset}" if self.offset or self.zero else str(self.base)
        return f"[{', '.join([base, *map(str, self.rest)])}]"


@dataclass(frozen=True, slots=True)
class UnifiedAddress(Address):
    """`[a].unified`: an address that the reader may take to be the same for the host and the device."""

    @property
    def shape(self) -> Shape:
        return ("[.unified", *Address.shape.__get__(self)[1:])

    def __str__(self) -> str:
        return Address.__str__(self) + ".unified"


def addresses_from(base: Register | Symbol | Integer | Special, offsets: Iterable[int]) -> list[Address]:
    """`Address(base, offset)` for each offset: tiles have thousands, and this makes them in half the time."""
    new = object.__new__
    made = []
    for offset in offsets:
        one = new(Address)
        _set_base(one, base)
        _set_offset(one, offset)
        _set_rest(one, ())
        _set_zero(one, False)
        made.append(one)
    return made


def address_of(base: Register | Symbol | Integer | Special, offset: int, zero: bool) -> Address:
    """`Address(base, offset, zero=zero)`, in half the time."""
    made = object.__new__(Address)
    _set_base(made, base)
    _set_offset(made, offset)
    _set_rest(made, ())
    _set_zero(made, zero)
    return made


def registers_of(prefix: str, count: int, type_: str) -> dict[str, Register]:
    """`Register(name, type_)` by its name for prefix0 to prefix(count-1), in half the time."""
    new = object.__new__
    found = {}
    for i in range(count):
        made = new(Register)
        name = f"{prefix}{i}"
        _set_name(made, name)
        _set_type(made, type_)
        found[name] = made
    return found


_set_name, _set_type = (getattr(Register, name).__set__ for name in ("name", "type"))
# The slots of Address, past the wall that a frozen dataclass puts before them.
_set_base, _set_offset, _set_rest, _set_zero = (
    getattr(Address, name).__set__ for name in ("base", "offset", "rest", "zero")
)


@dataclass(frozen=True, slots=True)
class Arguments:
    """`(a, b)`: the returned or passed parameters of a call."""

    elements: tuple[Operand, ...]

    @property
    def shape(self) -> Shape:
        return ("(", *(element.shape for element in self.elements))

    def __str__(self) -> str:
        return "(" + ", ".join(map(str, self.elements)) + ")"


Operand = Union[
    Register,
    Special,
    Integer,
    Float,
    Symbol,
    Label,
    Sink,
    Negated,
    Selected,
    Minus,
    Vector,
    Pair,
    Address,
    Arguments,
]
