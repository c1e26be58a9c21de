"""The `atomic` chapter of `device_lanes.py`: what an atomic leaves behind, each thread at a place of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ptxtile import isa

_SCOPED = re.compile(r"\.(relaxed|acquire|release|acq_rel|gpu|cta|sys|cluster|L2::cache_hint|shared::\w+)\b")
_TAKE = {
    16: "mov.b32 {h1, h2}, r3;",
    32: "",
    64: "mov.b64 d5, {r3, r4}; mov.b64 {h1, h2, h3, h4}, d5;",
}


def spellings(target: str, version: str) -> Iterator[str]:
    """Every atom on global, shared or generic memory without order and scope."""
    for spelling in isa.forms("atom.*", target=target):
        if not _SCOPED.search(spelling) and isa.is_valid(spelling, target, version):
            yield spelling


def _operands(spelling: str) -> tuple[int, str, str] | None:
    """Bits in all, where the old value goes, and the operand; None of what is wider than 64 bits."""
    *_, kind = spelling.split(".")
    found = re.search(r"\.v([248])\.", spelling)
    count = int(found[1]) if found else 1
    lane = (
        16 if kind in ("f16", "bf16", "b16") else 64 if kind.endswith("64") else 128 if kind == "b128" else 32
    )
    if lane * count > 64:
        return None
    if count == 1:
        return lane, {16: "h5", 32: "r5", 64: "d4"}[lane], {16: "h1", 32: "r3", 64: "d5"}[lane]
    names = ("h5, h6, h7, h8", "h1, h2, h3, h4") if lane == 16 else ("r5, r6", "r3, r4")
    old, new = (", ".join(part.split(", ")[:count]) for part in names)
    return lane * count, f"{{{old}}}", f"{{{new}}}"


def texts(target: str, version: str) -> Iterator[str]:
    """A body for each: r1 and r2 are what is there before, r3 and r4 the operand, r5 and r6 what is there then."""
    for spelling in spellings(target, version):
        operands = _operands(spelling)
        if operands is None:
            continue
        bits, old, new = operands
        shared = ".shared." in spelling
        place = "r8" if shared else "d2"
        space = "shared" if shared else "global"
        lines = ["{ .reg .b16 h<9>;"]
        if shared:
            lines.append(".shared .align 16 .b8 slot[2048];")
            lines.append("mov.u32 r8, %tid.x; shl.b32 r8, r8, 3; mov.u32 r9, slot; add.u32 r8, r8, r9;")
        lines.append(
            f"st.{space}.v2.b32 [{place}], {{r1, r2}}; {_TAKE[64]} {_TAKE[16] if bits == 16 else ''}"
        )
        if ".cas." in spelling:
            # Half of the threads expect what is there.
            kind = f"b{bits}"
            there = {16: "mov.b32 {h3, h4}, r1;", 32: "mov.b32 r7, r1;", 64: "mov.b64 d1, {r1, r2};"}[bits]
            first = {16: "h3", 32: "r7", 64: "d1"}[bits]
            lines.append(f"{there} selp.{kind} {first}, {first}, {new}, p1;")
            lines.append(f"{spelling} {old}, [{place}], {first}, {new};")
        else:
            lines.append(f"{spelling} {old}, [{place}], {new};")
        lines.append(f"ld.{space}.v2.b32 {{r5, r6}}, [{place}]; }}")
        yield "\n".join(lines)
