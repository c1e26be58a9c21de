"""How many instructions an SM issues in a clock: mixes of instructions of one pipe and of several, by warps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ptxtile.measure.plan import Launch, Point
from ptxtile.measure.scenarios.recipe import Recipe
from ptxtile.measure.values import offset

__all__ = ["recipes"]

_WARPS = (1, 2, 3, 4, 8, 16, 32)
_CHAINS = 4


@dataclass(frozen=True, slots=True)
class _Part:
    """One instruction: its statement on chain `{x}`, which is all that it reads, so that register banks do not meet."""

    name: str
    line: str
    carrier: str
    pattern: str
    sass: str


_PARTS = {
    part.name: part
    for part in (
        _Part("fma.f32", "fma.rn.f32 {x}, {x}, {x}, {x};", "f32", "float", "FFMA"),
        _Part("fma.f16x2", "fma.rn.f16x2 {x}, {x}, {x}, {x};", "b32", "half", "HFMA2"),
        _Part("fma.f64", "fma.rn.f64 {x}, {x}, {x}, {x};", "f64", "double", "DFMA"),
        _Part("mad.u32", "mad.lo.u32 {x}, {x}, {x}, {x};", "b32", "int", "IMAD"),
        _Part("prmt", "prmt.b32 {x}, {x}, {x}, {x};", "b32", "identity", "PRMT"),
        _Part("ex2", "ex2.approx.ftz.f32 {x}, {x};", "f32", "float", "MUFU.EX2"),
    )
}
_MIXES = (
    ("fma.f32",), ("fma.f16x2",), ("prmt",), ("mad.u32",), ("fma.f32", "prmt"), ("fma.f32", "mad.u32"),
    ("fma.f32", "fma.f16x2"), ("fma.f32", "fma.f64"), ("fma.f32", "ex2"), ("fma.f32", "prmt", "fma.f16x2"),
)  # fmt: skip


def recipes() -> Iterator[Recipe]:
    """All points of these scenarios."""
    for mix in _MIXES:
        for warps in _WARPS:
            yield _mixed([_PARTS[name] for name in mix], warps)


def _mixed(parts: list[_Part], warps: int) -> Recipe:
    declare, setup, finish = [".reg .u64 %mine;"], ["mad.wide.u32 %mine, %thread, 16, %in;"], []
    for number, part in enumerate(parts):
        declare.append(f".reg .{part.carrier} %p{number}_<{_CHAINS}>;")
        for register in range(_CHAINS):
            name = f"%p{number}_{register}"
            setup.append(f"ld.global.{part.carrier} {name}, [%mine+{offset(part.pattern, register)}];")
            finish.append(f"@%never st.global.{part.carrier} [%mine], {name};")

    def step(turn: int) -> list[str]:
        return [
            part.line.format(
                x=f"%p{number}_{chain}", a=f"%p{number}_{_CHAINS}", b=f"%p{number}_{_CHAINS + 1}"
            )
            for chain in range(_CHAINS)
            for number, part in enumerate(parts)
        ]

    name = "+".join(part.name for part in parts)
    form = parts[0].line.partition(" ")[0]
    return Recipe(
        Point(f"issue.{name}", form, "warps", warps, "instructions", _CHAINS * len(parts) * warps),
        Launch(1, 32 * warps),
        step,
        {part.sass: _CHAINS for part in parts},
        declare=tuple(declare),
        setup=tuple(setup),
        finish=tuple(finish),
        steps=(12, 36),
    )
