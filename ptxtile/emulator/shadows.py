"""Which bits of a result are undefined, from those of its sources: a 1 in a shadow is a bit that was never written.

Compilers put bit fields together in memory that was never written, and cut out what they wrote: logic, shifts, byte
permutations, extensions and the low bits of sums are followed bit by bit. Elsewhere a result depends on every bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Union

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.registers import Shadow
from ptxtile.emulator.semantics import Call
from ptxtile.emulator.widths import Bits, bits_of, holder, is_signed

Values = list[Union[Bits, tuple[Bits, ...]]]
Rule = Callable[[Call, Values, list[Shadow]], Bits]


def any_thread(call: Call, values: Values, shadows: list[Shadow]) -> Bits:
    """A result depends on every bit of its sources: in threads with an undefined one, no bit is defined."""
    marked: NDArray[np.bool_] | None = None
    for shadow in shadows:
        if shadow is not None:
            own = shadow != 0 if shadow.ndim == 1 else (shadow != 0).any(axis=1)
            marked = own if marked is None else marked | own
    assert marked is not None
    return marked


def nothing(call: Call, values: Values, shadows: list[Shadow]) -> Bits:
    """Of `xor d, a, a` and `sub d, a, a`: zero, whatever a is."""
    return np.zeros(len(_plain(values[0])), np.bool_)


def _and(call: Call, values: Values, shadows: list[Shadow]) -> Bits:
    """A bit of `a & b` is defined where both are, or where either is a defined 0."""
    (a, b), (sa, sb) = _two(values), _two_shadows(values, shadows)
    found: Bits = (sa | sb) & (a | sa) & (b | sb)
    return found


def _or(call: Call, values: Values, shadows: list[Shadow]) -> Bits:
    """A bit of `a | b` is defined where both are, or where either is a defined 1."""
    (a, b), (sa, sb) = _two(values), _two_shadows(values, shadows)
    found: Bits = (sa | sb) & (~a | sa) & (~b | sb)
    return found


def _xor(call: Call, values: Values, shadows: list[Shadow]) -> Bits:
    """A bit is defined where all of its sources' are."""
    present = [shadow for shadow in shadows if shadow is not None]
    found = present[0]
    for shadow in present[1:]:
        found = found | shadow
    return found


def _select(call: Call, values: Values, shadows: list[Shadow]) -> Bits:
    """Of selp, the chosen source's bits; none where the predicate is undefined."""
    sa, sb = _two_shadows(values, shadows)
    found = np.where(_plain(values[2]), sa, sb)
    if shadows[2] is not None:
        found = np.where(shadows[2], np.array(-1).astype(found.dtype), found)
    return found


def _logic3(call: Call, values: Values, shadows: list[Shadow]) -> Bits:
    """Of lop3, bits of which both values can come out."""
    if len(values) != 4 or call.has(".BoolOp") or any(m in call.modifiers for m in (".or", ".and")):
        return any_thread(call, values, shadows)
    sources = [_plain(value) for value in values[:3]]
    lost = [np.zeros_like(v) if s is None else s for v, s in zip(sources, shadows)]
    table = int(_plain(values[3])[0])
    zero, one = np.zeros_like(sources[0]), np.zeros_like(sources[0])
    for row in range(8):
        reached = np.full_like(sources[0], -1 & 0xFFFFFFFF)
        for place, (value, shadow) in enumerate(zip(sources, lost)):
            reached = reached & (shadow | (value if row >> (2 - place) & 1 else ~value))
        if table >> row & 1:
            one |= reached
        else:
            zero |= reached
    found: Bits = zero & one
    return found


def _shift(call: Call, values: Values, shadows: list[Shadow]) -> Bits:
    """Undefined bits move with the others; an undefined sign fills what comes in from the left."""
    if shadows[0] is None or shadows[1] is not None:
        return any_thread(call, values, shadows)
    shadow = shadows[0]
    width = shadow.dtype.itemsize * 8
    amount = _plain(values[1]).astype(np.uint64)
    signed = call.opcode == "shr" and is_signed(call.modifiers[-1])
    inside = np.minimum(amount, np.uint64(width - 1)).astype(shadow.dtype)
    if call.opcode == "shl":
        moved = shadow << inside
    elif signed:
        kind = np.dtype(f"i{shadow.dtype.itemsize}")
        moved = (shadow.view(kind) >> inside.view(kind)).view(shadow.dtype)
    else:
        moved = shadow >> inside
    found: Bits = moved if signed else np.where(amount < np.uint64(width), moved, shadow.dtype.type(0))
    return found


def _extend(call: Call, values: Values, shadows: list[Shadow]) -> Bits:
    """Of cvt between integers: cut, or extended by zeros or by the sign, like the value."""
    target, source = call.modifiers[-2:] if len(call.modifiers) >= 2 else ("", "")
    integers = all(name[1:2] in ("u", "s") and name[2:].isdigit() for name in (target, source))
    if not integers or len(call.modifiers) != 2 or shadows[0] is None:
        return any_thread(call, values, shadows)
    have = holder(bits_of(source))
    cut = shadows[0].astype(have)
    if is_signed(source):
        cut = cut.view(np.dtype(f"i{have.itemsize}"))
    return cut.astype(holder(bits_of(target)))


def _carried(call: Call, values: Values, shadows: list[Shadow]) -> Bits:
    """Of sums and low products of integers: the bits below the lowest undefined one are defined."""
    name = call.modifiers[-1]
    plain = name[1:2] in ("u", "s") and name[2:].isdigit() and not call.has(".sat") and not call.has(".cc")
    if not plain or call.has(".wide") or call.has(".hi"):
        return any_thread(call, values, shadows)
    both = _xor(call, values, shadows)
    found: Bits = both | (~both + both.dtype.type(1))
    return found


def _permute(call: Call, values: Values, shadows: list[Shadow]) -> Bits:
    """Of prmt: each byte of the result is one of eight, or eight times its sign."""
    if len(call.modifiers) != 1 or shadows[2] is not None:
        return any_thread(call, values, shadows)
    sa, sb = _two_shadows(values, shadows)
    both = sa.astype(np.uint64) | sb.astype(np.uint64) << np.uint64(32)
    selector = _plain(values[2]).astype(np.uint64)
    found = np.zeros(len(both), np.uint64)
    for place in range(4):
        nibble = selector >> np.uint64(4 * place) & np.uint64(15)
        byte = both >> ((nibble & np.uint64(7)) * np.uint64(8)) & np.uint64(0xFF)
        sign = np.where(byte & np.uint64(0x80), np.uint64(0xFF), np.uint64(0))
        found |= np.where(nibble & np.uint64(8), sign, byte) << np.uint64(8 * place)
    return found.astype(np.uint32)


def _insert(call: Call, values: Values, shadows: list[Shadow]) -> Bits:
    """Of bfi: the field's bits from a, the others from b."""
    if shadows[2] is not None or shadows[3] is not None or bits_of(call.modifiers[-1]) != 32:
        return any_thread(call, values, shadows)
    sa, sb = _two_shadows(values, shadows)
    place, length = (_plain(value).astype(np.uint64) & np.uint64(0xFF) for value in values[2:4])
    mask = ((np.uint64(1) << np.minimum(length, np.uint64(32))) - np.uint64(1)) << np.minimum(
        place, np.uint64(32)
    )
    field = sa.astype(np.uint64) << np.minimum(place, np.uint64(32))
    found: Bits = ((sb & ~mask) | (field & mask)).astype(np.uint32)
    return found


def _extract(call: Call, values: Values, shadows: list[Shadow]) -> Bits:
    """Of bfe without a sign: the field's bits."""
    if call.modifiers[-1] != ".u32" or shadows[0] is None or any(s is not None for s in shadows[1:]):
        return any_thread(call, values, shadows)
    place, length = (_plain(value).astype(np.uint64) & np.uint64(0xFF) for value in values[1:3])
    field = shadows[0].astype(np.uint64) >> np.minimum(place, np.uint64(32))
    mask = (np.uint64(1) << np.minimum(length, np.uint64(32))) - np.uint64(1)
    found: Bits = (field & mask).astype(np.uint32)
    return found


def _plain(value: Bits | tuple[Bits, ...]) -> Bits:
    assert not isinstance(value, tuple)
    return value


def _two(values: Values) -> tuple[Bits, Bits]:
    return _plain(values[0]), _plain(values[1])


def _two_shadows(values: Values, shadows: list[Shadow]) -> tuple[Bits, Bits]:
    a, b = _two(values)
    first = np.zeros_like(a) if shadows[0] is None else shadows[0]
    second = np.zeros_like(b) if shadows[1] is None else shadows[1]
    return first, second


_RULES: dict[str, Rule] = {
    "and": _and,
    "or": _or,
    "xor": _xor,
    "not": _xor,
    "selp": _select,
    "lop3": _logic3,
    "shl": _shift,
    "shr": _shift,
    "cvt": _extend,
    "add": _carried,
    "sub": _carried,
    "mul": _carried,
    "mad": _carried,
    "prmt": _permute,
    "bfi": _insert,
    "bfe": _extract,
}


def rule_of(opcode: str) -> Rule:
    """How undefined bits come through an instruction."""
    return _RULES.get(opcode, any_thread)
