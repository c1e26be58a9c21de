"""Whether a tile operation overwrites what it still needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ptxtile.errors import TileError
from ptxtile.ir.instruction import Guard
from ptxtile.ir.operand import Address, Float, Integer, Negated, Operand, Pair, Register, Vector

Issues = Sequence[Sequence[Register]]
Column = Sequence[Operand]


def check(what: str, written: Sequence[tuple[str, Issues]], read: Sequence[tuple[str, Column]]) -> None:
    """TileError if destinations overlap, or a repeat reads a register that an earlier repeat has overwritten.

    written  each destination, with the registers of every repeat
    read     each source, with the operand of every repeat; a scalar is the same in all
    """
    writer: dict[Register, int] = {}
    for name, issues in written:
        for register, repeat in check_destination(name, issues).items():
            if register in writer:
                raise TileError(f"{name}: its register {register} is another destination's too")
            writer[register] = repeat
    if not writer:
        return
    for name, column in read:
        if isinstance(column[0], (Integer, Float)):
            continue  # the operands of a column are of one kind
        for repeat, operand in enumerate(column):
            # Most operands are registers: asked first, since tiles have thousands of repeats.
            registers = (operand,) if type(operand) is Register else tuple(registers_of(operand))
            for register in registers:
                before = writer.get(register, repeat)
                if before < repeat:
                    raise TileError(
                        f"{what}: repeat {repeat} reads {name} from {register}, which repeat {before} has already "
                        "overwritten; in place is fine only element by element: copy first, or go the other way"
                    )


def check_destination(what: str, issues: Issues) -> dict[Register, int]:
    """The repeat that writes each register. TileError if two elements of a destination share one."""
    writer: dict[Register, int] = {}
    for repeat, registers in enumerate(issues):
        for register in registers:
            if register in writer:
                raise TileError(
                    f"{what}: two of its elements are one register ({register}), so later repeats would overwrite "
                    "earlier ones; a destination's layout must be injective (no zero strides)"
                )
            writer[register] = repeat
    return writer


def guarded(guards: Sequence[Guard | None]) -> list[tuple[str, Column]]:
    """The guards as a source of `check`; none if nothing is guarded."""
    registers = [guard.register for guard in guards if guard is not None]
    return [("pred", registers)] if registers else []


def registers_of(operand: Operand) -> Iterator[Register]:
    """The registers that an operand reads."""
    if isinstance(operand, Register):
        yield operand
    elif isinstance(operand, Vector):
        for element in operand.elements:
            yield from registers_of(element)
    elif isinstance(operand, Pair):
        yield from registers_of(operand.first)
        yield from registers_of(operand.second)
    elif isinstance(operand, Negated):
        yield operand.register
    elif isinstance(operand, Address) and isinstance(operand.base, Register):
        yield operand.base
