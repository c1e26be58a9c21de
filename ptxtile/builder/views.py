"""Views of tensors: other shapes, dtypes, orders and regions over the same storage (`rearrange` has its own file)."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex, Union

from ptxtile import location, tracing
from ptxtile.builder import convert, ranges, values
from ptxtile.builder.ranges import Extent
from ptxtile.builder.storage import Layout, Registers
from ptxtile.builder.trace import Block, Trace
from ptxtile.dtypes import DType, Scalar, dtype_of
from ptxtile.errors import LayoutError
from ptxtile.ir.operand import Register
from ptxtile.layout import ComposeLayout, TileLayout, as_layout

if TYPE_CHECKING:
    from ptxtile.builder.tensors import Tensor

Part = Union[int, Scalar, slice]
_ANY = 1 << 30  # zero is a multiple of everything


# --- shape, layout, dtype -------------------------------------------------------------------------------------------
def view(tensor: Tensor, shape: Sequence[object], layout: object) -> Tensor:
    """See Tensor.view."""
    tensor.bound  # noqa: B018  a TraceError outside a kernel
    if len(shape) == 1 and _is_dtype(shape[0]):
        if layout is not None:
            raise LayoutError("view(dtype) keeps the layout: change one thing at a time")
        return _view_dtype(tensor, dtype_of(shape[0]))
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = tuple(shape[0])
    shape = [part if isinstance(part, (bool, int)) else _whole(part) for part in shape]
    old = tensor.static_shape
    extents = _extents(shape, math.prod(old), free=layout is not None)
    if layout is None:
        if tensor.layout is None:
            tensor = tensor._like(old, layout=_dense(tensor, old))
        assert tensor.layout is not None
        return tensor._like(extents, layout=_divided(tensor.layout, extents))
    placed = as_layout(layout)
    if placed.size() != math.prod(extents):
        raise LayoutError(
            f"the layout has {placed.size()} elements and the shape {extents} has {math.prod(extents)}"
        )
    return tensor._like(extents, layout=placed, claims=_room(tensor, placed))


def _divided(layout: Layout, extents: tuple[int, ...]) -> Layout:
    """The layout so written that these extents divide its own; LayoutError if there is no such way."""
    try:
        layout.plan(extents)
    except LayoutError:
        layout = layout.canonicalize()  # neighbours that follow each other become one
        layout.plan(extents)
    return layout


def _is_dtype(part: object) -> bool:
    return isinstance(part, (str, type)) or not (
        isinstance(part, (tuple, list)) or hasattr(part, "__index__")
    )


def _whole(part: object) -> object:
    """A NumPy integer as a Python one; anything else as it is."""
    if not isinstance(part, SupportsIndex) or isinstance(part, (type, Scalar)):
        return part
    return operator.index(part) if getattr(part, "ndim", 0) == 0 else part


def _dense(tensor: Tensor, shape: Sequence[int]) -> TileLayout:
    from ptxtile.builder.tensors import default_layout, row_major

    if tensor.strides != row_major([ranges.constant(part) for part in shape]):
        raise LayoutError(
            f"{tensor!r} is a region of a tensor with run-time sizes: its rows do not follow each other"
        )
    return default_layout(shape)


def _extents(shape: Sequence[object], size: int, free: bool) -> tuple[int, ...]:
    for part in shape:
        if isinstance(part, bool) or not isinstance(part, int) or (part < 1 and part != -1):
            raise LayoutError(f"a view's shape holds positive integers and at most one -1, not {part!r}")
    extents = [part for part in shape if isinstance(part, int)]
    rest = math.prod(part for part in extents if part != -1)
    if extents.count(-1) > 1 or (-1 in extents and (size % rest or free)):
        raise LayoutError(f"the -1 in view{tuple(extents)} cannot be filled: {size} elements over {rest}")
    made = tuple(size // rest if part == -1 else part for part in extents)
    if not free and math.prod(made) != size:
        raise LayoutError(f"view{made} has {math.prod(made)} elements and the tensor has {size}")
    return made


def _room(tensor: Tensor, placed: Layout) -> list[Extent]:
    """Claims that a layout stays in the tensor's storage, for a start known at run time; LayoutError if it does not."""
    storage, span = tensor.bound, placed.span("m")
    if isinstance(storage, Registers):
        room = len(storage.registers)
    elif tensor.layout is None:
        # Run-time sizes: the storage is as large as the caller's array, so the layout must stay inside this region.
        room = _dense(tensor, tensor.static_shape).size()
        return [] if span <= room else _too_far(tensor, span - 1, room)
    elif storage.size is None:
        return []
    else:
        room = storage.size // tensor.dtype.itemsize
    end = tensor.origin.plus(span)
    if isinstance(placed, ComposeLayout) and tensor.origin.divisor() % placed.swizzle.period:
        # The swizzle moves elements anywhere in its aligned blocks, so the last block must be there whole.
        period = placed.swizzle.period
        end = ranges.quotient(end.plus(-1), period).plus(1).times(period)
    left = end.times(-1).plus(room)
    if left.bounds()[1] < 0:
        return _too_far(tensor, end.bounds()[0] - 1, room)
    return [] if left.bounds()[0] >= 0 else [left]


def _too_far(tensor: Tensor, last: int, room: int) -> NoReturn:
    raise LayoutError(
        f"the layout reaches element {last} of a storage that holds {room} of {tensor.dtype.name}"
    )


def _view_dtype(tensor: Tensor, dtype: DType) -> Tensor:
    old, new = tensor.dtype.itemsize, dtype.itemsize
    if old == new and (dtype.bits == tensor.dtype.bits):
        return tensor._like(
            tensor.shape,
            dtype=dtype,
            layout=tensor.layout,
            sizes=tensor.sizes,
            strides=() if tensor.layout else tensor.strides,
        )
    if isinstance(tensor.bound, Registers):
        raise LayoutError(
            f"registers of {tensor.dtype.name} cannot be read as {dtype.name}: each holds {tensor.dtype.bits} "
            "bits; nothing is repacked silently (mov.b32 and its kin pack and unpack)"
        )
    if tensor.bound.alignment % new:
        raise LayoutError(
            f"{tensor!r} read as {dtype.name} needs a base aligned to {new} bytes, and this one's is aligned to "
            f"{tensor.bound.alignment} (align=)"
        )
    count = max(old, new) // min(old, new)
    last = tensor.shape[-1] if tensor.shape else 1
    if new > old and (
        not isinstance(last, int) or last % count or not ranges.divisible(tensor.origin, count)
    ):
        raise LayoutError(
            f"{tensor!r} read as {dtype.name} needs a last extent and a start that {count} divides"
        )
    if not isinstance(last, int):
        raise LayoutError("view(dtype) needs a last extent known while tracing")
    shape = (*tensor.shape[:-1], last // count if new > old else last * count)
    origin = _scaled(tensor.origin, count, new > old)
    if tensor.layout is not None:
        layout = tensor.layout.pack(count) if new > old else tensor.layout.unpack(count)
        return tensor._like(shape, dtype=dtype, layout=layout, origin=origin)
    if tensor.strides[-1].known != 1:
        raise LayoutError("view(dtype) needs elements that lie side by side along the last dimension")
    strides = [*(_scaled(stride, count, new > old) for stride in tensor.strides[:-1]), ranges.constant(1)]
    return tensor._like(shape, dtype=dtype, origin=origin, strides=strides)


def _scaled(what: Extent, count: int, down: bool) -> Extent:
    if not down:
        return what.times(count)
    if not ranges.divisible(what, count):
        raise LayoutError(f"a stride or start ({what} elements) is not known to be a multiple of {count}")
    return ranges.quotient(what, count)


def permute(tensor: Tensor, order: Sequence[int]) -> Tensor:
    """See Tensor.permute."""
    tensor.bound  # noqa: B018  a TraceError outside a kernel
    if len(order) == 1 and isinstance(order[0], (tuple, list)):
        order = tuple(order[0])
    order = tuple(_whole(part) for part in order)  # type: ignore[misc]
    if not all(isinstance(part, int) for part in order) or sorted(order) != list(range(tensor.ndim)):
        raise LayoutError(
            f"permute needs each of the dimensions 0 to {tensor.ndim - 1} once, not {tuple(order)}"
        )
    shape = [tensor.shape[i] for i in order]
    if tensor.layout is None:
        return tensor._like(
            shape, sizes=[tensor.sizes[i] for i in order], strides=[tensor.strides[i] for i in order]
        )
    grouped, separators = tensor.layout.group(tensor.static_shape)
    return tensor._like(shape, layout=grouped.permute_by_groups(separators, tuple(order)))


# --- indices and regions --------------------------------------------------------------------------------------------
def _parts(tensor: Tensor, indices: object) -> list[Part]:
    tensor.bound  # noqa: B018  a TraceError outside a kernel
    parts = list(indices) if isinstance(indices, tuple) else [indices]
    if len(parts) > tensor.ndim:
        raise LayoutError(
            f"{len(parts)} indices for {tensor!r}, which has {tensor.ndim} dimensions" + _here()
        )
    made: list[Part] = []
    for part in parts:
        item = part
        if not isinstance(item, (int, Scalar)):
            item = _whole(item)
        if isinstance(item, Scalar) and item.value is not None and item.kind in ("int", "uint"):
            item = item.__index__()
        if isinstance(item, bool) or not isinstance(item, (int, slice, Scalar)):
            raise LayoutError(
                f"an index is an integer, a run-time integer or a slice, not {part!r}" + _here()
            )
        made.append(item)
    return made


def _here() -> str:
    return location.quote(location.here(2))


def is_element(tensor: Tensor, index: object) -> bool:
    """Whether an index names one element: a number for every dimension."""
    parts = _parts(tensor, index)
    return len(parts) == tensor.ndim and not any(isinstance(part, slice) for part in parts)


def _extent(value: int | Scalar, kept: bool = False) -> Extent:
    """The extent of an index. `kept`: it is looked at later, so a variable is read now (a mov)."""
    found = ranges.of_value(value)
    if found is None:
        if not isinstance(value, Scalar) or type(value).kind not in ("int", "uint"):
            raise LayoutError(f"an index is an integer, not {convert.given(value)}" + _here())
        found = ranges.unknown(_read(value) if kept else value)
    elif isinstance(value, Scalar) and value.value is None and found.known is None:
        _offer(value, found)
    return found


def _offer(value: Scalar, extent: Extent) -> None:
    """Let an address that needs just this index take the register it is in, rather than compute it again."""
    trace = tracing.active()
    key = (extent, type(value).bits)
    usable = isinstance(value.block, Block) and value.block.open and isinstance(value.operand, Register)
    if isinstance(trace, Trace) and usable and trace.computed(key) is None:
        trace.remember_value(key, values.home(value))


def _read(variable: Scalar) -> Scalar:
    trace = values.current("indexing a Tensor")
    trace.live(variable, "an index")
    now = trace.value(type(variable))
    values.move(trace, type(variable), values.home(now), variable)
    return now


def coordinate(tensor: Tensor, index: object) -> list[Extent]:
    """The coordinate that an index names. LayoutError if it is surely out of range."""
    return [
        _checked(tensor, d, part)
        for d, part in enumerate(_parts(tensor, index))
        if not isinstance(part, slice)
    ]


def _checked(tensor: Tensor, dimension: int, part: int | Scalar, kept: bool = False) -> Extent:
    at = _extent(part, kept)
    low, high = at.bounds()
    size = tensor.sizes[dimension].known
    if high < 0 or (size is not None and low >= size):
        raise LayoutError(
            f"index {convert.given(part)} is out of range for dimension {dimension} of {tensor!r}" + _here()
        )
    return at


def region(tensor: Tensor, index: object) -> Tensor:
    """The tensor that slices and indices select: an index drops its dimension, a slice narrows it."""
    parts = _parts(tensor, index)
    parts += [slice(None)] * (tensor.ndim - len(parts))
    starts: list[Extent] = []
    counts: list[Extent] = []
    kept: list[int] = []
    for d, part in enumerate(parts):
        if isinstance(part, slice):
            start, count = _span(tensor, d, part)
            kept.append(d)
        else:
            start, count = _checked(tensor, d, part, kept=True), ranges.constant(1)
        starts.append(start)
        counts.append(count)
    claims = [
        claim
        for start, count, size in zip(starts, counts, tensor.sizes)
        for claim in (start, size.plus(start, -1).plus(count, -1))
        if claim.known is None
    ]
    # A dimension narrowed has a count known while tracing (`_span`); a whole one may have a run-time size.
    shape: list[Any] = [tensor.shape[d] if counts[d] == tensor.sizes[d] else counts[d].known for d in kept]
    if tensor.layout is None:
        origin = tensor.origin
        for start, stride in zip(starts, tensor.strides):
            origin = origin.plus(start.times(stride))
        strides = [tensor.strides[d] for d in kept] or [ranges.constant(1)]
        return tensor._like(
            shape or [1],
            origin=origin,
            sizes=[counts[d] for d in kept] or [ranges.constant(1)],
            strides=strides,
            claims=claims,
        )
    return _region_of_layout(tensor, shape or [1], starts, [count.known or 1 for count in counts], claims)


def _region_of_layout(
    tensor: Tensor,
    shape: Sequence[int],
    starts: Sequence[Extent],
    counts: Sequence[int],
    claims: Sequence[Extent],
) -> Tensor:
    assert tensor.layout is not None
    layout, full = tensor.layout, tensor.static_shape
    known = [start.known for start in starts]
    if isinstance(tensor.bound, Registers) or layout.owner_axes or tensor.space == "tensor":
        if any(start is None for start in known):
            raise LayoutError(
                f"{tensor!r} is divided among threads or registers: its regions start where tracing knows"
                + _here()
            )
        return tensor._like(shape, layout=layout.slice(full, [start or 0 for start in known], counts))
    tile = layout.base if isinstance(layout, ComposeLayout) else layout
    origin = tensor.place(starts).plus(-sum(step.amount for step in tile.offset if step.axis.name == "m"))
    window = layout.window(full, counts, [start.divisor() or _ANY for start in starts])
    return tensor._like(shape, layout=window, origin=origin, claims=claims)


def _span(tensor: Tensor, dimension: int, part: slice) -> tuple[Extent, Extent]:
    if part.step is not None:
        raise LayoutError(
            f"a region has no step: {part.step!r} was given; use rearrange or a layout" + _here()
        )
    size = tensor.sizes[dimension]
    start = ranges.constant(0) if part.start is None else _extent(part.start, kept=True)
    stop = size if part.stop is None else _extent(part.stop, kept=True)
    count = stop.plus(start, -1)
    if count.known is None:
        # start + length may wrap as a number, but then the region is not proven to lie in the tensor.
        count = ranges.unwrapped(stop).plus(start, -1)
        if count.known is None and isinstance(part.start, Scalar) and type(part.start) is type(part.stop):
            # So may a start that is written out twice: x * 16 : x * 16 + 16.
            dtype = type(part.start)
            ends = (ranges.before_wrapping(end, dtype) for end in (stop, start))
            count = next(ends).plus(next(ends), -1)
    whole = start.known == 0 and count == size
    if count.known is None and not whole:
        raise LayoutError(
            f"the region {_end(part.start)}:{_end(part.stop)} has no length known while tracing: write start:start + "
            "length, start being no variable (start = variable + 0 reads one)" + _here()
        )
    if count.known is not None and (count.known < 1 or (size.known is not None and count.known > size.known)):
        raise LayoutError(f"a region of {count.known} elements of a dimension of {size.known}" + _here())
    if start.bounds()[1] < 0 or (
        start.known is not None and size.known is not None and start.known + (count.known or 0) > size.known
    ):
        raise LayoutError(
            f"the region {start.known}:{stop.known} is out of range for dimension {dimension} of {tensor!r}"
            + _here()
        )
    return start, count


def _end(part: object) -> str:
    return "" if part is None else convert.given(part)
