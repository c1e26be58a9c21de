"""wgmma: operations per clock and SM, and the latency of one, by shape, type, and where A lies.

A and B lie in shared memory in the layout of 128-byte swizzle, K-major; what they hold does not matter. A turn is a
fence, its wgmmas on the same accumulators, a commit and a wait, as in a kernel's main loop; a latency has all of them
around each. Operations count 2·m·n·k, the zeros of sparse forms too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import ptxtile as pt
from ptxtile.measure.plan import Launch, Point
from ptxtile.measure.scenarios.recipe import Recipe

if TYPE_CHECKING:
    from ptxtile.isa import Signature

__all__ = ["recipes"]

_WIDTHS = (8, 16, 32, 64, 96, 128, 192, 256)
_FEW = (64, 128, 256)
# types after the shape, K of the dense form, SASS
_TYPES = (
    ("f32.f16.f16", 16, "HGMMA"),
    ("f16.f16.f16", 16, "HGMMA"),
    ("f32.bf16.bf16", 16, "HGMMA"),
    ("f32.tf32.tf32", 8, "HGMMA"),
    ("f32.e4m3.e4m3", 32, "QGMMA"),
    ("f32.e5m2.e5m2", 32, "QGMMA"),
    ("s32.s8.s8", 32, "IGMMA"),
    ("s32.b1.b1.and.popc", 256, "BGMMA"),
)
_OPEN = "wgmma.fence.sync.aligned;"
_CLOSE = ("wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;")
_HELPERS = frozenset(
    "R2UR UMOV MOV IMAD UIADD3 IADD3 WARPGROUP WARPSYNC NOP UP2UR UPLOP3 BAR ULDC CS2R PLOP3 VIADD".split()
)
_A, _TILE = 1 << 13, 1 << 15  # bytes of A for a warpgroup, and of B
_SWIZZLED = 1 << 62 | 64 << 32 | 1 << 16  # a descriptor without its address


def recipes() -> Iterator[Recipe]:
    """All points of these scenarios."""
    for types, k, sass in _TYPES:
        for place in ("shared", "registers"):
            for n in _WIDTHS:
                yield _wgmma(types, sass, place, n, k, sparse=False, alone=False)
            for n in _FEW:
                yield _wgmma(types, sass, place, n, k, sparse=False, alone=True)
                if "b1" not in types:
                    yield _wgmma(types, sass, place, n, 2 * k, sparse=True, alone=False)


def _signature(form: str, place: str) -> Signature:
    wanted = "a_desc" if place == "shared" else "a"
    found = pt.validate(form).signatures
    return next(each for each in found if any(operand.name == wanted for operand in each.operands))


def _operands(signature: Signature, turn: int) -> str:
    """The operands of one wgmma, those of step `turn` of a tile of four."""
    written = []
    for operand in signature.operands:
        names = {"d": "d", "a": "a"}.get(operand.name or "")
        if names:
            written.append(f"{{{', '.join(f'%{names}{number}' for number in range(operand.length))}}}")
        elif operand.name in ("a_desc", "b_desc"):
            written.append(f"%{operand.name[0]}desc{turn % 4}")
        elif operand.name == "sp_meta":
            written.append("%meta")
        else:
            written.append(
                {"scale_d": "%on", "imm_scale_a": "1", "imm_scale_b": "1"}.get(operand.name or "", "0")
            )
    return ", ".join(written)


def _wgmma(types: str, sass: str, place: str, n: int, k: int, *, sparse: bool, alone: bool) -> Recipe:
    form = f"wgmma.mma_async{'.sp' * sparse}.sync.aligned.m64n{n}k{k}.{types}"
    signature = _signature(form, place)
    wide = next(operand for operand in signature.operands if operand.name == "d")
    groups = 1 if alone else 2
    name = f"wgmma.{'latency' if alone else 'sparse' if sparse else 'dense'}.{place}.{types}"
    amount = 1 if alone else 2 * 64 * n * k * groups

    def step(turn: int) -> list[str]:
        line = f"{form} {_operands(signature, turn)};"
        return [_OPEN, line, *_CLOSE] if alone else [line]

    carrier = wide.carrier or "b32"
    return Recipe(
        Point(name, form, "n", n, "cycles" if alone else "FLOP", amount),
        Launch(1, 128 * groups, shared=_TILE + 2 * _A),
        step,
        {sass: 1},
        _HELPERS,
        declare=(
            f".reg .{carrier} %d<{wide.length}>;", ".reg .b32 %a<4>, %meta, %low;", ".reg .pred %on;",
            ".reg .u64 %adesc<4>, %bdesc<4>, %wide;",
        ),
        setup=_setup(carrier, wide.length),
        turn=() if alone else (_OPEN,),
        turned=() if alone else _CLOSE,
        finish=tuple(f"@%never st.global.{carrier} [%out], %d{number};" for number in range(wide.length)),
        steps=(4, 12),
    )  # fmt: skip


def _setup(carrier: str, length: int) -> tuple[str, ...]:
    """Descriptors, a fragment of A, accumulators of zeros that the assembler does not know of."""
    zero = "cvt.rn.f32.u32 %d{}, %zero;" if carrier == "f32" else "mov.b32 %d{}, %zero;"
    lines = [
        "setp.eq.u32 %on, %zero, 0;", "mov.b32 %meta, 0x44444444;", "shr.u32 %low, %thread, 7;",
        f"mad.lo.u32 %low, %low, {_A}, %shared;", f"add.u32 %low, %low, {_TILE};",
    ]  # fmt: skip
    for letter, address in (("a", "%low"), ("b", "%shared")):
        lines += [
            f"cvt.u64.u32 %wide, {address};", "and.b64 %wide, %wide, 0x3ffff;", "shr.u64 %wide, %wide, 4;",
            f"or.b64 %wide, %wide, {_SWIZZLED};",
        ]  # fmt: skip
        lines += [f"add.u64 %{letter}desc{number}, %wide, {2 * number};" for number in range(4)]
    lines += [f"mov.b32 %a{number}, %zero;" for number in range(4)]
    return (*lines, *(zero.format(number) for number in range(length)))
