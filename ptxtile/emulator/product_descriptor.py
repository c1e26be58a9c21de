"""The instruction descriptor of tcgen05.mma: shape, types, signs, scale factors' places (PTX ISA 9.7.16.4.2)."""

from __future__ import annotations

from dataclasses import dataclass

_SMALL = {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}
_FOUR = {1: "e2m1"}
FACTORS: dict[str, dict[int, str]] = {
    "f16": {0: "f16", 1: "bf16"},
    "tf32": {2: "tf32"},
    "f8f6f4": _SMALL,
    "i8": {0: "u8", 1: "s8"},
    "mxf8f6f4": _SMALL,
    "mxf4": _FOUR,
    "mxf4nvf4": _FOUR,
}
SUMS = {"f16": {0: "f16", 1: "f32"}, "tf32": {1: "f32"}, "f8f6f4": {0: "f16", 1: "f32"}, "i8": {2: "s32"}}
BITS = {"f16": 16, "tf32": 32, "f8f6f4": 8, "i8": 8, "mxf8f6f4": 8, "mxf4": 4, "mxf4nvf4": 4}
"""Bits that an element takes, padding included, by kind."""


@dataclass(frozen=True, slots=True)
class Described:
    """What the 32 bits say.

    scale   the type of the scale factors     first   the first byte of A's and of B's     deep   K is 96
    """

    m: int
    n: int
    a: str
    b: str
    d: str
    negative: tuple[bool, bool]
    transposed: tuple[bool, bool]
    saturate: bool
    sparse: bool
    selector: int
    scale: str = ""
    first: tuple[int, int] = (0, 0)
    deep: bool = False


def described(bits: int, kind: str) -> Described | str:
    """The fields for a kind ("f16", "mxf4", …), or what is wrong with them."""
    scaled = kind.startswith("mx")
    factors = FACTORS[kind]
    a, b = (factors.get(bits >> place & 7) for place in (7, 10))
    d = "f32" if scaled else SUMS[kind].get(bits >> 4 & 3)
    for name, found, place in (("A", a, "7 to 9"), ("B", b, "10 to 12"), ("D", d, "4 and 5")):
        if found is None:
            return f"bits {place} name no type of {name} that .kind::{kind} has"
    assert a is not None and b is not None and d is not None
    scale = ("ue8m0" if bits >> 23 & 1 else "ue4m3") if scaled else ""
    if scale == "ue4m3" and kind != "mxf4nvf4":
        return f"bit 23 asks for scale factors of ue4m3, and .kind::{kind} has ue8m0"
    return Described(
        (bits >> 24 & 31) << 4,
        (bits >> 17 & 63) << 3,
        a,
        b,
        d,
        (bool(bits >> 13 & 1), bool(bits >> 14 & 1)),
        (bool(bits >> 15 & 1), bool(bits >> 16 & 1)),
        bool(bits >> 3 & 1) and kind == "i8",
        bool(bits >> 2 & 1),
        0 if scaled else bits & 3,
        scale,
        (bits >> 29 & 3, bits >> 4 & 3) if scaled else (0, 0),
        scaled and bool(bits >> 31 & 1),
    )


def shape_problem(found: Described, kind: str, ctas: int, stationary: bool, sparse: bool) -> str:
    """What is wrong with a shape and the rest, for an instruction; "" if nothing."""
    rows: tuple[int, ...] = (32, 64, 128) if stationary else (64, 128) if ctas == 1 else (128, 256)
    if kind.startswith("mx") and ctas == 1:
        rows = (128,)
    if found.m not in rows:
        return f"M is {found.m}, and it is {' or '.join(map(str, rows))}"
    columns = (64, 128, 256) if stationary else range(8 * ctas, 257, 8 * ctas)
    if found.n not in columns:
        told = "64, 128 or 256" if stationary else f"a multiple of {8 * ctas} up to 256"
        return f"N is {found.n}, and it is {told}"
    if found.sparse != sparse:
        return (
            f"bit 2 says that A is {'sparse' if found.sparse else 'dense'}, and the instruction the opposite"
        )
    if found.deep and (sparse or kind not in ("mxf4", "mxf4nvf4")):
        return "bit 31 asks for K = 96, which dense A of .kind::mxf4 and .kind::mxf4nvf4 has"
    if any(found.transposed) and (kind in ("mxf4", "mxf4nvf4")):
        return f".kind::{kind} has no transposed matrices"
    return ""
