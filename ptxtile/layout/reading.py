"""A layout from text: the notation that `repr` writes, and nothing more. No text is ever evaluated.

Python's own parser makes a syntax tree; `_Reader` walks it and knows only whole numbers, `+ - * @`, names of axes,
`S[…]`, `R[…]`, `TileLayout(…)` and `ComposeLayout(…)`. What they mean is left to the classes themselves, so a
wrong layout has the same LayoutError here as in a program.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from ptxtile.errors import LayoutError
from ptxtile.layout.axis import AXES, Axis
from ptxtile.layout.layout import Replica, TileLayout
from ptxtile.layout.notation import R, S
from ptxtile.layout.swizzle import ComposeLayout, Layout, as_layout

__all__ = ["parse_layout"]

MOST_CHARACTERS = 10_000
MOST_DEPTH = 60
MOST_BITS = 64
"""Of a number: products of large numbers would cost time without end."""

_AXES = {axis.name: axis for axis in AXES}
_CALLS: dict[str, Callable[..., object]] = {"TileLayout": TileLayout, "ComposeLayout": ComposeLayout}


def parse_layout(text: str) -> Layout:
    """`S[(8, 4) : (4 @ laneid, 1)] + R[2 : 4 @ warpid]`, `ComposeLayout(3, 3, 3, S[8, 64])`: the layout of that text.

    Raises LayoutError, with a caret where the text leaves the notation, and as the layout's own constructor does.
    """
    if len(text) > MOST_CHARACTERS:
        raise LayoutError(f"a layout's text has at most {MOST_CHARACTERS} characters, not {len(text)}")
    line = " ".join(text.split())
    try:
        tree = ast.parse(line, mode="eval")
    except SyntaxError as error:
        column = min(max((error.offset or 1) - 1, 0), len(line))
        raise LayoutError(_pointed(line, column, "this is no layout: a sign or a bracket is wrong")) from None
    except (ValueError, RecursionError, MemoryError):  # NUL, or brackets without end
        raise LayoutError("this is no layout: its text cannot be read") from None
    return as_layout(_Reader(line).value(tree.body, 0))


def _pointed(line: str, column: int, reason: str) -> str:
    """The text with a caret; of a long text only what is near."""
    start = max(column - 60, 0)
    return f"{reason}\n  {line[start : start + 100]}\n  {' ' * (column - start)}^"


class _Reader:
    """Walks one syntax tree. `value` gives what a node stands for: an int, an axis, a step, a layout, …"""

    def __init__(self, line: str) -> None:
        self.line = line

    def value(self, node: ast.expr, depth: int) -> object:
        if depth > MOST_DEPTH:
            raise self._wrong(node, "this is nested too deeply")
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, bool)):
            return node.value
        if isinstance(node, ast.Name):
            return self._name(node)
        if isinstance(node, ast.Tuple):
            return tuple(self.value(item, depth + 1) for item in node.elts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self._number(node.operand, depth + 1)
        if isinstance(node, ast.BinOp):
            return self._binary(node, depth + 1)
        if isinstance(node, ast.Subscript):
            return self._subscript(node, depth + 1)
        if isinstance(node, ast.Call):
            return self._call(node, depth + 1)
        raise self._wrong(
            node, "a layout is made of whole numbers, axes, S[…], R[…], +, @, TileLayout and ComposeLayout"
        )

    def _wrong(self, node: ast.expr, reason: str) -> LayoutError:
        column = len(self.line.encode()[: node.col_offset].decode(errors="replace"))
        return LayoutError(_pointed(self.line, column, reason))

    def _name(self, node: ast.Name) -> Axis:
        if node.id in _AXES:
            return _AXES[node.id]
        if node.id in ("S", "R", *_CALLS):
            wanted = f"{node.id}[…]" if node.id in "SR" else f"{node.id}(…)"
            raise self._wrong(node, f"{node.id} alone is no layout; write {wanted}")
        try:
            return Axis(node.id)
        except LayoutError as error:  # the closed set, with the nearest name
            raise self._wrong(node, str(error).replace("\n ", ";")) from None

    def _number(self, node: ast.expr, depth: int) -> int:
        found = self.value(node, depth)
        if isinstance(found, bool) or not isinstance(found, int):
            raise self._wrong(node, "a whole number is due here")
        if found.bit_length() > MOST_BITS:
            raise self._wrong(node, "this number is too large")
        return found

    def _binary(self, node: ast.BinOp, depth: int) -> object:
        if isinstance(node.op, ast.Mult):
            return self._number(node.left, depth) * self._number(node.right, depth)
        if isinstance(node.op, ast.Sub):
            return self._number(node.left, depth) - self._number(node.right, depth)
        left, right = self.value(node.left, depth), self.value(node.right, depth)
        if isinstance(node.op, ast.MatMult):
            if isinstance(right, Axis):
                return self._number(node.left, depth) @ right
            if isinstance(left, Axis):
                return left @ self._number(node.right, depth)
            raise self._wrong(node.right, "an axis is due after @, as in 4 @ laneid")
        if isinstance(node.op, ast.Add):
            if isinstance(left, int) and isinstance(right, int):
                return self._number(node.left, depth) + self._number(node.right, depth)
            for one, other in ((left, right), (right, left)):
                if isinstance(one, (TileLayout, Replica)):
                    return one + other
            raise self._wrong(node, "a sum starts from S[…]")
        raise self._wrong(node, "between parts of a layout stand only +, and @ before an axis")

    def _subscript(self, node: ast.Subscript, depth: int) -> object:
        makers: dict[str, Callable[[object], object]] = {"S": S.__getitem__, "R": R.__getitem__}
        if not isinstance(node.value, ast.Name) or node.value.id not in makers:
            raise self._wrong(node, "only S and R take brackets")
        return makers[node.value.id](self._key(node.slice, depth))

    def _key(self, node: ast.expr, depth: int) -> object:
        if isinstance(node, ast.Slice):
            ends = (node.lower, node.upper, node.step)
            return slice(*(None if end is None else self.value(end, depth) for end in ends))
        if isinstance(node, ast.Tuple):
            return tuple(self._key(item, depth + 1) for item in node.elts)
        return self.value(node, depth)

    def _call(self, node: ast.Call, depth: int) -> object:
        if not isinstance(node.func, ast.Name) or node.func.id not in _CALLS:
            raise self._wrong(node, "only TileLayout(…) and ComposeLayout(…) are called")
        positional = [self.value(item, depth) for item in node.args]
        named = {item.arg: self.value(item.value, depth) for item in node.keywords if item.arg is not None}
        if len(named) != len(node.keywords):
            raise self._wrong(node, "a layout takes no **")
        try:
            return _CALLS[node.func.id](*positional, **named)
        except TypeError as error:  # a missing or an unknown parameter
            raise self._wrong(node, str(error).replace(".__init__()", "()")) from None
