"""The errors that stop a program: who did what, where in the PTX text and in the user's Python."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ptxtile import location
from ptxtile.errors import EmulatorError

if TYPE_CHECKING:
    from ptxtile.emulator.lanes import Lanes
    from ptxtile.emulator.program import Site


_LONG = re.compile(r"\{([^{},]+)(?:, [^{},]+){7,}, ([^{},]+)\}")
"""A vector of more than eight elements, of which a message shows the first and the last."""


def at_line(site: Site) -> str:
    """`line 12: st.global.f32 [%rd1], %f1;`, or the instruction alone where the line is unknown."""
    text = _LONG.sub(r"{\1, …, \2}", str(site.instruction).removesuffix(";"))
    return f"line {site.line}: {text}" if site.line else text


def stop(kind: str, text: str, site: Site, who: str = "", other: str = "") -> EmulatorError:
    """The error of `kind`: what is wrong, then who, then where; `other` names the other party."""
    lines = [text, f"  {at_line(site)}"]
    if who:
        lines.append(f"  {who}")
    if other:
        lines.append(f"  {other}")
    where = location.resolve(site.instruction.mark)
    message = "\n".join(lines) + location.quote(where)
    return EmulatorError(message, kind=kind, line=site.line, location=where)


def fault(kind: str, text: str, lanes: Lanes, position: int, other: str = "") -> EmulatorError:
    """The error of the thread at this position among `lanes`."""
    who = lanes.wave.thread_name(int(lanes.threads[position]))
    return stop(kind, text, lanes.step.site, who, other)


def count_of(number: int, noun: str) -> str:
    """`1 byte`, `2 bytes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
