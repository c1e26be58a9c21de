"""Floating-point arithmetic (PTX ISA 9.7.3, 9.7.4, 9.7.5): add sub mul fma mad div rcp sqrt abs neg copysign testp.

One function an instruction serves f16, bf16, f32, f64, their packed and the mixed-precision forms: lanes are split
before and joined after. Each result is rounded once from the exact value, in every direction.
"""

from __future__ import annotations

import numpy as np

from ptxtile.emulator import numeric_float as nf
from ptxtile.emulator.numeric import BF16, F16, F32, F64, Format, Mask
from ptxtile.emulator.semantics import Array, Call, value
from ptxtile.emulator.semantics.kinds import Kind, Unsigned, join, kinds, rounding, split

OOB_NAN = 0x7FF7
"""The NaN that .oob (9.7.4.4) takes for an element out of bounds, of either sign and in f16 and bf16 alike: it is what
a tensor copy fills with."""


def clamp_unit(x: Unsigned, form: Format) -> Unsigned:
    """.sat: to [+0, 1]; NaN and -0 give +0."""
    kind = x.dtype.type
    low = nf.is_nan(x, form) | nf.is_negative(x, form)
    return np.where(low, kind(0), np.minimum(x, kind(form.one)))


def clamp_negative(x: Unsigned, form: Format) -> Unsigned:
    """.relu: negative numbers and -0 give +0, NaN the format's own NaN."""
    kind = x.dtype.type
    result = np.where(nf.is_negative(x, form), kind(0), x)
    return np.where(nf.is_nan(x, form), kind(form.nan), result)


def finish(call: Call, x: Unsigned, form: Format) -> Unsigned:
    """The clamps that a form names, applied to its rounded result."""
    if call.has(".sat"):
        return clamp_unit(x, form)
    if call.has(".relu"):
        return clamp_negative(x, form)
    return x


def _arithmetic(call: Call, form: Format, *operands: Unsigned) -> Unsigned:
    mode, flush = rounding(call), call.has(".ftz")
    if call.opcode == "add":
        return nf.add(operands[0], operands[1], form, mode, flush=flush)
    if call.opcode == "sub":
        return nf.subtract(operands[0], operands[1], form, mode, flush=flush)
    if call.opcode == "mul":
        return nf.multiply(operands[0], operands[1], form, mode, flush=flush)
    if call.opcode == "div":
        return nf.divide(operands[0], operands[1], form, mode, flush=flush)
    return nf.fused(operands[0], operands[1], operands[2], form, mode, flush=flush)


def _directed_bf16(call: Call, kind: Kind, operands: list[Unsigned]) -> Unsigned | None:
    """fma.{rz,rm,rp}{.oob}{.relu}.bf16 and .bf16x2, which ptxas accepts and the manual lacks; else None.

    The hardware rounds the packed ones to nearest. The scalar ones it takes for f16: an f32 fma in the named direction
    on the f16 values, rounded to nearest f16, without .oob and .relu.
    """
    if kind.format != "bf16" or call.opcode != "fma" or rounding(call) == "rn":
        return None
    a, b, c = operands
    if kind.lanes == 2:
        return finish(call, nf.fused(a, b, c, BF16), BF16)
    with np.errstate(all="ignore"):
        product = nf.to_double(a, F16) * nf.to_double(b, F16)
        single = nf.sum_rounded(product, nf.to_double(c, F16), F32, rounding(call))
        return nf.round_double(nf.to_double(single, F32), F16, "rn")


def _taken_for_f16(call: Call, kind: Kind) -> bool:
    return kind.format == "bf16" and kind.lanes == 1 and call.opcode == "fma" and rounding(call) != "rn"


def arithmetic(call: Call, kind: Kind, operands: tuple[Unsigned, ...]) -> Array:
    """add, sub, mul, div, fma and mad on whole registers."""
    form = kind.form
    lanes = [split(x, kind.bits) for x in operands]
    result = _directed_bf16(call, kind, lanes)
    if result is None:
        result = finish(call, _arithmetic(call, form, *lanes), form)
    if call.has(".oob") and not _taken_for_f16(call, kind):
        missing = ((lanes[0] & 0x7FFF) == OOB_NAN) | ((lanes[1] & 0x7FFF) == OOB_NAN)
        result = np.where(missing, result.dtype.type(0), result)
    return join(result, kind.bits * kind.lanes)


@value("rcp")
def reciprocal(call: Call, a: Unsigned) -> Array:
    """rcp (9.7.3.13, 9.7.3.14), correctly rounded; .approx is in `approximate`."""
    from ptxtile.emulator.semantics import approximate

    form = kinds(call)[0].form
    if call.has(".approx"):
        return approximate.reciprocal(call, a, form)
    one = np.full(a.shape, form.one, a.dtype)
    # In f64 the hardware flushes nothing where a rounding is named.
    return nf.divide(one, a, form, rounding(call), flush=call.has(".ftz") and form is F32)


@value("sqrt")
def square_root(call: Call, a: Unsigned) -> Array:
    """sqrt (9.7.3.15), correctly rounded; .approx is in `approximate`."""
    from ptxtile.emulator.semantics import approximate

    form = kinds(call)[0].form
    if call.has(".approx"):
        return approximate.square_root(call, a, form)
    return nf.square_root(a, form, rounding(call), flush=call.has(".ftz"))


def sign_change(call: Call, kind: Kind, operands: tuple[Unsigned, ...]) -> Array:
    """abs and neg (9.7.3.9, 9.7.3.10): NaNs become canonical, in f64 only quiet, with their sign."""
    form = kind.form
    x = split(operands[0], kind.bits)
    if call.has(".ftz"):
        x = nf.flush_subnormals(x, form)
    sign = x.dtype.type(form.sign)
    result = x & ~sign if call.opcode == "abs" else x ^ sign
    nan = x | x.dtype.type(form.hidden >> 1) if form is F64 else x.dtype.type(form.nan)
    return join(np.where(nf.is_nan(x, form), nan, result), kind.bits * kind.lanes)


@value("copysign")
def copysign(call: Call, a: Unsigned, b: Unsigned) -> Array:
    """copysign (9.7.3.2): b with the sign of a, bits otherwise kept, NaNs too."""
    sign = a.dtype.type(kinds(call)[0].form.sign)
    return (a & sign) | (b & ~sign)


@value("testp")
def testp(call: Call, a: Unsigned) -> Array:
    """testp (9.7.3.1). Zeros count as normal numbers."""
    form = kinds(call)[0].form
    kind = a.dtype.type
    magnitude = a & kind(form.sign - 1)
    infinity, least = kind(form.infinity), kind(form.hidden)
    subnormal = (magnitude != 0) & (magnitude < least)
    tests = {
        ".finite": magnitude < infinity,
        ".infinite": magnitude == infinity,
        ".number": magnitude <= infinity,
        ".notanumber": magnitude > infinity,
        ".normal": (magnitude < infinity) & ~subnormal,
        ".subnormal": subnormal,
    }
    found: Mask = tests[next(m for m in call.modifiers if m in tests)]
    return found
