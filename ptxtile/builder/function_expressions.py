"""Expressions of a @pt.function: what each node of the syntax tree means, on run-time and on known values.

A known value (a Python number, a dtype, a module, a tuple …) is computed while compiling. A run-time value is a Scalar,
and its operators are those of docs/operators.md. `and`, `or` and conditional expressions on run-time values compute
all their parts and combine them (`and.pred`, `or.pred`, `selp`): nothing in a scalar function has a side effect.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ptxtile.builder import folding, scalars
from ptxtile.builder.function_source import Source
from ptxtile.builder.trace import Trace
from ptxtile.builder.values import scalar, where
from ptxtile.dtypes import DType, Scalar, bool_
from ptxtile.errors import OperandError, PtxtileError, TraceError
from ptxtile.isa.form import Form

if TYPE_CHECKING:
    from ptxtile.builder.function import Inlinable

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.Pow: operator.pow,
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
}  # fmt: skip
_INSTEAD = {
    "min": "pt.minimum", "max": "pt.maximum", "pow": "pt.pow", "round": "pt.round", "int": "pt.cast(x, pt.int32)",
    "float": "pt.cast(x, pt.float32)", "bool": "a comparison",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Unusable:
    """What a name stands for after paths that disagree; using it is an error that says `why`."""

    why: str


def runtime(value: object) -> bool:
    """Whether a value exists at run time only."""
    return isinstance(value, Scalar) and value.value is None


class Expressions:
    """Evaluates expressions of one inlined function."""

    def __init__(self, trace: Trace, source: Source) -> None:
        self.trace = trace
        self.source = source
        self.names: dict[str, object] = {}
        self.rules: dict[type[ast.expr], Callable[[Any], object]] = {
            ast.Constant: lambda node: node.value,
            ast.Name: self._name,
            ast.Attribute: self._attribute,
            ast.BinOp: self._binary,
            ast.UnaryOp: self._unary,
            ast.BoolOp: self._boolean,
            ast.Compare: self._compare,
            ast.IfExp: self._conditional,
            ast.Call: self._call,
            ast.Tuple: lambda node: tuple(self.evaluate(part) for part in node.elts),
            ast.Subscript: self._subscript,
        }

    def fail(self, node: ast.AST, message: str) -> TraceError:
        """A TraceError at a node."""
        return TraceError(f"@pt.function {self.source.name}: {message}" + self.source.quote(node))

    def evaluate(self, node: ast.expr) -> object:
        """The value of an expression."""
        rule = self.rules.get(type(node))
        if rule is None:
            raise self.fail(node, f"{type(node).__name__} has no meaning in a scalar function")
        self.trace.source = self.source.mark(node)
        return rule(node)

    def apply(self, node: ast.AST, what: Callable[..., object], *values: object) -> object:
        """Compute something at a node's line; Python's own exceptions become a TraceError there."""
        self.trace.source = self.source.mark(node)
        try:
            return what(*values)
        except PtxtileError:
            raise
        except Exception as error:
            raise self.fail(node, f"{type(error).__name__}: {error}") from error

    def binary(self, node: ast.AST, op: ast.operator, left: object, right: object) -> object:
        """`left op right`."""
        function = _BINARY.get(type(op))
        if function is None:
            raise self.fail(node, f"the operator {type(op).__name__} has no meaning in a scalar function")
        if isinstance(op, ast.Pow) and (isinstance(left, Scalar) or isinstance(right, Scalar)):
            raise self.fail(node, "** on scalars: write pt.pow(x, y), or the product")
        return self.apply(node, function, left, right)

    def truth(self, node: ast.AST, value: object) -> bool | None:
        """The truth of a known condition, None for a run-time bool_."""
        if runtime(value):
            if not isinstance(value, bool_):
                raise self.fail(
                    node, f"a run-time {type(value).__name__} is no condition; compare it, as in x != 0"
                )
            return None
        return bool(value.value if isinstance(value, Scalar) else value)

    # --- names ------------------------------------------------------------------------------------------------------
    def _name(self, node: ast.Name) -> object:
        if node.id in self.names:
            found = self.names[node.id]
            if isinstance(found, Unusable):
                raise self.fail(node, found.why)
            return found
        try:
            return self.source.lookup(node.id)
        except KeyError:
            raise self.fail(node, f"{node.id} is not bound here") from None

    def _attribute(self, node: ast.Attribute) -> object:
        base = self.evaluate(node.value)
        if isinstance(base, Scalar):
            raise self.fail(
                node, f"a scalar has no .{node.attr} in a scalar function; assign its name anew to change it"
            )
        try:
            return getattr(base, node.attr)
        except AttributeError as error:
            if isinstance(error, PtxtileError):
                raise
            raise self.fail(node, str(error)) from None

    def _subscript(self, node: ast.Subscript) -> object:
        base, index = self.evaluate(node.value), self.evaluate(node.slice)
        if isinstance(base, Scalar) or isinstance(index, Scalar):
            raise self.fail(node, "run-time values are not indexed in a scalar function")
        return self.apply(node, operator.getitem, base, index)

    # --- operators --------------------------------------------------------------------------------------------------
    def _binary(self, node: ast.BinOp) -> object:
        return self.binary(node, node.op, self.evaluate(node.left), self.evaluate(node.right))

    def _unary(self, node: ast.UnaryOp) -> object:
        value = self.evaluate(node.operand)
        if isinstance(node.op, ast.Not):
            known = self.truth(node, value)
            return self.apply(node, operator.invert, value) if known is None else not known
        return self.apply(node, _UNARY[type(node.op)], value)

    def _boolean(self, node: ast.BoolOp) -> object:
        conjunction = isinstance(node.op, ast.And)
        combined: object = None
        for part in node.values:
            value = self.evaluate(part)
            known = self.truth(part, value)
            if known is None:
                combined = value if combined is None else self._combine(node, conjunction, combined, value)
            elif known is not conjunction:
                return known
        return conjunction if combined is None else combined

    def _combine(self, node: ast.AST, conjunction: bool, left: object, right: object) -> object:
        return self.apply(node, operator.and_ if conjunction else operator.or_, left, right)

    def _compare(self, node: ast.Compare) -> object:
        left = self.evaluate(node.left)
        combined: object = None
        for op, part in zip(node.ops, node.comparators):
            right = self.evaluate(part)
            if isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) and (runtime(left) or runtime(right)):
                raise self.fail(node, "is and in compare Python objects, not run-time values; write == or !=")
            value = self.apply(node, _COMPARE[type(op)], left, right)
            left = right
            known = self.truth(node, value)
            if known is None:
                combined = value if combined is None else self._combine(node, True, combined, value)
            elif not known:
                return False
        return True if combined is None else combined

    def _conditional(self, node: ast.IfExp) -> object:
        condition = self.evaluate(node.test)
        known = self.truth(node.test, condition)
        if known is not None:
            return self.evaluate(node.body if known else node.orelse)
        return self.apply(
            node, scalars.select, condition, self.evaluate(node.body), self.evaluate(node.orelse)
        )

    # --- calls ------------------------------------------------------------------------------------------------------
    def _call(self, node: ast.Call) -> object:
        callee: Any = self.evaluate(node.func)
        values = [self.evaluate(part) for part in node.args]
        named = {part.arg: self.evaluate(part.value) for part in node.keywords if part.arg is not None}
        if len(named) != len(node.keywords):
            raise self.fail(node, "** in a call has no meaning in a scalar function")
        everything = [*values, *named.values()]
        known = not any(runtime(value) for value in everything)
        if isinstance(callee, DType):
            return self._constant(node, callee, everything)
        inline: Inlinable | None = (
            callee if hasattr(callee, "inline") and hasattr(callee, "returns") else None
        )
        if inline is not None:
            if named:
                raise self.fail(node, f"{inline.name} takes its arguments by position")
            return self.apply(node, inline.inline, self.trace, tuple(values))
        if callee is scalars.reg:
            raise self.fail(node, "pt.reg: the names of a scalar function are variables already")
        ours = isinstance(callee, Form) or str(getattr(callee, "__module__", "")).startswith("ptxtile.")
        if ours or callee is abs or known:
            return self.apply(node, lambda: callee(*values, **named))
        raise self.fail(node, _no_call(callee))

    def _constant(self, node: ast.Call, dtype: DType, values: list[object]) -> object:
        if len(values) != 1:
            raise self.fail(node, f"{dtype!r} takes one number")
        value = values[0]
        if isinstance(value, (int, float)):
            return (
                scalar(self.trace, dtype, value, repr(dtype))
                if dtype.kind == "float"
                else self._exact(dtype, value)
            )
        return self.apply(node, dtype, value)

    def _exact(self, dtype: DType, value: int | float) -> Scalar:
        try:
            return folding.make(dtype, value)
        except (OverflowError, TypeError) as error:
            raise OperandError(f"{dtype!r}: {error}" + where(self.trace)) from None


def _no_call(callee: object) -> str:
    name = getattr(callee, "__name__", repr(callee))
    module = getattr(callee, "__module__", "")
    if module == "math" or module == "numpy":
        return f"{module}.{name} computes on the host only; write pt.{name}"
    if module == "builtins" and name in _INSTEAD:
        return f"{name}() of a run-time value: write {_INSTEAD[name]}"
    return f"{name} is called with a run-time value and is no @pt.function; decorate it with @pt.function"
