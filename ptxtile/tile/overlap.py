"""Whether a tile operation overwrites what it still needs."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

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
    writer: dict[str, int] = {}
    for name, issues in written:
        found = check_destination(name, issues)
        shared = writer.keys() & found.keys()
        if shared:
            raise TileError(f"{name}: its register {min(shared)} is another destination's too")
        writer |= found
    if not writer:
        return
    for name, column in read:
        if isinstance(column[0], (Integer, Float)):
            continue  # the operands of a column are of one kind
        check_source(what, name, column, writer)


def check_source(what: str, name: str, column: Column, writer: Mapping[str, int]) -> None:
    """TileError if a repeat reads a register that an earlier one, by `writer`, has overwritten."""
    # Names hash at once, and most sources are other registers than the destination: tiles have thousands of repeats.
    if writer.keys().isdisjoint(names_in(column)):
        return
    names = [[register.name for register in registers_of(operand)] for operand in column]
    for repeat, registers in enumerate(names):
        for register in registers:
            before = writer.get(register, repeat)
            if before < repeat:
                raise TileError(
                    f"{what}: repeat {repeat} reads {name} from {register}, which repeat {before} has already "
                    "overwritten; in place is fine only element by element: copy first, or go the other way"
                )


def names_in(column: Iterable[Operand]) -> Iterable[str]:
    """The names of all registers in operands, some of them twice."""
    words = list(column)
    if all(type(word) is Register for word in words):
        return [word.name for word in words if type(word) is Register]
    # The operands of a column are often one object many times.
    different = {id(word): word for word in words}.values()
    return {register.name for word in different for register in registers_of(word)}


def check_distinct(what: str, issues: Issues) -> None:
    """TileError if two elements of a destination share a register, which is one object wherever it stands."""
    if len(set(map(id, itertools.chain.from_iterable(issues)))) != sum(map(len, issues)):
        check_destination(what, issues)


def check_destination(what: str, issues: Issues) -> dict[str, int]:
    """The repeat that writes each register, by name. TileError if two elements of a destination share one."""
    writer = {register.name: repeat for repeat, registers in enumerate(issues) for register in registers}
    if len(writer) != sum(map(len, issues)):
        seen: set[str] = set()
        for register in itertools.chain.from_iterable(issues):
            if register.name in seen:
                raise TileError(
                    f"{what}: two of its elements are one register ({register}), so later repeats would overwrite "
                    "earlier ones; a destination's layout must be injective (no zero strides)"
                )
            seen.add(register.name)
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
            if type(element) is Register:
                yield element
            else:
                yield from registers_of(element)
    elif isinstance(operand, Pair):
        yield from registers_of(operand.first)
        yield from registers_of(operand.second)
    elif isinstance(operand, Negated):
        yield operand.register
    elif isinstance(operand, Address) and isinstance(operand.base, Register):
        yield operand.base
