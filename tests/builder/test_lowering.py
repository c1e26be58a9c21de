"""Lowered extents compute what the extents say, whatever the widths and signs of their unknowns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hypothesis import given, reject, strategies as st

import ptxtile as pt
from ptxtile import TraceError, tracing
from ptxtile.builder import addresses, ranges
from ptxtile.builder.extents import Atom, Extent
from ptxtile.builder.storage import Memory
from ptxtile.builder.trace import Launch, Trace
from ptxtile.encoding import integer_range
from ptxtile.ir.operand import Address, Integer, Register

DTYPES = (pt.uint16, pt.int16, pt.uint32, pt.int32, pt.uint64, pt.int64)


T = TypeVar("T")


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def execute(trace: Trace, registers: dict[str, int]) -> None:
    """Run the instructions of a trace on one thread's registers: the few that index arithmetic is made of."""
    for form, operands, *_ in trace.records:
        d, *sources = operands
        values = [s.value if isinstance(s, Integer) else registers[s.name] for s in sources]
        opcode, *modifiers = form.spelling.split(".")
        kind, bits = modifiers[-1][0], int(modifiers[-1][1:])
        a = [signed(v, bits) if kind == "s" else v & ((1 << bits) - 1) for v in values]
        wide = 2 * bits if "wide" in modifiers else bits
        if opcode == "cvt":
            wide, result = int(modifiers[0][1:]), a[0]
        elif opcode == "mad":
            result = a[0] * a[1] + (values[2] if "wide" in modifiers else a[2])
        else:
            operation = {
                "add": "__add__",
                "mul": "__mul__",
                "and": "__and__",
                "shl": "__lshift__",
                "shr": "__rshift__",
            }
            method = operation.get(opcode) or {"div": "__floordiv__", "rem": "__mod__"}[opcode]
            result = getattr(a[0], method)(a[1])
        registers[d.name] = result & ((1 << wide) - 1)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Trace, Extent, dict[Atom, int], dict[str, int]]:
    """A trace with unknowns in registers, an extent over them, and their values."""
    trace = Trace("k", Launch())
    values: dict[Atom, int] = {}
    registers: dict[str, int] = {}
    parts: list[Extent] = []
    for _ in range(draw(st.integers(1, 3))):
        dtype = draw(st.sampled_from(DTYPES))
        low, high = integer_range(dtype)
        if draw(st.booleans()):
            low, high = max(low, 0), draw(st.sampled_from([63, 1 << 12, high]))
        made = trace.value(dtype)
        extent = made.extent = ranges.atom(dtype.name, low, min(high, integer_range(dtype)[1]), scalar=made)
        (atom,) = extent.atoms()
        values[atom] = draw(
            st.one_of(st.integers(atom.low, atom.high), st.sampled_from([atom.low, atom.high]))
        )
        registers[made.operand.name] = values[atom] & ((1 << dtype.bits) - 1)
        parts.append(extent)
    total = ranges.constant(draw(st.integers(-100, 5000)))
    for _ in range(draw(st.integers(1, 3))):
        part = draw(st.sampled_from(parts)).times(draw(st.integers(1, 5))).plus(draw(st.sampled_from(parts)))
        way, divisor = (
            draw(st.sampled_from(["itself", "div", "mod", "both", "product"])),
            draw(st.sampled_from([2, 3, 8, 100])),
        )
        if way in ("div", "both"):
            part = ranges.quotient(part, divisor)
        if way in ("mod", "both"):
            part = ranges.remainder(part, divisor)
        if way == "product":
            part = part.times(draw(st.sampled_from(parts)))
        total = total.plus(part, draw(st.sampled_from([1, 1, 4, 12, -1, -3])))
    return trace, total, values, registers


def unless_refused(make: Callable[[], T]) -> T | None:
    """What `make` gives; a dividend that may be negative or pass 64 bits ends the example."""
    try:
        return make()
    except TraceError as error:
        refused = str(error)
    assert "may be negative" in refused or "may pass 2**64" in refused
    return reject()


@given(cases(), st.sampled_from([32, 64]))
def test_lowering_is_exact_modulo_the_width(case, bits):
    trace, what, values, registers = case
    with tracing.use(trace):
        made = unless_refused(lambda: addresses.lower(trace, what, bits))
    execute(trace, registers)
    found = made.value if isinstance(made, Integer) else registers[made.name]
    assert (found - ranges.evaluate(what, values)) % (1 << bits) == 0


@given(cases(), st.sampled_from([1, 2, 4, 8, 16]), st.sampled_from(["global", "shared"]))
def test_addresses_are_exact(case, unit, space):
    trace, what, values, registers = case
    base = trace.register("b64" if space == "global" else "b32")
    memory = Memory(space, base, 16, None)
    with tracing.use(trace):
        made = unless_refused(lambda: addresses.address(trace, memory, what, unit))
    start = 0x7F0000000000 if space == "global" else 0x400
    registers[base.name] = start
    execute(trace, registers)
    assert isinstance(made, Address) and isinstance(made.base, Register)
    bits = memory.address_bits
    assert (registers[made.base.name] + made.offset - start - unit * ranges.evaluate(what, values)) % (
        1 << bits
    ) == 0
