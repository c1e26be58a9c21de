"""The assembler's log, line by line, and each line's place in the user's Python.

The driver, nvJitLink and ptxas write the same lines: errors with the line of the PTX text, information lines with
a code such as C7508 where an instruction was weakened or dropped, and the registers, stack and spills of each entry.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass

from ptxtile.errors import AssemblerError, DriverError
from ptxtile.location import Location, quote

__all__ = ["AssemblerWarning", "Locator", "Message", "explained", "messages", "warn"]


class AssemblerWarning(UserWarning):
    """NVIDIA's assembler accepted a module and did not do quite what it says, or spilled registers."""


Locator = Callable[[int, str], "Location | None"]
"""The Python line of (line of the PTX text or 0, function name or "")."""


@dataclass(frozen=True, slots=True)
class Message:
    """One line of a log. `line` is that of the PTX text, 0 where it names none; `code` is "C7508" or ""."""

    severity: str
    text: str
    line: int = 0
    code: str = ""
    function: str = ""


_LINE = re.compile(
    r"^ptxas(?P<file> .*?)?(?:, line (?P<line>\d+); ?| +)(?P<severity>error|fatal|warning|info)\s*:\s*(?P<text>.*)$"
)
_CODE = re.compile(r"^\((C\d+)\)\s*")
_FUNCTION = re.compile(
    r"(?:Function properties for|entry function|in (?:the )?function) '?(?P<name>[\w$]+)'?"
)
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")

_ADVICE = {
    "C7504": "nvJitLink assembles as for linking and ignores setmaxnreg; the driver, given the text, obeys it",
    "C7508": "setmaxnreg needs a register count at entry: give the kernel .maxntid or .reqntid and .minnctapersm",
    "C7510": "wgmma is serialised: its registers are used between wgmma.mma_async and wgmma.wait_group",
    "C7515": "wgmma is serialised: keep function calls out of its pipeline",
    "C7517": "wgmma is serialised: put wgmma.fence before the first wgmma and after other writes of its registers",
}


def messages(log: str, framed: Container[str] = ()) -> tuple[Message, ...]:
    """The lines of a log that say something: errors, warnings, lines with a code, stack frames and spills.

    framed: functions that ask for a stack themselves, so that it says nothing.
    """
    found: list[Message] = []
    function = ""
    for raw in log.splitlines():
        stack = _STACK.search(raw)
        if stack:
            frame, stores, loads = map(int, stack.groups())
            if stores or loads or (frame and function not in framed):
                text = f"{frame} bytes of stack, {stores} bytes of spill stores, {loads} bytes of spill loads"
                found.append(Message("info", text, function=function))
            continue
        match = _LINE.match(raw.strip())
        if match is None:
            continue
        text = match["text"].strip()
        named = _FUNCTION.search(text)
        if named:
            function = named["name"]
        code = _CODE.match(text)
        if match["severity"] == "info" and not code:
            continue
        line = int(match["line"] or 0)
        where = named["name"] if named else ""
        found.append(
            Message(
                match["severity"], text[code.end() :] if code else text, line, code[1] if code else "", where
            )
        )
    return tuple(found)


def _shown(message: Message) -> str:
    text = f"({message.code}) {message.text}" if message.code else message.text
    if message.function and f"'{message.function}'" not in text:
        text = f"{message.function}: {text}"
    advice = _ADVICE.get(message.code)
    return f"{text}\n  {advice}" if advice else text


def warn(log: str, locate: Locator, framed: Container[str] = ()) -> None:
    """Turn what a log says of an accepted module into AssemblerWarnings at the lines of Python that asked for it."""
    for message in messages(log, framed):
        if message.severity in ("error", "fatal"):
            continue
        where = locate(message.line, message.function)
        if where is None:
            warnings.warn(_shown(message), AssemblerWarning, stacklevel=2)
        else:
            warnings.warn_explicit(_shown(message), AssemblerWarning, where.file, where.line)


def _python_lines(found: Iterable[Message], locate: Locator) -> list[str]:
    lines: list[str] = []
    for message in found:
        if message.severity in ("error", "fatal") and message.line:
            where = locate(message.line, message.function)
            if where is not None:
                lines.append(f"  line {message.line}: {message.text}" + quote(where).replace("\n", "\n  "))
    return lines


def explained(error: AssemblerError | DriverError, locate: Locator) -> AssemblerError | DriverError:
    """The same error with the Python line of every line of PTX that its log complains about."""
    lines = _python_lines(messages(error.log), locate)
    if not lines:
        return error
    text = "\n".join([str(error), "  written at:", *lines])
    if isinstance(error, DriverError):
        return DriverError(text, code=error.code, name=error.name, log=error.log)
    return AssemblerError(text, log=error.log)
