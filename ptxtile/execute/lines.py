"""From a line of PTX text to the line of Python that wrote it."""

from __future__ import annotations

from ptxtile.execute.logs import Locator
from ptxtile.ir.module import Module
from ptxtile.location import Location, resolve

__all__ = ["locator"]


def locator(module: Module | None) -> Locator:
    """What finds the Python line of a line of `str(module)`, or of a function; None finds nothing.

    The text is walked at the first question: a log without complaints costs nothing.
    """
    known: dict[int, Location | None] = {}

    def locate(line: int, function: str) -> Location | None:
        if module is None:
            return None
        if line and not known:
            from ptxtile.ir.writer import lines

            known.update(lines(module))
        found = known.get(line) if line else None
        if found is None and function:
            for item in module.functions:
                if item.name == function:
                    return resolve(item.mark)
        return found

    return locate
