"""Chains through memory: the pointer chase.

Every cell of the chase holds its own address, so that what a load returns is where the next one reads: its low 64,
32, 16 or 8 bits, whichever the load takes. Cells in global memory lie on a boundary of 64 KiB, so that bits which
the load does not take are the base's own. Cells in shared memory are four words that each hold the cell's address.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ptxtile.measure.links import DECLARED, bits

if TYPE_CHECKING:
    from ptxtile.isa import Operand, Signature

__all__ = ["CELLS", "DECLARATIONS", "OPENING", "SPACES", "address", "is_shared", "next_address", "references"]

SPACES = ("", ".global", ".shared", ".shared::cta", ".shared::cluster")
"""State spaces of addresses that are chased; "" is generic, and reads global memory."""

CELLS = 1 << 18
"""Bytes of global memory that a kernel gets for cells, from a boundary of 64 KiB."""

DECLARATIONS = """.shared .align 16 .b8 room[16400];
.reg .u64 %cells, %cell;
.reg .b32 %room, %spot, %low, %high, %acc;
"""

# %cells and %room are the chased cells, the same for all threads; %cell and %spot are 16 bytes for each thread alone.
OPENING = """ld.param.u64 %cells, [cells];
mad.wide.u32 %cell, %thread, 16, %cells;
add.u64 %cell, %cell, 65536;
mov.b64 {%low, %high}, %cells;
mov.u32 %room, room;
mad.lo.u32 %spot, %thread, 16, %room;
add.u32 %spot, %spot, 16;
st.shared.v4.b32 [%room], {%room, %room, %room, %room};
st.shared.v4.b32 [%spot], {0, 0, 0, 0};
mov.b32 %acc, 0;
bar.sync 0;
"""


def is_shared(space: str | None) -> bool:
    """Whether addresses of a space are 32 bits of shared memory."""
    return (space or "").startswith(".shared")


def address(operand: Operand) -> str:
    """What stands for an address that is no link of the chain: the thread's own 16 bytes."""
    return "[%spot]" if is_shared(operand.space) else "[%cell]"


def references(signature: Signature) -> tuple[str, ...]:
    """Spellings whose latency the chase adds: a byte permutation where a load gives less than a word."""
    result = next(each for each in signature.operands if each.role == "out")
    if bits(result.carrier or "") != 16:
        return ()
    return ("prmt.b32",) if result.length == 1 else (DECLARED,)  # of a vector, unpacking comes on top


def next_address(
    operand: Operand, result: Operand, names: Sequence[str], into: str, temporary: Callable[[str], str]
) -> list[str]:
    """Statements from the registers of a load to the next address.

    Args:
        operand: the address, for its space.
        result: what is loaded, for its type.
        names: its registers.
        into: the register of the address.
        temporary: a register of a carrier.
    """
    shared, head, rest = is_shared(operand.space), names[0], list(names[1:])
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
        lines.append(f"mov.b64 {{{low}, {high}}}, {head};")
        lines.append(
            f"mad.lo.u32 %acc, {high}, %thread, %acc;" if shared else f"mov.b64 {into}, {{{low}, {high}}};"
        )
    elif bits(carrier) == 32:
        lines.append(f"mov.b32 {low}, {head};")
    else:
        byte = (result.type or "").endswith("8")
        lines += [
            f"cvt.u32.u16 {low}, {head};",
            f"prmt.b32 {low}, {low}, {base}, {'0x7650' if byte else '0x7610'};",
        ]
    if shared:
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
