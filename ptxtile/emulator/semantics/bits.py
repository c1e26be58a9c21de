"""Bit counting, fields and byte dot products (PTX ISA 9.7.1.14 to 9.7.1.25).

popc clz bfind fns brev bfe bfi bmsk szext dp4a dp2a. The 32-bit field instructions take position and length modulo 256;
the 64-bit ones take them whole.
"""

from __future__ import annotations

import numpy as np

from ptxtile.emulator.numeric import bit_length
from ptxtile.emulator.semantics import Array, Call, value
from ptxtile.emulator.semantics.kinds import Kind, Unsigned, as_signed, kinds, split

_ONES = np.uint32(0xFFFFFFFF)


@value("popc")
def popc(call: Call, a: Unsigned) -> Array:
    """popc (9.7.1.14): ones in a, as .u32."""
    octets = split(a, 8).reshape(a.shape[0], -1)
    bits: Unsigned = np.unpackbits(octets, axis=1).sum(axis=1, dtype=np.uint32)
    return bits


@value("clz")
def clz(call: Call, a: Unsigned) -> Array:
    """clz (9.7.1.15): leading zeros, the width for 0, as .u32."""
    return (a.dtype.itemsize * 8 - bit_length(a.astype(np.uint64))).astype(np.uint32)


@value("bfind")
def bfind(call: Call, a: Unsigned) -> Array:
    """bfind (9.7.1.16): the highest bit that is not sign, all ones if none; .shiftamt its distance from the top."""
    kind = kinds(call)[0]
    if kind.family == "s":
        a = np.where(as_signed(a) < 0, ~a, a)
    length = bit_length(a.astype(np.uint64))
    found = (kind.bits - length) if call.has(".shiftamt") else length - 1
    return np.where(length == 0, _ONES, found.astype(np.uint32))


@value("fns")
def fns(call: Call, mask: Unsigned, base: Unsigned, offset: Unsigned) -> Array:
    """fns (9.7.1.17): the |offset|-th one of mask from base up or down, base itself for 0; all ones if none."""
    direction = np.sign(as_signed(offset)).astype(np.int64)
    left = np.maximum(np.abs(as_signed(offset).astype(np.int64)) - 1, 0)
    position = base.astype(np.int64)
    result = np.full(mask.shape, _ONES, np.uint32)
    searching = np.ones(mask.shape, np.bool_)
    for _ in range(32):
        searching &= (position >= 0) & (position < 32)
        one = searching & (((mask >> np.clip(position, 0, 31).astype(np.uint32)) & np.uint32(1)) != 0)
        hit = one & (left == 0)
        result = np.where(hit, position.astype(np.uint32), result)
        searching &= ~hit & (direction != 0)
        left = left - one
        position = position + direction
    return result


@value("brev")
def brev(call: Call, a: Unsigned) -> Array:
    """brev (9.7.1.18): the bits in reverse order."""
    octets = split(a, 8).reshape(a.shape[0], -1)
    reversed_bits = np.unpackbits(octets, axis=1, bitorder="little")[:, ::-1]
    return np.packbits(reversed_bits, axis=1, bitorder="little").view(a.dtype).reshape(a.shape)


def _field(kind: Kind, position: Unsigned, length: Unsigned) -> tuple[np.ndarray, np.ndarray]:
    if kind.bits == 32:
        return (position & np.uint32(0xFF)).astype(np.int64), (length & np.uint32(0xFF)).astype(np.int64)
    return position.astype(np.int64), length.astype(np.int64)


def _ones_below(count: np.ndarray) -> np.ndarray:
    """uint64 with the lowest `count` bits set, at most 64."""
    near = np.minimum(count, 63).astype(np.uint64)
    return np.where(count >= 64, np.uint64(0xFFFFFFFFFFFFFFFF), (np.uint64(1) << near) - np.uint64(1))


@value("bfe")
def bfe(call: Call, a: Unsigned, b: Unsigned, c: Unsigned) -> Array:
    """bfe (9.7.1.19): the field of c bits at b; signed ones fill with the field's top bit, or bit 31 or 63 beyond."""
    kind = kinds(call)[0]
    position, length = _field(kind, b, c)
    wide = a.astype(np.uint64)
    moved = np.where(position >= 64, np.uint64(0), wide >> np.minimum(position, 63).astype(np.uint64))
    mask = _ones_below(length)
    result = moved & mask
    if kind.family == "s":
        top = np.minimum(position + length - 1, kind.bits - 1)
        sign = ((wide >> np.maximum(top, 0).astype(np.uint64)) & np.uint64(1)) != 0
        # The part of the field beyond the register counts as copies of the sign, too.
        inside = _ones_below(np.minimum(length, np.maximum(kind.bits - position, 0)))
        result = np.where(sign & (length > 0), result | ~inside, result)
    bits: Unsigned = result.astype(a.dtype)
    return bits


@value("bfi")
def bfi(call: Call, a: Unsigned, b: Unsigned, c: Unsigned, d: Unsigned) -> Array:
    """bfi (9.7.1.20): b with its field of d bits at c replaced by the low bits of a."""
    kind = kinds(call)[0]
    position, length = _field(kind, c, d)
    near = np.minimum(position, 63).astype(np.uint64)
    outside = position >= kind.bits
    mask = np.where(outside, np.uint64(0), _ones_below(length) << near)
    moved = a.astype(np.uint64) << near
    bits: Unsigned = ((b.astype(np.uint64) & ~mask) | (moved & mask)).astype(a.dtype)
    return bits


@value("bmsk")
def bmsk(call: Call, a: Unsigned, b: Unsigned) -> Array:
    """bmsk (9.7.1.22): b ones from bit a; .wrap takes both modulo 32, .clamp stops at bit 31."""
    clamp = call.has(".clamp")
    start = (a if clamp else a & np.uint32(31)).astype(np.int64)
    width = (b if clamp else b & np.uint32(31)).astype(np.int64)
    start, width = np.minimum(start, 32), np.minimum(width, 32)
    return ((_ones_below(width) << start.astype(np.uint64)) & np.uint64(_ONES)).astype(np.uint32)


@value("szext")
def szext(call: Call, a: Unsigned, b: Unsigned) -> Array:
    """szext (9.7.1.21): the low b bits extended; .wrap takes b modulo 32, .clamp keeps all for 32 and more."""
    whole = (b >= 32) if call.has(".clamp") else np.zeros(b.shape, np.bool_)
    width = b & np.uint32(31)
    mask = (np.uint32(1) << width) - np.uint32(1)
    result = a & mask
    if kinds(call)[0].family == "s":
        top = (width - np.uint32(1)) & np.uint32(31)
        negative = (width != 0) & (((a >> top) & np.uint32(1)) != 0)
        result = np.where(negative, result | ~mask, result)
    return np.where(whole, a, result)


def _lanes(x: Unsigned, bits: int, signed: bool) -> np.ndarray:
    lanes = split(x, bits).reshape(x.shape[0], -1)
    return (as_signed(lanes) if signed else lanes).astype(np.int64)


@value("dp4a", "dp2a")
def dot(call: Call, a: Unsigned, b: Unsigned, c: Unsigned) -> Array:
    """dp4a, dp2a (9.7.1.23, 9.7.1.24): c plus a dot product of bytes, or of halves with bytes .lo or .hi, wrapping."""
    first, second = kinds(call)[:2]
    y = _lanes(b, 8, second.family == "s")
    if call.opcode == "dp4a":
        x = _lanes(a, 8, first.family == "s")
    else:
        x = _lanes(a, 16, first.family == "s")
        y = y[:, 2:] if call.has(".hi") else y[:, :2]
    bits: Unsigned = c + (x * y).sum(axis=1).astype(np.uint32)
    return bits
