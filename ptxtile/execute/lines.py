"""From a line of PTX text to the line of Python that wrote it."""

from __future__ import annotations

from bisect import bisect_right

from ptxtile.execute.logs import Locator
from ptxtile.ir.instruction import Instruction
from ptxtile.ir.module import Block, Module, Statement, Variable
from ptxtile.ir.writer import LineInfo, lines
from ptxtile.location import Location, resolve

__all__ = ["framed", "locator"]


def framed(module: Module | None) -> frozenset[str]:
    """The functions of a module that have a stack by their own wish: variables of local memory, or calls."""
    items = module.functions if module is not None else ()
    return frozenset(item.name for item in items if any(map(_frames, item.body or ())))


def _frames(statement: Statement) -> bool:
    if isinstance(statement, Block):
        return any(map(_frames, statement.body))
    if isinstance(statement, Variable):
        return statement.space == "local"
    return isinstance(statement, Instruction) and statement.form.opcode == "call"


def locator(module: Module | None, lineinfo: LineInfo = None) -> Locator:
    """What finds the Python line of a line of `write(module, lineinfo)`, or of a function by name.

    A line that holds no instruction, such as a declaration, counts as the instruction or function before it. The
    module is written out at the first question: a log without complaints costs nothing. For None (a text that
    somebody else wrote) there is nothing to find.
    """
    numbers: list[int] = []
    places: list[Location | None] = []

    def at_line(line: int) -> Location | None:
        if not numbers and module is not None:
            for number, origin in lines(module, lineinfo)[1].items():
                numbers.append(number)
                places.append(resolve(origin.mark))
        before = bisect_right(numbers, line)
        return places[before - 1] if before else None

    def locate(line: int, function: str) -> Location | None:
        found = at_line(line) if line else None
        if found is None and function and module is not None:
            for item in module.functions:
                if item.name == function:
                    return resolve(item.mark)
        return found

    return locate
