"""Control flow at run time: loops, branches and labels, as `with` blocks around the traced body.

    with pt.for_range(lo, hi, step) as i:          with pt.if_(p):              with pt.while_(lambda: p):
        …                                              …                            …
                                                   with pt.else_():
                                                       …

    mov.B i, lo                                    @!p bra $else;               $head:
    $head:                                         …                            …  the condition
    setp.ge.T p, i, hi     (le for step < 0)       bra $end;  (with an else_)   @!p bra $end;
    @p bra $end                                    $else:                       …
    …                                              …                            bra $head;
    $next:                                         $end:                        $end:
    add.T i, i, step
    bra $head
    $end:

Python runs each body once. A value made in a body belongs to it, and a name may not be rebound in one to a value that
would be gone afterwards: what changes at run time is a `pt.reg` variable.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import NoReturn

from ptxtile import location
from ptxtile.builder import ranges
from ptxtile.builder.rebinding import Bindings
from ptxtile.builder.trace import Block, Trace
from ptxtile.builder.values import common, current, dtype_in, home, move, scalar, where, word
from ptxtile.dtypes import Scalar, bool_, int32
from ptxtile.encoding import integer_range
from ptxtile.errors import OperandError, TraceError
from ptxtile.ir.instruction import Guard
from ptxtile.ir.module import LabelMark
from ptxtile.ir.operand import Integer, Label

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_$]*|_[A-Za-z0-9_$]+")


@dataclass(frozen=True, slots=True)
class EndedIf:
    """An `if_` block just left: `else_` may follow while the trace still ends at `length` records."""

    block: Block
    parent: Block
    otherwise: str
    length: int
    condition: object


class Structure:
    """What all blocks have in common: entering and leaving the trace's block, and the check of rebound names."""

    kind = ""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.block: Block | None = None
        self.bindings: Bindings | None = None

    def made(self) -> None:
        """The last step of making one: `with` must enter it before the trace ends."""
        self.trace.waiting[id(self)] = self, self.kind, location.mark(2)

    def __iter__(self) -> NoReturn:
        raise TraceError(f"{self.kind} is no iterator: write with {self.kind}(…) as i:" + where(self.trace))

    def __bool__(self) -> NoReturn:
        raise TraceError(f"{self.kind} is no condition: write with {self.kind}(…):" + where(self.trace))

    def open(self, frame: FrameType, facts: list[object], labels: tuple[str, str] | None = None) -> Block:
        """Enter the block; `frame` is the user's."""
        self.trace.waiting.pop(id(self), None)
        self.bindings = Bindings.of(frame)
        self.block = self.trace.enter(self.kind, facts)
        self.block.labels = labels
        return self.block

    def close(self, failed: bool, own: Scalar | None = None) -> bool:
        """Leave the block. True if its end may be emitted; after an exception there is nothing more to say."""
        block = self.block
        assert block is not None and self.bindings is not None
        if failed:
            self.trace.leave(block)
            self.trace.broken = self.trace.broken or block
            return False
        try:
            self.bindings.check(self.trace, block, own)
        except TraceError:
            self.trace.leave(block)
            raise
        return True

    def leave(self) -> None:
        """The last step of a normal end."""
        assert self.block is not None
        self.trace.leave(self.block)


def branch(trace: Trace, label: str, unless: Scalar | None = None, when: Scalar | None = None) -> None:
    """`bra label`, guarded by `@!unless` or `@when`."""
    guard = None
    if unless is not None:
        guard = Guard(home(unless), True)
    elif when is not None:
        guard = Guard(home(when))
    trace.instruction("bra", Label(label), guard=guard)


def _condition(trace: Trace, p: object, use: str) -> Scalar:
    if isinstance(p, Scalar) and p.value is None:
        return scalar(trace, bool_, p, use)
    if isinstance(p, (bool, bool_)):
        raise TraceError(f"{use}: the condition is known while tracing; use Python's own if" + where(trace))
    raise OperandError(f"{use} takes a run-time bool_, such as a comparison gives, not {p!r}" + where(trace))


# --- if -------------------------------------------------------------------------------------------------------------
class if_(Structure):
    """`with pt.if_(p):` threads where the run-time bool_ `p` holds run the body."""

    kind = "pt.if_"

    def __init__(self, p: object) -> None:
        super().__init__(current("pt.if_"))
        self.condition = _condition(self.trace, p, "pt.if_")
        self.otherwise = ""
        self.made()

    def __enter__(self) -> None:
        self.enter(sys._getframe(1))

    def enter(self, frame: FrameType) -> None:
        """Branch around the body and open it; `frame` is the user's."""
        self.otherwise = self.trace.label("else")
        branch(self.trace, self.otherwise, unless=self.condition)
        fact = self.condition.extent
        self.open(frame, [] if fact is None else [fact])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace_back: TracebackType | None
    ) -> None:
        if not self.close(kind is not None):
            return
        self.leave()
        trace, block = self.trace, self.block
        assert block is not None and block.parent is not None
        trace.place(self.otherwise)
        trace.ended_if = EndedIf(
            block, block.parent, self.otherwise, len(trace.records), self.condition.extent
        )


class else_(Structure):
    """`with pt.else_():` directly after an `if_`: the threads where its condition does not hold."""

    kind = "pt.else_"

    def __init__(self) -> None:
        super().__init__(current("pt.else_"))
        ended = self.trace.ended_if
        if (
            not isinstance(ended, EndedIf)
            or ended.parent is not self.trace.block
            or ended.length != len(self.trace.records)
        ):
            raise TraceError("pt.else_ must stand directly after the block of its pt.if_" + where(self.trace))
        self.ended = ended
        self.end = ""
        self.made()

    def __enter__(self) -> None:
        trace = self.trace
        trace.ended_if = None
        trace.records.pop()
        self.end = trace.label("endif")
        branch(trace, self.end)
        trace.place(self.ended.otherwise)
        fact = ranges.negate(self.ended.condition)
        self.open(sys._getframe(1), [] if fact is None else [fact])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace_back: TracebackType | None
    ) -> None:
        if self.close(kind is not None):
            self.leave()
            self.trace.place(self.end)


# --- loops ----------------------------------------------------------------------------------------------------------
class for_range(Structure):
    """`with pt.for_range(lo, hi, step=1) as i:` a loop at run time; `pt.for_range(n)` is `pt.for_range(0, n)`.

    lo, hi   Python ints, constants or run-time values of one integer dtype, which is that of i (int32 if all are Python
             ints). Both are read once, before the loop.
    step     a Python int other than 0. hi + step must fit the dtype, or i wraps and the loop does not end; constants
             are checked.

    `i` is a value of the loop: it cannot be written, and is gone after it.
    """

    kind = "pt.for_range"

    def __init__(self, lo: object, hi: object = None, step: int = 1) -> None:
        trace = current("pt.for_range")
        super().__init__(trace)
        if hi is None:
            lo, hi = 0, lo
        if isinstance(step, bool) or not isinstance(step, int):
            raise OperandError(f"pt.for_range: step is a Python int, not {step!r}" + where(trace))
        if step == 0:
            raise OperandError("pt.for_range: step is 0, so the loop would never end" + where(trace))
        if dtype_in(lo) is None and dtype_in(hi) is None:
            lo = scalar(trace, int32, lo, "pt.for_range")
        self.dtype, (self.lo, self.hi) = common(trace, "pt.for_range", (lo, hi))
        if self.dtype.kind not in ("int", "uint") or self.dtype.bits < 16:
            raise OperandError(
                f"pt.for_range counts in an integer dtype of 16 bits or more, not {self.dtype.name}"
                + where(trace)
            )
        self.step = step
        self._check_end()
        self.index: Scalar | None = None
        self.head, self.end = "", ""
        self.made()

    def _check_end(self) -> None:
        low, high = integer_range(self.dtype)
        hi, step = self.hi.value, self.step
        last = None if hi is None else int(hi) + (step - 1 if step > 0 else step + 1)
        if abs(step) > high or (last is not None and not low <= last <= high):
            raise OperandError(
                f"pt.for_range: with step {step} and end {hi if hi is not None else 'hi'} the index would leave "
                f"{self.dtype.name} and the loop would not end" + where(self.trace)
            )

    def __enter__(self) -> Scalar:
        trace = self.trace
        frame = sys._getframe(1)
        hi = self.hi
        if hi.mutable:
            hi = trace.value(self.dtype)
            move(trace, self.dtype, home(hi), self.hi)
        index = trace.register(self.dtype.register)
        move(trace, self.dtype, index, self.lo)
        self.head, self.end = trace.label("for"), trace.label("endfor")
        step = trace.label("next")
        trace.place(self.head)
        done = trace.value(bool_)
        test = "ge" if self.step > 0 else "le"
        trace.instruction(f"setp.{test}{self.dtype.ptx}", home(done), index, word(trace, hi))
        branch(trace, self.end, when=done)
        self.open(frame, [], (step, self.end))
        self.index = trace.value(self.dtype, index)
        self._learn(self.index, hi)
        return self.index

    def _learn(self, index: Scalar, hi: Scalar) -> None:
        """Tell the prover where the index lies: between the ends, and at lo plus a multiple of the step."""
        start, stop = ranges.of_value(self.lo), ranges.of_value(hi)
        least, greatest = integer_range(self.dtype)
        low = start.bounds()[0] if start is not None else least
        high = stop.bounds()[1] - 1 if stop is not None else greatest
        if self.step < 0:
            low = stop.bounds()[0] + 1 if stop is not None else least
            high = start.bounds()[1] if start is not None else greatest
        multiple = math.gcd(start.divisor(), self.step) if start is not None else 1
        index.extent = ranges.atom("i", min(low, high), max(low, high), multiple=multiple, scalar=index)
        assert self.block is not None
        ends = (start, stop) if self.step > 0 else (stop, start)
        after = ranges.compare("ge" if self.step > 0 else "gt", index.extent, ends[0])
        before = ranges.compare("lt" if self.step > 0 else "le", index.extent, ends[1])
        self.block.facts.extend(fact for fact in (after, before) if fact is not None)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace_back: TracebackType | None
    ) -> None:
        if not self.close(kind is not None, self.index):
            return
        trace, block, index = self.trace, self.block, self.index
        assert block is not None and block.labels is not None and index is not None
        trace.place(block.labels[0])
        operand = home(index)
        type_ = self.dtype.ptx
        if self.step < 0 and self.dtype.kind == "uint":
            trace.instruction(f"sub{type_}", operand, operand, Integer(-self.step))
        else:
            trace.instruction(f"add{type_}", operand, operand, Integer(self.step))
        branch(trace, self.head)
        trace.place(self.end)
        self.leave()


class while_(Structure):
    """`with pt.while_(lambda: p):` the condition is traced at the loop's head, so it is computed in every pass."""

    kind = "pt.while_"

    def __init__(self, condition: Callable[[], object]) -> None:
        super().__init__(current("pt.while_"))
        if not callable(condition):
            raise TraceError(
                "pt.while_ takes a function that computes the condition, as in pt.while_(lambda: n < 10): it is traced "
                "at the loop's head, and a value would be computed once" + where(self.trace)
            )
        self.condition = condition
        self.head, self.end = "", ""
        self.made()

    def __enter__(self) -> None:
        trace = self.trace
        frame = sys._getframe(1)
        self.head, self.end = trace.label("while"), trace.label("endwhile")
        trace.place(self.head)
        block = self.open(frame, [], (self.head, self.end))
        try:
            p = self.condition()
            if p is not True:
                known = _condition(trace, p, "pt.while_")
                branch(trace, self.end, unless=known)
                if known.extent is not None:
                    block.facts.append(known.extent)
        except BaseException:
            self.close(True)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace_back: TracebackType | None
    ) -> None:
        if self.close(kind is not None):
            branch(self.trace, self.head)
            self.trace.place(self.end)
            self.leave()


def _loop(trace: Trace, use: str) -> tuple[str, str]:
    block: Block | None = trace.block
    while block is not None:
        if block.labels is not None:
            return block.labels
        block = block.parent
    raise TraceError(f"{use} stands in no pt.for_range or pt.while_" + where(trace))


def break_() -> None:
    """Leave the innermost run-time loop: `bra` to its end."""
    trace = current("pt.break_")
    branch(trace, _loop(trace, "pt.break_")[1])


def continue_() -> None:
    """Go to the next pass of the innermost run-time loop: `bra` to its step."""
    trace = current("pt.continue_")
    branch(trace, _loop(trace, "pt.continue_")[0])


def label(name: str) -> str:
    """Place a label of your own here, for `ptx.bra(name)`; returns the name. TraceError for a name that PTX does not
    take, one that begins with `$` or `%` (ours), or one placed before."""
    trace = current("pt.label")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise TraceError(
            f"pt.label: {name!r} is no label name; PTX takes letters, digits, _ and $, beginning with a letter or an _"
            + where(trace)
        )
    if any(isinstance(record, LabelMark) and record.name == name for record in trace.records):
        raise TraceError(f"pt.label: there is a label {name!r} already" + where(trace))
    trace.place(name)
    trace.forget()
    return name
