"""cvt (PTX ISA 9.7.9.22) and cvt.pack (9.7.9.23): integers here, between floats in `conversion_float`.

Results have the width of the destination type; the machine extends them to the register by that type's sign.
A float always clamps to the range of an integer, with or without .sat. NaN gives 0 from f16, bf16 and f32 to at most 32
bits, and the sign bit alone from f64, and to 64 bits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator import numeric_float as nf
from ptxtile.emulator.numeric import F32, normalize, pack
from ptxtile.emulator.semantics import (
    Array,
    Call,
    Source,
    conversion_float,
    conversion_random,
    conversion_scaled,
    value,
)
from ptxtile.emulator.semantics.floating import clamp_unit
from ptxtile.emulator.semantics.kinds import Kind, Unsigned, as_signed, kinds, rounding, unsigned


@value("cvt")
def cvt(call: Call, *operands: Source) -> Array:
    """Every cvt: by the types that the form names."""
    named = kinds(call)
    if call.has(".pack"):
        return _pack(named, *_plain(operands))
    target, source = named[0], named[1]
    arrays = _plain(operands)
    if call.has(".rs"):
        return conversion_random.convert(call, target, arrays)
    if conversion_scaled.belongs(call, target, source):
        return conversion_scaled.convert(call, target, source, arrays)
    if target.lanes > 1 or source.lanes > 1:
        return conversion_float.packed(call, target, source, arrays)
    a = arrays[0].astype(unsigned(source.bits), copy=False)
    if target.floating:
        return (
            conversion_float.scalar(call, target, source, a)
            if source.floating
            else _to_float(call, target, source, a)
        )
    return _to_integer(call, target, source, a) if source.floating else _resize(call, target, source, a)


def _plain(operands: tuple[Source, ...]) -> list[Unsigned]:
    flat: list[Unsigned] = []
    for operand in operands:
        flat.extend(operand if isinstance(operand, tuple) else (operand,))  # type: ignore[arg-type]
    return flat


def _limits(kind: Kind) -> tuple[int, int]:
    if kind.family == "s":
        return -(1 << (kind.bits - 1)), (1 << (kind.bits - 1)) - 1
    return 0, (1 << kind.bits) - 1


def _clamped(target: Kind, source: Kind, a: Unsigned) -> NDArray[np.uint64]:
    """An integer within the target's range, as the low bits of uint64."""
    low, high = _limits(target)
    if source.family == "s":
        number = as_signed(a).astype(np.int64)
        return (
            np.clip(number, max(low, -(1 << 63)), min(high, (1 << 63) - 1)).astype(np.int64).view(np.uint64)
        )
    return np.minimum(a.astype(np.uint64), np.uint64(high))


def _resize(call: Call, target: Kind, source: Kind, a: Unsigned) -> Unsigned:
    """Integer to integer: cut or extended by the source's sign; .sat clamps."""
    if call.has(".sat"):
        return _clamped(target, source, a).astype(unsigned(target.bits))
    number = as_signed(a) if source.family == "s" else a
    return number.astype(np.int64).view(np.uint64).astype(unsigned(target.bits))


def _to_float(call: Call, target: Kind, source: Kind, a: Unsigned) -> Unsigned:
    """Integer to float, rounded once; .sat clamps to [0, 1]."""
    form = target.form
    number = (as_signed(a) if source.family == "s" else a).astype(np.int64)
    if source.bits <= 32:
        result = nf.round_double(number.astype(np.float64), form, rounding(call))
    else:
        negative = (number < 0) if source.family == "s" else np.zeros(a.shape, np.bool_)
        magnitude = np.where(negative, -number, number).view(np.uint64)
        significand, places = normalize(magnitude)
        result = pack(negative, 63 - places, significand, form, rounding(call)).astype(form.dtype)
    return clamp_unit(result, form) if call.has(".sat") else result


def _to_integer(call: Call, target: Kind, source: Kind, a: Unsigned) -> Unsigned:
    form = source.form
    if call.has(".ftz") and form is F32:
        a = nf.flush_subnormals(a, form)
    with np.errstate(all="ignore"):
        whole = conversion_float.integral(call, nf.to_double(a, form))
    low, high = _limits(target)
    nan = np.isnan(whole)
    # float(high) may round up to a power of two: what reaches it is clamped apart.
    above, below = whole >= float(high), whole <= float(low)
    inside = np.where(nan | above | below, 0.0, whole)
    large = inside >= 2.0**63
    bits = np.where(large, inside - 2.0**63, inside).astype(np.int64).view(np.uint64)
    bits = bits + np.where(large, np.uint64(1 << 63), np.uint64(0))
    mask = (1 << 64) - 1
    bits = np.where(above, np.uint64(high & mask), np.where(below, np.uint64(low & mask), bits))
    own = 1 << (target.bits - 1) if source.bits == 64 or target.bits == 64 else 0
    return np.where(nan, np.uint64(own), bits).astype(unsigned(target.bits))


def _pack(named: tuple[Kind, ...], a: Unsigned, b: Unsigned, c: Unsigned | None = None) -> Unsigned:
    """cvt.pack.sat: a above b, each clamped; with c, c moved up above both."""
    target, source = named[0], named[1]
    mask = np.uint64((1 << target.bits) - 1)
    high, low = (_clamped(target, source, x) & mask for x in (a, b))
    pair = ((high << np.uint64(target.bits)) | low).astype(np.uint32)
    return pair if c is None else pair | (c << np.uint32(2 * target.bits))
