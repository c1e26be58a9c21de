"""Logic, shifts and byte permutation (PTX ISA 9.7.8, 9.7.9.7): and or xor not cnot lop3 shf shl shr prmt."""

from __future__ import annotations

import numpy as np

from ptxtile.emulator.semantics import Array, Call, Outcome, value
from ptxtile.emulator.semantics.kinds import Unsigned, as_signed, as_unsigned, kinds


@value("and", "or", "xor")
def bitwise(call: Call, a: Array, b: Array) -> Array:
    """and, or, xor (9.7.8.1 to 9.7.8.3), of predicates too."""
    return {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[call.opcode](a, b)


@value("not")
def not_(call: Call, a: Array) -> Array:
    """not (9.7.8.4), of predicates too."""
    return np.invert(a)


@value("cnot")
def cnot(call: Call, a: Unsigned) -> Array:
    """cnot (9.7.8.5): 1 where a is 0, else 0."""
    bits: Unsigned = (a == 0).astype(a.dtype)
    return bits


@value("lop3")
def lop3(
    call: Call, a: Unsigned, b: Unsigned, c: Unsigned, table: Unsigned, q: Array | None = None
) -> Outcome:
    """lop3 (9.7.8.6): bit i of the table is the result where a, b, c have the bits of i.

    With .and or .or the second destination is (d != 0) combined with q.
    """
    result = np.zeros_like(a)
    numbers = table.astype(np.uint32)
    for index in range(8):
        wanted = np.where(
            (numbers >> np.uint32(index)) & np.uint32(1), a.dtype.type(np.iinfo(a.dtype).max), 0
        )
        term = a if index & 4 else ~a
        term = term & (b if index & 2 else ~b)
        term = term & (c if index & 1 else ~c)
        result = result | (term & wanted.astype(a.dtype))
    if q is None:
        return result
    some = result != 0
    return result, (some & q.astype(np.bool_)) if call.has(".and") else (some | q.astype(np.bool_))


@value("shl", "shr")
def shift(call: Call, a: Unsigned, b: Unsigned) -> Array:
    """shl, shr (9.7.8.8, 9.7.8.9): amounts beyond the width count as the width."""
    kind = kinds(call)[0]
    by = np.minimum(b, b.dtype.type(kind.bits))
    last = a.dtype.type(kind.bits - 1)
    near = np.minimum(by.astype(a.dtype), last)
    if call.opcode == "shr" and kind.family == "s":
        return as_unsigned(as_signed(a) >> as_signed(near))
    moved = a << near if call.opcode == "shl" else a >> near
    return np.where(by == kind.bits, a.dtype.type(0), moved)


@value("shf")
def funnel(call: Call, a: Unsigned, b: Unsigned, c: Unsigned) -> Array:
    """shf (9.7.8.7): the upper word of {b, a} shifted left or the lower one right; .clamp at 32, .wrap modulo 32."""
    by = np.minimum(c, np.uint32(32)) if call.has(".clamp") else c & np.uint32(31)
    pair = (b.astype(np.uint64) << np.uint64(32)) | a
    if call.has(".l"):
        return ((pair << by.astype(np.uint64)) >> np.uint64(32)).astype(np.uint32)
    return (pair >> by.astype(np.uint64)).astype(np.uint32)


def _selectors(call: Call, c: Unsigned) -> list[np.ndarray]:
    """The four selector nibbles, lowest byte first."""
    low = (c & np.uint32(3)).astype(np.int64)
    modes = {
        ".f4e": [low + i for i in range(4)],
        ".b4e": [(low - i) & 7 for i in range(4)],
        ".rc8": [low] * 4,
        ".ecl": [np.maximum(low, i) for i in range(4)],
        ".ecr": [np.minimum(low, i) for i in range(4)],
        ".rc16": [(low & 1) * 2 + (i & 1) for i in range(4)],
    }
    for mode, selectors in modes.items():
        if call.has(mode):
            return selectors
    return [((c >> np.uint32(4 * i)) & np.uint32(15)).astype(np.int64) for i in range(4)]


@value("prmt")
def permute(call: Call, a: Unsigned, b: Unsigned, c: Unsigned) -> Array:
    """prmt (9.7.9.7): bytes of {b, a} by nibbles of c, whose top bit replicates the byte's sign."""
    pair = (b.astype(np.uint64) << np.uint64(32)) | a
    result = np.zeros_like(a)
    for position, selector in enumerate(_selectors(call, c)):
        byte = (pair >> ((selector & 7) * 8).astype(np.uint64)) & np.uint64(0xFF)
        sign = np.where(byte & np.uint64(0x80), np.uint64(0xFF), np.uint64(0))
        byte = np.where(selector & 8, sign, byte)
        result |= (byte << np.uint64(8 * position)).astype(np.uint32)
    return result
