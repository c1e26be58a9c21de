"""Shapes of matrix instructions, and their operands that are vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.operands import Write
from ptxtile.emulator.widths import Bits
from ptxtile.ir.operand import Operand, Vector


@dataclass(frozen=True, slots=True)
class Shape:
    """Rows of A, columns of B, and what they are multiplied along."""

    m: int
    n: int
    k: int


def shape_of(modifier: str) -> Shape:
    """`.m16n8k16` taken apart."""
    m, _, rest = modifier[2:].partition("n")
    n, _, k = rest.partition("k")
    return Shape(int(m), int(n), int(k))


def scalars(operand: Operand) -> tuple[Operand, ...]:
    """The registers of a vector operand, or the one that stands alone."""
    return operand.elements if isinstance(operand, Vector) else (operand,)


def deliver_to(writes: list[Write]) -> Callable[[Lanes, list[Bits], list[Bits] | None], None]:
    """Write each result to its register, with its shadow."""

    def deliver(lanes: Lanes, results: list[Bits], shadows: list[Bits] | None) -> None:
        for number, (write, result) in enumerate(zip(writes, results)):
            write(lanes, result, None if shadows is None else shadows[number])

    return deliver
