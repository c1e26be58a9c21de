"""Shared memory of one entry: variables while they fit the static limit, else offsets into the dynamic block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ptxtile.ir.module import Variable
from ptxtile.ir.operand import Address, Integer, Operand, Register, Symbol, Vector

STATIC_LIMIT = 48 * 1024
"""Bytes of shared memory that a module may declare (PTX ISA 5.1.7 with every target's 48 KiB)."""


@dataclass(slots=True)
class SharedMemory:
    """The allocations of one entry, in order: (symbol, bytes, alignment)."""

    prefix: str
    blocks: list[tuple[str, int, int]] = field(default_factory=list)

    @property
    def _name(self) -> str:
        """No name of the user's has a `$`, so this collides with none."""
        return f"{self.prefix}$shared"

    def allocate(self, size: int, alignment: int) -> Symbol:
        """A new stretch of `size` bytes."""
        name = f"{self._name}_{len(self.blocks)}"
        self.blocks.append((name, size, alignment))
        return Symbol(name, "shared")

    def _placed(self) -> tuple[dict[str, int], int, int]:
        offsets: dict[str, int] = {}
        end, most = 0, 1
        for name, size, alignment in self.blocks:
            end = -(-end // alignment) * alignment
            offsets[name] = end
            end += size
            most = max(most, alignment)
        return offsets, end, most

    @property
    def dynamic(self) -> int:
        """Bytes that a launch must add; 0 if the static limit is enough."""
        end = self._placed()[1]
        return end if end > STATIC_LIMIT else 0

    def variables(self) -> tuple[list[Variable], list[Variable]]:
        """(declared in the body, declared in the module)."""
        if self.dynamic:
            most = self._placed()[2]
            return [], [Variable("shared", "b8", self._name, (0,), most, linkage="extern")]
        return [
            Variable("shared", "b8", name, (size,), alignment) for name, size, alignment in self.blocks
        ], []

    def resolver(self) -> Callable[[tuple[Operand, ...]], tuple[Operand, ...]]:
        """Replaces symbols in operands by offsets into the dynamic block, which must be in use."""
        offsets = self._placed()[0]
        plain = (Register, Integer)

        def resolve(operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
            if all(type(operand) in plain for operand in operands):
                return operands
            return tuple([self._resolve(operand, offsets) for operand in operands])

        return resolve

    def _resolve(self, operand: Operand, offsets: dict[str, int]) -> Operand:
        if isinstance(operand, Symbol) and operand.name in offsets:
            return Symbol(self._name, "shared", offsets[operand.name] + operand.offset)
        if isinstance(operand, Address) and isinstance(operand.base, Symbol) and operand.base.name in offsets:
            inside = self._resolve(operand.base, offsets)
            assert isinstance(inside, Symbol)
            return replace(operand, base=replace(inside, offset=0), offset=operand.offset + inside.offset)
        if isinstance(operand, Vector) and not all(type(element) is Register for element in operand.elements):
            return Vector(tuple(self._resolve(element, offsets) for element in operand.elements))
        return operand
