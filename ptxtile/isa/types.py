"""PTX types: `types.isa`, read once.

A type is named with its dot (".f16x2"), a register type without ("b32").
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from ptxtile import resources
from ptxtile.isa import cache


@dataclass(frozen=True, slots=True)
class Type:
    """One PTX type.

    name       ".f16x2"
    bits       its width
    carrier    the register type that holds it: "b32"
    registers  every register type that the assembler takes for it
    literals   kinds of literal it takes: "int", "f32", "f64"
    count      elements, 1 unless packed
    element    the type of an element of a packed type, else None
    """

    name: str
    bits: int
    carrier: str
    registers: frozenset[str]
    literals: frozenset[str]
    count: int = 1
    element: str | None = None

    @property
    def kind(self) -> str:
        """The letters of the name before the first digit: "b", "u", "s", "f", "bf", "tf", "e", "ue", "pred"."""
        return (
            self.name[1:].rstrip("0123456789x")
            if self.count == 1
            else self.name[1 : 2 + (self.name[1:3] == "bf")]
        )


REGISTER_BITS = {
    "pred": 1, "b8": 8, "u8": 8, "s8": 8, "b16": 16, "u16": 16, "s16": 16, "f16": 16, "b32": 32, "u32": 32, "s32": 32,
    "f32": 32, "f16x2": 32, "b64": 64, "u64": 64, "s64": 64, "f64": 64, "b128": 128,
}  # fmt: skip
"""The types a `.reg` may have, and their widths."""


@functools.lru_cache(maxsize=1)
def all_types() -> dict[str, Type]:
    """Every type by its name, with the dot."""
    found: dict[str, Type] = {}
    for record in cache.load(resources.grammar() / "types.isa", "types"):
        names, bits, count, element, carrier, takes, literals = record
        for name in names:
            found[name] = Type(
                name, bits, carrier, frozenset(takes), frozenset(literals), count or 1, element
            )
    return found


def type_bits(name: str) -> int:
    """The width of a type, by its name with the dot."""
    return all_types()[name].bits


@functools.cache
def wider(name: str) -> frozenset[str]:
    """The register types that may stand for type `name` where a wider register may: ld, st, cvt.

    A bit-size type takes every register at least as wide (bits, integers, floats), an integer type bits and
    integers, a floating point type, `.f16x2` among them, its own and bits.
    """
    known = all_types()[name]
    kind = known.kind
    if kind not in ("b", "u", "s", "f") or (known.count > 1 and name != ".f16x2") or known.bits == 128:
        return known.registers
    allowed = {"b": "busf", "u": "bus", "s": "bus", "f": "b"}[kind]
    more = {r for r, bits in REGISTER_BITS.items() if bits >= known.bits and r[0] in allowed and r != "pred"}
    if kind in ("u", "s") and known.bits <= 32:
        more.add("f16x2")
    return known.registers | more


def double(name: str) -> str | None:
    """The type of the same kind and twice the bits: ".u16" → ".u32"; None if there is none."""
    known = all_types()[name]
    wide = f".{known.kind}{2 * known.bits}"
    return wide if wide in all_types() else None
