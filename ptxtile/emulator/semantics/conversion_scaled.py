"""cvt to and from s2f6x2 and ue5m3x2, and what is scaled by powers of two (PTX ISA 9.7.9.21).

A scale is a pair of ue8m0, one a lane: what is made narrow is divided by it first, what is made wide is multiplied by
it. Numbers outside the narrow format become its nearest one under .satfinite; without it ue5m3 gets its NaN. s2f6 has
no NaN and gets its largest number for one; ue5m3 takes magnitudes. No hardware was asked.
"""

from __future__ import annotations

import numpy as np

from ptxtile.emulator import numeric_float as nf
from ptxtile.emulator.numeric import Format
from ptxtile.emulator.semantics import Array, Call, narrow
from ptxtile.emulator.semantics.floating import clamp_negative
from ptxtile.emulator.semantics.kinds import Kind, Unsigned, rounding, split, unsigned

_ROUND = {"rn": np.rint, "rz": np.trunc}


def belongs(call: Call, target: Kind, source: Kind) -> bool:
    """Whether a conversion is one of these."""
    odd = ("s2f6", "ue5m3")
    return target.format in odd or source.format in odd or call.has(".scaled::n2::ue8m0")


def convert(call: Call, target: Kind, source: Kind, operands: list[Unsigned]) -> Array:
    """Two numbers to a pair; of two operands the first goes into the high lane."""
    scale: nf.Doubles = np.ones(1)
    if call.has(".scaled::n2::ue8m0"):
        scale = narrow.power(split(operands[-1].astype(np.uint16, copy=False), 8))
    if source.lanes == 1:
        lanes = np.stack([operands[1], operands[0]], axis=-1).reshape(-1)
    else:
        carrier = 8 if source.bits == 4 else max(source.bits, 8) * source.lanes
        lanes = narrow.unpacked(operands[0].astype(unsigned(carrier), copy=False), source)
    value = narrow.number(lanes, source)
    with np.errstate(all="ignore"):
        if target.format == "s2f6":
            return narrow.packed(_fixed(call, value / scale), target)
        if target.format == "ue5m3":
            return narrow.packed(_unsigned(call, value / scale), target)
        return narrow.packed(_widened(call, value * scale, target.form), target)


def _fixed(call: Call, value: nf.Doubles) -> Unsigned:
    """To units of 1/64, clamped to a signed byte."""
    if call.has(".relu"):
        value = np.where(value < 0, 0.0, value)
    units = np.where(
        np.isnan(value), 127.0, np.clip(_ROUND[rounding(call)](value * narrow.FRACTION), -128, 127)
    )
    return units.astype(np.int8).view(np.uint8)


def _unsigned(call: Call, value: nf.Doubles) -> Unsigned:
    saturates = call.has(".satfinite")
    bits: Unsigned = nf.round_double(np.abs(value), narrow.E5M3, rounding(call), saturate_finite=saturates)
    return bits


def _widened(call: Call, value: nf.Doubles, form: Format) -> Unsigned:
    result: Unsigned = nf.round_double(value, form, "rn", saturate_finite=call.has(".satfinite"))
    return clamp_negative(result, form) if call.has(".relu") else result
