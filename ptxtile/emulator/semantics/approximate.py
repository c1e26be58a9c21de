"""The .approx and .full functions (PTX ISA 9.7.3.8, 9.7.3.13 to 9.7.3.22, 9.7.4.10, 9.7.4.11).

The ISA bounds these results, it does not define them. Here they are the exact value rounded to nearest, which is within
every bound, with the special values of the hardware: what it flushes, where it gives zero, infinity or NaN.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator import numeric_float as nf
from ptxtile.emulator.numeric import F32, F64, Format
from ptxtile.emulator.semantics import Array, Call, value
from ptxtile.emulator.semantics.kinds import Unsigned, join, kinds, split

Doubles = NDArray[np.float64]

_HIGH_WORD = np.uint64(0xFFFFFFFF00000000)
_GROSS_NAN = np.uint64(0x7FFFFFFF00000000)
_TURNS = np.float64(np.uint32(0x3E22F983).view(np.float32))
"""1 / (2 pi) in single precision, by which the hardware scales the argument of sin and cos."""


def _through(call: Call, a: Unsigned, form: Format, function: Callable[[Doubles], Doubles]) -> Unsigned:
    flush = call.has(".ftz")
    x = nf.flush_subnormals(a, form) if flush else a
    with np.errstate(all="ignore"):
        result = function(nf.to_double(x, form))
    if form is F64:
        bits = np.where(np.isnan(result), np.uint64(F64.nan), result.view(np.uint64))
        return nf.propagate(bits, x)
    return nf.round_double(result, form, "rn", flush=flush)


def _gross(a: Unsigned, function: Callable[[Doubles], Doubles]) -> Unsigned:
    """The .approx.ftz.f64 pair: the high words alone are read and written, to 20 fraction bits."""
    x = nf.flush_subnormals(a & _HIGH_WORD, F64)
    with np.errstate(all="ignore"):
        exact = function(x.view(np.float64))
    bits = nf.flush_subnormals(exact.view(np.uint64), F64)
    rounded = (bits + np.uint64(1 << 31)) & _HIGH_WORD
    return np.where(np.isnan(exact), _GROSS_NAN, rounded)


def _inverse(x: Doubles) -> Doubles:
    return 1.0 / x


def _inverse_root(x: Doubles) -> Doubles:
    return 1.0 / np.sqrt(x)


def reciprocal(call: Call, a: Unsigned, form: Format) -> Array:
    """rcp.approx{.ftz}.f32 and rcp.approx.ftz.f64 (9.7.3.14)."""
    return _gross(a, _inverse) if form is F64 else _through(call, a, form, _inverse)


def square_root(call: Call, a: Unsigned, form: Format) -> Array:
    """sqrt.approx{.ftz}.f32."""
    return _through(call, a, form, np.sqrt)


@value("rsqrt")
def inverse_root(call: Call, a: Unsigned) -> Array:
    """rsqrt.approx of f32 and f64; with .ftz on f64 the gross one of 20 bits (9.7.3.17). -0 gives -infinity."""
    form = kinds(call)[0].form
    if form is F64 and call.has(".ftz"):
        return _gross(a, _inverse_root)
    return _through(call, a, form, _inverse_root)


def divide(call: Call, a: Unsigned, b: Unsigned) -> Array:
    """div.approx and div.full of f32. div.approx multiplies by a reciprocal that is 0 for |b| above 2**126."""
    flush = call.has(".ftz")
    if flush:
        a, b = nf.flush_subnormals(a, F32), nf.flush_subnormals(b, F32)
    x, y = nf.to_double(a, F32), nf.to_double(b, F32)
    with np.errstate(all="ignore"):
        result = x / y
        if call.has(".approx"):
            vanishing = (np.abs(y) > 2.0**126) & np.isfinite(y)
            result = np.where(vanishing, x * np.copysign(0.0, y), result)
    return nf.round_double(result, F32, "rn", flush=flush)


def _packed(call: Call, a: Unsigned, function: Callable[[Doubles], Doubles]) -> Array:
    kind = kinds(call)[0]
    return join(_through(call, split(a, kind.bits), kind.form, function), kind.bits * kind.lanes)


@value("ex2")
def exponential(call: Call, a: Unsigned) -> Array:
    """ex2.approx of f32, f16, bf16 and packed halves."""
    return _packed(call, a, np.exp2)


@value("tanh")
def tangent(call: Call, a: Unsigned) -> Array:
    """tanh.approx of f32, f16, bf16 and packed halves."""
    return _packed(call, a, np.tanh)


@value("lg2")
def logarithm(call: Call, a: Unsigned) -> Array:
    """lg2.approx{.ftz}.f32. Zeros give -infinity, negative numbers NaN."""
    return _through(call, a, F32, np.log2)


def _phase(x: Doubles) -> Doubles:
    """The argument in turns, less whole turns: scaled in single precision toward zero as the hardware does."""
    turns = nf.to_double(nf.round_double(x * _TURNS, F32, "rz"), F32)
    return 2.0 * np.pi * (turns - np.rint(turns))


@value("sin")
def sine(call: Call, a: Unsigned) -> Array:
    """sin.approx{.ftz}.f32. Arguments up to 2**-24, and those of no fraction of a turn, give a zero of their sign."""

    def function(x: Doubles) -> Doubles:
        phase = _phase(x)
        return np.where((np.abs(x) <= 2.0**-24) | (phase == 0), np.copysign(0.0, x), np.sin(phase))

    return _through(call, a, F32, function)


@value("cos")
def cosine(call: Call, a: Unsigned) -> Array:
    """cos.approx{.ftz}.f32."""
    return _through(call, a, F32, lambda x: np.cos(_phase(x)))
