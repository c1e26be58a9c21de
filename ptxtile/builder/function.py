"""`@pt.function`: scalar functions, compiled from their Python source and inlined where they are called.

Parameters and result are scalars of the dtypes that the annotations name; types match exactly and nothing is cast.
Inside, Python's statements are the kernel's own: assignments and rebinding, if/elif/else with a return on every path
(a run-time condition becomes a branch, and names that differ after it are merged into a register; a known condition
chooses while compiling), conditional expressions, comparisons and their chains, and/or/not, `for` over a range or tuple
known while compiling (unrolled), calls of other scalar functions, of the math library and of PTX forms. Free names are
looked up when the function is inlined: Python numbers, dtypes, modules, functions.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from enum import Enum
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, cast

from ptxtile import location, tracing
from ptxtile.builder.control import branch
from ptxtile.builder.function_expressions import Expressions, Unusable, runtime
from ptxtile.builder.function_source import Source, read
from ptxtile.builder.trace import Trace
from ptxtile.builder.values import dtype_in, home, move, scalar, where
from ptxtile.dtypes import DType, Scalar
from ptxtile.errors import OperandError, PtxtileError, TraceError
from ptxtile.ir.instruction import Instruction
from ptxtile.ir.operand import Label, Register

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)

_inlining: ContextVar[tuple[object, ...]] = ContextVar("ptxtile_inlining", default=())


class Inlinable(Protocol):
    """What expressions need of a scalar function that they call."""

    name: str
    returns: DType

    def inline(self, trace: Trace, arguments: Sequence[object]) -> Scalar:
        """Append its instructions and return its result."""
        ...


class Function(Generic[P, R_co]):
    """A scalar function.

    name         of the Python function
    parameters   (name, dtype) of each, in order
    returns      dtype of the result
    """

    def __init__(self, python: Callable[P, R_co]) -> None:
        self.source: Source = read(python)
        self.name = self.source.name
        self.parameters = self.source.parameters
        self.returns = self.source.returns
        functools.update_wrapper(self, python)

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}: {dtype!r}" for name, dtype in self.parameters)
        return f"<@pt.function {self.name}({parts}) -> {self.returns!r}>"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Inline the function into the current trace; TraceError outside one."""
        if tracing.active() is None:
            raise TraceError(
                f"{self.name} is a scalar function of kernels: call it while a @pt.kernel is traced, or pass it to "
                "tile.ewise" + location.quote(location.here())
            )
        if kwargs:
            raise OperandError(
                f"{self.name} takes its arguments by position" + location.quote(location.here())
            )
        trace = cast(Trace, tracing.emitter(self.name))
        return cast(R_co, self.inline(trace, args))

    def inline(self, trace: Trace, arguments: Sequence[object]) -> Scalar:
        """Append the function's instructions for these arguments and return its result, a value of dtype `returns`.

        OperandError for a wrong count or dtype of arguments; TraceError for what cannot be compiled.
        """
        if len(arguments) != len(self.parameters):
            names = ", ".join(name for name, _ in self.parameters)
            raise OperandError(
                f"{self.name} takes {len(self.parameters)} arguments ({names}), not {len(arguments)}"
                + where(trace)
            )
        outer = _inlining.get()
        if self in outer:
            raise TraceError(
                f"@pt.function {self.name} calls itself; scalar functions are inlined" + where(trace)
            )
        values = {
            name: scalar(trace, dtype, value, f"{self.name}: argument {name}")
            for (name, dtype), value in zip(self.parameters, arguments)
        }
        token = _inlining.set((*outer, self))
        before = trace.source
        try:
            return Body(trace, self.source, values).run()
        finally:
            trace.source = before
            _inlining.reset(token)


def function(python: Callable[P, R_co]) -> Function[P, R_co]:
    """Make a scalar function of a Python function whose parameters and result are annotated with dtypes.

    TraceError if it has no source, or contains what a scalar function may not.
    """
    return Function(python)


class Flow(Enum):
    """How a list of statements ends: at its end, in a return on every path, in a break or a continue."""

    FALLS = 0
    RETURNS = 1
    BREAKS = 2
    CONTINUES = 3


class Body:
    """Inlines the statements of one call."""

    def __init__(self, trace: Trace, source: Source, arguments: dict[str, Scalar]) -> None:
        self.trace = trace
        self.source = source
        self.expressions = Expressions(trace, source)
        self.expressions.names.update(arguments)
        self.depth = 0
        self.result: Register | None = None
        self.end = ""
        self.direct: Scalar | None = None

    def run(self) -> Scalar:
        """The function's result."""
        flow = self._block(self.source.body)
        trace, returns = self.trace, self.source.returns
        if flow is not Flow.RETURNS:
            raise self.expressions.fail(
                self.source.body[-1], "a path ends without a return; every path returns a value"
            )
        if self.result is None:
            value = self.direct
            assert value is not None
            if value.value is not None or not value.mutable:
                return value
            copy = trace.value(returns)
            move(trace, returns, home(copy), value)
            return copy
        self._drop_jump()
        trace.place(self.end)
        return trace.value(returns, self.result)

    def _drop_jump(self) -> None:
        """Take back a jump to the end that would stand directly before it."""
        last = self.trace.records[-1]
        if isinstance(last, Instruction) and last.guard is None and last.operands == (Label(self.end),):
            self.trace.records.pop()

    # --- statements -------------------------------------------------------------------------------------------------
    def _block(self, statements: Sequence[ast.stmt]) -> Flow:
        for statement in statements:
            flow = self._statement(statement)
            if flow is not Flow.FALLS:
                return flow
        return Flow.FALLS

    def _statement(self, node: ast.stmt) -> Flow:
        self.trace.source = self.source.mark(node)
        try:
            return self._dispatch(node)
        except PtxtileError as error:
            line = f"{self.source.file}:{self.source.line(node)}"
            if error.args and isinstance(error.args[0], str) and f"{self.source.file}:" not in error.args[0]:
                error.args = (
                    f"{error.args[0]}\n  in @pt.function {self.source.name}, {line}",
                    *error.args[1:],
                )
            raise

    def _dispatch(self, node: ast.stmt) -> Flow:
        evaluate = self.expressions.evaluate
        if isinstance(node, ast.Return):
            assert node.value is not None
            return self._return(node, evaluate(node.value))
        if isinstance(node, ast.If):
            return self._if(node)
        if isinstance(node, ast.For):
            return self._for(node)
        if isinstance(node, ast.Assign):
            value = evaluate(node.value)
            for target in node.targets:
                self._bind(target, value)
        elif isinstance(node, ast.AugAssign):
            old = evaluate(ast.copy_location(ast.Name(_target(self, node.target), ast.Load()), node.target))
            self._bind(node.target, self.expressions.binary(node, node.op, old, evaluate(node.value)))
        elif isinstance(node, ast.AnnAssign):
            self._annotated(node)
        elif isinstance(node, ast.Expr):
            evaluate(node.value)
        elif isinstance(node, ast.Break):
            return Flow.BREAKS
        elif isinstance(node, ast.Continue):
            return Flow.CONTINUES
        elif not isinstance(node, ast.Pass):
            raise self.expressions.fail(node, f"{type(node).__name__} has no meaning in a scalar function")
        return Flow.FALLS

    def _bind(self, target: ast.expr, value: object) -> None:
        if isinstance(target, ast.Tuple):
            if not isinstance(value, tuple) or len(value) != len(target.elts):
                raise self.expressions.fail(
                    target, f"{len(target.elts)} names need a tuple of as many values"
                )
            for part, item in zip(target.elts, value):
                self._bind(part, item)
            return
        self.expressions.names[_target(self, target)] = value

    def _annotated(self, node: ast.AnnAssign) -> None:
        dtype = self.expressions.evaluate(node.annotation)
        if not isinstance(dtype, DType):
            raise self.expressions.fail(node, f"{dtype!r} is no dtype")
        if node.value is None:
            return
        name = _target(self, node.target)
        value = self.expressions.evaluate(node.value)
        self.expressions.names[name] = scalar(self.trace, dtype, value, f"{self.source.name}: {name}")

    def _return(self, node: ast.Return, value: object) -> Flow:
        trace, returns = self.trace, self.source.returns
        found = scalar(trace, returns, value, f"{self.source.name}: the result")
        if self.depth == 0 and self.result is None:
            self.direct = found
            return Flow.RETURNS
        if self.result is None:
            self.result = trace.register(returns.register)
            self.end = trace.label("return")
        move(trace, returns, self.result, found)
        branch(trace, self.end)
        return Flow.RETURNS

    def _for(self, node: ast.For) -> Flow:
        over = self.expressions.evaluate(node.iter)
        if not isinstance(over, (range, tuple, list)):
            raise self.expressions.fail(
                node, "a loop runs over range(…) or a tuple that is known while compiling"
            )
        if node.orelse:
            raise self.expressions.fail(node, "a for loop has no else in a scalar function")
        for item in over:
            self._bind(node.target, item)
            flow = self._block(node.body)
            if flow is Flow.RETURNS:
                return flow
            if flow is Flow.BREAKS:
                break
        return Flow.FALLS

    # --- branches ---------------------------------------------------------------------------------------------------
    def _if(self, node: ast.If) -> Flow:
        condition = self.expressions.evaluate(node.test)
        known = self.expressions.truth(node.test, condition)
        if known is not None:
            return self._block(node.body if known else node.orelse)
        assert isinstance(condition, Scalar)
        trace, expressions = self.trace, self.expressions
        otherwise = trace.label("else")
        branch(trace, otherwise, unless=condition)
        before = expressions.names
        first, first_names, first_flow = self._path(node.body, before)
        second, second_names, second_flow = self._path(node.orelse, before)
        trace.source = self.source.mark(node)
        trace.records.extend(first)
        joins = first_flow is second_flow is Flow.FALLS
        merges = self._merges(first_names, second_names) if joins else []
        for merged, value, _ in merges:
            move(trace, type(merged), home(merged), value)
        end = trace.label("endif") if first_flow is Flow.FALLS and (second or merges) else ""
        if end:
            branch(trace, end)
        trace.place(otherwise)
        trace.records.extend(second)
        for merged, _, value in merges:
            move(trace, type(merged), home(merged), value)
        if end:
            trace.place(end)
        if not joins:
            expressions.names = second_names if first_flow is Flow.RETURNS else first_names
        return Flow.RETURNS if first_flow is second_flow is Flow.RETURNS else Flow.FALLS

    def _path(
        self, statements: Sequence[ast.stmt], before: dict[str, object]
    ) -> tuple[list[Any], dict[str, object], Flow]:
        """The records of one side of a branch, the names after it, and how it ends."""
        trace, expressions = self.trace, self.expressions
        start = len(trace.records)
        expressions.names = dict(before)
        self.depth += 1
        flow = self._block(statements)
        self.depth -= 1
        if flow in (Flow.BREAKS, Flow.CONTINUES):
            raise expressions.fail(
                statements[-1],
                "break and continue under a run-time condition: loops are unrolled while compiling",
            )
        records = trace.records[start:]
        del trace.records[start:]
        return records, expressions.names, flow

    def _merges(
        self, first: dict[str, object], second: dict[str, object]
    ) -> list[tuple[Scalar, Scalar, Scalar]]:
        """(register, its value on one path, on the other) of every name that the paths leave different."""
        found = []
        names: dict[str, object] = {}
        for name in dict.fromkeys([*first, *second]):
            one, other = first.get(name, _UNBOUND), second.get(name, _UNBOUND)
            if one is other or (not runtime(one) and not runtime(other) and _same(one, other)):
                names[name] = one
                continue
            dtype = _joined(one, other)
            if dtype is None:
                names[name] = Unusable(_disagree(name, one, other))
                continue
            use = f"{self.source.name}: {name}"
            merged = self.trace.value(dtype)
            found.append((merged, scalar(self.trace, dtype, one, use), scalar(self.trace, dtype, other, use)))
            names[name] = merged
        self.expressions.names = names
        return found


_UNBOUND = object()


def _target(body: Body, node: ast.expr) -> str:
    if not isinstance(node, ast.Name):
        raise body.expressions.fail(node, "only plain names are assigned in a scalar function")
    return node.id


def _same(one: object, other: object) -> bool:
    if isinstance(one, Scalar) and isinstance(other, Scalar):
        return type(one) is type(other) and one.value == other.value
    return type(one) is type(other) and not isinstance(one, Scalar) and bool(one == other)


def _joined(one: object, other: object) -> DType | None:
    """The dtype of a name that has these values on two paths, or None if it has none."""
    for value in (one, other):
        if not isinstance(value, (Scalar, int, float)):
            return None
    dtypes = {dtype_in(value) for value in (one, other)} - {None}
    return dtypes.pop() if len(dtypes) == 1 else None


def _disagree(name: str, one: object, other: object) -> str:
    if _UNBOUND in (one, other) or isinstance(one, Unusable) or isinstance(other, Unusable):
        return f"{name} is bound on one path only; bind it before the if"
    if isinstance(one, Scalar) and isinstance(other, Scalar):
        return f"{name} is {type(one).name} on one path and {type(other).name} on the other; convert one with pt.cast"
    return f"{name} is {one!r} on one path and {other!r} on the other; give them a dtype, as in pt.float32({one!r})"
