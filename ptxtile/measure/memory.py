"""Chains through memory: the pointer chase.

What a load returns is where the next one reads: its low 64, 32, 16 or 8 bits, whichever the load takes. Loads that a
cache of the SM answers chase one cell, which holds its own address. Those that go to the second-level cache follow a
ring through many of its lines, since these lie at different distances; there are three rings, since the bits that a
load takes must tell the lines apart. Rings lie on boundaries of their size, so that the other bits are the base's own.
Cells in shared memory are four words that each hold the cell's address.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptxtile.measure.links import DECLARED, bits
from ptxtile.measure.values import offset

if TYPE_CHECKING:
    from ptxtile.isa import Form, Operand, Signature

__all__ = [
    "CELLS",
    "DECLARATIONS",
    "SPACES",
    "address",
    "cells",
    "chased",
    "is_shared",
    "next_address",
    "opening",
    "references",
    "ring_of",
]

SPACES = ("", ".global", ".shared", ".shared::cta", ".shared::cluster")
"""State spaces of addresses that are chased; "" is generic, and reads global memory."""

CELLS = 1 << 23
"""Bytes of global memory that a kernel gets for cells, from a boundary of as many."""

_RINGED = 1 << 19  # bytes that hold the single cell and the rings
# 16 bytes of each thread's own in each of several turns: of 1024 threads, or of a warp on each of 256 SMs
_OWN, _OWN_STEP, _OWN_STEPS = 1 << 22, 1 << 17, 32


@dataclass(frozen=True, slots=True)
class _Ring:
    """Lines of a chase: where the first lies in the cells, how many there are (a power of two), their distance."""

    place: int
    lines: int
    distance: int


_ALONE = _Ring(0, 1, 0)
_RINGS = {8: _Ring(1 << 16, 256, 256), 16: _Ring(2 << 16, 512, 128), 32: _Ring(1 << 18, 2048, 128)}


def cells(address: int) -> bytes:
    """What is at the beginning of the cells, which begin at an address: the single cell, then the rings."""
    image = bytearray(_RINGED)
    image[:16] = struct.pack("<2Q", address, address)
    for ring in _RINGS.values():
        for line in range(ring.lines):
            after = (line * 1664525 + 1013904223) % ring.lines  # which visits every line of a power of two
            target = address + ring.place + after * ring.distance
            where = ring.place + line * ring.distance
            image[where : where + 16] = struct.pack("<2Q", target, target)
    return bytes(image)


def _width(result: Operand) -> int:
    return 8 if result.type in (".b8", ".u8", ".s8") else 16 if bits(result.carrier or "") == 16 else 32


def ring_of(form: Form, result: Operand) -> _Ring:
    """The ring that a form's chase follows: of one cell, if a cache of the SM answers."""
    words = form.spelling.split(".")
    far = {"cg", "cv", "lu"}.intersection(words) and "nc" not in words
    strong = {"relaxed", "acquire", "volatile", "mmio"}.intersection(words) and "cta" not in words
    return _RINGS[_width(result)] if far or strong else _ALONE


DECLARATIONS = """.shared .align 16 .b8 room[16400];
.reg .u64 %cells, %cell;
.reg .b32 %room, %spot, %low, %high, %acc, %none;
"""

# %cells and %room are the chased cells, the same for all threads; %cell and %spot are 16 bytes for each thread alone.
_OPENING = """ld.param.u64 %cells, [cells];
mov.u32 %spot, %ntid.x;
mad.lo.u32 %spot, %block, %spot, %thread;
mad.wide.u32 %cell, %spot, 16, %cells;
add.u64 %cell, %cell, {own};
add.u64 %cells, %cells, {place};
mov.b64 {{%low, %high}}, %cells;
mul.lo.u32 %spot, %block, {apart};
and.b32 %spot, %spot, {last};
mad.wide.u32 %cells, %spot, {distance}, %cells;
mov.u32 %room, room;
mad.lo.u32 %spot, %thread, 16, %room;
add.u32 %spot, %spot, 16;
st.shared.v4.b32 [%room], {{%room, %room, %room, %room}};
st.shared.v4.b32 [%spot], {{0, 0, 0, 0}};
mov.b32 %acc, 0;
ld.global.b32 %none, [%in+{zero}];
bar.sync 0;
"""


def opening(ring: _Ring) -> str:
    """Statements that find the cells; the chase of a block begins at a line of a ring that is not its neighbours'."""
    return _OPENING.format(
        own=_OWN,
        place=ring.place,
        apart=ring.lines // 128 | 1,
        last=ring.lines - 1,
        distance=ring.distance,
        zero=offset("zero", 0),
    )


def is_shared(space: str | None) -> bool:
    """Whether addresses of a space are 32 bits of shared memory."""
    return (space or "").startswith(".shared")


def address(operand: Operand, turn: int) -> str:
    """What stands for an address that is no link of the chain: 16 bytes of the thread's own, in global memory others
    in other turns, which lie at different distances."""
    return "[%spot]" if is_shared(operand.space) else f"[%cell+{turn % _OWN_STEPS * _OWN_STEP}]"


def chased(result: Operand, register: str, space: str | None) -> str:
    """The address of a load of the chain: of a lone byte, that of the address's second byte."""
    return (
        f"[{register}+1]"
        if _width(result) == 8 and result.length == 1 and not is_shared(space)
        else f"[{register}]"
    )


def references(signature: Signature, *, transposed: bool = False) -> tuple[str, ...]:
    """Spellings whose latency the chase adds: a byte permutation where a load gives less than a word, a logical
    operation where it gives a matrix's columns."""
    if transposed:
        return ("lop3.b32",)
    result = next(each for each in signature.operands if each.role == "out")
    if bits(result.carrier or "") != 16:
        return ()
    return ("prmt.b32",) if result.length == 1 else (DECLARED,)  # of a vector, unpacking comes on top


def next_address(
    operand: Operand,
    result: Operand,
    names: Sequence[str],
    into: str,
    temporary: Callable[[str], str],
    *,
    transposed: bool = False,
) -> list[str]:
    """Statements from the registers of a load to the next address.

    Args:
        operand: the address, for its space.
        result: what is loaded, for its type.
        names: its registers.
        into: the register of the address.
        temporary: a register of a carrier.
        transposed: whether a matrix is transposed on the way.
    """
    shared, head, rest = is_shared(operand.space), names[0], list(names[1:])
    if _width(result) == 8 and len(names) > 1 and not shared:
        head, rest = names[1], [names[0], *names[2:]]  # the address's second byte, which tells lines apart
    carrier = result.carrier or "b32"
    lines: list[str] = []
    if bits(carrier) == 128:
        first, second = temporary("b64"), temporary("b64")
        lines.append(f"mov.b128 {{{first}, {second}}}, {head};")
        head, carrier, rest = first, "b64", [second, *rest]
    base = "%room" if shared else "%low"
    low = temporary("b32")
    if bits(carrier) == 64:
        high = temporary("b32")
        used = f"mad.lo.u32 %acc, {high}, %thread, %acc;" if shared else f"mov.b64 {into}, {{{low}, {high}}};"
        lines += [f"mov.b64 {{{low}, {high}}}, {head};", used]
    elif bits(carrier) == 32:
        lines.append(f"mov.b32 {low}, {head};")
    else:
        pick = "0x7610" if _width(result) == 16 else "0x7650" if shared else "0x7604"
        lines += [f"cvt.u32.u16 {low}, {head};", f"prmt.b32 {low}, {low}, {base}, {pick};"]
    if transposed:
        # The address comes in halves of different cells: the load is waited for, and the address is known.
        lines += [f"and.b32 {low}, {low}, %none;", f"or.b32 {into}, {low}, %room;"]
    elif shared:
        lines.append(f"mov.b32 {into}, {low};")
    elif bits(carrier) != 64:
        lines.append(f"mov.b64 {into}, {{{low}, %high}};")
    return [*lines, *_kept(rest, carrier, temporary)]


def _kept(rest: Sequence[str], carrier: str, temporary: Callable[[str], str]) -> list[str]:
    """Statements that read the other elements, which would not be loaded otherwise; multiply-adds do not merge."""
    lines = []
    for name in rest:
        low = temporary("b32")
        words = [low]
        if name.startswith("%b64") or bits(carrier) == 64:
            words.append(temporary("b32"))
            lines.append(f"mov.b64 {{{', '.join(words)}}}, {name};")
        elif bits(carrier) == 16:
            lines.append(f"cvt.u32.u16 {low}, {name};")
        else:
            lines.append(f"mov.b32 {low}, {name};")
        lines += [f"mad.lo.u32 %acc, {word}, %thread, %acc;" for word in words]
    return lines
