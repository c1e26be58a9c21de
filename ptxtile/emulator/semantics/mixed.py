"""add, sub, mul and fma whose operands differ in format (PTX ISA 9.7.5): one lane, two or four.

Every lane is the exact result rounded once to the destination's format. sm_100 and later have them; none was asked.
"""

from __future__ import annotations

import numpy as np

from ptxtile.emulator import numeric_float as nf
from ptxtile.emulator.semantics import Array, Call, narrow
from ptxtile.emulator.semantics.floating import finish
from ptxtile.emulator.semantics.kinds import Kind, Unsigned, kinds, rounding


def mixed(call: Call, operands: tuple[Unsigned, ...]) -> Array:
    """Any of them, by the types that the form names."""
    target = kinds(call)[0]
    flush, mode = call.has(".ftz"), rounding(call)
    terms = [_numbers(x, kind, flush) for x, kind in zip(operands, _sources(call))]
    with np.errstate(all="ignore"):
        if call.opcode == "mul":
            exact = terms[0] * terms[1]
        else:
            term = terms[0] * terms[1] if call.opcode == "fma" else terms[0]
            exact = nf.exact_sum(term, -terms[-1] if call.opcode == "sub" else terms[-1], mode)
    saturates = call.has(".satfinite")
    result = nf.round_double(exact, target.form, mode, flush=flush, saturate_finite=saturates)
    return narrow.packed(finish(call, result, target.form), target)


def _sources(call: Call) -> list[Kind]:
    """The formats of the sources: an addend that is not named has the destination's, a factor that of the first."""
    target, *named = kinds(call)
    if call.opcode == "fma":
        factors = named[:2] if len(named) > 1 else named * 2
        return [*factors, named[2] if len(named) > 2 else target]
    return named if len(named) > 1 else [*named, target]


def _numbers(x: Unsigned, kind: Kind, flush: bool) -> nf.Doubles:
    lanes = narrow.unpacked(x, kind)
    if flush and kind.format == "f32":
        lanes = nf.flush_subnormals(lanes, kind.form)
    return narrow.number(lanes, kind)
