"""What the table says of one spelling: a Form, its Signatures and the Operands of each.

These records are values: the table makes each Form once (it is interned, compared by identity) and nothing
changes it. `shape` keys, defined here, are how the rest of the house asks whether operands fit, without `isa`
knowing what an operand record is:

    register             its register type: "b32", "f32", "pred", "b16", …
    special register     "sreg:" and its name: "sreg:%tid.x"
    integer literal      "int"
    float literal        "f32lit" (0f…), "f64lit" (0d… or decimal)
    symbol               "sym:" and its state space or kind: "sym:global", "sym:func", "sym:texref",
                         "sym:param", …
    label                "label"
    sink `_`             "_"
    negated predicate    "!pred"
    selected part        (".", "b0", shape)                 r1.b0, r1.h1
    minus sign           ("-", shape)                       -r1, -r1.h0
    vector {a, b}        ("{", shape, shape, …)
    pair p|q             ("|", shape, shape)
    address [a+4]        ("[", base shape)                  base: a register, "int", a symbol
    address [a, c, …]    ("[", base shape, shape, …)        tensor maps, textures, per-CTA addresses
    address [a].unified  ("[.unified", base shape)
    list (a, b)          ("(", shape, shape, …)             call arguments
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Union

from ptxtile import tracing

Shape = Union[str, tuple["Shape", ...]]

Kind = Literal[
    "value", "address", "vector", "pair", "label", "labels", "function", "list", "prototype", "symbol", "sink"
]


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand position of a signature.

    name       as the syntax line writes it: "d", "a", "cache_policy"
    role       "out" is written, "in" is read, "inout" both
    kind       "value" is one register or literal; "vector" a brace group of `length` elements; "pair" is p|q;
               "address"
               is [ … ]; the rest are what they say
    type       the PTX type with its dot, ".f16x2" (of an element, if a vector; None for an address or a
               label)
    carrier    the register type, without dot, that holds `type`: "b32" for .f16x2, "pred" for .pred
    registers  every register type that may stand here: {"b32", "u32", "s32"} for .u32
    length     elements of a vector, else 1
    register   a register may stand here (False: an immediate only)
    immediate  a literal may stand here
    bounds     inclusive range of an immediate, where the ISA gives one
    sink       `_` may stand here
    negatable  `!p` may stand here
    special    a special register may stand here
    symbol     the name of a variable or function may stand here, as its address
    space      the state space of an address, with its dot; "" is generic
    elements   the two of a pair; of an address, what stands after the base inside the brackets
    selector   the alternatives of a part selector (r1.b0), empty if none may stand here
    selected   a part selector must stand here
    single     a value that may also be written as a vector of one element, {r1}
    literals   the kinds of literal that may stand here: "int", "f32", "f64"
    choices    the only integers that may stand here, empty if any within `bounds`
    multiple   an integer here is a multiple of this
    most       an integer here is no more than the one at the operand of this name; "" if there is no such limit
    strict     no predicate may be among the elements of a vector, as elsewhere the assembler allows
    minus      a register here may have a minus sign before it
    negative   it must have one
    unified    an address in a register may be followed by .unified
    whole      a special register of several elements stands here, and nothing else
    pure       no literal may be among registers of bit-size type in a vector, as elsewhere the assembler allows
    loose      a value, or a vector of 1, 2 or 4 elements, that is as wide in all may stand here too
    """

    name: str
    role: Literal["in", "out", "inout"]
    kind: Kind
    type: str | None = None
    carrier: str | None = None
    registers: frozenset[str] = frozenset()
    length: int = 1
    register: bool = True
    immediate: bool = False
    bounds: tuple[int, int] | None = None
    sink: bool = False
    negatable: bool = False
    special: bool = False
    symbol: bool = False
    space: str | None = None
    elements: tuple[Operand, ...] = ()
    selector: tuple[str, ...] = ()
    selected: bool = False
    literals: frozenset[str] = frozenset()
    choices: tuple[int, ...] = ()
    single: bool = False
    multiple: int = 1
    loose: bool = False
    strict: bool = False
    pure: bool = False
    whole: bool = False
    unified: bool = False
    minus: bool = False
    negative: bool = False
    most: str = ""

    @property
    def limited(self) -> bool:
        """Whether some integers may not stand here, though the type has them."""
        return bool(self.choices) or self.bounds is not None or self.multiple > 1 or bool(self.most)


@dataclass(frozen=True, slots=True)
class Signature:
    """One operand list of a form.

    targets   each target that has it, to the first PTX version that has it there ("8.6")
    removed   each target that lost it, to the PTX version that removed it
    slots     the modifier written in each slot of the syntax line, by the slot's name without dot: {"rnd":
              ".rn",
              "type": ".f32"}; fixed modifiers and slots left out do not appear
    syntax    the syntax line, as in the table
    source    where it stands: "float.isa:7"
    """

    operands: tuple[Operand, ...]
    targets: Mapping[str, str]
    removed: Mapping[str, str]
    slots: Mapping[str, str]
    syntax: str
    source: str


@dataclass(frozen=True, slots=True)
class Named:
    """A destination that the caller named with `dst=`: it is not taken for a source."""

    destination: object


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """One fully written, canonical spelling. Interned: equal spellings are the same object.

    `targets` maps each target to the first PTX version (text, "8.6") that has the form there in any
    signature. Called with operands it emits an instruction into the current trace; outside one that is a
    TraceError. The destination stands first, or is named with `dst=`, or is left out for a new register;
    `pred` guards.
    """

    spelling: str
    opcode: str
    modifiers: tuple[str, ...]
    summary: str
    section: str
    signatures: tuple[Signature, ...]
    targets: Mapping[str, str]
    bound: dict[tuple[Shape, ...], Signature] = field(default_factory=dict, repr=False)
    """Memo of `isa.bind`: operand shapes seen, to the one signature they fit."""

    def __call__(self, *operands: object, pred: object = None, dst: object = None) -> object:
        if dst is not None:
            operands = (Named(dst), *operands)
        trace = tracing.current.get() or tracing.emitter(self.spelling)
        return trace.emit(self, operands, pred)

    def __getattr__(self, name: str) -> Form:
        """The form that one more modifier makes: `ptx.bra.uni`, though `ptx.bra` is a form itself."""
        from ptxtile.isa import namespace

        return namespace.step(self.spelling, name)

    def __dir__(self) -> list[str]:
        from ptxtile.isa import namespace

        return [*object.__dir__(self), *namespace.following(self.spelling)]

    def __reduce__(self) -> tuple[object, tuple[str]]:
        from ptxtile.isa.validate import validate

        return validate, (self.spelling,)

    def __copy__(self) -> Form:
        return self

    def __deepcopy__(self, memo: object) -> Form:
        return self

    def __repr__(self) -> str:
        return f"ptx[{self.spelling!r}]"

    def __str__(self) -> str:
        return self.spelling


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the table says of a text that may be a spelling.

    kind     "canonical"; "tolerated": the assembler takes it, written another way than the manual's;
             "rejected"
    form     the canonical Form (None if rejected outright; kept if only the target or the version refuses it)
    reasons  all the reasons against it, one line each; for "tolerated", what is unusual
    """

    kind: Literal["canonical", "tolerated", "rejected"]
    form: Form | None
    reasons: tuple[str, ...]
