"""Iters sorted by the dimensions of a shape: grouping, plan terms, windows, runs of neighbours.

Every function takes the shard (outermost iter first) and a shape with as many elements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ptxtile.errors import LayoutError
from ptxtile.layout.axis import Axis, counted, m
from ptxtile.layout.coordinates import checked_shape
from ptxtile.layout.iters import Iter, extents_text

__all__ = ["Term", "fuse", "group_iters", "is_run", "run_alignment", "terms", "window_iters"]

Groups = tuple[tuple[Iter, ...], ...]


@dataclass(frozen=True, slots=True)
class Term:
    """`value[axis] += coord[dim] // div % mod * stride`; `mod` None: the quotient is small enough as it is.

    `extent` bounds the digit `coord[dim] // div % mod`: it is 0 … extent - 1 for every coordinate in range.
    """

    dim: int
    div: int
    mod: int | None
    stride: int
    axis: Axis
    extent: int


def fuse(iters: Sequence[Iter]) -> tuple[Iter, ...]:
    """The same map with the fewest iters: unit iters go, neighbours that count as one digit become one."""
    result: list[Iter] = []
    for it in iters:
        if it.extent == 1:
            continue
        last = result[-1] if result else None
        if last is not None and last.axis == it.axis and last.stride == it.stride * it.extent:
            result[-1] = Iter(last.extent * it.extent, it.stride, it.axis)
        else:
            result.append(it)
    return tuple(result)


def _take(left: list[Iter], extent: int, fail: str) -> tuple[Iter, ...]:
    """Take `extent` coordinates off the inner end of `left`, splitting an iter where it divides."""
    if extent == 1:
        return (left.pop(),) if left and left[-1].extent == 1 else ()
    taken: list[Iter] = []
    while extent > 1:
        it = left.pop()
        if extent % it.extent == 0:
            taken.append(it)
            extent //= it.extent
        elif it.extent % extent == 0:
            taken.append(Iter(extent, it.stride, it.axis))
            left.append(Iter(it.extent // extent, it.stride * extent, it.axis))
            break
        else:
            raise LayoutError(
                f"{fail}: {extent} does not divide the extent {it.extent}, nor the other way round"
            )
    return tuple(reversed(taken))


def group_iters(shard: Sequence[Iter], shape: object) -> Groups:
    """The iters of each dimension of `shape`; a dimension of extent 1 may have none.

    Raises LayoutError where a dimension would end inside an iter that it does not divide.
    """
    dims = checked_shape(shape, math.prod(it.extent for it in shard))
    left = list(shard)
    groups: list[tuple[Iter, ...]] = []
    for dim in reversed(range(len(dims))):
        fail = f"{extents_text('S', shard)} cannot be grouped by shape {dims}, dimension {dim}"
        groups.append(_take(left, dims[dim], fail))
    groups.reverse()
    if left and groups:  # nothing but unit iters can be left
        groups[0] = (*left, *groups[0])
    return tuple(groups)


def terms(shard: Sequence[Iter], shape: object) -> tuple[Term, ...]:
    """The map as terms over the coordinates of `shape`; whole dimensions cost no division."""
    result: list[Term] = []
    for dim, group in enumerate(group_iters(shard, shape)):
        fused = fuse(group)
        div = math.prod(it.extent for it in fused)
        for place, it in enumerate(fused):
            div //= it.extent
            if it.stride:
                result.append(Term(dim, div, it.extent if place else None, it.stride, it.axis, it.extent))
    return tuple(result)


def _window(group: Sequence[Iter], size: int, start: int | None, multiple: int, fail: str) -> list[Iter]:
    """Iters for `size` coordinates of one dimension from `start`, or from any multiple of `multiple`."""
    taken: list[Iter] = []
    fused = fuse(group)
    for place in reversed(range(len(fused))):
        it = fused[place]
        if size == 1:
            break
        # Where a start may lie in this digit: known, or anything that the multiple allows.
        last = start % it.extent if start is not None else it.extent - math.gcd(multiple, it.extent)
        if place == 0 or last + size <= it.extent:
            taken.append(Iter(size, it.stride, it.axis))
            size = 1
        elif size % it.extent == 0 and last == 0:
            taken.append(it)
            size //= it.extent
            start = start // it.extent if start is not None else None
            multiple //= it.extent
        else:
            raise LayoutError(
                f"{fail}: a window of {size} from {_start_text(start, multiple)} crosses the end of an iter"
                f" of extent {it.extent}\n"
                f"  start and size must be multiples of {it.extent}, or stay inside one"
            )
    taken.reverse()
    return taken


def _start_text(start: int | None, multiple: int) -> str:
    if start is not None:
        return str(start)
    return "an unknown start" if multiple == 1 else f"a multiple of {multiple}"


def window_iters(
    shard: Sequence[Iter],
    shape: object,
    sizes: object,
    starts: tuple[int, ...] | None = None,
    multiples: tuple[int, ...] | None = None,
) -> tuple[Iter, ...]:
    """Iters of the window of `sizes` elements of a tensor of `shape`; each dimension has at least one.

    `starts` are where it begins; without them it may begin at any multiple of `multiples` (1 if not given).
    Raises LayoutError where no single layout describes the window at every such start.
    """
    dims, wanted = checked_shape(shape), checked_shape(sizes, what="the window")
    groups = group_iters(shard, dims)
    for given, name in ((wanted, "window"), (starts, "starts"), (multiples, "multiples")):
        if given is not None and len(given) != len(dims):
            raise LayoutError(
                f"{name} {given} has {counted(len(given), 'dimension')}, shape {dims} has {len(dims)}"
            )
    result: list[Iter] = []
    for dim, (group, size) in enumerate(zip(groups, wanted, strict=True)):
        start = None if starts is None else starts[dim]
        multiple = 1 if multiples is None else multiples[dim]
        if (start or 0) < 0 or (start or 0) + size > dims[dim]:
            raise LayoutError(
                f"dimension {dim}: a window of {size} from {start or 0} leaves its extent of {dims[dim]}"
            )
        if multiple < 1:
            raise LayoutError(f"dimension {dim}: a multiple must be at least 1, not {multiple}")
        fail = f"dimension {dim} of shape {dims} on {extents_text('S', shard)}"
        taken = _window(group, size, start, multiple, fail)
        result += taken or [Iter(1, 1, (group or shard)[-1].axis)]
    return tuple(result) or (Iter(1, 1, shard[-1].axis),)


def _last(groups: Groups, count: int) -> tuple[tuple[Iter, ...], tuple[Iter, ...]]:
    if not 0 <= count <= len(groups):
        raise LayoutError(f"there are no {count} last dimensions in a shape of {len(groups)}")
    split = len(groups) - count
    flat = [tuple(it for group in part for it in group) for part in (groups[:split], groups[split:])]
    return flat[0], flat[1]


def is_run(shard: Sequence[Iter], shape: object, count: int) -> bool:
    """Whether the last `count` dimensions of `shape` lie side by side on `m`, in coordinate order."""
    _, inner = _last(group_iters(shard, shape), count)
    fused = fuse(inner)
    return not fused or (len(fused) == 1 and fused[0].stride == 1 and fused[0].axis == m)


def run_alignment(shard: Sequence[Iter], shape: object, count: int) -> int:
    """What divides `m` wherever the last `count` coordinates are 0, at most; 0 if `m` is always 0 there."""
    outer, _ = _last(group_iters(shard, shape), count)
    return math.gcd(*(it.stride for it in outer if it.axis == m and it.extent > 1))
