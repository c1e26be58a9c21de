"""Tensor copies over tiles: the box of a tensor map between global and shared memory (PTX ISA 9.7.9.27).

Operands in PTX order, at thread scope, one instruction:
    load      (shared tensor, map[i, j], mbarrier[, offsets][, cta_mask][, cache_policy])
    store     (map[i, j], shared tensor[, cache_policy]), and the same for cp.reduce.async.bulk.tensor
    prefetch  (map[i, j][, offsets][, cache_policy])
The shared tensor has the box's shape, dtype and swizzle, and is aligned as the swizzle needs. The box may hang over the
tensor in global memory; that of a store or a reduction over its upper ends only: hardware faults at a negative
coordinate, and one that is known here is refused. gather4 and scatter4 take `map.rows((i0, i1, i2, i3), j)` and a
tensor of four rows. im2col takes a map with im2col= and a tensor (pixels, channels); `offsets` is a tuple of uint16
in PTX order, (w, h, …). expect_tx, commit_group, waits and fences are the caller's.
"""

from __future__ import annotations

from ptxtile.builder import convert, ranges
from ptxtile.builder.storage import Memory
from ptxtile.builder.tensor_map import MapTile
from ptxtile.builder.tensors import Tensor
from ptxtile.builder.trace import Trace
from ptxtile.dtypes import Scalar
from ptxtile.errors import LayoutError, OperandError, TileError
from ptxtile.isa.form import Form
from ptxtile.layout import ComposeLayout
from ptxtile.layout.shared import swizzle_of
from ptxtile.tile import operand
from ptxtile.tile.family import GUARDED, Call, Family

_ALIGNMENT = 128
_BY_ROW = (".tile::gather4", ".tile::scatter4")
_REDUCIBLE = {
    ".add": ("u32", "s32", "u64", "f16", "bf16", "f32", "f32.ftz"),
    ".min": ("u32", "s32", "u64", "s64", "f16", "bf16"),
    ".max": ("u32", "s32", "u64", "s64", "f16", "bf16"),
    ".inc": ("u32",),
    ".dec": ("u32",),
    ".and": ("u32", "s32", "u64", "s64"),
    ".or": ("u32", "s32", "u64", "s64"),
    ".xor": ("u32", "s32", "u64", "s64"),
}


def issue(call: Call) -> None:
    """See the module's docstring. TileError, LayoutError for what the hardware would do otherwise than is written."""
    form, operands = call.form, call.operands
    if call.group.scope != "thread":
        raise TileError(f'{form.spelling} is issued by one thread: scope="thread", as in pt.if_(pt.elect())')
    if call.preserve_dst:
        raise TileError(f"{form.spelling} takes no preserve_dst=: it has no register destination")
    tiles = [given for given in operands if isinstance(given, MapTile)]
    tensors = [given for given in operands if isinstance(given, Tensor)]
    due = 0 if form.spelling.startswith(PREFETCH.starts) else 1
    if len(tiles) != 1 or len(tensors) != due:
        shared = " and one tensor in shared memory" if due else " and no tensor"
        raise OperandError(
            f"{form.spelling} takes one box of a tensor map, map[i, j],{shared}; given are {len(tiles)} and "
            f"{len(tensors)}"
        )
    _check_mode(form, tiles[0])
    _check_start(form, tiles[0])
    if tensors:
        _check(call.trace, f"{form.spelling}: the shared tensor", tiles[0], tensors[0])
    convert.emit(call.trace, form, tuple(operands), call.pred)


def _check_mode(form: Form, tile: MapTile) -> None:
    """The form's dimensions and mode are those of the map and of the box that was taken from it."""
    map_, words = tile.map, form.modifiers
    rank = next(int(word[1]) for word in words if len(word) == 3 and word[2] == "d" and word[1].isdigit())
    if rank != map_.template.rank:
        units = " of units" if map_.template.interleave else ""
        raise TileError(
            f"{form.spelling} copies {rank} dimensions, and {map_!r} has {map_.template.rank}{units}"
        )
    if map_.template.interleave and map_.template.im2col is not None:
        raise TileError(
            f"{form.spelling}: {map_!r} is interleaved, and no layout here says what a copy of its pixels writes; call "
            "the form itself"
        )
    if tile.by_row != any(word in _BY_ROW for word in words):
        use = (
            "takes the box at a coordinate, map[i, j]"
            if tile.by_row
            else "takes four rows, map.rows((i0, i1, i2, i3), j)"
        )
        raise TileError(f"{form.spelling} {use}")
    if any(word.startswith(".im2col::w") for word in words):
        raise TileError(
            f"{form.spelling} takes a tensor map of its own kind, which cuTensorMapEncodeIm2colWide makes and "
            "pt.TensorMap does not; call the form itself"
        )
    pixels = any(word.startswith(".im2col") for word in words)
    if pixels != (map_.template.im2col is not None):
        raise TileError(
            f"{form.spelling} takes a tensor map {'with' if pixels else 'without'} im2col=, not {map_!r}"
        )
    for word in words if form.spelling.startswith("cp.reduce") else ():
        allowed = _REDUCIBLE.get(word)
        if allowed is not None and map_.template.element not in allowed:
            raise TileError(
                f"{form.spelling} reduces elements of type {', '.join(allowed)}, and the tensor map's are "
                f"{map_.template.element}"
            )


def _check_start(form: Form, tile: MapTile) -> None:
    """A store or a reduction in tile mode begins in its tensor, as far as its coordinates are known here."""
    tiled = not any(word.startswith(".im2col") or word in _BY_ROW for word in form.modifiers)
    if ".global.shared::cta." not in form.spelling or not tiled:
        return
    for at, part in enumerate(tile.coordinates):
        known = part.value if isinstance(part, Scalar) else part
        if isinstance(known, int) and known < 0:
            verb = "reduces into" if form.spelling.startswith("cp.reduce") else "stores to"
            raise TileError(
                f"{form.spelling} {verb} a box whose coordinate {at} is {known}: hardware faults where a store begins "
                "before its tensor (it clips only what hangs over the upper ends); begin at 0 or above"
            )


def _check(trace: Trace, what: str, tile: MapTile, tensor: Tensor) -> None:
    map_, storage = tile.map, tensor.bound
    if not isinstance(storage, Memory) or storage.space != "shared":
        raise OperandError(f"{what} is in {tensor.space}")
    if tensor.dtype is not map_.dtype:
        raise OperandError(
            f"{what} is {tensor.dtype.name}, and the tensor map's elements are {map_.dtype.name}"
        )
    if tensor.static_shape != tile.shape:
        box = "four rows are" if tile.by_row else "the tensor map's box is"
        raise TileError(f"{what} has shape {tensor.static_shape}, and {box} {tile.shape}")
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
        advice = f"pt.shared_layout(shape, dtype, {span})"
        if tile.map.template.interleave and due is not None:
            extents = ", ".join(map(str, shape))
            advice = f"ComposeLayout({due.per_element}, {due.swizzle_len}, {due.atom_len}, S[{extents}])"
        raise LayoutError(
            f"{what} is laid out {'without a swizzle' if found is None else f'with {found}'}, and the tensor map "
            f"writes {f'a swizzle of {span} bytes' if span else 'none'}; use {advice}"
        )
    step = 1
    _, rows = operand.tables(layout, shape)["m"]
    for table in reversed(rows):
        if any(value != at * step for at, value in enumerate(table)):
            raise LayoutError(
                f"{what} is not dense and row-major over the box {shape}, as the copy writes it"
            )
        step *= len(table)


FAMILY = Family(
    name="tensor copies",
    section="9.7.9.27",
    starts=("cp.async.bulk.tensor.", "cp.reduce.async.bulk.tensor."),
    operands=(
        "load: shared, map[i, j], mbarrier[, offsets][, cta_mask][, cache_policy]",
        "store, reduce: map[i, j], shared[, cache_policy]",
    ),
    atoms="shared: the box of the tensor map; gather4, scatter4: four rows, map.rows((i0, i1, i2, i3), j); im2col: "
    "(pixels, channels)",
    carriers="the tensor map's dtype",
    guards=GUARDED,
    scopes="thread",
    judges=("ptxas", "emulator", "H200"),
    issue=issue,
)

PREFETCH = Family(
    name="tensor prefetch",
    section="9.7.9.27.1.4",
    starts=("cp.async.bulk.prefetch.tensor.",),
    operands=("map[i, j][, offsets][, cache_policy]",),
    atoms="none: the box of the tensor map goes to L2",
    carriers="none",
    guards=GUARDED,
    scopes="thread",
    judges=("ptxas", "emulator", "H200"),
    issue=issue,
)
