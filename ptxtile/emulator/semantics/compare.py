"""Comparison and selection (PTX ISA 9.7.6, 9.7.7): set setp selp slct.

A third source is the predicate that a boolean operator combines with the comparison; the machine negates it where the
text writes `!`. The second destination of setp is the combination with the comparison's negation.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ptxtile.emulator import numeric_float as nf
from ptxtile.emulator.numeric import F32, FORMATS, Mask
from ptxtile.emulator.semantics import Array, Call, Outcome, value
from ptxtile.emulator.semantics.kinds import Kind, Unsigned, as_signed, join, kinds, split

Compare = Callable[[np.ndarray, np.ndarray], Mask]

_ORDERED: dict[str, Compare] = {
    ".eq": np.equal,
    ".ne": np.not_equal,
    ".lt": np.less,
    ".le": np.less_equal,
    ".gt": np.greater,
    ".ge": np.greater_equal,
}
_UNSIGNED = {".lo": ".lt", ".ls": ".le", ".hi": ".gt", ".hs": ".ge"}
_UNORDERED = {operator + "u": operator for operator in _ORDERED}
_NAN_TESTS = frozenset({".num", ".nan"})
_BOOLEAN: dict[str, Compare] = {".and": np.logical_and, ".or": np.logical_or, ".xor": np.logical_xor}


def _operator(call: Call) -> str:
    return next(
        m for m in call.modifiers if m in _ORDERED or m in _UNSIGNED or m in _UNORDERED or m in _NAN_TESTS
    )


def compare(call: Call, kind: Kind, a: Unsigned, b: Unsigned) -> Mask:
    """The comparison that the form names, lane by lane."""
    operator = _operator(call)
    if not kind.floating:
        signed = kind.family == "s" and operator not in _UNSIGNED
        x, y = (as_signed(a), as_signed(b)) if signed else (a, b)
        return _ORDERED[_UNSIGNED.get(operator, operator)](x, y)
    form = kind.form
    if call.has(".ftz"):
        a, b = nf.flush_subnormals(a, form), nf.flush_subnormals(b, form)
    unordered = nf.is_nan(a, form) | nf.is_nan(b, form)
    if operator in _NAN_TESTS:
        return unordered if operator == ".nan" else ~unordered
    with np.errstate(invalid="ignore"):
        result = _ORDERED[_UNORDERED.get(operator, operator)](nf.to_double(a, form), nf.to_double(b, form))
    return result | unordered if operator in _UNORDERED else result & ~unordered


def _combine(call: Call, result: Mask, other: Array | None) -> Mask:
    for modifier in call.modifiers:
        if modifier in _BOOLEAN and other is not None:
            return _BOOLEAN[modifier](result, other.astype(np.bool_))
    return result


@value("setp")
def setp(call: Call, a: Unsigned, b: Unsigned, c: Array | None = None) -> Outcome:
    """setp (9.7.6.2, 9.7.7.2). Of packed halves, p is of the low half and q of the high one."""
    kind = kinds(call)[0]
    result = compare(call, kind, split(a, kind.bits), split(b, kind.bits))
    pair = len(call.types) > (4 if c is not None else 3)
    if kind.lanes == 2:
        low, high = _combine(call, result[0::2], c), _combine(call, result[1::2], c)
        return (low, high) if pair else low
    p = _combine(call, result, c)
    return (p, _combine(call, ~result, c)) if pair else p


@value("set")
def set_(call: Call, a: Unsigned, b: Unsigned, c: Array | None = None) -> Outcome:
    """set (9.7.6.1, 9.7.7.1): all ones or 1.0 where true. Each of packed halves gets its own, of its width."""
    target, source = kinds(call)[:2]
    result = compare(call, source, split(a, source.bits), split(b, source.bits))
    result = _combine(call, result, None if c is None else np.repeat(c, source.lanes))
    bits = target.bits // source.lanes if not target.floating else target.bits
    true = FORMATS[target.format].one if target.floating else (1 << bits) - 1
    lanes = np.where(result, true, 0).astype(f"u{bits // 8}")
    return join(lanes, bits * source.lanes)


@value("selp")
def selp(call: Call, a: Array, b: Array, c: Array) -> Outcome:
    """selp (9.7.6.3): a where c, else b; bits kept."""
    return np.where(c.astype(np.bool_), a, b)


@value("slct")
def slct(call: Call, a: Array, b: Array, c: Unsigned) -> Outcome:
    """slct (9.7.6.4): a where c >= 0, else b; bits kept. -0 counts as 0, NaN as negative."""
    if not kinds(call)[1].floating:
        return np.where(as_signed(c) >= 0, a, b)
    if call.has(".ftz"):
        c = nf.flush_subnormals(c, F32)
    with np.errstate(invalid="ignore"):
        return np.where(c.view(np.float32) >= 0, a, b)
