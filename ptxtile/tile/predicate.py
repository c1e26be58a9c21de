"""`pred=` and `preserve_dst=` of tile operations."""

from __future__ import annotations

from collections.abc import Sequence

from ptxtile.builder import convert
from ptxtile.builder.storage import Registers
from ptxtile.builder.tensors import Tensor
from ptxtile.builder.trace import Trace
from ptxtile.dtypes import bool_
from ptxtile.errors import TileError
from ptxtile.ir.instruction import Guard
from ptxtile.tile import operand
from ptxtile.tile.operand import Split
from ptxtile.tile.scope import Group

Guards = Sequence["Guard | None"]


def guards(
    trace: Trace, what: str, pred: object, group: Group, repeat: tuple[int, ...], issues: int
) -> Guards:
    """The guard of each repeat. `pred` is a run-time bool_, or a bool_ register tensor over the repeats."""
    if pred is None:
        return [None] * issues
    if not isinstance(pred, Tensor):
        return [convert.guard(trace, what, pred)] * issues
    if pred.dtype is not bool_ or not isinstance(pred.bound, Registers):
        raise TileError(
            f"{what}: pred= takes a run-time bool_, or a bool_ register tensor over the repeats, not {pred!r}"
        )
    parts = operand.split(f"{what}: pred", pred, group, ())
    if parts.repeat not in (repeat, (*repeat, 1)):
        raise TileError(f"{what}: pred has repeats {parts.repeat} and the operands have {repeat}")
    operand.check_owner(f"{what}: pred", pred, group)
    registers = operand.issue_registers(pred, Split(parts.group, parts.repeat, ()))
    return [Guard(atom[0]) for atom in registers]


def check_preserve(what: str, preserve_dst: object, pred: object, writes_registers: bool) -> None:
    """preserve_dst only makes sense with a predicate and a register destination.

    A guarded PTX instruction leaves its destination alone where the guard is false, whatever the carrier, so nothing
    more is emitted; without preserve_dst the caller says that the old value there is not looked at.
    """
    if not isinstance(preserve_dst, bool):
        raise TileError(f"{what}: preserve_dst= is True or False, not {preserve_dst!r}")
    if preserve_dst and pred is None:
        raise TileError(f"{what}: preserve_dst=True requires pred=")
    if preserve_dst and not writes_registers:
        raise TileError(f"{what}: preserve_dst=True requires a destination in registers")
