"""Layouts from layouts. All functions map Parts to Parts; the laws they keep are in their first lines."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ptxtile.errors import LayoutError
from ptxtile.layout.axis import Axis, Step, m, whole
from ptxtile.layout.coordinates import checked_shape
from ptxtile.layout.grouping import fuse, group_iters, window_iters
from ptxtile.layout.iters import Iter, Parts, extents_text, parts_text, sum_offsets, weights

__all__ = [
    "aligned",
    "canonicalize",
    "compose",
    "factor",
    "inverse",
    "keep_axes",
    "pack",
    "permutation",
    "tile",
    "tile_counts",
    "unpack",
    "window",
]


def permutation(perm: object, count: int) -> tuple[int, ...]:
    """`perm` as a tuple that holds each of 0 … count - 1 once, or a LayoutError."""
    if isinstance(perm, Sequence):
        order = tuple(whole(i, "an entry of a permutation") for i in perm)
        if sorted(order) == list(range(count)):
            return order
    raise LayoutError(f"{perm!r} is no permutation of 0 to {count - 1}")


def factor(count: object) -> int:
    """A packing factor: a positive int, or a LayoutError."""
    number = whole(count, "a packing factor")
    if number < 1:
        raise LayoutError(f"a packing factor must be at least 1, not {number}")
    return number


def tile_counts(to_shape: object, cur_shape: object) -> tuple[int, ...]:
    """How often `cur_shape` goes into `to_shape`, by dimension; LayoutError unless it goes exactly."""
    to, cur = checked_shape(to_shape, what="to_shape"), checked_shape(cur_shape, what="cur_shape")
    if len(to) != len(cur):
        raise LayoutError(f"to_shape {to} and cur_shape {cur} differ in rank")
    for dim, (whole_extent, part) in enumerate(zip(to, cur, strict=True)):
        if whole_extent % part:
            near = max(whole_extent // part, 1) * part
            raise LayoutError(
                f"dimension {dim}: a tile of {part} does not divide {whole_extent};"
                f" {near} or {near + part} would do"
            )
    return tuple(a // b for a, b in zip(to, cur, strict=True))


def aligned(parts: Parts, run: int) -> int:
    """`run` reduced to what also divides the offset and the replicas on m."""
    return math.gcd(run, parts.offset_on(m), *(it.stride for it in parts.replica if it.axis == m))


def keep_axes(parts: Parts, axes: Sequence[Axis]) -> Parts:
    """The same map that also names `axes`: a value of 0 on an axis is not the same as silence about it."""
    silent = [Step(0, axis) for axis in axes if axis not in parts.axes and axis != m]
    return Parts(parts.shard, parts.replica, sum_offsets([*parts.offset, *silent])) if silent else parts


def canonicalize(parts: Parts) -> Parts:
    """The same map from linear index to values, in the fewest iters.

    Unit iters and zero offsets go, zero strides stand on m, neighbours fuse, replicas are sorted and fused.
    An axis that loses its last mention keeps one unit iter in front, so that `apply` still has it.
    """
    shard = fuse([it if it.stride else Iter(it.extent, 0, m) for it in parts.shard])
    ordered = sorted((it for it in parts.replica if it.stride), key=lambda it: (it.axis.order, -it.stride))
    replica = fuse(ordered)
    offset = tuple(step for step in sum_offsets(parts.offset) if step.amount)
    left = Parts(shard, replica, offset).axes
    named = sorted(set(parts.axes) - set(left) - {m}, key=lambda axis: axis.order)
    shard = tuple(Iter(1, 1, axis) for axis in named) + shard
    return Parts(shard or (Iter(1, 1, m),), replica, offset)


def _scaled(iters: Sequence[Iter], by: dict[Axis, int]) -> tuple[Iter, ...]:
    return tuple(Iter(it.extent, it.stride * by.get(it.axis, 1), it.axis) for it in iters)


def tile(inner: Parts, outer: Parts, outer_shape: object, inner_shape: object) -> Parts:
    """result(o * inner_shape + i) == outer(o) * width(inner) + inner(i), by axis and by dimension.

    The width of an axis counts the places that `inner` stretches over, not its offset.
    """
    outer_groups = group_iters(outer.shard, outer_shape)
    inner_groups = group_iters(inner.shard, inner_shape)
    if len(outer_groups) != len(inner_groups):
        raise LayoutError(
            f"an outer shape of rank {len(outer_groups)} over an inner one of rank {len(inner_groups)};"
            " the ranks must be equal"
        )
    by = {axis: inner.width(axis) for axis in inner.axes}
    shard: list[Iter] = []
    for outer_group, inner_group in zip(outer_groups, inner_groups, strict=True):
        shard += [*_scaled(outer_group, by), *inner_group]
    replica = _scaled(outer.replica, by) + inner.replica
    offset = [Step(step.amount * by.get(step.axis, 1), step.axis) for step in outer.offset]
    return canonicalize(Parts(tuple(shard), replica, sum_offsets([*offset, *inner.offset])))


def inverse(parts: Parts, axes: Sequence[Axis]) -> Parts:
    """inverse(values on `axes`) == linear index, for every owner; each axis has its own iters, in that order.

    Needs values 0 … width - 1 on each axis, each reached once (replicas lead back to the same index).
    """
    fail = f"{parts_text(parts)} has no inverse"
    missing = [axis.name for axis in parts.axes if axis not in axes]
    if missing:
        raise LayoutError(
            f"{fail} over ({', '.join(a.name for a in axes)}): it also uses {', '.join(missing)}"
        )
    if any(step.amount for step in parts.offset):
        raise LayoutError(f"{fail}: its offsets start above 0; invert it without them")
    shard: list[Iter] = []
    sources = [*zip(parts.shard, weights(parts.extents), strict=True), *((it, 0) for it in parts.replica)]
    for axis in axes:
        mine = [(it, back) for it, back in sources if it.axis == axis and it.extent > 1]
        mine.sort(key=lambda pair: -pair[0].stride)
        due = math.prod(it.extent for it, _ in mine)
        digits: list[Iter] = []
        for it, back in mine:
            due //= it.extent
            if it.stride != due:
                what = "a gap" if it.stride > due else "an overlap"
                raise LayoutError(
                    f"{fail}: on {axis.name} a stride of {it.stride} stands where {due} is due ({what})"
                )
            digits.append(Iter(it.extent, back, m))
        shard += fuse(digits) or (Iter(1, 1, m),)
    return Parts(tuple(shard) or (Iter(1, 1, m),))


def _through(it: Iter, outer: Sequence[Iter], low: list[int], high: list[int]) -> list[Iter] | None:
    """One iter of indices, sent through the digits of `outer`; what it reaches of each widens its bounds."""
    pieces: list[Iter] = []
    extent, stride, sign = it.extent, abs(it.stride), -1 if it.stride < 0 else 1
    if stride == 0:
        return [it]
    for place in reversed(range(len(outer))):
        digit = outer[place]
        if stride % digit.extent == 0:
            stride //= digit.extent
            continue
        if (extent - 1) * stride < digit.extent:
            count = extent
        elif digit.extent % stride == 0 and extent % (digit.extent // stride) == 0:
            count = digit.extent // stride
        else:
            return None
        reach = sign * (count - 1) * stride
        low[place] += min(0, reach)
        high[place] += max(0, reach)
        pieces.append(Iter(count, sign * stride * digit.stride, digit.axis))
        extent, stride = extent // count, 1
        if extent == 1:
            break
    return list(reversed(pieces)) if extent == 1 else None


def compose(outer: Parts, inner: Parts) -> Parts:
    """result(i) == outer(inner(i)), where `inner` has no axis but m and gives linear indices of `outer`."""
    fail = f"{parts_text(outer)} cannot be composed with {parts_text(inner)}"
    if set(inner.axes) - {m} or inner.replica:
        raise LayoutError(f"{fail}: the inner layout may have neither owner axes nor replicas")
    low, high = inner.bounds(m)
    if low < 0 or high >= outer.size:
        raise LayoutError(
            f"{fail}: it gives indices {low} to {high}, the outer layout takes 0 to {outer.size - 1}"
        )
    digits = fuse(outer.shard)
    start = inner.offset_on(m)
    first = [start // w % d.extent for d, w in zip(digits, weights([d.extent for d in digits]), strict=True)]
    lows, highs = list(first), list(first)
    shard: list[Iter] = []
    for it in inner.shard:
        pieces = [it] if it.extent == 1 else _through(it, digits, lows, highs)
        if pieces is None:
            raise LayoutError(
                f"{fail}: {extents_text('S', (it,))} does not step evenly through the outer extents"
            )
        shard += pieces
    if any(lo < 0 or hi >= digit.extent for lo, hi, digit in zip(lows, highs, digits, strict=True)):
        raise LayoutError(f"{fail}: a sum of inner strides carries from one outer extent into the next")
    moved = [Step(at * digit.stride, digit.axis) for at, digit in zip(first, digits, strict=True) if at]
    return keep_axes(Parts(tuple(shard), outer.replica, sum_offsets([*outer.offset, *moved])), outer.axes)


def unpack(parts: Parts, count: int, axis: Axis) -> Parts:
    """result(i * count + k) == self(i) * count + k on `axis`: each element becomes `count` narrower ones."""
    shard = [Iter(it.extent, it.stride * (count if it.axis == axis else 1), it.axis) for it in parts.shard]
    last = shard[-1]
    if last.axis == axis and last.stride == count:
        shard[-1] = Iter(last.extent * count, 1, axis)
    elif count > 1:
        shard.append(Iter(count, 1, axis))
    offset = tuple(Step(s.amount * (count if s.axis == axis else 1), s.axis) for s in parts.offset)
    return Parts(tuple(shard), _scaled(parts.replica, {axis: count}), offset)


def pack(parts: Parts, count: int, axis: Axis) -> Parts:
    """result(i) * count == self(i * count) on `axis`: each `count` neighbours become one wider element."""
    fail = f"{parts_text(parts)} cannot be packed by {count}"
    try:
        outer, inner = group_iters(parts.shard, (parts.size // count, count))
    except LayoutError:
        outer = inner = ()
    if count > 1 and fuse(inner) != (Iter(count, 1, axis),):
        raise LayoutError(
            f"{fail}: its innermost coordinates are no run of {count} neighbours on {axis.name}"
        )

    def narrowed(amount: int, where: Axis) -> int:
        if where != axis:
            return amount
        if amount % count:
            raise LayoutError(
                f"{fail}: a stride or offset of {amount} on {axis.name} is no multiple of {count}"
            )
        return amount // count

    shard = tuple(Iter(it.extent, narrowed(it.stride, it.axis), it.axis) for it in _plain_units(outer))
    replica = tuple(Iter(it.extent, narrowed(it.stride, it.axis), it.axis) for it in parts.replica)
    offset = tuple(Step(narrowed(s.amount, s.axis), s.axis) for s in parts.offset)
    return keep_axes(Parts(shard, replica, offset), parts.axes)


def _plain_units(iters: Sequence[Iter]) -> tuple[Iter, ...]:
    """The iters, at least one, with stride 0 on unit iters: those never step, so theirs need not divide."""
    kept = tuple(Iter(1, 0, it.axis) if it.extent == 1 else it for it in iters)
    return kept or (Iter(1, 0, m),)


def window(
    parts: Parts,
    shape: object,
    sizes: object,
    starts: tuple[int, ...] | None,
    multiples: tuple[int, ...] | None,
) -> Parts:
    """result(c) == self(starts + c) with `starts`; without, self(s + c) == result(c) + plan terms of s."""
    shard = window_iters(parts.shard, shape, sizes, starts, multiples)
    return keep_axes(Parts(shard, parts.replica, parts.offset), parts.axes)
