"""The source of a @pt.function: its syntax tree, its lines, its names and types, and what it may not contain."""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from ptxtile import location
from ptxtile.dtypes import DType, Scalar
from ptxtile.errors import TraceError
from ptxtile.location import Location, Mark

_REFUSED: dict[type[ast.AST], str] = {
    ast.While: "a while loop: its length is not known while compiling; write for … in range(…), or compute the loop in "
    "the kernel",
    ast.With: "a with statement: run-time loops and blocks belong to the kernel",
    ast.Try: "a try statement: nothing raises at run time",
    ast.Raise: "a raise statement: nothing raises at run time; pt.trap_if(p) stops a kernel",
    ast.Assert: "an assert statement: write pt.trap_if(p) or, for what is known, pt.assume(p)",
    ast.FunctionDef: "a function inside: define it outside, with its own @pt.function",
    ast.AsyncFunctionDef: "a function inside: define it outside, with its own @pt.function",
    ast.ClassDef: "a class",
    ast.Lambda: "a lambda: define a @pt.function",
    ast.Global: "a global statement: a scalar function writes nothing outside itself",
    ast.Nonlocal: "a nonlocal statement: a scalar function writes nothing outside itself",
    ast.Import: "an import: import outside",
    ast.ImportFrom: "an import: import outside",
    ast.Delete: "a del statement",
    ast.Yield: "a yield: it returns one scalar",
    ast.YieldFrom: "a yield: it returns one scalar",
    ast.Await: "an await",
    ast.NamedExpr: "a := inside an expression: assign in a statement of its own",
    ast.JoinedStr: "an f-string",
    ast.ListComp: "a comprehension: write a for loop over range(…)",
    ast.SetComp: "a comprehension: write a for loop over range(…)",
    ast.DictComp: "a comprehension: write a for loop over range(…)",
    ast.GeneratorExp: "a generator: write a for loop over range(…)",
    ast.Starred: "a starred expression",
}
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Source:
    """A scalar function as it was read.

    parameters   names and dtypes, in order
    returns      the dtype of the result
    body         its statements
    offset       to add to a line of the tree for a line of the file
    code, closure, namespace   of the Python function: where marks point to, and where free names are looked up
    """

    name: str
    file: str
    parameters: tuple[tuple[str, DType], ...]
    returns: DType
    body: tuple[ast.stmt, ...]
    offset: int
    code: CodeType
    closure: Mapping[str, Any]
    namespace: Mapping[str, Any]
    marks: dict[int, Mark] = field(default_factory=dict)

    def line(self, node: ast.AST) -> int:
        """The line of the file where a node stands."""
        return int(getattr(node, "lineno", 1)) + self.offset

    def mark(self, node: ast.AST) -> Mark:
        """What instructions made by `node` are marked with."""
        line = self.line(node)
        found = self.marks.get(line)
        if found is None:
            found = self.marks[line] = (self.code, _offset_of(self.code, line))
        return found

    def quote(self, node: ast.AST) -> str:
        """The node's line for the end of a message."""
        return location.quote(Location(self.file, self.line(node), self.name))

    def lookup(self, name: str) -> object:
        """A free name: closure, then globals, then builtins; KeyError if there is none."""
        cell = self.closure.get(name, _MISSING)
        if cell is not _MISSING:
            try:
                return cell.cell_contents
            except ValueError:
                raise KeyError(name) from None
        if name in self.namespace:
            return self.namespace[name]
        found = getattr(builtins, name, _MISSING)
        if found is _MISSING:
            raise KeyError(name)
        return found


def _offset_of(code: CodeType, line: int) -> int:
    """The offset of the first instruction of a line, or of the nearest line before it that has any."""
    best, best_line = 0, -1
    for start, _, here in code.co_lines():
        if here is not None and best_line < here <= line:
            best, best_line = start, here
    return best


def read(function: Callable[..., Any]) -> Source:
    """Read a Python function. TraceError if it has no source, or contains what a scalar function may not."""
    name = getattr(function, "__name__", repr(function))
    if not inspect.isfunction(function):
        raise TraceError(f"@pt.function takes a Python function, not {function!r}")
    file, start = function.__code__.co_filename, function.__code__.co_firstlineno
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
    except (OSError, TypeError, SyntaxError, IndentationError, IndexError):
        raise TraceError(
            f"@pt.function {name}: its source cannot be read ({file}:{start}), and scalar functions are compiled from "
            "source; define it with def in a file or a notebook cell"
        ) from None
    offset = max(first, 1) - 1
    if not isinstance(tree, ast.FunctionDef):
        raise TraceError(
            f"@pt.function {name}: a lambda or a method call is no scalar function; write it with def"
            + location.quote(Location(file, start, name))
        )
    closure = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    where = location.quote(Location(file, tree.lineno + offset, name))
    _check_signature(name, tree, where)
    types = _annotations(function, closure, where)
    parameters = tuple((p.arg, _dtype(name, p.arg, types.get(p.arg), where)) for p in tree.args.args)
    returns = _dtype(name, "return", types.get("return"), where)
    source = Source(
        name,
        file,
        parameters,
        returns,
        tuple(tree.body),
        offset,
        function.__code__,
        closure,
        function.__globals__,
    )
    _check_body(source)
    return source


def _check_signature(name: str, tree: ast.FunctionDef, where: str) -> None:
    given = tree.args
    if given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs or given.defaults:
        raise TraceError(
            f"@pt.function {name}: parameters are plain names with a dtype each; *, /, ** and defaults have no "
            "meaning here" + where
        )


def _annotations(function: Callable[..., Any], closure: Mapping[str, Any], where: str) -> dict[str, object]:
    """The annotations, postponed ones evaluated in the function's own scopes."""
    local = {}
    for name, cell in closure.items():
        try:
            local[name] = cell.cell_contents
        except ValueError:
            continue
    found: dict[str, object] = {}
    for name, what in function.__annotations__.items():
        if isinstance(what, str):
            try:
                what = eval(what, function.__globals__, local)  # noqa: S307 - the author's own annotation
            except Exception as error:
                raise TraceError(
                    f"@pt.function {function.__name__}: the annotation {what!r} of {name} cannot be evaluated here "
                    f"({error})" + where
                ) from None
        found[name] = what
    return found


def _dtype(function: str, name: str, what: object, where: str) -> DType:
    if isinstance(what, DType) and what is not Scalar:
        return what
    role = "the result" if name == "return" else f"parameter {name}"
    sample = "-> pt.float32" if name == "return" else f"{name}: pt.float32"
    problem = "has no dtype" if what is None else f"is annotated with {what!r}, which is no dtype"
    raise TraceError(f"@pt.function {function}: {role} {problem}; write {sample}" + where)


def _check_body(source: Source) -> None:
    for statement in source.body:
        for node in ast.walk(statement):
            refused = _REFUSED.get(type(node))
            if refused is not None:
                raise TraceError(f"@pt.function {source.name} contains {refused}" + source.quote(node))
            if isinstance(node, ast.Return) and node.value is None:
                raise TraceError(f"@pt.function {source.name}: a return without a value" + source.quote(node))
