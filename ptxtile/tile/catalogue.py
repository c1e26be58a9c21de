"""The families of tile operations, in the order in which a form is looked for."""

from __future__ import annotations

from functools import cache

from ptxtile.errors import TileError
from ptxtile.isa.form import Form
from ptxtile.tile import (
    atomic,
    copies,
    matrix_move,
    memory,
    mma,
    registers,
    tcgen05_mma,
    tcgen05_order,
    tensor_copy,
    tensor_map_change,
    tensor_memory_copy,
    tensor_memory_move,
    warp_exchange,
    wgmma,
    wmma,
)
from ptxtile.tile.family import Family

FAMILIES: tuple[Family, ...] = (
    memory.FAMILY,
    atomic.FAMILY,
    atomic.MULTIMEM,
    atomic.ASYNC,
    copies.FAMILY,
    copies.BULK,
    copies.LINES,
    warp_exchange.FAMILY,
    matrix_move.FAMILY,
    matrix_move.MOVMATRIX,
    mma.FAMILY,
    wmma.FAMILY,
    wgmma.FAMILY,
    tensor_copy.FAMILY,
    tensor_copy.PREFETCH,
    tensor_map_change.REPLACE,
    tensor_map_change.FENCE,
    tensor_memory_move.FAMILY,
    tensor_memory_copy.FAMILY,
    tcgen05_mma.FAMILY,
    tcgen05_order.COMMIT,
    tcgen05_order.SHIFT,
    registers.FAMILY,
)


@cache
def family_of(form: Form) -> Family:
    """The family of a form. TileError for a form with none: its operands are not all registers."""
    for family in FAMILIES[:-1]:
        if family.has(form):
            return family
    slots = [slot for signature in form.signatures for slot in signature.operands]
    if any(slot.kind not in ("value", "vector", "pair", "sink") for slot in slots):
        raise TileError(
            f"{form.spelling} is no tile operation: its operands are not all registers; call the form itself"
        )
    return registers.FAMILY
