"""The check that a run-time block does not rebind a name of the user's function to a value that is gone after it."""

from __future__ import annotations

from dataclasses import dataclass
from types import FrameType

from ptxtile import location
from ptxtile.builder.trace import Block, Trace
from ptxtile.dtypes import Scalar
from ptxtile.errors import TraceError
from ptxtile.ir.instruction import Instruction
from ptxtile.location import Mark


@dataclass(frozen=True, slots=True)
class Bindings:
    """The names of a frame that held numbers or live scalars when a block was entered."""

    frame: FrameType
    before: dict[str, object]

    @staticmethod
    def of(frame: FrameType) -> Bindings:
        """The values that the names of `frame` have at this point."""
        names = frame.f_locals
        return Bindings(frame, {name: value for name, value in names.items() if _matters(value)})

    def check(self, trace: Trace, block: Block, own: Scalar | None = None) -> None:
        """TraceError for a name now bound to a value made inside `block`; `own` is the loop's index."""
        now = self.frame.f_locals
        for name, old in self.before.items():
            new = now.get(name)
            if new is old or new is own or not isinstance(new, Scalar) or new.value is not None:
                continue
            if _inside(new.block, block):
                raise TraceError(_message(trace, block, name, new))


def _matters(value: object) -> bool:
    if isinstance(value, Scalar):
        block = value.block
        return not isinstance(block, Block) or block.open  # a value of an ended block is of no use any more
    return type(value) in (int, float, bool)


def _inside(inner: object, outer: Block) -> bool:
    block = inner
    while isinstance(block, Block):
        if block is outer:
            return True
        block = block.parent
    return False


def _message(trace: Trace, block: Block, name: str, value: Scalar) -> str:
    dtype = type(value)
    where = location.quote(location.resolve(_written(trace, value) or block.mark))
    return (
        f"{name} is rebound inside a {block.kind} block: the new {dtype.name} exists only there, and what comes after "
        f"would not see it; make it a variable before the block, {name} = pt.reg({dtype!r}, …), and write it inside "
        f"with {name} += … or {name}.set(…){where}"
    )


def _written(trace: Trace, value: Scalar) -> Mark | None:
    """The mark of the instruction that first wrote the value's register."""
    for record in trace.records:
        if isinstance(record, Instruction) and record.operands and record.operands[0] == value.operand:
            return record.mark
    return None
