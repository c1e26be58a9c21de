"""One instruction: a form, its operands, and perhaps a guard predicate."""

from __future__ import annotations

from dataclasses import dataclass, field

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


@dataclass(frozen=True, slots=True)
class Instruction:
    """A form with operands that fit exactly one of its signatures.

    `signature` follows from form and operands, and `mark` says where in the user's Python the instruction was written;
    neither takes part in comparison.
    """

    form: Form
    operands: tuple[Operand, ...]
    guard: Guard | None = None
    signature: Signature | None = field(default=None, compare=False, repr=False)
    mark: Mark | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        head = f"{self.guard} {self.form.spelling}" if self.guard else self.form.spelling
        operands = ", ".join(map(str, self.operands))
        return f"{head} {operands};" if operands else f"{head};"
