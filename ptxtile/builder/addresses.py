"""From extents to instructions: index arithmetic, and addresses as one register plus a constant.

Sequences, all exact: a sum of products is mul.lo, mad.lo and add, in 32 bits where it is proven to lie in [0, 2^32)
(what wraps on the way comes back), else in 64; a quotient of a non-negative value by a power of two is shr, by another
constant div; a remainder and or rem; a global address is one mad.wide.u32 (or mad.lo.s64) on the base. What was
computed in an open block is not computed again.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ptxtile import location
from ptxtile.builder import ranges
from ptxtile.builder.ranges import Atom, Extent, recombined
from ptxtile.builder.storage import Memory
from ptxtile.errors import TraceError
from ptxtile.ir.operand import Address, Integer, Register, Symbol

if TYPE_CHECKING:
    from ptxtile.builder.trace import Trace

_NARROW = 1 << 32


def _kind(bits: int) -> str:
    return "u32" if bits == 32 else "s64"


def lower(trace: Trace, what: Extent, bits: int) -> Register | Integer:
    """`what` as an integer of 32 or 64 bits: a register, or a literal if it is known."""
    if what.known is not None:
        return Integer(what.known)
    found = trace.computed((what, bits))
    if found is None:
        if bits == 64 and _narrow(what):
            found = trace.register("b64")
            trace.instruction("cvt.u64.u32", found, lower(trace, what, 32))
        else:
            found = _sum(trace, what, bits)
        trace.remember_value((what, bits), found)
    return found


def _narrow(what: Extent) -> bool:
    """Whether the value is an unsigned number of 32 bits: arithmetic modulo 2^32 then gives it."""
    low, high = what.bounds()
    return low >= 0 and high < _NARROW


def _sum(trace: Trace, what: Extent, bits: int) -> Register:
    total: Register | Integer | None = None
    for monomial, factor in what.terms.items():
        product = _atom(trace, monomial[0], bits)
        for atom in monomial[1:]:
            made = trace.register(f"b{bits}")
            trace.instruction(f"mul.lo.{_kind(bits)}", made, product, _atom(trace, atom, bits))
            product = made
        total = _accumulate(trace, total, product, factor, bits)
    assert isinstance(total, Register)
    if what.constant:
        made = trace.register(f"b{bits}")
        trace.instruction(f"add.{_kind(bits)}", made, total, Integer(what.constant))
        return made
    return total


def _accumulate(
    trace: Trace, total: Register | Integer | None, product: Register, factor: int, bits: int
) -> Register:
    if total is None and factor == 1:
        return product
    made = trace.register(f"b{bits}")
    if total is None:
        if factor > 0 and factor & (factor - 1) == 0:
            trace.instruction(f"shl.b{bits}", made, product, Integer(factor.bit_length() - 1))
        else:
            trace.instruction(f"mul.lo.{_kind(bits)}", made, product, Integer(factor))
    elif factor == 1:
        trace.instruction(f"add.{_kind(bits)}", made, total, product)
    else:
        trace.instruction(f"mad.lo.{_kind(bits)}", made, product, Integer(factor), total)
    return made


def _atom(trace: Trace, atom: Atom, bits: int) -> Register:
    if atom.of is None:
        return _scalar(trace, atom, bits)
    key = (Extent({(atom,): 1}, 0), bits)
    found = trace.computed(key)
    if found is None:
        found = _divided(trace, atom.of, bits)
        trace.remember_value(key, found)
    return found


def _divided(trace: Trace, of: tuple[str, Extent, int], bits: int) -> Register:
    """A quotient or a remainder, computed in as many bits as its dividend needs."""
    operation, inner, divisor = of
    if (
        operation == "mod" and divisor & (divisor - 1) == 0
    ):  # the low bits, whatever the sign and the bits above
        made = trace.register(f"b{bits}")
        trace.instruction(f"and.b{bits}", made, lower(trace, inner, bits), Integer(divisor - 1))
        return made
    low, high = inner.bounds()
    word = "quotient" if operation == "div" else "remainder"
    if low < 0 and not ranges.nonnegative(inner, _facts(trace)):
        raise TraceError(
            f"the index {inner} may be negative, and its {word} by {divisor} is needed for an address; state that it "
            "is not with pt.assume(index >= 0)" + location.quote(location.here())
        )
    if high >= 1 << 64:
        raise TraceError(
            f"the index {inner} may pass 2**64, and its {word} by {divisor} is needed for an address; index with 32 "
            "bits, or fewer" + location.quote(location.here())
        )
    wide = 32 if bits == 32 and high < _NARROW else 64
    source = lower(trace, inner, wide)
    made = trace.register(f"b{wide}")
    if divisor & (divisor - 1) == 0:
        trace.instruction(f"shr.u{wide}", made, source, Integer(divisor.bit_length() - 1))
    else:
        trace.instruction(f"{'div' if operation == 'div' else 'rem'}.u{wide}", made, source, Integer(divisor))
    if wide == bits:
        return made
    short = trace.register("b32")
    trace.instruction("cvt.u32.u64", short, made)
    return short


def _facts(trace: Trace) -> list[Extent]:
    return [fact for known in trace.facts() for fact in ranges.facts_of(known)]


def _scalar(trace: Trace, atom: Atom, bits: int) -> Register:
    scalar = atom.scalar
    if scalar is None or not isinstance(scalar.operand, Register):
        raise TraceError(f"the index {atom.name} has no run-time value to compute an address with")
    trace.live(scalar, "an address")
    dtype = type(scalar)
    if dtype.bits == bits:
        return scalar.operand
    key = (Extent({(atom,): 1}, 0), bits)
    found = trace.computed(key)
    if found is None:
        found = trace.register(f"b{bits}")
        sign = "s" if dtype.kind == "int" else "u"
        trace.instruction(f"cvt.{sign}{bits}.{sign}{dtype.bits}", found, scalar.operand)
        trace.remember_value(key, found)
    return found


def address(trace: Trace, memory: Memory, place: Extent, unit: int) -> Address:
    """The address of element `place` of `unit` bytes each: base register plus a constant number of bytes."""
    place = recombined(place)
    if not place.terms:
        return Address(memory.base, place.constant * unit)
    moving = Extent(place.terms, 0)
    if moving.bounds()[0] < 0 and (memory.address_bits == 32 or _narrow(place)):
        # Without its constant the sum may be negative: 32 bits would not do, and shared addresses would wrap.
        return Address(_base(trace, memory, place, unit))
    return Address(_base(trace, memory, moving, unit), place.constant * unit)


def _base(trace: Trace, memory: Memory, moving: Extent, unit: int) -> Register:
    bits = memory.address_bits
    key = (memory, moving, unit)
    found = trace.computed(key)
    if found is not None:
        return found
    base = memory.base
    if not isinstance(base, Register):
        base = symbol_address(trace, memory)
    common = math.gcd(moving.constant, *moving.terms.values())
    index = Extent({m: f // common for m, f in moving.terms.items()}, moving.constant // common)
    made = trace.register(f"b{bits}")
    scale = Integer(common * unit)
    if bits == 32:
        trace.instruction("mad.lo.u32", made, lower(trace, index, 32), scale, base)
    elif _narrow(index) and scale.value < _NARROW:
        trace.instruction("mad.wide.u32", made, lower(trace, index, 32), scale, base)
    else:
        trace.instruction("mad.lo.s64", made, lower(trace, index, 64), scale, base)
    trace.remember_value(key, made)
    return made


def symbol_address(trace: Trace, memory: Memory) -> Register:
    """The address of a variable in a register, within its own state space."""
    base = memory.base
    if isinstance(base, Register):
        return base
    found = trace.computed((base,))
    if found is None:
        found = trace.register(f"b{memory.address_bits}")
        trace.instruction(f"mov.u{memory.address_bits}", found, base)
        trace.remember_value((base,), found)
    return found


def in_register(trace: Trace, address: Address) -> Register:
    """A 32-bit address of shared or local memory, offset and all, in a register: one mov of the symbol or one add."""
    made = trace.register("b32")
    base = address.base
    if isinstance(base, Register):
        trace.instruction("add.u32", made, base, Integer(address.offset))
    elif isinstance(base, Symbol):
        trace.instruction("mov.u32", made, Symbol(base.name, base.space, base.offset + address.offset))
    else:
        raise TraceError(f"{address} is no address in shared memory")
    return made


def in_wide_register(trace: Trace, address: Address) -> Register:
    """A 64-bit address of global memory, offset and all: its base, or one add."""
    base = address.base
    assert isinstance(base, Register)
    if not address.offset:
        return base
    made = trace.register("b64")
    trace.instruction("add.s64", made, base, Integer(address.offset))
    return made


def generic(trace: Trace, memory: Memory, address: Address) -> Address:
    """The generic address of an address in a state space: cvta, the offset kept apart. Global addresses are generic."""
    if memory.space in ("global", "generic"):
        return address
    base = address.base
    key = ("generic", base)
    found = trace.computed(key)
    if found is None:
        narrow = base if isinstance(base, Register) else symbol_address(trace, memory)
        wide = narrow
        if narrow.type != "b64":
            wide = trace.register("b64")
            trace.instruction("cvt.u64.u32", wide, narrow)
        found = trace.register("b64")
        trace.instruction(f"cvta.{memory.space}.u64", found, wide)
        trace.remember_value(key, found)
    return Address(found, address.offset)
