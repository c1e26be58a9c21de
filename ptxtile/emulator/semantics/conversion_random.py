"""cvt.rs (PTX ISA 9.7.9.21): f32 rounded away from zero with the help of random bits that the program gives.

A number lies some fraction of a unit above the next encoding toward zero; n random bits are another such fraction, and
where the two reach 1 together the result is the next encoding away from zero. n is 13 for f16, 16 for bf16 and for the
formats of eight and six bits, 8 for e2m1. No hardware was asked.
"""

from __future__ import annotations

import numpy as np

from ptxtile.emulator import numeric_float as nf
from ptxtile.emulator.numeric import F32, U64, Bits, Format, unpack
from ptxtile.emulator.semantics import Array, Call, narrow
from ptxtile.emulator.semantics.floating import clamp_negative
from ptxtile.emulator.semantics.kinds import Kind, Unsigned


def convert(call: Call, target: Kind, operands: list[Unsigned]) -> Array:
    """Two or four f32, the first into the highest lane, and the register of random bits."""
    values, random = operands[:-1], operands[-1].astype(np.uint64)
    fields = _fields(target, random)
    lanes = [
        _round(call, value, target.form, bits, _width(target))
        for value, bits in zip(reversed(values), fields)
    ]
    return narrow.packed(np.stack(lanes, axis=-1).reshape(-1), target)


def _width(target: Kind) -> int:
    return {"f16": 13, "e2m1": 8}.get(target.format, 16)


def _fields(target: Kind, random: Bits) -> list[Bits]:
    """The random bits of each lane, lowest lane first."""
    mask = U64((1 << _width(target)) - 1)
    low, high = random & U64(0xFFFF), random >> U64(16)
    if target.lanes == 2:
        return [low & mask, high & mask]
    if target.format == "e2m1":
        return [low & mask, high & mask, low >> U64(8), high >> U64(8)]
    return [low, low, high, high]


def _round(call: Call, x: Unsigned, form: Format, random: Bits, width: int) -> Unsigned:
    parts = unpack(x, F32)
    places = np.clip(form.emin - parts.exponent, 0, 63).astype(np.uint64)
    placed = np.where(parts.zero, U64(0), parts.significand) >> places
    shift = 64 - form.precision
    fraction = (placed >> U64(shift - width)) & U64((1 << width) - 1)
    carry = (fraction + random) >> U64(width)
    field = np.maximum(parts.exponent - form.emin, 0).astype(np.uint64)
    magnitude = (placed >> U64(shift)) + carry + (field << U64(form.precision - 1))
    saturates = call.has(".satfinite")
    top = form.largest if saturates or not form.infinite else form.infinity
    magnitude = np.where((magnitude > U64(form.largest)) | parts.infinite, U64(top), magnitude)
    signed = magnitude | np.where(parts.negative, U64(form.sign), U64(0))
    result = np.where(parts.nan, U64(form.nan), signed).astype(form.dtype)
    if not call.has(".relu"):
        return result
    if form.infinite:
        return clamp_negative(result, form)
    return np.where(nf.is_negative(result, form) & ~parts.nan, result.dtype.type(0), result)
