"""One entry from a Python body: parameters bound, body traced, directives added; for kernels and ModuleBuilder."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import SupportsIndex

from ptxtile import tracing
from ptxtile.builder import parameters
from ptxtile.builder.parameters import Plan
from ptxtile.builder.trace import Launch, Trace, Traced
from ptxtile.errors import TraceError
from ptxtile.ir.module import Directive
from ptxtile.location import Mark

Body = Callable[[dict[str, object]], object]

THREADS_LIMIT = 1024


def check_name(name: str) -> str:
    """`name` if PTX takes it as the name of an entry; TraceError otherwise (PTX ISA 4.4)."""
    if not isinstance(name, str) or not name.isascii() or not name.isidentifier() or name in ("_", "WARP_SZ"):
        raise TraceError(
            f"{name!r} cannot name an entry in PTX: letters, digits and _ (not _ alone, not WARP_SZ) are allowed"
        )
    return name


def _nothing(name: str, value: object) -> None:
    """TraceError if a traced body gave something back: nobody takes it, and of a generator nothing has run yet."""
    if value is None:
        return
    close = getattr(value, "close", None)
    if callable(close) and (hasattr(value, "send") or hasattr(value, "asend")):
        close()  # a coroutine that nobody awaits would warn
        raise TraceError(f"{name}: a kernel is a plain function, without yield, async or await")
    raise TraceError(
        f"{name}: a kernel returns nothing, and this one returned {value!r}; write into a tensor"
    )


def directives(launch: Launch) -> tuple[Directive, ...]:
    """What the launch facts say to the assembler: the exact block and cluster shape (PTX ISA 11.4)."""
    found: list[Directive] = []
    x, y, z = launch.block
    if x is not None and y is not None and z is not None:
        found.append(Directive("reqntid", (x, y, z)))
    if launch.cluster is not None:
        found.append(Directive("reqnctapercluster", launch.cluster))
    return tuple(found)


def trace_entry(name: str, planned: Plan, launch: Launch, body: Body, mark: Mark | None) -> Traced:
    """Trace `body`, which receives the parameters' values by name."""
    trace = Trace(check_name(name), launch)
    with tracing.use(trace):
        _nothing(name, body(parameters.bind_all(trace, planned)))
        return trace.finish(planned.parameters, directives(launch), mark)


def block_shape(block: object) -> tuple[int, int, int]:
    """(x, y, z) of `block=`; TraceError unless it is one to three positive integers, 1024 threads at most."""
    shape = extents("block", block)
    if shape[0] * shape[1] * shape[2] > THREADS_LIMIT:
        raise TraceError(
            f"block={block!r} has {shape[0] * shape[1] * shape[2]} threads; a CTA has at most {THREADS_LIMIT}"
        )
    return shape


def extents(what: str, given: object, least: int = 1) -> tuple[int, int, int]:
    """One to three integers of at least `least`, filled up with ones."""
    parts: Sequence[object] = given if isinstance(given, (tuple, list)) else (given,)
    numbers: list[int] = []
    for part in parts:
        # Asked first of the type alone: every launch comes here, and a protocol is slow to ask for.
        if type(part) is not int and (isinstance(part, bool) or not isinstance(part, SupportsIndex)):
            raise TraceError(f"{what}={given!r}: one to three integers are due")
        number = operator.index(part)
        if number < least:
            raise TraceError(f"{what}={given!r}: {number} is less than {least}")
        numbers.append(number)
    if not 1 <= len(numbers) <= 3:
        raise TraceError(f"{what}={given!r}: one to three integers are due")
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z
