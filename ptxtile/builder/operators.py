"""Python's operators on run-time values: one documented instruction sequence per operator and dtype.

The whole table is docs/operators.md. Where PTX has the instruction, the operator is that one instruction, rounded to
nearest even and never contracted (an explicit `.rn` keeps the assembler from fusing). Where PTX has none there is no
operator, but a TraceError that says what to write. Operands that are all constants are computed on the host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxtile.builder import convert, division, folding, ranges
from ptxtile.builder.values import common, constant, dtype_in, home, move, result, scalar, where, word
from ptxtile.dtypes import DType, Scalar, bool_, dtype_of, float32, float64
from ptxtile.errors import OperandError, TraceError

if TYPE_CHECKING:
    from ptxtile.builder.trace import Trace

SYMBOL = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "and": "&", "or": "|",
    "xor": "^", "shl": "<<", "shr": ">>", "neg": "-", "abs": "abs()", "invert": "~",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
    "pow": "**", "matmul": "@", "divmod": "divmod()", "round": "round()",
}  # fmt: skip
_INSTEAD = {
    "matmul": "name a form such as ptx.fma.rn.f32 or an mma",
    "divmod": "write a // b and a % b",
}
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
_ARITHMETIC = ("add", "sub", "mul")
_LOGIC = {"and": "and", "or": "or", "xor": "xor", "invert": "not"}


# --- assignment -----------------------------------------------------------------------------------------------------
def assign(trace: Trace, target: Scalar, value: object) -> None:
    """Write `value` into the variable `target`: one mov (a constant bool_: one setp)."""
    use = f"{type(target).name}.set()"
    _variable(trace, target, use)
    source = scalar(trace, type(target), value, use)
    if source.operand != target.operand or source.value is not None:
        move(trace, type(target), home(target), source)


def update(trace: Trace, name: str, target: Scalar, value: object) -> None:
    """`target op= value` on a variable: the operator's sequence, whose last instruction writes the variable."""
    _variable(trace, target, f"{type(target).name} {SYMBOL[name]}=")
    made = operate(trace, name, (target, value), target)
    if made is not target:
        assign(trace, target, made)


def _variable(trace: Trace, target: Scalar, use: str) -> None:
    if target.value is not None or not target.mutable:
        what = "a constant" if target.value is not None else "a value"
        raise TraceError(
            f"{use}: this is {what}, which never changes; make a variable with pt.reg({type(target)!r})"
            + where(trace)
        )
    trace.live(target, use)


# --- operators ------------------------------------------------------------------------------------------------------
def operate(trace: Trace, name: str, operands: tuple[object, ...], into: Scalar | None = None) -> Scalar:
    """The documented sequence of the operator `name`, into a new value (or the variable `into` of the same dtype)."""
    spelling = _FLOATS.get(name)
    quick = None if spelling is None else _floating(trace, spelling, name, operands, into)
    if quick is not None:
        return quick
    if name in ("shl", "shr"):
        return _shift(trace, name, operands, into)
    use = _use(name, operands)
    dtype, values = common(trace, use, operands)
    folded = folding.fold(name, dtype, values)
    if folded is not None:
        return folded
    if name in COMPARISONS:
        return _compare(trace, name, dtype, values)
    if dtype is bool_:
        return _logic(trace, name, values, into)
    if name in ("floordiv", "mod") and dtype.kind in ("int", "uint") and dtype.bits > 8:
        if values[1].value == 0:
            raise OperandError(f"{use}: division by the constant 0" + where(trace))
        return division.floor(trace, name, dtype, values[0], values[1], into)
    spelling = _spelling(name, dtype)
    if spelling is None:
        raise TraceError(_missing(name, dtype) + where(trace))
    words = [word(trace, value) for value in values]
    made = result(trace, dtype, into, _combined(name, dtype, values) if into is None else None)
    trace.instruction(spelling, home(made), *words)
    return made


_FLOATS = {"add": "add.rn", "sub": "sub.rn", "mul": "mul.rn", "truediv": "div.rn", "neg": "neg", "abs": "abs"}


def _floating(
    trace: Trace, spelling: str, name: str, operands: tuple[object, ...], into: Scalar | None
) -> Scalar | None:
    """The common case, without the questions: float32 or float64 values of one dtype, and Python floats beside them."""
    dtype: DType | None = None
    for operand in operands:
        kind = type(operand)
        if kind is not float and kind is not dtype:
            if dtype is not None or (kind is not float32 and kind is not float64):
                return None
            dtype = kind
    if dtype is None:
        return None
    words = []
    for operand in operands:
        if not isinstance(operand, Scalar):
            words.append(word(trace, constant(trace, dtype, operand, name)))  # type: ignore[arg-type]
        elif operand.value is None and operand.block.open:  # type: ignore[attr-defined]
            words.append(home(operand))
        else:
            return None
    made = trace.value(dtype) if into is None else into
    trace.instruction(spelling + dtype.ptx, home(made), *words)
    return made


def _combined(name: str, dtype: DType, values: tuple[Scalar, ...]) -> ranges.Extent | ranges.Wrapped | None:
    if dtype.kind not in ("int", "uint") or len(values) != 2:
        return None
    return ranges.combine(name, ranges.of_value(values[0]), ranges.of_value(values[1]), dtype)


def _use(name: str, operands: tuple[object, ...]) -> str:
    names = [type(o).name if isinstance(o, Scalar) else convert.given(o) for o in operands]
    symbol = SYMBOL[name]
    if len(names) == 2:
        return f"{names[0]} {symbol} {names[1]}"
    return f"abs({names[0]})" if name == "abs" else f"{symbol}{names[0]}"


def _spelling(name: str, dtype: DType) -> str | None:
    """The one instruction of an operator, or None where PTX has none."""
    if dtype.bits < 16 or dtype is bool_:
        return None
    if dtype.kind == "float":
        if name in _ARITHMETIC or (name == "truediv" and dtype.bits >= 32):
            return f"{'div' if name == 'truediv' else name}.rn{dtype.ptx}"
        return f"{name}{dtype.ptx}" if name in ("neg", "abs") else None
    if name in ("add", "sub"):
        return f"{name}{dtype.ptx}"
    if name == "mul":
        return f"mul.lo{dtype.ptx}"
    if name in _LOGIC:
        return f"{_LOGIC[name]}.b{dtype.bits}"
    return f"{name}{dtype.ptx}" if name in ("neg", "abs") and dtype.kind == "int" else None


def _missing(name: str, dtype: DType) -> str:
    head = f"{dtype.name} has no operator {SYMBOL[name]}, because PTX has no instruction for it"
    if dtype is bool_:
        return f"{head}: a predicate has & | ^ ~ == != only; pt.select(p, a, b) makes a number of it"
    if dtype.bits < 16:
        wider = {"int": "pt.int32", "uint": "pt.uint32", "float": "pt.float32"}[dtype.kind]
        return f"{head}: convert with pt.cast(value, {wider})"
    if name in _INSTEAD:
        return f"{head}: {_INSTEAD[name]}"
    if name == "pow":
        return f"{head}: write a * a" + (", or pt.pow(a, b)" if dtype is float32 else "")
    if name == "round" and dtype.kind == "float":
        return (
            f'{head}: write pt.round(value), which stays a {dtype.name}, or pt.cast(value, pt.int32, "rni")'
        )
    if name == "truediv":
        if dtype.kind == "float":
            return f"{head}: divide in float32, with pt.cast(value, pt.float32)"
        return f"{head}: write // for the floor of the quotient, or pt.cast(value, pt.float32)"
    if name in ("floordiv", "mod"):
        instead = "pt.floor(a / b)" if name == "floordiv" else "pt.fmod(a, b)"
        return (
            f"{head}: write {instead}"
            if dtype.bits >= 32
            else f"{head}: convert with pt.cast(value, pt.float32)"
        )
    if name == "neg":
        return f"{head}: write 0 - value, which wraps, or pt.cast(value, pt.int{dtype.bits})"
    if name == "abs":
        return f"{head}: an unsigned value is its own magnitude"
    return f"{head}: pt.bitcast(value, pt.uint{dtype.bits}) gives its bits as an integer"


def _shift(trace: Trace, name: str, operands: tuple[object, ...], into: Scalar | None) -> Scalar:
    """shl.bN, shr.sN (arithmetic) or shr.uN; the count is a .u32 that PTX clamps to the width."""
    use = _use(name, operands)
    left, count = operands
    dtype = dtype_in(left) or dtype_in(count)
    assert dtype is not None
    value = scalar(trace, dtype, left, use)
    if dtype.kind not in ("int", "uint") or dtype.bits < 16:
        raise TraceError(_missing(name, dtype) + where(trace))
    kind = dtype_in(count) or dtype_of("uint32")
    if kind.name not in ("uint32", "int32"):
        raise OperandError(
            f"{use}: the count of a shift is a uint32; write pt.cast(count, pt.uint32)" + where(trace)
        )
    if isinstance(count, int) and count < 0:
        raise OperandError(f"{use}: a negative shift count" + where(trace))
    amount = scalar(trace, kind, count, use)
    if amount.value is not None and amount.value < 0:
        raise OperandError(f"{use}: a negative shift count" + where(trace))
    folded = folding.fold(name, dtype, (value, amount))
    if folded is not None:
        return folded
    spelling = f"shl.b{dtype.bits}" if name == "shl" else f"shr{dtype.ptx}"
    words = word(trace, value), word(trace, amount)
    extent = (
        ranges.combine(name, ranges.of_value(value), ranges.of_value(amount), dtype) if into is None else None
    )
    made = result(trace, dtype, into, extent)
    trace.instruction(spelling, home(made), *words)
    return made


def _compare(trace: Trace, name: str, dtype: DType, values: tuple[Scalar, ...]) -> Scalar:
    """One setp: floats ordered, except that `!=` is true for a NaN (neu), as in Python."""
    if dtype is bool_:
        if name not in ("eq", "ne"):
            raise TraceError(_missing(name, dtype) + where(trace))
        differ = _logic(trace, "xor", values, None)
        return differ if name == "ne" else operate(trace, "invert", (differ,))
    if dtype.bits < 16:
        raise TraceError(_missing(name, dtype) + where(trace))
    test = "neu" if dtype.kind == "float" and name == "ne" else name
    words = [word(trace, value) for value in values]
    fact = None
    if dtype.kind != "float":
        fact = ranges.compare(name, ranges.of_value(values[0]), ranges.of_value(values[1]))
    made = trace.value(bool_, extent=fact)
    trace.instruction(f"setp.{test}{dtype.ptx}", home(made), *words)
    return made


def _logic(trace: Trace, name: str, values: tuple[Scalar, ...], into: Scalar | None) -> Scalar:
    """and.pred, or.pred, xor.pred, not.pred; a constant side needs no instruction."""
    if name not in _LOGIC:
        raise TraceError(_missing(name, bool_) + where(trace))
    known = next((value for value in values if value.value is not None), None)
    if known is not None:
        other = values[1] if known is values[0] else values[0]
        if name == "xor" and known.value:
            return operate(trace, "invert", (other,), into)
        absorbs = (name == "and" and not known.value) or (name == "or" and known.value)
        return known if absorbs else other
    extent: object = None
    facts = [value.extent for value in values]
    if name == "invert":
        extent = ranges.negate(facts[0])
    elif name == "and" and all(isinstance(fact, ranges.Comparison) for fact in facts):
        extent = ranges.Comparison("and", facts[0], facts[1])  # type: ignore[arg-type]
    made = result(trace, bool_, into, extent)
    trace.instruction(f"{_LOGIC[name]}.pred", home(made), *(home(value) for value in values))
    return made
