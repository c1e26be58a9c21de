"""Where a tensor's elements are: registers of the executing thread, or a state space of memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

from ptxtile.ir.operand import Register, Symbol
from ptxtile.layout import ComposeLayout, TileLayout

Layout = Union[TileLayout, ComposeLayout]

# The `.space` of an instruction may be narrower or wider than the space a tensor was allocated in.
SPACES = {
    "": ("global", "shared", "local", "generic", "const", "param"),
    ".global": ("global",),
    ".shared": ("shared",),
    ".shared::cta": ("shared",),
    ".shared::cluster": ("shared",),
    ".local": ("local",),
    ".const": ("const",),
    ".param": ("param",),
    ".param::entry": ("param",),
}


@dataclass(frozen=True, slots=True, eq=False)
class Registers:
    """Registers of one thread: element `m` of the layout is registers[m]."""

    registers: tuple[Register, ...]

    space = "registers"
    alignment = 0


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """A stretch of a state space.

    space      "global", "shared", "local", "const", "param", "generic", or "tensor" (tensor memory of sm_100)
    base       the register or symbol of its first byte; a register holds 64 bits, but 32 for shared, local and tensor
    alignment  bytes: a power of two that divides the address of the first byte
    size       bytes, None where it is known at run time only
    """

    space: str
    base: Register | Symbol
    alignment: int
    size: int | None

    @property
    def address_bits(self) -> int:
        """Width of address arithmetic in this space."""
        return 32 if self.space in ("shared", "local", "tensor") else 64


Storage = Union[Registers, Memory]
