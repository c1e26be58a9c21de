"""TileLayout: `S[(8, 4) : (4 @ laneid, 1)] + R[2 : 4 @ warpid] + 5 @ warpid`.

The coordinate is read row-major: the linear index is split over the shard's extents, outermost first, each
digit moves by its stride along its axis, and the offsets are added. Replicas say where else the same
element lives. Strides may be 0 (broadcast) or negative (backwards), as long as an offset keeps every value
at 0 or above.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, SupportsIndex, cast, overload

from ptxtile.errors import LayoutError
from ptxtile.layout import algebra
from ptxtile.layout.axis import Axis, AxisLike, Step, StepLike, as_axis, as_step, m, whole
from ptxtile.layout.coordinates import digits
from ptxtile.layout.grouping import Term, fuse, group_iters, is_run, run_alignment, terms
from ptxtile.layout.injective import is_injective
from ptxtile.layout.iters import Iter, Parts, extents_text, parts_text, row_major, sum_offsets

if TYPE_CHECKING:
    from ptxtile.layout.coordinates import IntArray, Number, Values

__all__ = ["Replica", "TileLayout", "as_tile"]


@dataclass(frozen=True, slots=True, init=False, repr=False)
class TileLayout:
    """A map from the coordinates of a tile to a value on each axis that it names, and `m`.

    `TileLayout(S[…] + R[…] + 5 @ warpid)`; `S[…]` is one already. Equality compares what is written
    (`S[2, 4] != S[8]`): compare `canonicalize()` to compare maps of the linear index.
    """

    parts: Parts

    def __init__(self, layout: TileLayout) -> None:
        object.__setattr__(self, "parts", as_tile(layout).parts)

    @classmethod
    def _of(cls, parts: Parts) -> TileLayout:
        self = cls.__new__(cls)
        object.__setattr__(self, "parts", parts)
        return self

    @classmethod
    def from_iters(
        cls, shard: Iterable[Iter], replica: Iterable[Iter] = (), offset: Iterable[StepLike] = ()
    ) -> TileLayout:
        """A layout of these iters (outermost first), replica iters and offsets."""
        iters = tuple(shard)
        if not iters:
            raise LayoutError("a layout needs at least one shard iter; a single element is Iter(1, 1)")
        return cls._of(Parts(iters, tuple(replica), sum_offsets(map(as_step, offset))))

    @property
    def shard(self) -> tuple[Iter, ...]:
        """The iters that split the coordinate, outermost first."""
        return self.parts.shard

    @property
    def replica(self) -> tuple[Iter, ...]:
        """The iters over the copies of each element."""
        return self.parts.replica

    @property
    def offset(self) -> tuple[Step, ...]:
        """What is added on each axis: at most one Step an axis. The plan's terms come on top."""
        return self.parts.offset

    @property
    def extents(self) -> tuple[int, ...]:
        """The extents of the shard, outermost first."""
        return self.parts.extents

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes that the layout names, in the order of first mention."""
        return self.parts.axes

    @property
    def owner_axes(self) -> tuple[Axis, ...]:
        """The named axes that say who owns an element (laneid, warpid, …)."""
        return tuple(axis for axis in self.axes if axis.kind == "owner")

    @property
    def memory_axes(self) -> tuple[Axis, ...]:
        """The named axes that say where an element lies (m, TLane, TCol)."""
        return tuple(axis for axis in self.axes if axis.kind == "memory")

    def __repr__(self) -> str:
        return f"TileLayout({parts_text(self.parts)})"

    def __add__(self, other: object) -> TileLayout:
        if isinstance(other, Replica):
            offset = sum_offsets([*self.offset, *other.offset])
            return self._of(Parts(self.shard, self.replica + other.iters, offset))
        if isinstance(other, TileLayout):
            raise LayoutError(
                f"{extents_text('S', self.shard)} + {extents_text('S', other.shard)}: a layout has one shard;"
                " list all extents in one S[…], or place one over the other with tile()"
            )
        if isinstance(other, (SupportsIndex, Step)):
            return self._of(Parts(self.shard, self.replica, sum_offsets([*self.offset, as_step(other)])))
        raise LayoutError(f"cannot add {other!r} to a layout; add R[…], n, or n @ axis")

    __radd__ = __add__

    # -- the map --------------------------------------------------------------------------------------------

    @overload
    def apply(self, *coord: int, shape: Sequence[int] | None = None) -> dict[str, int]: ...
    @overload
    def apply(
        self, first: IntArray, /, *coord: int | IntArray, shape: Sequence[int] | None = None
    ) -> dict[str, Values]: ...
    @overload
    def apply(
        self, *coord: int | IntArray, shape: Sequence[int] | None = None
    ) -> dict[str, int] | dict[str, Values]: ...
    def apply(
        self, *coord: int | IntArray, shape: Sequence[int] | None = None
    ) -> dict[str, int] | dict[str, Values]:
        """The base owner and the place of an element: a value for every axis named, and for `m`.

        One coordinate is a linear index at any rank; several match the extents, or `shape` (any shape with as
        many elements). Ints give ints; NumPy integer arrays broadcast and give int64 arrays.
        Raises LayoutError for a wrong count or type of coordinates, and for one out of range.
        """
        return cast("dict[str, int]", self._values(coord, shape))

    def _values(self, coord: tuple[object, ...], shape: object) -> dict[str, Number]:
        try:
            return self._sums(digits(coord, self.extents, shape))
        except LayoutError:
            raise
        except ValueError as error:  # NumPy's own complaint about shapes that do not broadcast
            raise LayoutError(f"coordinate arrays must broadcast together: {str(error).strip()}") from error

    def _sums(self, counts: tuple[Number, ...]) -> dict[str, Number]:
        zero: Number = 0
        for count in counts:
            zero = zero + count * 0
        values: dict[Axis, Number] = {
            axis: zero + self.parts.offset_on(axis) for axis in self._checked_axes()
        }
        for it, count in zip(self.shard, counts, strict=True):
            values[it.axis] = values[it.axis] + count * it.stride
        return {axis.name: value for axis, value in values.items()}

    @overload
    def owners(self, *coord: int, shape: Sequence[int] | None = None) -> tuple[dict[str, int], ...]: ...
    @overload
    def owners(
        self, first: IntArray, /, *coord: int | IntArray, shape: Sequence[int] | None = None
    ) -> tuple[dict[str, Values], ...]: ...
    @overload
    def owners(
        self, *coord: int | IntArray, shape: Sequence[int] | None = None
    ) -> tuple[dict[str, int], ...] | tuple[dict[str, Values], ...]: ...
    def owners(
        self, *coord: int | IntArray, shape: Sequence[int] | None = None
    ) -> tuple[dict[str, int], ...] | tuple[dict[str, Values], ...]:
        """Every place where the element lives: `apply`'s answer first, then the replicas, each once."""
        base = self._values(coord, shape)
        copies: dict[tuple[Step, ...], None] = {}
        for counts in itertools.product(*(range(it.extent) for it in self.replica)):
            moved = sum_offsets(
                Step(n * it.stride, it.axis) for n, it in zip(counts, self.replica, strict=True)
            )
            copies[moved] = None
        found = tuple(
            {
                name: value + sum(s.amount for s in moved if s.axis.name == name)
                for name, value in base.items()
            }
            for moved in copies
        )
        return cast("tuple[dict[str, int], ...]", found)

    def _checked_axes(self) -> tuple[Axis, ...]:
        """The named axes and `m`; refuses a layout that reaches below 0, where no lane or element is."""
        axes = self.axes if m in self.axes else (*self.axes, m)
        for axis in axes:
            low, _ = self.parts.bounds(axis)
            if low < 0:
                raise LayoutError(
                    f"{parts_text(self.parts)} reaches {low} on {axis.name}; values start at 0:"
                    f" add {Step(-low, axis)!r} as an offset"
                )
        return axes

    def plan(self, shape: Sequence[int] | None = None) -> tuple[Term, ...]:
        """The map as terms over the coordinates of `shape` (by default the extents), `offset` apart.

        For code that computes addresses at run time: value[axis] = offset[axis] + sum of its terms. A
        dimension that covers whole iters costs no division.
        Raises LayoutError where a dimension ends inside an iter that it does not divide.
        """
        self._checked_axes()
        return terms(self.shard, self.extents if shape is None else shape)

    # -- size and form --------------------------------------------------------------------------------------

    def size(self, axis: AxisLike | None = None) -> int:
        """The number of elements; with `axis`, the product of the extents along it."""
        wanted = None if axis is None else as_axis(axis)
        return Parts(tuple(it for it in self.shard if wanted in (None, it.axis))).size

    def span(self, axis: AxisLike | None = None) -> int:
        """One more than the greatest value on `axis` (in elements for `m`), replicas and offset counted.

        Without `axis`: along the one memory axis; LayoutError if the layout names several.
        """
        self._checked_axes()
        if axis is None and len(self.memory_axes) > 1:
            named = ", ".join(axis.name for axis in self.memory_axes)
            raise LayoutError(f"span() of a layout with several memory axes ({named}): name one")
        wanted = as_axis(axis) if axis is not None else (*self.memory_axes, m)[0]
        return self.parts.bounds(wanted)[1] + 1

    def is_trivial(self) -> bool:
        """Whether the linear index is the place on `m`, with no owner, replica or offset."""
        plain = self.canonicalize()
        return self.is_contiguous() and not (plain.owner_axes or plain.replica or plain.offset)

    def is_contiguous(self) -> bool:
        """Whether each owner's elements lie side by side on `m`, in the order of their coordinates."""
        fused = fuse([it for it in self.shard if it.axis.kind == "memory"])
        return not fused or (len(fused) == 1 and fused[0].step == Step(1, m))

    def is_injective(self, axis: AxisLike | None = None) -> bool:
        """Whether no two coordinates that differ along `axis` share a value there; replicas apart.

        Without `axis`: whether no two elements have both the same owner and the same place.
        """
        axes = {it.axis for it in self.shard} if axis is None else {as_axis(axis)}
        return all(is_injective([it for it in self.shard if it.axis == one]) for one in axes)

    def is_run(self, shape: Sequence[int], count: int) -> bool:
        """Whether the last `count` dimensions of `shape` lie side by side on `m`, in coordinate order."""
        return is_run(self.shard, shape, count)

    def run_alignment(self, shape: Sequence[int], count: int) -> int:
        """The greatest number of elements that divides `m` wherever the last `count` coordinates are 0.

        0 says that `m` is always 0 there. Offset and replicas count.
        """
        return algebra.aligned(self.parts, run_alignment(self.shard, shape, count))

    # -- other layouts --------------------------------------------------------------------------------------

    def canonicalize(self) -> TileLayout:
        """The same map of the linear index in the fewest iters; it still names the same axes."""
        return self._of(algebra.canonicalize(self.parts))

    def group(self, shape: Sequence[int]) -> tuple[TileLayout, tuple[int, ...]]:
        """The same map with iters split at the dimensions of `shape`, and where each dimension's iters begin.

        Dimension d has the iters separators[d] to separators[d + 1]; one of extent 1 may have none.
        """
        groups = group_iters(self.shard, shape)
        if not groups:
            raise LayoutError("a layout cannot be grouped by the empty shape ()")
        separators = itertools.accumulate((len(group) for group in groups), initial=0)
        return self._with(itertools.chain(*groups)), tuple(separators)

    def permute_dims(self, perm: Sequence[int]) -> TileLayout:
        """The layout whose iter i is this one's iter perm[i]."""
        order = algebra.permutation(perm, len(self.shard))
        return self._with(self.shard[i] for i in order)

    def permute_by_groups(self, separators: Sequence[int], perm: Sequence[int]) -> TileLayout:
        """The layout whose dimension i is this one's dimension perm[i], as `group` separates them."""
        marks = tuple(whole(mark, "a separator") for mark in separators)
        if len(marks) < 2 or marks[0] != 0 or marks[-1] != len(self.shard) or list(marks) != sorted(marks):
            raise LayoutError(
                f"separators {marks} must rise from 0 to the number of iters, {len(self.shard)}"
            )
        order = algebra.permutation(perm, len(marks) - 1)
        return self._with(itertools.chain(*(self.shard[marks[i] : marks[i + 1]] for i in order)))

    def _with(self, shard: Iterable[Iter]) -> TileLayout:
        return self._of(Parts(tuple(shard), self.replica, self.offset))

    def tile(self, outer: TileLayout, outer_shape: Sequence[int], inner_shape: Sequence[int]) -> TileLayout:
        """Repeat this layout (of `inner_shape`) as `outer` (of `outer_shape`) says; canonical.

        The result has shape outer_shape * inner_shape, dimension by dimension. A step of `outer` moves by the
        width of this layout on that axis.
        """
        return self._of(algebra.tile(self.parts, as_tile(outer).parts, outer_shape, inner_shape))

    def tile_to(self, to_shape: Sequence[int], cur_shape: Sequence[int]) -> TileLayout:
        """Repeat this layout of `cur_shape`, row by row on `m`, until it fills `to_shape`; canonical."""
        outer = algebra.tile_counts(to_shape, cur_shape)
        return self.tile(self._of(Parts(row_major(outer))), outer, cur_shape)

    def inverse(self, axes: Sequence[AxisLike] | None = None) -> TileLayout:
        """The layout from values on `axes` back to the linear index (on its `m`).

        `axes` are the outer to the inner dimensions of the result, by default in order of first mention.
        Raises LayoutError unless the values fill 0 … width - 1 on each axis, each once (replicas apart).
        """
        self._checked_axes()
        named = self.axes if axes is None else tuple(as_axis(axis) for axis in axes)
        return self._of(algebra.inverse(self.parts, named))

    def compose(self, inner: TileLayout) -> TileLayout:
        """The layout that sends i to self(inner(i)): `inner` gives, on `m`, linear indices of this one."""
        return self._of(algebra.compose(self.parts, as_tile(inner).parts))

    def unpack(self, count: int, axis: AxisLike = m) -> TileLayout:
        """Each element becomes `count` narrower ones, side by side on `axis`, innermost in the coordinate."""
        return self._of(algebra.unpack(self.parts, algebra.factor(count), as_axis(axis)))

    def pack(self, count: int, axis: AxisLike = m) -> TileLayout:
        """Each run of `count` innermost elements, side by side on `axis`, becomes one wider element."""
        return self._of(algebra.pack(self.parts, algebra.factor(count), as_axis(axis)))

    def slice(self, shape: Sequence[int], starts: Sequence[int], sizes: Sequence[int]) -> TileLayout:
        """The layout of the window of `sizes` elements at `starts` of a tensor of `shape`.

        result(c) == self(starts + c). Raises LayoutError where the window is cut so that no layout says it.
        """
        at = tuple(whole(start, "a start") for start in starts)
        moved = algebra.window(self.parts, shape, sizes, at, None)
        first = cast("dict[str, int]", self._values(at, shape))
        offset = sum_offsets(Step(value, as_axis(name)) for name, value in first.items() if value)
        return self._of(algebra.keep_axes(Parts(moved.shard, self.replica, offset), self.axes))

    def window(
        self, shape: Sequence[int], sizes: Sequence[int], multiples: Sequence[int] | None = None
    ) -> TileLayout:
        """The layout of a window of `sizes` elements that begins where only the running program knows.

        self(start + c) == result(c) + the terms of plan(shape) at start, for every start in bounds whose
        coordinates are multiples of `multiples` (1 if not given). LayoutError where that cannot hold.
        """
        known = None if multiples is None else tuple(whole(n, "a multiple") for n in multiples)
        return self._of(algebra.window(self.parts, shape, sizes, None, known))

    # -- pictures -------------------------------------------------------------------------------------------

    def svg(
        self,
        shape: Sequence[int] | None = None,
        *,
        bits: int | None = None,
        access: int | None = None,
        along: int = 0,
    ) -> str:
        """A picture: an SVG text. What `bits`, `access` and `along` say: `ptxtile.layout.picture.picture`."""
        from ptxtile.layout import draw, picture  # they stand on this module

        return draw.svg(picture.picture(self, shape, bits=bits, access=access, along=along))

    def _repr_svg_(self) -> str | None:
        """For notebooks; None, and so only the text, for a layout too large to draw."""
        from ptxtile.layout import picture

        return self.svg() if self.size() <= picture.MOST_CELLS else None


@dataclass(frozen=True, slots=True, repr=False)
class Replica:
    """`R[extents : strides]`: the copies of each element, with offsets added to it. Add it to a layout."""

    iters: tuple[Iter, ...]
    offset: tuple[Step, ...] = ()

    def __repr__(self) -> str:
        return extents_text("R", self.iters) + "".join(f" + {step!r}" for step in self.offset)

    def __add__(self, other: object) -> Replica:
        if isinstance(other, Replica):
            return Replica(self.iters + other.iters, sum_offsets([*self.offset, *other.offset]))
        if isinstance(other, (SupportsIndex, Step)):
            return Replica(self.iters, sum_offsets([*self.offset, as_step(other)]))
        return NotImplemented

    __radd__ = __add__


def as_tile(layout: object) -> TileLayout:
    """A TileLayout (a bare `S[…]` is one), checked to reach nothing below 0; else a LayoutError."""
    if not isinstance(layout, TileLayout):
        raise LayoutError(f"a tile layout is due, not {layout!r}; a layout starts from S[…]")
    layout._checked_axes()
    return layout
