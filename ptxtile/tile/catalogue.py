"""The families of tile operations, in the order in which a form is looked for; and those of Hopper's copies and wgmma."""

from __future__ import annotations

from functools import lru_cache

from ptxtile.errors import TileError
from ptxtile.isa.form import Form
from ptxtile.tile import memory, registers, tensor_copy, wgmma
from ptxtile.tile.family import GUARDED, Call, Family, Parameter


def _wgmma(call: Call) -> None:
    wgmma.apply(
        call.trace, call.form, call.operands, call.group, call.pred, call.preserve_dst, call.parameters
    )


def _tensor_copy(call: Call) -> None:
    tensor_copy.apply(call.trace, call.form, call.operands, call.group, call.pred)


WGMMA = Family(
    name="wgmma",
    section="9.7.15.5",
    starts=("wgmma.mma_async.sync",),
    operands=("d, a, b",),
    atoms="d: the registers of one instruction; a: (M, K) in shared memory, or 4 registers; b: (N, K) in shared memory",
    carriers="d float32 (float16 pairs, int32); a and b the form's own types",
    parameters=(
        Parameter("scale_d", "False: d is not added to, in the first K repeat; True, or a run-time bool_"),
        Parameter("scale_a", "1 or -1"),
        Parameter("scale_b", "1 or -1"),
    ),
    guards="none",
    scopes="warpgroup",
    judges=("ptxas", "emulator", "H200"),
    issue=_wgmma,
)

TENSOR_COPY = Family(
    name="tensor copies",
    section="9.7.9.27",
    starts=("cp.async.bulk.tensor.", "cp.reduce.async.bulk.tensor."),
    operands=(
        "load: shared, map[i, j], mbarrier[, offsets][, cta_mask][, cache_policy]",
        "store, reduce: map[i, j], shared[, cache_policy]",
    ),
    atoms="shared: the box of the tensor map",
    carriers="the tensor map's dtype",
    guards=GUARDED,
    scopes="thread",
    judges=("ptxas", "emulator", "H200"),
    issue=_tensor_copy,
)

FAMILIES: tuple[Family, ...] = (
    memory.FAMILY,
    WGMMA,
    TENSOR_COPY,
    registers.FAMILY,
)


@lru_cache(maxsize=None)
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
