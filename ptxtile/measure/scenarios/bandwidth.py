"""Bandwidth of loads and stores by level, width and stride; bank conflicts.

Lane after lane reads `width` bytes, `stride` such units apart. The steps of a turn read the units in the gaps between
the lanes, those of other 32-byte sectors first, then go on behind them, so that no address comes twice in a turn and
the footprint is small. What is loaded is summed up, so that no load is left out. Rates count the bytes that threads
asked for, not those that were moved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from ptxtile.measure.plan import Launch, Point
from ptxtile.measure.scenarios.recipe import Recipe

__all__ = ["recipes"]

_THREADS = 1024
_SECTOR = 32
_SUMS = frozenset(["IMAD", "IADD3", "VIADD", "LOP3", "PRMT", "MOV", "UMOV", "UIADD3", "R2UR"])
_STRIDES = (1, 2, 3, 4, 5, 8, 16, 17, 32)
_WHOLE: Mapping[str, Literal["", "mean", "slowest"]] = {"l1": "", "l2": "mean", "device": "slowest"}
_ACROSS = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True, slots=True)
class _Kind:
    """A load or store: its spelling after the state space, bytes a thread, registers."""

    suffix: str
    width: int
    registers: int

    @property
    def carrier(self) -> str:
        return "b64" if self.width // self.registers == 8 else "b32"


_B32 = _Kind("b32", 4, 1)
_WIDE = (_B32, _Kind("v2.b32", 8, 2), _Kind("v4.b32", 16, 4))
_ALL = (_Kind("u8", 1, 1), _Kind("u16", 2, 1), *_WIDE, _Kind("b64", 8, 1), _Kind("v2.b64", 16, 2))


def recipes() -> Iterator[Recipe]:
    """All points of these scenarios."""
    for kind in _WIDE:
        for stride in _STRIDES:
            yield _shared("ld", kind, stride)
            if stride in _ACROSS:
                yield _shared("st", kind, stride)
    for level in ("l1", "l2", "device"):
        for kind in _ALL:
            yield _global("ld", level, kind, 1)
        for stride in _ACROSS[1:]:
            yield _global("ld", level, _B32, stride)
    for level in ("l2", "device"):
        for kind in _WIDE:
            yield _global("st", level, kind, 1)
        for stride in _ACROSS[1:]:
            yield _global("st", level, _B32, stride)


def _places(kind: _Kind, stride: int, pitch: int, steps: int) -> list[int]:
    """Bytes from a thread's first unit to those of its steps, all different."""
    sectors = max(1, stride * kind.width // _SECTOR)
    inner = max(1, stride // sectors)
    found = []
    for step in range(steps):
        sector, rest = step % sectors, step // sectors
        found.append(sector * _SECTOR + rest % inner * kind.width + rest // inner * pitch)
    return found


def _access(opcode: str, form: str, kind: _Kind, place: int, address: str) -> list[str]:
    names = [f"%v{number}" for number in range(kind.registers)]
    value = f"{{{', '.join(names)}}}" if kind.registers > 1 else names[0]
    if opcode == "st":
        return [f"{form} [{address}+{place}], {value};"]
    lines = [f"{form} {value}, [{address}+{place}];"]
    for name in names:
        if kind.carrier == "b64":
            lines.append(f"mov.b64 {{%low, %high}}, {name};")
            lines += [f"mad.lo.u32 %acc, {half}, %thread, %acc;" for half in ("%low", "%high")]
        else:
            lines.append(f"mad.lo.u32 %acc, {name}, %thread, %acc;")
    return lines


def _declare(kind: _Kind) -> tuple[str, ...]:
    return (
        f".reg .{kind.carrier} %v<{kind.registers}>;",
        ".reg .u32 %low, %high, %spot;",
        ".reg .u64 %cell, %more;",
    )


def _fill(kind: _Kind) -> tuple[str, ...]:
    """What stores store."""
    convert = "cvt.u64.u32" if kind.carrier == "b64" else "mov.b32"
    return tuple(f"{convert} %v{number}, %thread;" for number in range(kind.registers))


def _shared(opcode: str, kind: _Kind, stride: int) -> Recipe:
    """Every warp at the same addresses: the banks see lanes of one warp at a time."""
    form = f"{opcode}.shared.{kind.suffix}"
    steps = 16 if kind.registers < 4 else 8
    places = [step * kind.width for step in range(steps)]
    return Recipe(
        Point(
            f"memory.conflicts.{opcode}.shared.{kind.suffix}",
            form,
            "stride",
            stride,
            "B",
            _THREADS * kind.width,
        ),
        Launch(1, _THREADS, shared=32 * kind.width * stride + places[-1] + 16),
        lambda turn: _access(opcode, form, kind, places[turn], "%spot"),
        {"LDS" if opcode == "ld" else "STS": 1},
        _SUMS,
        declare=_declare(kind),
        setup=(f"mad.lo.u32 %spot, %lane, {stride * kind.width}, %shared;", *_fill(kind)),
        turn=("add.u32 %spot, %spot, %zero;",),
        steps=(steps // 2, steps),
        trips=32,
    )


def _global(opcode: str, level: str, kind: _Kind, stride: int) -> Recipe:
    """Every SM in its own slab, which a cache holds, or which goes on from turn to turn."""
    cache = {"l1": ".ca", "l2": ".cg", "device": ".cg"}[level] if opcode == "ld" else ""
    form = f"{opcode}.global{cache}.{kind.suffix}"
    steps = 16 if kind.width < 16 else 8
    pitch = _THREADS * kind.width * stride
    places = _places(kind, stride, pitch, steps)
    trips = 64
    slab = pitch * -(-steps // stride)
    on = (f"add.u64 %cell, %cell, {slab};",)
    back = ("cvt.u64.u32 %more, %zero;", "add.u64 %cell, %cell, %more;")  # or the loads would not be repeated
    name = f"memory.bandwidth.{opcode}.{level}.{kind.suffix}"
    return Recipe(
        Point(name, form, "stride", stride, "B", _THREADS * kind.width, whole=_WHOLE[level]),
        Launch(0, _THREADS, field=slab * (trips if level == "device" else 1)),
        lambda turn: _access(opcode, form, kind, places[turn], "%cell"),
        {"LDG.E" if opcode == "ld" else "STG.E": 1},
        _SUMS,
        declare=_declare(kind),
        setup=(f"mad.wide.u32 %cell, %thread, {stride * kind.width}, %field;", *_fill(kind)),
        turned=on if level == "device" else back,
        steps=(steps // 2, steps),
        trips=trips,
    )
