"""Tensor copies over tiles: the box of a tensor map between global and shared memory (PTX ISA 9.7.9.27).

Operands in PTX order, at thread scope, one instruction:
    load      (shared tensor, map[i, j], mbarrier[, offsets][, cta_mask][, cache_policy])
    store     (map[i, j], shared tensor[, cache_policy]), and the same for cp.reduce.async.bulk.tensor
The shared tensor has the box's shape, dtype and swizzle, and is aligned as the swizzle needs; the box may lie outside
of the tensor in global memory. expect_tx, commit_group, waits and fences are the caller's.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxtile.builder import convert, ranges
from ptxtile.builder.storage import Memory
from ptxtile.builder.tensor_map import MapTile
from ptxtile.builder.tensors import Tensor
from ptxtile.builder.trace import Trace
from ptxtile.errors import LayoutError, OperandError, TileError
from ptxtile.isa.form import Form
from ptxtile.layout import ComposeLayout
from ptxtile.layout.shared import swizzle_of
from ptxtile.tile import operand
from ptxtile.tile.scope import Group

_OPCODES = ("cp.async.bulk.tensor.", "cp.reduce.async.bulk.tensor.")
_ALIGNMENT = 128


def is_tensor_copy(form: Form) -> bool:
    """Whether the form copies between a tensor map's box and shared memory."""
    return form.spelling.startswith(_OPCODES)


def apply(trace: Trace, form: Form, operands: Sequence[object], group: Group, pred: object) -> None:
    """See the module's docstring. TileError, LayoutError for what the hardware would do otherwise than is written."""
    if group.scope != "thread":
        raise TileError(f'{form.spelling} is issued by one thread: scope="thread", as in pt.if_(pt.elect())')
    tiles = [given for given in operands if isinstance(given, MapTile)]
    tensors = [given for given in operands if isinstance(given, Tensor)]
    if len(tiles) != 1 or not tensors:
        raise OperandError(
            f"{form.spelling} takes one box of a tensor map, map[i, j], and one tensor in shared memory; given are "
            f"{len(tiles)} and {len(tensors)}"
        )
    _check(trace, f"{form.spelling}: the shared tensor", tiles[0], tensors[0])
    convert.emit(trace, form, tuple(operands), pred)


def _check(trace: Trace, what: str, tile: MapTile, tensor: Tensor) -> None:
    map_, storage = tile.map, tensor.bound
    if not isinstance(storage, Memory) or storage.space != "shared":
        raise OperandError(f"{what} is in {tensor.space}")
    if tensor.dtype is not map_.dtype:
        raise OperandError(
            f"{what} is {tensor.dtype.name}, and the tensor map's elements are {map_.dtype.name}"
        )
    if tensor.static_shape != map_.box:
        raise TileError(f"{what} has shape {tensor.static_shape}, and the tensor map's box is {map_.box}")
    operand.prove_claims(trace, what, tensor)
    _check_layout(what, tile, tensor)
    due = max(_ALIGNMENT, 8 * map_.swizzle)
    unit = tensor.dtype.itemsize
    facts = [fact for known in trace.facts() for fact in ranges.facts_of(known)]
    assert tensor.layout is not None
    start = tensor.origin.plus(operand.tables(tensor.layout, tensor.static_shape)["m"][0])
    if storage.alignment % due or not ranges.divisible(start, due // unit, facts):
        raise LayoutError(
            f"{what} must start at a multiple of {due} bytes; its memory is aligned to {storage.alignment} (align=) "
            f"and it starts at element {start} of {unit} bytes"
        )


def _check_layout(what: str, tile: MapTile, tensor: Tensor) -> None:
    """Dense and row-major over the box, with the map's swizzle."""
    layout, shape = tensor.layout, tensor.static_shape
    assert layout is not None
    span = tile.map.swizzle
    found = layout.swizzle if isinstance(layout, ComposeLayout) else None
    due = swizzle_of(span, tensor.dtype.itemsize) if span else None
    if found != due:
        raise LayoutError(
            f"{what} is laid out {'without a swizzle' if found is None else f'with {found}'}, and the tensor map "
            f"writes {f'a swizzle of {span} bytes' if span else 'none'}; use pt.shared_layout(shape, dtype, {span})"
        )
    step = 1
    _, rows = operand.tables(layout, shape)["m"]
    for table in reversed(rows):
        if any(value != at * step for at, value in enumerate(table)):
            raise LayoutError(
                f"{what} is not dense and row-major over the box {shape}, as the copy writes it"
            )
        step *= len(table)
