"""Families of tile operations: what each takes, as data. `docs/tile.md` is made from the same records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptxtile.errors import OperandError, TileError
from ptxtile.isa.form import Form
from ptxtile.tile.scope import Group

if TYPE_CHECKING:
    from ptxtile.builder.trace import Trace

PREDICATED = "pred, preserve_dst"
GUARDED = "pred"


@dataclass(frozen=True, slots=True)
class Call:
    """One `tile.apply`: the form, the operands in PTX order, the group axes here, and the keywords."""

    trace: Trace
    form: Form
    operands: Sequence[object]
    group: Group
    pred: object
    preserve_dst: bool
    parameters: Mapping[str, object]

    def take(self, count: int, order: str) -> Sequence[object]:
        """The operands; OperandError unless there are `count` of them."""
        if len(self.operands) != count:
            many = len(self.operands)
            raise OperandError(
                f"{self.form.spelling} takes {count} operands ({order}); {many} {'was' if many == 1 else 'were'} given"
            )
        return self.operands


@dataclass(frozen=True, slots=True)
class Parameter:
    """A keyword of a family, and what it means."""

    name: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Family:
    """One operand contract.

    name        for the documentation
    section     of the PTX manual
    starts      its forms' spellings start with one of these
    without     …and have none of these modifiers
    operands    their order, one line for each kind of form
    atoms       what the trailing axes are
    carriers    dtypes of the elements
    parameters  keywords beside scope, pred and preserve_dst
    guards      which of pred and preserve_dst it takes
    scopes      which scopes it may have
    judges      who has seen it: "ptxas", "emulator", "H200"
    issue       writes the instructions
    """

    name: str
    section: str
    starts: tuple[str, ...]
    operands: tuple[str, ...]
    atoms: str
    carriers: str
    issue: Callable[[Call], None]
    without: tuple[str, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    guards: str = PREDICATED
    scopes: str = "every"
    judges: tuple[str, ...] = ("ptxas",)

    def has(self, form: Form) -> bool:
        """Whether the form is of this family."""
        return form.spelling.startswith(self.starts) and not any(
            word in form.modifiers for word in self.without
        )

    def check_parameters(self, form: Form, given: Mapping[str, object]) -> None:
        """TileError for a keyword the family does not have."""
        known = [parameter.name for parameter in self.parameters]
        for name in given:
            if name not in known:
                has = f"it has {', '.join(known)}" if known else "it has none"
                raise TileError(
                    f"{form.spelling} has no parameter {name!r}; {has} beside scope, pred, preserve_dst"
                )
