"""`//` and `%` of integers as Python defines them: the quotient rounds down, the remainder has the divisor's sign.

PTX `div` and `rem` round toward zero (9.7.1), which is the same for unsigned values: one instruction. For signed ones
(T is .s16, .s32 or .s64, B the .bN of its width):

    a // 2**k   shr.T d, a, k                  a % 2**k   and.B d, a, 2**k - 1        (a constant power of two)
    a // b      rem.T r, a, b                  a % b      rem.T r, a, b
                xor.B t, r, b                             xor.B t, r, b
                setp.ne.T p, r, 0                         setp.ne.T p, r, 0
                setp.lt.and.T q, t, 0, p                  setp.lt.and.T q, t, 0, p
                div.T s, a, b                             selp.B u, b, 0, q
                selp.B u, -1, 0, q                        add.T d, r, u
                add.T d, s, u

The least value divided by -1 wraps to itself. What a run-time divisor of zero gives is not defined by PTX.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtile.builder import ranges
from ptxtile.builder.values import home, result, word
from ptxtile.dtypes import DType, Scalar
from ptxtile.ir.operand import Integer

if TYPE_CHECKING:
    from ptxtile.builder.trace import Trace


def floor(trace: Trace, name: str, dtype: DType, left: Scalar, right: Scalar, into: Scalar | None) -> Scalar:
    """`left // right` ("floordiv") or `left % right` ("mod") of an integer dtype of 16 bits or more."""
    a, b = word(trace, left), word(trace, right)
    extent = None
    if into is None:
        extent = ranges.combine(name, ranges.of_value(left), ranges.of_value(right), dtype)
    made = result(trace, dtype, into, extent)
    d = home(made)
    type_, bits = dtype.ptx, f".b{dtype.bits}"
    divisor = right.value
    if dtype.kind == "uint":
        trace.instruction(f"{'div' if name == 'floordiv' else 'rem'}{type_}", d, a, b)
        return made
    if isinstance(divisor, int) and divisor > 0 and divisor & (divisor - 1) == 0:
        if name == "floordiv":
            trace.instruction(f"shr{type_}", d, a, Integer(divisor.bit_length() - 1))
        else:
            trace.instruction(f"and{bits}", d, a, Integer(divisor - 1))
        return made
    r, t, u = (trace.register(dtype.register) for _ in range(3))
    p, q = trace.register("pred"), trace.register("pred")
    zero = Integer(0)
    trace.instruction(f"rem{type_}", r, a, b)
    trace.instruction(f"xor{bits}", t, r, b)
    trace.instruction(f"setp.ne{type_}", p, r, zero)
    trace.instruction(f"setp.lt.and{type_}", q, t, zero, p)
    if name == "floordiv":
        s = trace.register(dtype.register)
        trace.instruction(f"div{type_}", s, a, b)
        trace.instruction(f"selp{bits}", u, Integer(-1), zero, q)
        trace.instruction(f"add{type_}", d, s, u)
    else:
        trace.instruction(f"selp{bits}", u, b, zero, q)
        trace.instruction(f"add{type_}", d, r, u)
    return made
