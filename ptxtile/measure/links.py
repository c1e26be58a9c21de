"""What carries a result back to a source of another type, so that a chain closes.

A link is one of three kinds. *Free*: registers are only named anew (`mov.b32`, halves of a pair), and SASS has no
instruction for it. *Measured*: it costs instructions whose own latency is measured in the same run and subtracted.
*Declared*: its latency cannot be had alone (predicates to registers and back); the chain is reported as the two
instructions that it is, and no latency of the one is claimed.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ANCHORS", "DECLARED", "Link", "bits", "opaque", "path", "words"]

ANCHORS = ("prmt.b32", "lop3.b32")
"""Spellings whose latencies links refer to; they are part of every run."""

DECLARED = "declared"

_BITS = {"pred": 1, "b16": 16, "b32": 32, "f32": 32, "b64": 64, "f64": 64, "b128": 128}


def bits(carrier: str) -> int:
    """The width of a carrier; 0 for one that chains do not go through."""
    return _BITS.get(carrier, 0)


@dataclass(frozen=True, slots=True)
class Link:
    """Lines of PTX from one register to another, and what they cost.

    lines       statements; `{s}` is the source, `{d}` the destination, `{t0}`, `{t1}`, … temporaries
    temporary   carriers of the temporaries
    constants   (carrier, pattern) of `{c0}`, `{c1}`, …
    references  spellings (or names of links) whose latency it adds; (DECLARED,) where none can be named
    """

    lines: tuple[str, ...]
    temporary: tuple[str, ...] = ()
    constants: tuple[tuple[str, str], ...] = ()
    references: tuple[str, ...] = ()


def opaque(carrier: str) -> Link | None:
    """A link from a register to one of its own type that the assembler cannot look through.

    A byte permutation by a selector from memory, which holds the identity; it keeps repeated instructions from
    being merged or folded. Its own latency is measured as `link.opaque.<carrier>`.
    """
    name = (f"link.opaque.{carrier}",)
    select = ("b32", "identity")
    lines: tuple[str, ...]
    if bits(carrier) == 32:
        if carrier == "b32":
            return Link(("prmt.b32 {d}, {s}, {s}, {c0};",), (), (select,), name)
        lines = ("mov.b32 {t0}, {s};", "prmt.b32 {t0}, {t0}, {t0}, {c0};", "mov.b32 {d}, {t0};")
        return Link(lines, ("b32",), (select,), name)
    if bits(carrier) == 16:
        lines = (
            "mov.b32 {t0}, {{{s}, {c1}}};", "prmt.b32 {t0}, {t0}, {t0}, {c0};", "mov.b32 {{{d}, {t1}}}, {t0};",
        )  # fmt: skip
        return Link(lines, ("b32", "b16"), (select, ("b16", "short")), name)
    if bits(carrier) == 64:
        lines = (
            "mov.b64 {{{t0}, {t1}}}, {s};", "prmt.b32 {t2}, {t0}, {t1}, {c0};", "prmt.b32 {t3}, {t1}, {t0}, {c0};",
            "mov.b64 {d}, {{{t2}, {t3}}};",
        )  # fmt: skip
        return Link(lines, ("b32",) * 4, (select,), name)
    return None


def path(source: str, target: str) -> Link | None:
    """The link from a register of carrier `source` to one of another carrier; None if there is none."""
    wide, narrow = bits(source), bits(target)
    if not wide or not narrow or source == target or 128 in (wide, narrow):
        return None
    if source == "pred":
        kind = {16: "b16", 32: "b32", 64: "b64"}[narrow]
        constants = ((target, "float" if target == "f32" else "double" if target == "f64" else "int"),) * 2
        word = target if target.startswith("f") else kind
        return Link((f"selp.{word} {{d}}, {{c0}}, {{c1}}, {{s}};",), (), constants, (DECLARED,))
    if target == "pred":
        word = source if source.startswith("f") else f"s{wide}"
        pattern = {"f32": "float", "f64": "double"}.get(source, "zero")
        return Link((f"setp.ne.{word} {{d}}, {{s}}, {{c0}};",), (), ((source, pattern),), (DECLARED,))
    return _width(wide, narrow)


def _width(wide: int, narrow: int) -> Link:
    lines: tuple[str, ...]
    if wide == narrow:
        return Link((f"mov.b{wide} {{d}}, {{s}};",))
    if (wide, narrow) == (64, 32):  # both halves are needed, or the unneeded one would not be computed
        lines = ("mov.b64 {{{t0}, {t1}}}, {s};", "xor.b32 {t0}, {t0}, {t1};", "mov.b32 {d}, {t0};")
        return Link(lines, ("b32", "b32"), (), ("lop3.b32",))
    if (wide, narrow) == (32, 64):
        return Link(("mov.b32 {t0}, {s};", "mov.b64 {d}, {{{t0}, {c0}}};"), ("b32",), (("b32", "int"),))
    if (wide, narrow) == (16, 32):
        lines = ("mov.b32 {t0}, {{{s}, {c0}}};", "mov.b32 {d}, {t0};")
        return Link(lines, ("b32",), (("b16", "short"),), ("prmt.b32",))
    if (wide, narrow) == (32, 16):
        return Link(("mov.b32 {t0}, {s};", "mov.b32 {{{d}, {t1}}}, {t0};"), ("b32", "b16"))
    if (wide, narrow) == (16, 64):
        lines = ("mov.b32 {t0}, {{{s}, {c0}}};", "mov.b64 {d}, {{{t0}, {c1}}};")
        return Link(lines, ("b32",), (("b16", "short"), ("b32", "int")), ("prmt.b32",))
    lines = ("mov.b64 {{{t0}, {t1}}}, {s};", "xor.b32 {t0}, {t0}, {t1};", "mov.b32 {{{d}, {t2}}}, {t0};")
    return Link(lines, ("b32", "b32", "b16"), (), ("lop3.b32",))


_WORDS = {"prmt": "PRMT", "xor": "LOP3", "selp": "SEL", "setp": "SETP"}
_WIDE = (".b64", ".f64", ".s64")


def words(link: Link | None) -> dict[str, float]:
    """Kinds of SASS instructions that a link needs, as `sass.kind` names them, and how many: {"PRMT": 2}."""
    found: dict[str, float] = {}
    for line in link.lines if link else ():
        opcode = line.partition(".")[0]
        if opcode in _WORDS:
            wide = (
                opcode in ("selp", "setp")
                and any(each in line for each in _WIDE)
                and "setp.ne.f64" not in line
            )
            found[_WORDS[opcode]] = found.get(_WORDS[opcode], 0) + (2 if wide else 1)
    if link and "prmt.b32" in link.references and "PRMT" not in found:
        found["PRMT"] = 1  # two halves are put together
    return found
