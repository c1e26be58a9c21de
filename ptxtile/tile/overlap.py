"""Whether a tile operation overwrites what it still needs."""

from __future__ import annotations

from collections.abc import Sequence

from ptxtile.errors import TileError
from ptxtile.ir.operand import Register

Issues = Sequence[Sequence[Register]]


def check_destination(what: str, issues: Issues) -> dict[Register, int]:
    """The repeat that writes each register. TileError if two elements of a destination share one."""
    writer: dict[Register, int] = {}
    for repeat, registers in enumerate(issues):
        for register in registers:
            if register in writer:
                raise TileError(
                    f"{what}: two of its elements are one register ({register}), so later repeats would overwrite earlier "
                    "ones; a destination's layout must be injective (no zero strides)"
                )
            writer[register] = repeat
    return writer


def check_sources(what: str, writer: dict[Register, int], sources: Sequence[tuple[str, Issues]]) -> None:
    """TileError if a repeat reads a register that an earlier repeat has overwritten."""
    for name, issues in sources:
        for repeat, registers in enumerate(issues):
            for register in registers:
                written = writer.get(register)
                if written is not None and written < repeat:
                    raise TileError(
                        f"{what}: repeat {repeat} reads {name} from {register}, which repeat {written} has already overwritten; "
                        "in place is fine only element by element: copy first, or go the other way"
                    )
