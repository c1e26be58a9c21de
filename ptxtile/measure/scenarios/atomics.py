"""Atomics: operations per clock and SM, by how many threads share an address.

`threads an address` goes from 1 (each its own) through 32 (one address a warp) and 1024 (one a block) to all threads of
all blocks. Global atomics run on every SM at once, shared ones on one.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxtile.measure.plan import Launch, Point
from ptxtile.measure.scenarios.recipe import Recipe

__all__ = ["EVERYWHERE", "recipes"]

EVERYWHERE = 1 << 20
"""Threads an address where all threads of the device share one; there are fewer of them."""

_THREADS = 1024
_STEPS = 16
_TURNS = 16
_LINE = 128
_MOST = 1 << 17

_HELPERS = frozenset(
    "IMAD IADD3 VIADD LOP3 MOV UMOV UIADD3 R2UR PRMT ISETP BRA BSSY BSYNC SHF LDS FADD HADD2 HFMA2 SEL CS2R NOP".split()
)
_BOTH = (1, 2, 4, 8, 16, 32, _THREADS)
_FEW = (1, 32, _THREADS)
_Row = tuple[str, str, tuple[int, ...], str]  # spelling, SASS, points, carrier
_SHARED: tuple[_Row, ...] = (
    ("atom.shared.add.u32", "ATOMS", _BOTH, "b32"),
    ("atom.shared.cas.b32", "ATOMS", _BOTH, "b32"),
    ("atom.shared.exch.b32", "ATOMS", _FEW, "b32"),
    ("atom.shared.max.s32", "ATOMS", _FEW, "b32"),
    ("atom.shared.add.u64", "ATOMS", _FEW, "b64"),
    ("atom.shared.add.f32", "ATOMS", _FEW, "f32"),
    ("red.shared.add.u32", "ATOMS", _BOTH, "b32"),
)
_GLOBAL: tuple[_Row, ...] = (
    ("atom.global.add.u32", "ATOMG", (*_BOTH, EVERYWHERE), "b32"),
    ("atom.global.cas.b32", "ATOMG", (*_BOTH, EVERYWHERE), "b32"),
    ("atom.global.exch.b32", "ATOMG", (*_FEW, EVERYWHERE), "b32"),
    ("atom.global.add.u64", "ATOMG", (*_FEW, EVERYWHERE), "b64"),
    ("atom.global.add.f32", "ATOMG", (*_FEW, EVERYWHERE), "f32"),
    ("red.global.add.u32", "RED", (*_BOTH, EVERYWHERE), "b32"),
    ("red.global.add.f32", "RED", (*_FEW, EVERYWHERE), "f32"),
    ("red.global.add.f64", "RED", (*_FEW, EVERYWHERE), "f64"),
    ("red.global.add.noftz.f16x2", "RED", (*_FEW, EVERYWHERE), "b32"),
    ("red.global.add.noftz.bf16x2", "RED", (*_FEW, EVERYWHERE), "b32"),
)
_BITS = {"b32": 32, "f32": 32, "b64": 64, "f64": 64}


def recipes() -> Iterator[Recipe]:
    """All points of these scenarios."""
    for form, sass, points, carrier in _SHARED:
        for sharing in points:
            yield _atomic(
                form, sass, sharing, carrier, Launch(1, _THREADS, shared=_STEPS * _span(carrier, sharing))
            )
    for form, sass, points, carrier in _GLOBAL:
        for sharing in points:
            yield _atomic(form, sass, sharing, carrier, Launch(0, _THREADS, field=_field(carrier, sharing)))


def _span(carrier: str, sharing: int) -> int:
    """Bytes of a block's addresses in a step: lines without gaps, which all parts of the cache share evenly."""
    return max(_LINE, _THREADS * _BITS[carrier] // 8 // sharing)


def _moved(carrier: str, sharing: int) -> tuple[str, ...]:
    """The addresses of the next turn."""
    turns = _TURNS if sharing == _THREADS else _moves(carrier, sharing)
    step = _LINE if sharing == _THREADS else _STEPS * _span(carrier, sharing)
    return (
        f"add.u32 %move, %move, {step};",
        f"and.b32 %move, %move, {turns * step - 1};",
        "cvt.u64.u32 %cell, %move;",
        "add.u64 %cell, %cell, %first;",
    )


def _field(carrier: str, sharing: int) -> int:
    """Bytes of global memory of a block. A block with one address moves on to the next line from turn to turn."""
    if sharing >= _THREADS:
        return _TURNS * _LINE
    return _moves(carrier, sharing) * _STEPS * _span(carrier, sharing)


def _moves(carrier: str, sharing: int) -> int:
    """Turns after which a block begins again: all blocks together stay in the second-level cache. A power of two."""
    return max(1, min(_TURNS, _MOST // (_STEPS * _span(carrier, sharing))))


def _setup(sharing: int, carrier: str, launch: Launch) -> tuple[str, ...]:
    """The address of a thread, and what it adds."""
    size = _BITS[carrier] // 8
    group = f"shr.u32 %index, %thread, {sharing.bit_length() - 1};"
    if sharing >= _THREADS:
        group = "and.b32 %index, %thread, %zero;"
    place = f"mad.lo.u32 %spot, %index, {size}, %shared;"
    if not launch.shared:
        place = f"mad.wide.u32 %cell, %index, {size}, %cell;"
    base = "ld.param.u64 %cell, [field];" if sharing == EVERYWHERE else "mov.u64 %cell, %field;"
    return (
        base,
        group,
        place,
        f"cvt{'.rn' if carrier[0] == 'f' else ''}.{carrier.replace('b', 'u')}.u32 %one, %thread;",
        "mov.u64 %first, %cell;",
        "mov.u32 %move, 0;",
    )


def _atomic(form: str, sass: str, sharing: int, carrier: str, launch: Launch) -> Recipe:
    """One atomic a step, at an address that run time alone knows, so that the assembler combines no lanes."""

    def step(turn: int) -> list[str]:
        place = turn * _span(carrier, sharing) if sharing < _THREADS else 0
        where = f"[{'%spot' if launch.shared else '%cell'}+{place}]"
        operands = f"{where}, %one, %one" if ".cas" in form else f"{where}, %one"
        if form.startswith("red"):
            return [f"{form} {operands};"]
        return [f"{form} %old, {operands};", *_used(carrier)]

    return Recipe(
        Point(
            f"atomics.{form}",
            form,
            "threads an address",
            sharing,
            "atomics",
            _THREADS,
            whole="" if launch.shared else "mean",
        ),
        launch,
        step,
        {sass: 1},
        _HELPERS,
        declare=(
            f".reg .{carrier} %one, %old;",
            ".reg .u32 %index, %spot, %low, %high, %move;",
            ".reg .u64 %cell, %first;",
        ),
        setup=_setup(sharing, carrier, launch),
        steps=(4, _STEPS),
        turned=() if launch.shared or sharing == EVERYWHERE else _moved(carrier, sharing),
        trips=4 if sharing == EVERYWHERE else _TURNS,
    )


def _used(carrier: str) -> list[str]:
    """Statements that use what an atomic returns, which would not be returned otherwise."""
    if carrier == "b64":
        return ["mov.b64 {%low, %high}, %old;", "mad.lo.u32 %acc, %low, %thread, %acc;"]
    return ["mov.b32 %low, %old;", "mad.lo.u32 %acc, %low, %thread, %acc;"]
