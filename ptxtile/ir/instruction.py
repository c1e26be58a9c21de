"""One instruction: a form, its operands, and perhaps a guard predicate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Optional

from ptxtile.ir.operand import Operand, Register
from ptxtile.isa.form import Form, Signature
from ptxtile.location import Mark


@dataclass(frozen=True, slots=True)
class Guard:
    """`@p` or `@!p` before an instruction (PTX ISA 8.3)."""

    register: Register
    negated: bool = False

    def __str__(self) -> str:
        return f"@!{self.register.name}" if self.negated else f"@{self.register.name}"


class _Fields(NamedTuple):
    form: Form
    operands: tuple[Operand, ...]
    guard: Optional[Guard] = None
    signature: Optional[Signature] = None
    mark: Optional[Mark] = None


class Instruction(_Fields):
    """A form with operands that fit exactly one of its signatures.

    `signature` follows from form and operands, and `mark` says where in the user's Python the instruction was written;
    neither takes part in comparison. (A named tuple, where the other records are frozen dataclasses: tracing and
    reading make one for every line, and this is made three times as fast.)
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Instruction) and self[:3] == other[:3]

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self[:3])

    def __repr__(self) -> str:
        return f"Instruction(form={self.form!r}, operands={self.operands!r}, guard={self.guard!r})"

    def __str__(self) -> str:
        head = f"{self.guard} {self.form.spelling}" if self.guard else self.form.spelling
        operands = ", ".join(map(str, self.operands))
        return f"{head} {operands};" if operands else f"{head};"
