"""The trace of the current thread: who receives the instructions and operations that user code writes.

The lower layers know only the Emitter protocol; `builder` implements it. A ContextVar keeps threads (and contexts)
apart, so that two threads may trace at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

from ptxtile.errors import TraceError

if TYPE_CHECKING:
    from ptxtile.dtypes import Scalar
    from ptxtile.isa.form import Form


class Emitter(Protocol):
    """What a trace offers to the layers below it."""

    def emit(self, form: Form, operands: tuple[object, ...], pred: object) -> object:
        """Append one instruction, operands in PTX order; return the destination."""
        ...

    def operate(self, name: str, operands: tuple[object, ...]) -> Scalar:
        """Append the documented sequence of a Python operator or math function ("add", "lt", "exp", "cast", …)."""
        ...

    def assign(self, target: Scalar, value: object) -> None:
        """Write `value` into a `pt.reg` variable in place."""
        ...

    def update(self, name: str, target: Scalar, value: object) -> None:
        """Append `target op= value` ("add", …) for a `pt.reg` variable, in place."""
        ...


current: ContextVar[Emitter | None] = ContextVar("ptxtile_trace", default=None)
"""Set by `use` alone; read directly where a call would cost too much."""


def active() -> Emitter | None:
    """The trace of this thread, or None."""
    return current.get()


def emitter(what: str) -> Emitter:
    """The trace of this thread. `what` names the thing that needs one, for the TraceError outside a trace."""
    found = current.get()
    if found is None:
        raise TraceError(
            f"{what} was called outside a trace: forms and run-time operations only have a meaning while a @pt.kernel "
            "is traced or inside a ModuleBuilder entry"
        )
    return found


@contextmanager
def use(trace: Emitter) -> Iterator[None]:
    """Make `trace` the current one; a trace inside a trace is an error."""
    if current.get() is not None:
        raise TraceError("a kernel cannot be traced while another is being traced in the same thread")
    token = current.set(trace)
    try:
        yield
    finally:
        current.reset(token)
