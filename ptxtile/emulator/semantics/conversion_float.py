"""cvt between floats (PTX ISA 9.7.9.22): f64 f32 tf32 f16 bf16, packed pairs, and the 8, 6 and 4 bit formats.

NaNs: to f32 and narrower from f32 and narrower the format's own NaN (of tf32 0x7fffe000); from f64 quiet with the
leading payload bits; to f64 quiet with the payload kept, under .ftz that of the canonical f32 NaN; from bf16 to f32,
and from f32 or f64 to itself without a modifier, the bits are moved. The 6 and 4 bit formats have none: NaN gives their
largest number.
"""

from __future__ import annotations

import numpy as np

from ptxtile.emulator import numeric_float as nf
from ptxtile.emulator.numeric import BF16, F16, F32, F64, TF32, Format
from ptxtile.emulator.semantics import Array, Call, narrow
from ptxtile.emulator.semantics.floating import clamp_negative, clamp_unit
from ptxtile.emulator.semantics.kinds import Kind, Unsigned, rounding, unsigned

_INTEGRAL = {".rni": np.rint, ".rzi": np.trunc, ".rmi": np.floor, ".rpi": np.ceil}
_TF32_SHIFT = 13
"""tf32 stands in the upper 19 bits of a 32-bit register."""


def integral(call: Call, x: nf.Doubles) -> nf.Doubles:
    """Doubles rounded to whole numbers as .rni, .rzi, .rmi or .rpi says; unchanged without one."""
    for modifier, function in _INTEGRAL.items():
        if call.has(modifier):
            return np.asarray(function(x), np.float64)
    return x


def widen_nan(x: Unsigned, source: Format, target: Format) -> Unsigned:
    """NaN encodings moved between IEEE formats: sign and leading payload kept, made quiet."""
    wide = x.astype(np.uint64)
    sign = np.where(wide & np.uint64(source.sign), np.uint64(target.sign), np.uint64(0))
    payload = wide & np.uint64(source.hidden - 1)
    distance = target.precision - source.precision
    moved = payload << np.uint64(distance) if distance >= 0 else payload >> np.uint64(-distance)
    return (sign | np.uint64(target.infinity | target.hidden >> 1) | moved).astype(target.dtype)


def _flushed(call: Call, target: Format, source: Format, a: Unsigned) -> Unsigned:
    if not call.has(".ftz") or source is not F32:
        return a
    # The hardware leaves subnormals alone in these two, which then round away from zero.
    if target is F16 and (call.has(".rm") or call.has(".rp")):
        return a
    return nf.flush_subnormals(a, F32)


def scalar(call: Call, target: Kind, source: Kind, a: Unsigned) -> Unsigned:
    """One float to one float; a has the source's width, tf32 results are 32 bits wide."""
    to, of = target.form, source.form
    if to is F32 and of is BF16 and not (call.has(".ftz") or call.has(".sat")):
        return a.astype(np.uint32) << np.uint32(16)
    if len(call.modifiers) == 2 and to is of:
        return np.where(nf.is_nan(a, to), np.uint16(to.nan), a) if to in (F16, BF16) else a
    x = _flushed(call, to, of, a)
    if to is TF32:
        return _to_tf32(call, x)
    with np.errstate(all="ignore"):
        number = integral(call, nf.to_double(x, of))
    flush = call.has(".ftz") and to is F32
    result = _convert(number, to, rounding(call), flush, call.has(".satfinite"))
    if F64 in (to, of):
        canonical = call.has(".ftz") and of is F32
        from_nan = np.full(x.shape, F32.nan, np.uint32) if canonical else x
        result = np.where(np.isnan(number), widen_nan(from_nan, of, to), result)
    return _clamp(call, result, to)


def _convert(number: nf.Doubles, to: Format, mode: str, flush: bool, saturate: bool) -> Unsigned:
    if to is F64:
        return number.view(np.uint64)
    return nf.round_double(number, to, mode, flush=flush, saturate_finite=saturate)


def _clamp(call: Call, x: Unsigned, form: Format) -> Unsigned:
    if call.has(".sat"):
        return clamp_unit(x, form)
    return clamp_negative(x, form) if call.has(".relu") else x


def _to_tf32(call: Call, a: Unsigned) -> Unsigned:
    mode, saturate = rounding(call), call.has(".satfinite")
    with np.errstate(all="ignore"):
        narrow = nf.round_double(nf.to_double(a, F32), TF32, mode, saturate_finite=saturate)
    result = narrow << np.uint32(_TF32_SHIFT)
    if mode == "rna":
        # .rna cuts a NaN's low bits like a number's, so one with nothing above them becomes an infinity.
        cut = a & np.uint32(0xFFFFE000)
        if saturate:
            # The hardware steps back from an infinity to the largest number, and likewise from a NaN.
            cut = cut - np.uint32(1 << _TF32_SHIFT)
        return np.where(nf.is_nan(a, F32), cut, result)
    if call.has(".relu"):
        result = np.where(nf.is_negative(result, F32), np.uint32(0), result)
    return np.where(nf.is_nan(a, F32), np.uint32(F32.nan & ~((1 << _TF32_SHIFT) - 1)), result)


def _to_small(call: Call, number: nf.Doubles, to: Format) -> Unsigned:
    """Doubles to an 8, 6 or 4 bit format, saturating; NaN to the format's NaN or largest number."""
    if call.has(".relu"):
        number = np.where(number < 0, 0.0, np.where(number == 0, 0.0, number))
    return nf.round_double(number, to, rounding(call), saturate_finite=call.has(".satfinite"))


def _to_scale(call: Call, number: nf.Doubles) -> Unsigned:
    """Doubles to ue8m0, powers of two from 2**-127: of the magnitude, up or toward zero; NaN 0xff."""
    magnitude = np.abs(number)
    with np.errstate(all="ignore"):
        mantissa, exponent = np.frexp(magnitude)
    power = exponent.astype(np.int64) - 1 + ((mantissa > 0.5) & call.has(".rp"))
    biased = np.where(magnitude == 0, 0, np.maximum(power + 127, 0))
    top = 0xFE if call.has(".satfinite") else 0xFF
    biased = np.where((biased > 0xFE) | np.isinf(number), top, biased)
    return np.where(np.isnan(number), 0xFF, biased).astype(np.uint8)


def _from_small(call: Call, x: Unsigned, of: Kind, to: Format) -> Unsigned:
    """8, 6 or 4 bit encodings to f16 or bf16, exactly."""
    return _clamp(call, nf.round_double(narrow.number(x, of), to, "rn"), to)


def packed(call: Call, target: Kind, source: Kind, operands: list[Unsigned]) -> Array:
    """Conversions that pack or unpack: of several operands the first goes into the highest lane."""
    if source.lanes == 1:
        # Lanes lie lowest first, so the operands interleave in reverse.
        lanes = np.stack(operands[: target.lanes][::-1], axis=-1).reshape(-1)
    else:
        carrier = max(source.bits * source.lanes, 8) if source.bits != 6 else 8 * source.lanes
        lanes = narrow.unpacked(operands[0].astype(unsigned(carrier), copy=False), source)
    if source.format not in ("f16", "bf16", "f32"):
        return narrow.packed(_from_small(call, lanes, source, target.form), target)
    lanes = _flushed(call, target.form if target.format != "ue8m0" else F32, source.form, lanes)
    number = nf.to_double(lanes, source.form)
    if target.format == "ue8m0":
        return narrow.packed(_to_scale(call, number), target)
    if target.form in (F16, BF16):
        result = nf.round_double(number, target.form, rounding(call), saturate_finite=call.has(".satfinite"))
        return narrow.packed(_clamp(call, result, target.form), target)
    return narrow.packed(_to_small(call, number, target.form), target)
