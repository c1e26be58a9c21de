"""Extended-precision arithmetic with CC.CF (PTX ISA 9.7.2): add.cc addc sub.cc subc mad.cc madc.

The flag after a subtraction is an inverted borrow: 1 where there was none. A subc after an add.cc therefore subtracts 1
where the addition did not carry, as the hardware does. It saturates addc and subc under .sat, but not madc.hi; and
madc.hi of 16-bit factors takes what lies above bit 31 of the product: its sign.
"""

from __future__ import annotations

import numpy as np

from ptxtile.emulator.numeric import Mask
from ptxtile.emulator.semantics import Array, Call, WithCarry, integer, value
from ptxtile.emulator.semantics.kinds import Kind, Unsigned, as_signed, kinds


def total(call: Call, a: Unsigned, b: Unsigned, carry_in: Mask) -> Array | WithCarry:
    """a + b + carry_in, with the new flag where the form writes it."""
    one = carry_in.astype(a.dtype)
    partial = a + b
    result = partial + one
    if not call.has(".cc"):
        return result
    return WithCarry(result, (partial < a) | (result < partial))


def _flag(call: Call) -> Mask:
    return np.zeros(call.count, np.bool_) if call.carry is None else call.carry


def _clamped(a: Unsigned, b: Unsigned, carry_in: Mask) -> Unsigned:
    """a + b + carry_in of .s32, clamped to that type."""
    exact = as_signed(a).astype(np.int64) + as_signed(b) + carry_in
    return integer.saturated(exact, Kind("s", 32))


def add_carry_out(call: Call, a: Unsigned, b: Unsigned) -> Array | WithCarry:
    """add.cc (9.7.2.1)."""
    return total(call, a, b, np.zeros(a.shape, np.bool_))


def sub_carry_out(call: Call, a: Unsigned, b: Unsigned) -> Array | WithCarry:
    """sub.cc (9.7.2.3): a + ~b + 1."""
    return total(call, a, ~b, np.ones(a.shape, np.bool_))


def mad_carry_out(call: Call, kind: Kind, a: Unsigned, b: Unsigned, c: Unsigned) -> Array | WithCarry:
    """mad.lo.cc, mad.hi.cc (9.7.2.5)."""
    return total(call, integer.product(call, kind, a, b), c, np.zeros(a.shape, np.bool_))


@value("addc")
def addc(call: Call, a: Unsigned, b: Unsigned) -> Array | WithCarry:
    """addc (9.7.2.2)."""
    if call.has(".sat"):
        return _clamped(a, b, _flag(call))
    return total(call, a, b, _flag(call))


@value("subc")
def subc(call: Call, a: Unsigned, b: Unsigned) -> Array | WithCarry:
    """subc (9.7.2.4)."""
    if call.has(".sat"):
        return _clamped(a, ~b, _flag(call))
    return total(call, a, ~b, _flag(call))


@value("madc")
def madc(call: Call, a: Unsigned, b: Unsigned, c: Unsigned) -> Array | WithCarry:
    """madc.lo, madc.hi (9.7.2.6)."""
    kind = kinds(call)[0]
    if kind.bits == 16 and call.has(".hi"):
        return total(call, _sign_of_product(kind, a, b), c, _flag(call))
    return total(call, integer.product(call, kind, a, b), c, _flag(call))


def _sign_of_product(kind: Kind, a: Unsigned, b: Unsigned) -> Unsigned:
    sign = (integer.extended(a, kind) * integer.extended(b, kind)) >> 32
    bits: Unsigned = sign.astype(np.int16).view(np.uint16)
    return bits
