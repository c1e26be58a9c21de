"""Extended-precision arithmetic with CC.CF (PTX ISA 9.7.2): add.cc addc sub.cc subc mad.cc madc.

The flag after a subtraction is an inverted borrow: 1 where there was none. A subc after an add.cc therefore subtracts 1
where the addition did not carry, as the hardware does.
"""

from __future__ import annotations

import numpy as np

from ptxtile.emulator.numeric import Mask
from ptxtile.emulator.semantics import Array, Call, WithCarry, integer, value
from ptxtile.emulator.semantics.kinds import Kind, Unsigned, kinds


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
    return total(call, a, b, _flag(call))


@value("subc")
def subc(call: Call, a: Unsigned, b: Unsigned) -> Array | WithCarry:
    """subc (9.7.2.4)."""
    return total(call, a, ~b, _flag(call))


@value("madc")
def madc(call: Call, a: Unsigned, b: Unsigned, c: Unsigned) -> Array | WithCarry:
    """madc.lo, madc.hi (9.7.2.6)."""
    return total(call, integer.product(call, kinds(call)[0], a, b), c, _flag(call))
