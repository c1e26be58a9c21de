"""The instructions that `device_semantics.py` asks a GPU about: every spelling of the emulator's chapters on sm_90.

A case is a spelling with the types of its operands. An operand type is a PTX type without its dot ("f32", "pred"), or a
hint after a colon that narrows what is drawn: "u32:amount" for shift amounts, positions and lengths.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

WORDS = ("u16", "s16", "u32", "s32", "u64", "s64")
DIRECTIONS = (".rn", ".rz", ".rm", ".rp")
HALVES = ("f16", "f16x2", "bf16", "bf16x2")


@dataclass(frozen=True, slots=True)
class Case:
    """One spelling to ask about.

    targets, sources   operand types, in order
    carry              CC.CF is set before, from an extra drawn predicate, and read after
    ulp, absolute      for approximations: agreement is within either; None asks for equal bits
    any_nan            a NaN of any payload will do
    immediate          text that stands in place of the last source, and its value
    """

    spelling: str
    targets: tuple[str, ...]
    sources: tuple[str, ...]
    carry: bool = False
    ulp: float | None = None
    absolute: float = 0.0
    any_nan: bool = False
    immediate: int | None = None


def _integer() -> Iterator[Case]:
    for op, kind in product(
        ("add", "sub", "mul.lo", "mul.hi", "div", "rem", "min", "max", "sad", "mad.lo", "mad.hi"), WORDS
    ):
        count = 3 if op[:3] in ("sad", "mad") else 2
        yield Case(f"{op}.{kind}", (kind,), (kind,) * count)
    for op, kind in product(("mul", "mad"), ("u16", "s16", "u32", "s32")):
        wide = f"{kind[0]}{2 * int(kind[1:])}"
        yield Case(f"{op}.wide.{kind}", (wide,), (kind, kind) + ((wide,) if op == "mad" else ()))
    for op, kind in product(("abs", "neg"), ("s16", "s32", "s64")):
        yield Case(f"{op}.{kind}", (kind,), (kind,))
    for text in ("add.sat.s32", "sub.sat.s32", "min.relu.s32", "max.relu.s32"):
        yield Case(text, ("s32",), ("s32", "s32"))
    yield Case("mad.hi.sat.s32", ("s32",), ("s32",) * 3)
    for op, kind in product(("add", "min", "max"), ("u16x2", "s16x2")):
        yield Case(f"{op}.{kind}", (kind,), (kind, kind))
    for op in ("min", "max"):
        yield Case(f"{op}.relu.s16x2", ("s16x2",), ("s16x2", "s16x2"))
    for half, kind in product((".lo", ".hi"), ("u32", "s32")):
        yield Case(f"mul24{half}.{kind}", (kind,), (kind, kind))
        yield Case(f"mad24{half}.{kind}", (kind,), (kind,) * 3)
    yield Case("mad24.hi.sat.s32", ("s32",), ("s32",) * 3)
    for a, b in product(("u32", "s32"), repeat=2):
        c = "u32" if (a, b) == ("u32", "u32") else "s32"
        yield Case(f"dp4a.{a}.{b}", (c,), (a, b, c))
        for half in (".lo", ".hi"):
            yield Case(f"dp2a{half}.{a}.{b}", (c,), (a, b, c))


def _carry() -> Iterator[Case]:
    for op, suffix, kind in product(("add", "sub"), (".cc", "c", "c.cc"), ("u32", "s32", "u64", "s64")):
        yield Case(f"{op}{suffix}.{kind}", (kind,), (kind, kind), carry=True)
    for suffix, half, kind in product((".cc", "c", "c.cc"), (".lo", ".hi"), ("u32", "s32", "u64", "s64")):
        name = f"mad{'c' if suffix[0] == 'c' else ''}{half}{'.cc' if suffix.endswith('.cc') else ''}.{kind}"
        yield Case(name, (kind,), (kind,) * 3, carry=True)


def _bits() -> Iterator[Case]:
    for op, kind in product(("popc", "clz"), ("b32", "b64")):
        yield Case(f"{op}.{kind}", ("u32",), (kind,))
    for shift, kind in product(("", ".shiftamt"), ("u32", "s32", "u64", "s64")):
        yield Case(f"bfind{shift}.{kind}", ("u32",), (kind,))
    yield Case("fns.b32", ("b32",), ("b32", "u32:bit", "s32:small"))
    for kind in ("b32", "b64"):
        yield Case(f"brev.{kind}", (kind,), (kind,))
        yield Case(f"bfi.{kind}", (kind,), (kind, kind, "u32:byte", "u32:byte"))
    for kind in ("u32", "s32", "u64", "s64"):
        yield Case(f"bfe.{kind}", (kind,), (kind, "u32:byte", "u32:byte"))
    for kind in ("u32", "s32"):
        yield Case(f"bfe.{kind}", (kind,), (kind, "u32:amount", "u32:amount"))
    yield Case("bfi.b32", ("b32",), ("b32", "b32", "u32:amount", "u32:amount"))
    for mode in (".clamp", ".wrap"):
        yield Case(f"bmsk{mode}.b32", ("b32",), ("u32:amount", "u32:amount"))
        yield Case(f"szext{mode}.u32", ("u32",), ("u32", "u32:amount"))
        yield Case(f"szext{mode}.s32", ("s32",), ("s32", "u32:amount"))


def _logic() -> Iterator[Case]:
    for op, kind in product(("and", "or", "xor"), ("pred", "b16", "b32", "b64")):
        yield Case(f"{op}.{kind}", (kind,), (kind, kind))
    for kind in ("pred", "b16", "b32", "b64"):
        yield Case(f"not.{kind}", (kind,), (kind,))
    for kind in ("b16", "b32", "b64"):
        yield Case(f"cnot.{kind}", (kind,), (kind,))
    for op, kind in product(("shl", "shr"), ("b16", "b32", "b64", *WORDS)):
        if op == "shr" or kind[0] == "b":
            yield Case(f"{op}.{kind}", (kind,), (kind, "u32:amount"))
    for way, mode in product((".l", ".r"), (".clamp", ".wrap")):
        yield Case(f"shf{way}{mode}.b32", ("b32",), ("b32", "b32", "u32:amount"))
    for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
        yield Case(f"prmt.b32{mode}", ("b32",), ("b32", "b32", "b32"))
    for table in (0x96, 0xE8, 0x1B, 0xFF, 0x00, 0xCA):
        yield Case("lop3.b32", ("b32",), ("b32", "b32", "b32", "u32"), immediate=table)


def _compare() -> Iterator[Case]:
    signed = ("eq", "ne", "lt", "le", "gt", "ge")
    operators = {
        "s": signed,
        "u": (*signed, "lo", "ls", "hi", "hs"),
        "b": ("eq", "ne"),
        "f": (*signed, "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"),
    }
    for kind in ("b16", "b32", "b64", *WORDS, "f32", "f64", "f16", "bf16", "f16x2", "bf16x2"):
        family = "f" if "f" in kind else kind[0]
        # Of halves only the packed comparisons write a second predicate.
        pair = ("pred",) if kind in ("f16", "bf16") else ("pred", "pred")
        for operator in operators[family]:
            flushes = ("", ".ftz") if kind in ("f32", "f16", "f16x2") else ("",)
            for flush in flushes:
                yield Case(f"setp.{operator}{flush}.{kind}", pair, (kind, kind))
                yield Case(f"setp.{operator}.xor{flush}.{kind}", pair, (kind, kind, "pred"))
                target = kind if kind in HALVES else "f32"
                yield Case(f"set.{operator}{flush}.{target}.{kind}", (target,), (kind, kind))
            yield Case(f"setp.{operator}.and.{kind}", pair, (kind, kind, "pred"))
            yield Case(f"setp.{operator}.or.{kind}", pair, (kind, kind, "pred"))
            yield Case(f"set.{operator}.u32.{kind}", ("u32",), (kind, kind))
            yield Case(f"set.{operator}.and.s32.{kind}", ("s32",), (kind, kind, "pred"))
    for kind in ("b16", "b32", "b64", *WORDS, "f32", "f64"):
        yield Case(f"selp.{kind}", (kind,), (kind, kind, "pred"))
        yield Case(f"slct.{kind}.s32", (kind,), (kind, kind, "s32"))
        for flush in ("", ".ftz"):
            yield Case(f"slct{flush}.{kind}.f32", (kind,), (kind, kind, "f32"))


def _float() -> Iterator[Case]:
    for direction, op in product(DIRECTIONS, ("add", "sub", "mul", "fma", "div", "rcp", "sqrt")):
        count = {"fma": 3, "rcp": 1, "sqrt": 1}.get(op, 2)
        yield Case(f"{op}{direction}.f64", ("f64",), ("f64",) * count)
        for flush in ("", ".ftz"):
            yield Case(f"{op}{direction}{flush}.f32", ("f32",), ("f32",) * count)
            if count == 3 or op in ("add", "sub", "mul"):
                yield Case(f"{op}{direction}{flush}.sat.f32", ("f32",), ("f32",) * count)
    for op in ("abs", "neg", "min", "max"):
        count = 1 if op in ("abs", "neg") else 2
        yield Case(f"{op}.f64", ("f64",), ("f64",) * count)
        for flush in ("", ".ftz"):
            yield Case(f"{op}{flush}.f32", ("f32",), ("f32",) * count)
            if count == 2:
                for suffix in (".NaN", ".xorsign.abs", ".NaN.xorsign.abs"):
                    yield Case(f"{op}{flush}{suffix}.f32", ("f32",), ("f32", "f32"))
    for kind in ("f32", "f64"):
        yield Case(f"copysign.{kind}", (kind,), (kind, kind))
        for test in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
            yield Case(f"testp.{test}.{kind}", ("pred",), (kind,))


def _half() -> Iterator[Case]:
    for kind in HALVES:
        half = kind.startswith("f16")
        for op in ("add", "sub", "mul"):
            for suffix in ("", ".ftz", ".sat", ".ftz.sat") if half else ("",):
                yield Case(f"{op}.rn{suffix}.{kind}", (kind,), (kind, kind))
        for suffix in ("", ".ftz", ".sat", ".ftz.sat", ".relu", ".ftz.relu") if half else ("", ".relu"):
            yield Case(f"fma.rn{suffix}.{kind}", (kind,), (kind,) * 3)
        for suffix in (".oob", ".oob.relu"):
            yield Case(f"fma.rn{suffix}.{kind}", (kind,), (kind,) * 3)
        for op in ("neg", "abs"):
            for flush in ("", ".ftz") if half else ("",):
                yield Case(f"{op}{flush}.{kind}", (kind,), (kind,))
        for op, suffix in product(("min", "max"), ("", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs")):
            for flush in ("", ".ftz") if half else ("",):
                yield Case(f"{op}{flush}{suffix}.{kind}", (kind,), (kind, kind))
        yield Case(f"tanh.approx.{kind}", (kind,), (kind,), ulp=2)
        flush = "" if half else ".ftz"
        yield Case(f"ex2.approx{flush}.{kind}", (kind,), (kind,), ulp=2)
    for direction, suffix in product((".rz", ".rm", ".rp"), ("", ".relu")):
        for kind in ("bf16", "bf16x2"):
            yield Case(f"fma{direction}{suffix}.{kind}", (kind,), (kind,) * 3)


def _approximate() -> Iterator[Case]:
    bounds = {"rcp": (2, 0.0), "sqrt": (2, 0.0), "rsqrt": (3, 0.0), "ex2": (3, 0.0), "lg2": (3, 2.0**-21)}
    bounds |= {"sin": (2, 2.0**-20.5), "cos": (2, 2.0**-20.5)}
    for flush in ("", ".ftz"):
        for op, (ulp, absolute) in bounds.items():
            yield Case(f"{op}.approx{flush}.f32", ("f32",), ("f32",), ulp=ulp, absolute=absolute)
        yield Case(f"div.approx{flush}.f32", ("f32",), ("f32", "f32"), ulp=3)
        yield Case(f"div.full{flush}.f32", ("f32",), ("f32", "f32"), ulp=3)
    yield Case("tanh.approx.f32", ("f32",), ("f32",), ulp=2.0**14)
    yield Case("rcp.approx.ftz.f64", ("f64",), ("f64",), ulp=2.0**32)
    yield Case("rsqrt.approx.ftz.f64", ("f64",), ("f64",), ulp=2.0**32)
    yield Case("rsqrt.approx.f64", ("f64",), ("f64",), ulp=3)


def _convert() -> Iterator[Case]:
    octets = (*WORDS, "u8", "s8")
    floats = ("f16", "bf16", "f32", "f64")
    for target, source in product(octets, octets):
        if target != source:
            yield Case(f"cvt.{target}.{source}", (target,), (source,))
        if _narrows(target, source):
            yield Case(f"cvt.sat.{target}.{source}", (target,), (source,))
    for mode, target, source in product((".rni", ".rzi", ".rmi", ".rpi"), octets, floats):
        if source != "bf16" or target not in ("u8", "s8"):
            yield Case(f"cvt{mode}.{target}.{source}", (target,), (source,))
        if source == "f32":
            yield Case(f"cvt{mode}.ftz.sat.{target}.f32", (target,), (source,))
    for mode, target, source in product(DIRECTIONS, floats, octets):
        if target != "bf16" or source not in ("u8", "s8"):
            yield Case(f"cvt{mode}.{target}.{source}", (target,), (source,))
        if target != "bf16":
            yield Case(f"cvt{mode}.sat.{target}.{source}", (target,), (source,))
    yield from _convert_floats()
    yield from _convert_packed()


def _narrows(target: str, source: str) -> bool:
    wide, narrow = int(source[1:]), int(target[1:])
    return wide > narrow or (source[0] != target[0] and (wide >= narrow or source[0] == "s"))


def _convert_floats() -> Iterator[Case]:
    widths = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
    for target, source in product(widths, widths):
        if target == source:
            for mode in (".rni", ".rzi", ".rmi", ".rpi"):
                yield Case(f"cvt{mode}.{target}.{source}", (target,), (source,))
            continue
        exact = widths[target] > widths[source]
        for mode in ("",) if exact else DIRECTIONS:
            yield Case(f"cvt{mode}.{target}.{source}", (target,), (source,))
            if "f32" in (target, source) and "bf16" not in (target, source):
                yield Case(f"cvt{mode}.ftz.{target}.{source}", (target,), (source,))
            if "bf16" not in (target, source):
                yield Case(f"cvt{mode}.sat.{target}.{source}", (target,), (source,))
    for mode in (".rni", ".rzi", ".rmi", ".rpi", ""):
        yield Case(f"cvt{mode}.ftz.f32.f32", ("f32",), ("f32",))
        yield Case(f"cvt{mode}.sat.f32.f32", ("f32",), ("f32",))
    yield Case("cvt.f32.f32", ("f32",), ("f32",), any_nan=True)
    yield Case("cvt.f64.f64", ("f64",), ("f64",), any_nan=True)


def _convert_packed() -> Iterator[Case]:
    clamps = ("", ".relu", ".satfinite", ".relu.satfinite")
    for mode, clamp in product((".rn", ".rz"), clamps):
        for half in ("f16", "bf16"):
            if clamp:
                yield Case(f"cvt{mode}{clamp}.{half}.f32", (half,), ("f32",))
            yield Case(f"cvt{mode}{clamp}.{half}x2.f32", (f"{half}x2",), ("f32", "f32"))
    for mode, relu in product((".rn", ".rz"), ("", ".relu")):
        yield Case(f"cvt{mode}{relu}.tf32.f32", ("tf32",), ("f32",))
    yield Case("cvt.rna.tf32.f32", ("tf32",), ("f32",))
    yield Case("cvt.rna.satfinite.tf32.f32", ("tf32",), ("f32",))
    for small, relu in product(("e4m3x2", "e5m2x2"), ("", ".relu")):
        yield Case(f"cvt.rn.satfinite{relu}.{small}.f32", (small,), ("f32", "f32"))
        yield Case(f"cvt.rn.satfinite{relu}.{small}.f16x2", (small,), ("f16x2",))
        yield Case(f"cvt.rn{relu}.f16x2.{small}", ("f16x2",), (small,))
    for target in ("u16", "s16"):
        yield Case(f"cvt.pack.sat.{target}.s32", (f"{target}x2",), ("s32", "s32"))
    for target in ("u8", "s8", "u4", "s4", "u2", "s2"):
        yield Case(f"cvt.pack.sat.{target}.s32.b32", ("b32",), ("s32", "s32", "b32"))


CHAPTERS = {
    "integer": _integer,
    "carry": _carry,
    "bits": _bits,
    "logic": _logic,
    "compare": _compare,
    "float": _float,
    "half": _half,
    "approximate": _approximate,
    "conversion": _convert,
}


def cases(chapter: str) -> list[Case]:
    """Every case of one chapter."""
    return list(CHAPTERS[chapter]())
