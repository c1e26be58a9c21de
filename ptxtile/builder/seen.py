"""The registers of a call's operands, where all are run-time values of the dtypes that the form was last called with.

The hottest step of tracing, written out for each number of operands: a loop would cost twice as much. Each function
returns None where an operand is of another dtype or its block has ended, and raises AttributeError where one is a
constant (which has no block).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

from ptxtile.ir.operand import Operand

Types = tuple[Any, ...]
Taken = Optional[tuple[Operand, ...]]


def _one(types: Types, operands: Any) -> Taken:
    (a,) = operands
    return (a.operand,) if a.__class__ is types[0] and a.block.open else None


def _two(types: Types, operands: Any) -> Taken:
    a, b = operands
    if a.__class__ is types[0] and b.__class__ is types[1] and a.block.open and b.block.open:
        return a.operand, b.operand
    return None


def _three(types: Types, operands: Any) -> Taken:
    a, b, c = operands
    same = a.__class__ is types[0] and b.__class__ is types[1] and c.__class__ is types[2]
    if same and a.block.open and b.block.open and c.block.open:
        return a.operand, b.operand, c.operand
    return None


def _four(types: Types, operands: Any) -> Taken:
    a, b, c, d = operands
    same = a.__class__ is types[0] and b.__class__ is types[1] and c.__class__ is types[2]
    if same and d.__class__ is types[3] and a.block.open and b.block.open and c.block.open and d.block.open:
        return a.operand, b.operand, c.operand, d.operand
    return None


def _many(types: Types, operands: Any) -> Taken:
    if types != tuple(map(type, operands)):
        return None
    taken = tuple([each.operand for each in operands if each.block.open])
    return taken if len(taken) == len(operands) else None


_TAKE: dict[int, Callable[[Types, Any], Taken]] = {1: _one, 2: _two, 3: _three, 4: _four}


def taker(count: int) -> Callable[[Types, Any], Taken]:
    """The function for `count` operands."""
    return _TAKE.get(count, _many)
