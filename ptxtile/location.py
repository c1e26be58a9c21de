"""Where in the user's Python a thing was written: cheap to note while tracing, resolved to file and line later."""

from __future__ import annotations

import linecache
import os
import sys
from dataclasses import dataclass
from types import CodeType

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
# These stand on the public API like a user's own code: their lines are the ones worth showing.
_USERLIKE = tuple(_PACKAGE + name + os.sep for name in ("kernels", "measure", "interop"))

Mark = tuple[CodeType, int]
"""A code object and an instruction offset in it: what `mark` notes, and `resolve` turns into a Location."""


@dataclass(frozen=True, slots=True)
class Location:
    """A line of Python source. `line` counts from 1."""

    file: str
    line: int
    function: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def source(self) -> str:
        """The line itself, stripped; empty if the file cannot be read."""
        return linecache.getline(self.file, self.line).strip()


# By identity, each with its code object, which keeps the identity taken: hashing a code object reads all of it.
known: dict[int, tuple[CodeType, bool]] = {}
_tables: dict[int, tuple[CodeType, dict[int, int]]] = {}


def _learn(code: CodeType) -> tuple[CodeType, bool]:
    """Whether the code is the library's own."""
    name = code.co_filename
    known[id(code)] = found = code, name.startswith(_PACKAGE) and not name.startswith(_USERLIKE)
    return found


def mark(depth: int = 1) -> Mark:
    """Note the nearest frame outside ptxtile, starting `depth` frames up.

    The line number is not computed here: on long functions that walk is slow, and most marks are never shown.
    """
    frame = sys._getframe(depth)
    code = frame.f_code
    while (known.get(id(code)) or _learn(code))[1] and frame.f_back is not None:
        frame = frame.f_back
        code = frame.f_code
    return code, frame.f_lasti


def _lines(code: CodeType) -> dict[int, int]:
    known = _tables.get(id(code))
    if known is None:
        table = {
            offset: line
            for start, stop, line in code.co_lines()
            if line is not None
            for offset in range(start, stop, 2)
        }
        known = _tables[id(code)] = code, table
    return known[1]


def resolve(noted: Mark | None) -> Location | None:
    """The Location of a mark; None stays None."""
    if noted is None:
        return None
    code, offset = noted
    return Location(code.co_filename, _lines(code).get(offset, code.co_firstlineno), code.co_name)


def here(depth: int = 1) -> Location:
    """The Location of the nearest frame outside ptxtile."""
    found = resolve(mark(depth + 1))
    assert found is not None
    return found


def quote(where: Location | None) -> str:
    """`\\n  file:line:  source` for an error message, or nothing."""
    if where is None:
        return ""
    source = where.source
    return f"\n  {where}: {source}" if source else f"\n  {where}"
