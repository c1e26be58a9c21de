"""A debugger's minimum: a hook before each instruction, breakpoints, registers and memory as NumPy arrays.

    with pt.emulator.tracing(lambda moment: print(moment)):
        kernel(x, out)

    with pt.emulator.tracing(look, breakpoints=["kernel.py:30", 12]):     # Python lines, lines of the PTX text
        pt.emulator.launch(text, "k", 1, 32, [x])

Launches of the same thread inside the block are traced. The steps of a traced launch are made anew with the hook in
them; others pay nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Union

import numpy as np

from ptxtile import location
from ptxtile.emulator.moment import Moment
from ptxtile.errors import EmulatorError

if TYPE_CHECKING:
    from ptxtile.emulator.decode import Decoded
    from ptxtile.emulator.group import Group
    from ptxtile.emulator.lanes import Lanes
    from ptxtile.emulator.program import Site
    from ptxtile.emulator.step import Control, Run, Step

Breakpoint = Union[int, str]
Callback = Callable[[Moment], None]


@dataclass(frozen=True, slots=True)
class Tracer:
    """Who is told, and where: `lines` of the PTX text, `places` in Python as (file, line); None: everywhere."""

    callback: Callback
    lines: frozenset[int] | None = None
    places: tuple[tuple[str, int], ...] = ()

    def wants(self, site: Site) -> bool:
        """Whether it stops at this instruction."""
        if self.lines is None:
            return True
        if site.line in self.lines:
            return True
        where = location.resolve(site.instruction.mark) if self.places else None
        return where is not None and any(
            where.line == line and _same_file(where.file, file) for file, line in self.places
        )

    def traced(self, decoded: Decoded) -> Decoded:
        """The same steps with the hook before those that are wanted."""
        steps = {
            name: [self._hooked(step) if self.wants(step.site) else step for step in own]
            for name, own in decoded.steps.items()
        }
        return replace(decoded, steps=steps)

    def _hooked(self, step: Step) -> Step:
        callback, run, control = self.callback, step.run, step.control

        def hooked_run(lanes: Lanes) -> None:
            callback(Moment(lanes))
            assert run is not None
            run(lanes)

        def hooked_control(group: Group, lanes: Lanes) -> None:
            if lanes.count:
                callback(Moment(lanes))
            assert control is not None
            control(group, lanes)

        new_run: Run | None = None if run is None else hooked_run
        new_control: Control | None = None if control is None else hooked_control
        return replace(step, run=new_run, control=new_control)


_current: ContextVar[Tracer | None] = ContextVar("ptxtile_emulator_tracer", default=None)


def current() -> Tracer | None:
    """Who traces launches of this thread."""
    return _current.get()


@contextmanager
def tracing(
    callback: Callback | None = None, *, breakpoints: Sequence[Breakpoint] | None = None
) -> Iterator[None]:
    """Call `callback(moment)` before each instruction of every launch inside the `with` block.

    callback      gets a `Moment`: where the program is, who executes, registers and memory. What it raises ends the
                  launch. Without it Python's own `breakpoint()` is called, and `moment` is there to look at.
    breakpoints   stop only there: a number is a line of the PTX text, "kernel.py:30" a line of Python (a path, or the
                  end of one). Without it every instruction counts, once for each group of threads that runs together.

    Raises:
        EmulatorError: a breakpoint is neither (kind "launch").
    """
    if callback is None and breakpoints is None:
        raise EmulatorError("tracing takes a callback, or breakpoints to stop at", kind="launch")
    if isinstance(breakpoints, (str, int, np.integer)):
        raise EmulatorError(f"breakpoints= takes a list, such as [{breakpoints!r}]", kind="launch")
    lines: set[int] = set()
    places: list[tuple[str, int]] = []
    for each in breakpoints or ():
        place = _place(each)
        if isinstance(place, int):
            lines.add(place)
        else:
            places.append(place)
    chosen = frozenset(lines) if breakpoints is not None else None
    token = _current.set(Tracer(_stop if callback is None else callback, chosen, tuple(places)))
    try:
        yield
    finally:
        _current.reset(token)


def _place(given: Breakpoint) -> int | tuple[str, int]:
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool) and given > 0:
        return int(given)
    if isinstance(given, str):
        file, _, number = given.rpartition(":")
        if file and number.isdigit() and int(number):
            return file, int(number)
    raise EmulatorError(
        f'{given!r} is no breakpoint: give a line of the PTX text, such as 12, or of Python, such as "kernel.py:30"',
        kind="launch",
    )


def _same_file(file: str, given: str) -> bool:
    """Whether a path is the one given, or ends in it."""
    path, end = os.path.normpath(file), os.path.normpath(given)
    return path == end or path.endswith(os.sep + end)


def _stop(moment: Moment) -> None:
    """Where a debugger finds itself: `moment` is what to look at."""
    sys.stderr.write(f"{moment!r}\n")
    breakpoint()
