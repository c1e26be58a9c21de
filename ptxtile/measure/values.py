"""What the operands of a measured instruction hold: 16-byte patterns, read from memory so that nothing folds.

Values are chosen to keep a chain where it began: ones for floating point (1·1, 1/1, √1 are 1, so that no slow path
of a division or a root is taken), small integers otherwise.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptxtile.isa import Operand

__all__ = ["LANES", "ROTATION", "STRIDE", "image", "immediate", "offset", "pattern_of", "rotation"]

_COPIES = 8
"""Places in the image with one pattern; registers that are read from different places cannot be merged."""

ROTATION = 4
"""How many different registers stand in turn at an operand that is no link of the chain."""

LANES = 1024
STRIDE = 16
"""Bytes a thread reads of a pattern; thread t reads at 16 · t."""

_PATTERNS = {
    "int": struct.pack("<4I", 3, 3, 3, 3),
    "long": struct.pack("<2Q", 3, 3),
    "short": struct.pack("<8H", *[3] * 8),
    "byte": bytes([3] * 16),
    "half": struct.pack("<8H", *[0x3C00] * 8),
    "brain": struct.pack("<8H", *[0x3F80] * 8),
    "float": struct.pack("<4f", *[1.0] * 4),
    "double": struct.pack("<2d", 1.0, 1.0),
    "e4m3": bytes([0x38] * 16),
    "e5m2": bytes([0x3C] * 16),
    "identity": struct.pack("<4I", *[0x3210] * 4),
    "zero": bytes(16),
}
_ORDER = tuple(_PATTERNS)
_BY_TYPE = {
    ".f16": "half", ".f16x2": "half", ".bf16": "brain", ".bf16x2": "brain", ".f32": "float", ".tf32": "float",
    ".f32x2": "float", ".f64": "double", ".e4m3x2": "e4m3", ".e4m3x4": "e4m3", ".e5m2x2": "e5m2", ".e5m2x4": "e5m2",
    ".b128": "int", ".u64": "long", ".s64": "long", ".b64": "long",
    ".u16": "short", ".s16": "short", ".b16": "short", ".u16x2": "short", ".s16x2": "short",
    ".u8": "byte", ".s8": "byte", ".b8": "byte", ".u8x4": "byte", ".s8x4": "byte", ".pred": "int",
}  # fmt: skip


def image() -> bytes:
    """The memory that kernels read their operands from: for each pattern, copies for LANES threads."""
    return b"".join(_PATTERNS[name] * (LANES * _COPIES) for name in _ORDER)


def offset(pattern: str, number: int, size: int = STRIDE) -> int:
    """Where value `number` of a pattern lies in the image, in bytes; a value has `size` bytes, 16 at most."""
    copy, within = number % _COPIES, number // _COPIES * size % STRIDE
    return (_ORDER.index(pattern) * _COPIES + copy) * LANES * STRIDE + within


_SHUFFLE = {"b": "1", "c": "31"}


def pattern_of(type_name: str | None) -> str:
    """The pattern for an operand of a PTX type."""
    return _BY_TYPE.get(type_name or "", "int")


def rotation(carrier: str, registers: int) -> int:
    """How many registers take turns: fewer where registers are scarce, which predicates and fragments are."""
    if registers > 2:
        return 1
    return 2 if carrier in ("pred", "b128") else ROTATION


def immediate(operand: Operand, opcode: str) -> str | None:
    """The literal for an operand that takes no register, or that programs write as one; None for the others.

    Membership masks are literals in real programs, and a literal of all lanes saves the warp a check. So are the lane
    and the clamp of a shuffle, which from registers takes twice as long.
    """
    if opcode == "shfl" and operand.name in _SHUFFLE:
        return _SHUFFLE[operand.name]
    if operand.name == "membermask" and operand.immediate:
        return "0xffffffff"
    if operand.register:
        return None
    if operand.name == "immLut":
        return "0x96"
    if operand.name == "selector":
        return "0"  # which threads hold the metadata of a sparse matrix; the first ones, in every shape
    if operand.choices:
        return str(operand.choices[0])
    low, high = operand.bounds or (0, 1)
    return str(max(low, min(1, high)))
