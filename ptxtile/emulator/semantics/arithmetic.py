"""The instructions that the ISA has both for integers and for floats: each goes to its chapter by the type it names."""

from __future__ import annotations

from ptxtile.emulator.semantics import (
    Array,
    Call,
    WithCarry,
    approximate,
    carry,
    extremum,
    floating,
    integer,
    mixed,
    value,
)
from ptxtile.emulator.semantics.kinds import Unsigned, kinds


@value("add", "sub", "mul", "mad", "fma")
def arithmetic(call: Call, *operands: Unsigned) -> Array | WithCarry:
    """add sub mul mad (9.7.1, 9.7.3), with .cc (9.7.2), and fma (9.7.3.6, 9.7.4.4, 9.7.5.3)."""
    kind, *others = kinds(call)
    if kind.floating:
        return mixed.mixed(call, operands) if others else floating.arithmetic(call, kind, operands)
    if call.has(".cc"):
        if call.opcode == "add":
            return carry.add_carry_out(call, *operands)
        if call.opcode == "sub":
            return carry.sub_carry_out(call, *operands)
        return carry.mad_carry_out(call, kind, *operands)
    return integer.evaluate(call, kind, operands)


@value("div")
def divide(call: Call, a: Unsigned, b: Unsigned) -> Array:
    """div (9.7.1.8, 9.7.3.8)."""
    kind = kinds(call)[0]
    if not kind.floating:
        return integer.evaluate(call, kind, (a, b))
    if call.has(".approx") or call.has(".full"):
        return approximate.divide(call, a, b)
    return floating.arithmetic(call, kind, (a, b))


@value("abs", "neg")
def sign_change(call: Call, a: Unsigned) -> Array:
    """abs and neg (9.7.1.10, 9.7.1.11, 9.7.3.9, 9.7.3.10)."""
    kind = kinds(call)[0]
    if kind.floating:
        return floating.sign_change(call, kind, (a,))
    return integer.evaluate(call, kind, (a,))


@value("min", "max")
def extreme(call: Call, *operands: Unsigned) -> Array:
    """min and max (9.7.1.12, 9.7.1.13, 9.7.3.11, 9.7.3.12), of two or three operands."""
    kind = kinds(call)[0]
    if kind.floating:
        return extremum.extreme(call, kind, operands)
    return integer.evaluate(call, kind, operands)
