"""`.file` and `.loc` from the Python lines at which instructions were written (PTX ISA 11.5.3, 11.5.4)."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING

from ptxtile.ir import module as m
from ptxtile.location import resolve

if TYPE_CHECKING:
    from ptxtile.location import Mark


class Files:
    """Numbers the source files of one module, and says when a new line begins."""

    def __init__(self, module: m.Module, absolute: bool) -> None:
        taken = [
            int(str(item.values[0]))
            for item in module.items
            if isinstance(item, m.Directive) and item.name == "file"
        ]
        self.first = max(taken, default=0) + 1
        self.absolute = absolute
        self.numbers: dict[str, int] = {}
        self.last = (0, 0)

    def begin(self) -> None:
        """A function begins: its first instruction needs a `.loc`, whatever came before."""
        self.last = (0, 0)

    def loc(self, mark: Mark) -> list[str]:
        """The `.loc` line for a mark, nothing if the line has not changed."""
        where = resolve(mark)
        if where is None:
            return []
        name = where.file if self.absolute else from_package(where.file)
        number = self.numbers.setdefault(name, self.first + len(self.numbers))
        if (number, where.line) == self.last:
            return []
        self.last = (number, where.line)
        return [f"\t.loc {number} {where.line} 0"]

    def directives(self) -> list[str]:
        """The `.file` lines, in order of number."""
        return [f'.file {number} "{_escaped(name)}"' for name, number in self.numbers.items()]


def _escaped(name: str) -> str:
    return name.replace("\\", "/").replace('"', "_").replace("\n", "_")


@lru_cache(maxsize=512)
def from_package(file: str) -> str:
    """The path from the outermost package that holds the file; of a file in no package, its name."""
    folder, name = os.path.split(file)
    while folder and os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, package = os.path.split(folder)
        name = f"{package}/{name}"
    return name
