"""Floating-point min and max (PTX ISA 9.7.3.11, 9.7.3.12, 9.7.4.8, 9.7.4.9) of two or three operands.

-0 is less than +0. Without .NaN one NaN gives the other operand; two give the canonical NaN, in f64 the last one made
quiet. With .NaN any NaN gives the canonical NaN. .xorsign.abs compares magnitudes and takes the exclusive or of the
operands' signs, NaN operands' too.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from ptxtile.emulator import numeric_float as nf
from ptxtile.emulator.numeric import F64, Format
from ptxtile.emulator.semantics import Array, Call
from ptxtile.emulator.semantics.kinds import Kind, Unsigned, as_signed, join, split


def _ordered(x: Unsigned, form: Format) -> np.ndarray:
    """Encodings as integers in the order of their values, -0 below +0."""
    signed = as_signed(x)
    return np.where(signed < 0, signed ^ signed.dtype.type(form.sign - 1), signed)


def _pair(call: Call, form: Format, a: Unsigned, b: Unsigned) -> Unsigned:
    first = _ordered(a, form) <= _ordered(b, form)
    if call.opcode == "max":
        first = ~first
    result = np.where(first, a, b)
    na, nb = nf.is_nan(a, form), nf.is_nan(b, form)
    own = b | b.dtype.type(form.hidden >> 1) if form is F64 else b.dtype.type(form.nan)
    if call.has(".NaN"):
        return np.where(na | nb, own, result)
    return np.where(na, np.where(nb, own, b), np.where(nb, a, result))


def extreme(call: Call, kind: Kind, operands: tuple[Unsigned, ...]) -> Array:
    """min and max on whole registers; call.opcode says which."""
    form = kind.form
    lanes = [split(x, kind.bits) for x in operands]
    if call.has(".ftz"):
        lanes = [nf.flush_subnormals(x, form) for x in lanes]
    magnitude = lanes[0].dtype.type(form.sign - 1)
    signs = reduce(np.bitwise_xor, lanes) & ~magnitude
    if call.has(".abs"):
        lanes = [x & magnitude for x in lanes]
    result = reduce(lambda a, b: _pair(call, form, a, b), lanes)
    if call.has(".xorsign"):
        result = np.where(nf.is_nan(result, form), result, (result & magnitude) | signs)
    return join(result, kind.bits * kind.lanes)
