"""The exception tree, and the Diagnostic that checkers return instead of raising.

PtxtileError
├── FormError            (ValueError)    a spelling that is no PTX form, or not one of the target
│   └── FormAttributeError (AttributeError)  the same, reached through an attribute chain
├── TargetError          (ValueError)    an unknown target or PTX version, or no common one
├── OperandError         (TypeError)     operands that fit no signature of their form
├── LayoutError          (ValueError)    a layout that is ill-formed or does not fit
├── TileError            (ValueError)    a tile operation the hardware would not do
├── TraceError           (RuntimeError)  Python that cannot be traced
├── ModuleSyntaxError    (ValueError)    text that is no PTX module
├── AssemblerError       (RuntimeError)  NVIDIA's assembler refused a module
├── DriverError          (RuntimeError)  the CUDA driver refused a call
├── EmulatorError        (RuntimeError)  the emulator stopped a program
└── NotationError        (ValueError)    a fault in the spelling table itself
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ptxtile.location import Location

__all__ = [
    "AssemblerError",
    "Diagnostic",
    "DriverError",
    "EmulatorError",
    "FormAttributeError",
    "FormError",
    "LayoutError",
    "ModuleSyntaxError",
    "NotationError",
    "OperandError",
    "PtxtileError",
    "TargetError",
    "TileError",
    "TraceError",
]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One cause of trouble in a PTX text. `line` and `column` count from 1."""

    line: int
    column: int
    severity: Literal["error", "warning"]
    message: str
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.line}:{self.column}: {self.severity}: {self.message}"
        indented = self.hint.replace("\n", "\n  ")
        return f"{text}\n  {indented}" if self.hint else text


class PtxtileError(Exception):
    """Root of every exception that ptxtile raises on purpose. They travel between processes whole."""

    def __reduce__(self) -> tuple[object, ...]:
        return _remade, (type(self), self.args), self.__dict__


def _remade(kind: type[PtxtileError], args: tuple[object, ...]) -> PtxtileError:
    """An error of these args, without the call that would want its keywords; pickle restores the attributes."""
    made: PtxtileError = kind.__new__(kind, *args)
    return made


class FormError(PtxtileError, ValueError):
    """A spelling that the ISA does not have, or not for the target and version asked about.

    `spelling` is what was asked; `reasons` are all the reasons, one text each.
    """

    def __init__(self, message: str, *, spelling: str = "", reasons: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.spelling = spelling
        self.reasons = reasons


class FormAttributeError(FormError, AttributeError):
    """A FormError met while walking an attribute chain, so that `hasattr` and `getattr` work."""


class TargetError(PtxtileError, ValueError):
    """An unknown target or PTX version, or forms that no single target has."""


class OperandError(PtxtileError, TypeError):
    """Operands that fit no signature of their form."""


class LayoutError(PtxtileError, ValueError):
    """A layout that is ill-formed, or a coordinate or shape that does not fit one."""


class TileError(PtxtileError, ValueError):
    """A tile operation whose operands the hardware, or the scope, does not allow."""


class TraceError(PtxtileError, RuntimeError):
    """Python code that has no meaning while a kernel is traced, or outside a trace."""


class ModuleSyntaxError(PtxtileError, ValueError):
    """Text that is no PTX module. `line` and `column` count from 1."""

    def __init__(self, message: str, *, line: int, column: int) -> None:
        super().__init__(f"{line}:{column}: {message}")
        self.message = message
        self.line = line
        self.column = column


class AssemblerError(PtxtileError, RuntimeError):
    """NVIDIA's assembler refused a module. `log` is what it said."""

    def __init__(self, message: str, *, log: str = "") -> None:
        super().__init__(message)
        self.log = log


class DriverError(PtxtileError, RuntimeError):
    """The CUDA driver refused a call. `code` is its CUresult, `name` that result's name, `log` the JIT's logs."""

    def __init__(self, message: str, *, code: int = 0, name: str = "", log: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.name = name
        self.log = log


class EmulatorError(PtxtileError, RuntimeError):
    """The emulator stopped a program.

    `kind` is a short word ("out-of-bounds", "misaligned", "uninitialised", "race", "barrier", "deadlock",
    "trap", …); `line` the line of the PTX text, from 1 (0 where there is none); `location` the Python line.
    """

    def __init__(self, message: str, *, kind: str, line: int = 0, location: Location | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.line = line
        self.location = location


class NotationError(PtxtileError, ValueError):
    """A fault in a `.isa` file: the message starts with file:line:column."""
