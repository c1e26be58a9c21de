"""Where variables lie: sizes, alignments, and the layout of a module's shared memory."""

from __future__ import annotations

from dataclasses import dataclass

from ptxtile.emulator import windows
from ptxtile.emulator.widths import bytes_of
from ptxtile.ir.module import Parameter, Variable

RED_ZONE = 16
"""Bytes at least between two .shared variables, and before dynamic shared memory, that nobody may touch."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a variable or parameter lies: its space, address in that space, and size, both in bytes."""

    space: str
    address: int
    size: int
    name: str


def align_up(value: int, alignment: int) -> int:
    """The least multiple of `alignment` that is not below `value`."""
    return -(-value // alignment) * alignment


def size_of(variable: Variable | Parameter) -> int:
    """Bytes that a variable or parameter takes; 0 for an array left open."""
    size = bytes_of(variable.type) * variable.vector
    for extent in variable.shape:
        size *= extent
    return size


def alignment_of(variable: Variable | Parameter) -> int:
    """The declared alignment in bytes, or the natural one of the element."""
    return variable.align or bytes_of(variable.type) * variable.vector


class SharedLayout:
    """Places .shared variables one after another; open arrays all start where the sized ones end (PTX ISA 5.1.7).

    Between two variables lie a few bytes that belong to nobody, so that an index that is off by one is seen.
    """

    def __init__(self, places: dict[str, Place]) -> None:
        self.places = places
        self.end = self.packed = windows.SHARED_START
        self.placed: list[Place] = []
        self.open: list[tuple[Variable, dict[str, Place]]] = []

    def add(self, variable: Variable, places: dict[str, Place] | None = None) -> None:
        names = self.places if places is None else places
        size = size_of(variable)
        if size == 0:
            self.open.append((variable, names))
            return
        alignment = alignment_of(variable)
        for name in numbered(variable.name, variable.count):
            address = align_up(self.end + (RED_ZONE if self.placed else 0), alignment)
            names[name] = Place("shared", address, size, name)
            self.placed.append(names[name])
            self.end = address + size
            self.packed = align_up(self.packed, alignment) + size

    def close(self) -> None:
        """Place the open arrays; `end` is then where dynamic shared memory begins."""
        alignment = max([16, *(alignment_of(variable) for variable, _ in self.open)])
        if self.open:
            self.end = align_up(self.end + (RED_ZONE if self.placed else 0), alignment)
            self.packed = align_up(self.packed, alignment)
        for variable, names in self.open:
            names[variable.name] = Place("shared", self.end, 0, variable.name)


def numbered(name: str, count: int | None) -> tuple[str, ...]:
    """The names that `name<count>` declares."""
    return (name,) if count is None else tuple(f"{name}{i}" for i in range(count))
