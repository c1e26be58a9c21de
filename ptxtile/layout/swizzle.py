"""ComposeLayout: a tile layout on `m` whose places are then permuted by the XOR swizzle of shared memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast, overload

from ptxtile.errors import LayoutError
from ptxtile.layout import algebra
from ptxtile.layout.axis import Axis, AxisLike, Step, as_axis, m, whole
from ptxtile.layout.grouping import Term
from ptxtile.layout.layout import TileLayout, as_tile

if TYPE_CHECKING:
    from ptxtile.layout.coordinates import IntArray, Number, Values

__all__ = ["ComposeLayout", "Layout", "Swizzle", "as_layout"]


@dataclass(frozen=True, slots=True)
class Swizzle:
    """XOR of some bits of an element index into others; its own inverse.

    With x = index >> per_element: `inner` XORs bits atom_len … atom_len + swizzle_len - 1 of x down into bits
    0 … swizzle_len - 1; otherwise the low bits go up into the high ones. The bits below per_element stay.
    """

    per_element: int
    swizzle_len: int
    atom_len: int
    inner: bool = True

    @property
    def mask(self) -> int:
        """The bits of the index that are read: index ^ (index & mask, moved by `shift`)."""
        low = self.per_element + (self.atom_len if self.inner else 0)
        return ((1 << self.swizzle_len) - 1) << low

    @property
    def shift(self) -> int:
        """How far the read bits move: right if positive, left if negative."""
        return self.atom_len if self.inner else -self.atom_len

    @property
    def period(self) -> int:
        """In elements (a power of two): the swizzle permutes each aligned block of this many in itself."""
        return 1 << (self.per_element + self.atom_len + self.swizzle_len)

    @overload
    def apply(self, index: int) -> int: ...
    @overload
    def apply(self, index: Values) -> Values: ...
    def apply(self, index: Number) -> Number:
        """The swizzled index (an int, or an integer array)."""
        return self.swizzled(index)

    def swizzled(self, index: Number) -> Number:
        """`apply`, where it is not known which of the two the index is."""
        read = index & self.mask
        return index ^ (read >> self.shift if self.shift >= 0 else read << -self.shift)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ComposeLayout:
    """The XOR swizzle over a tile layout that names no axis but m.

    In units of 1 << per_element elements, bits [atom_len, atom_len + swizzle_len) of the address are XORed
    into bits [0, swizzle_len), or the reverse with swizzle_inner=False. Offsets of the tile count before the
    swizzle. All counts are at least 0, and atom_len is at least swizzle_len.
    """

    swizzle: Swizzle
    base: TileLayout

    def __init__(
        self, per_element: int, swizzle_len: int, atom_len: int, tile: TileLayout, swizzle_inner: bool = True
    ) -> None:
        counts = {"per_element": per_element, "swizzle_len": swizzle_len, "atom_len": atom_len}
        for name, count in counts.items():
            counts[name] = whole(count, name)
            if counts[name] < 0:
                raise LayoutError(f"{name} must be at least 0, not {count}")
        if counts["atom_len"] < counts["swizzle_len"]:
            raise LayoutError(
                f"atom_len {atom_len} is below swizzle_len {swizzle_len}: it would read bits that it writes"
            )
        if not isinstance(swizzle_inner, bool):
            raise LayoutError(f"swizzle_inner must be a bool, not {swizzle_inner!r}")
        base = as_tile(tile)
        others = [axis.name for axis in base.axes if axis != m]
        if others:
            raise LayoutError(f"a swizzled layout has no axis but m; {base!r} also names {', '.join(others)}")
        object.__setattr__(self, "swizzle", Swizzle(**counts, inner=swizzle_inner))
        object.__setattr__(self, "base", base)

    def _over(self, base: TileLayout) -> ComposeLayout:
        s = self.swizzle
        return ComposeLayout(s.per_element, s.swizzle_len, s.atom_len, base, s.inner)

    def __repr__(self) -> str:
        s = self.swizzle
        inner = "" if s.inner else ", swizzle_inner=False"
        return f"ComposeLayout({s.per_element}, {s.swizzle_len}, {s.atom_len}, {self.base!r}{inner})"

    @property
    def extents(self) -> tuple[int, ...]:
        """The extents of the tile, outermost first."""
        return self.base.extents

    @property
    def offset(self) -> tuple[Step, ...]:
        """The tile's offset: added to the plan's terms before the swizzle."""
        return self.base.offset

    @property
    def axes(self) -> tuple[Axis, ...]:
        """`m`."""
        return self.base.axes

    @property
    def owner_axes(self) -> tuple[Axis, ...]:
        """Always empty: a swizzle moves memory only."""
        return ()

    @property
    def memory_axes(self) -> tuple[Axis, ...]:
        """`m`."""
        return self.base.memory_axes

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
        """{"m": the swizzled place}; coordinates and errors as `TileLayout.apply`."""
        place = self.base.apply(*coord, shape=shape)["m"]
        return cast("dict[str, int]", {"m": self.swizzle.swizzled(place)})

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
        """Every place where the element lies: `apply`'s answer first, then the replicas."""
        places = self.base.owners(*coord, shape=shape)
        found = tuple({"m": self.swizzle.swizzled(place["m"])} for place in places)
        return cast("tuple[dict[str, int], ...]", found)

    def plan(self, shape: Sequence[int] | None = None) -> tuple[Term, ...]:
        """The terms of the place *before* the swizzle: m = swizzle(offset + sum of the terms)."""
        return self.base.plan(shape)

    def size(self, axis: AxisLike | None = None) -> int:
        """The number of elements; with `axis`, the product of the extents along it."""
        return self.base.size(axis)

    def span(self, axis: AxisLike | None = None) -> int:
        """One more than the greatest place after the swizzle, replicas counted; 1 on any axis but m.

        Exact. A tile with gaps whose end is not a multiple of the swizzle's period is walked through.
        """
        if axis is not None and as_axis(axis) != m:
            return 1
        end = self.base.span(m)
        fills = self.base.is_contiguous() and not self.base.replica
        if self._is_idle(end) or (fills and end % self.swizzle.period == 0):
            return end
        iters = (*self.base.shard, *self.base.replica)
        places = {self.base.parts.offset_on(m)}
        for it in iters:
            places = {place + count * it.stride for place in places for count in range(it.extent)}
        return 1 + max(map(self.swizzle.apply, places))

    def _is_idle(self, end: int) -> bool:
        """Whether no place below `end` has a bit that the swizzle reads."""
        return self.swizzle.swizzle_len == 0 or end <= self.swizzle.mask & -self.swizzle.mask

    def is_trivial(self) -> bool:
        """Whether the tile is trivial and the swizzle moves nothing in it: the index is the place on `m`."""
        return self._is_idle(self.base.span(m)) and self.base.is_trivial()

    def is_contiguous(self) -> bool:
        """Whether the tile is contiguous and the swizzle moves nothing in it."""
        return self._is_idle(self.base.span(m)) and self.base.is_contiguous()

    def is_injective(self, axis: AxisLike | None = None) -> bool:
        """Whether no two elements have the same place: a swizzle changes nothing about that."""
        return self.base.is_injective(axis)

    def is_run(self, shape: Sequence[int], count: int) -> bool:
        """Whether the last `count` dimensions of `shape` lie side by side on `m` wherever the others stand.

        Beyond the tile's own answer, a run must stay in one unit of 1 << per_element elements.
        """
        if not self.base.is_run(shape, count) or self._is_idle(self.base.span(m)):
            return self.base.is_run(shape, count)
        run = math.prod(shape[len(shape) - count :])
        return (1 << self.swizzle.per_element) % run == 0 and self.base.run_alignment(shape, count) % run == 0

    def run_alignment(self, shape: Sequence[int], count: int) -> int:
        """The greatest number of elements known to divide `m` wherever the last `count` coordinates are 0."""
        alignment = self.base.run_alignment(shape, count)
        return (
            alignment
            if self._is_idle(self.base.span(m))
            else math.gcd(alignment, 1 << self.swizzle.per_element)
        )

    def canonicalize(self) -> ComposeLayout:
        """The same map over the canonical tile."""
        return self._over(self.base.canonicalize())

    def group(self, shape: Sequence[int]) -> tuple[ComposeLayout, tuple[int, ...]]:
        """As `TileLayout.group`, of the tile."""
        base, separators = self.base.group(shape)
        return self._over(base), separators

    def permute_dims(self, perm: Sequence[int]) -> ComposeLayout:
        """As `TileLayout.permute_dims`, of the tile."""
        return self._over(self.base.permute_dims(perm))

    def permute_by_groups(self, separators: Sequence[int], perm: Sequence[int]) -> ComposeLayout:
        """As `TileLayout.permute_by_groups`, of the tile."""
        return self._over(self.base.permute_by_groups(separators, perm))

    def tile(
        self, outer: TileLayout, outer_shape: Sequence[int], inner_shape: Sequence[int]
    ) -> ComposeLayout:
        """The swizzle over the repeated tile: it goes by the whole address, as the hardware's does."""
        return self._over(self.base.tile(outer, outer_shape, inner_shape))

    def tile_to(self, to_shape: Sequence[int], cur_shape: Sequence[int]) -> ComposeLayout:
        """The swizzle over `TileLayout.tile_to` of the tile."""
        return self._over(self.base.tile_to(to_shape, cur_shape))

    def compose(self, inner: TileLayout) -> ComposeLayout:
        """The layout that sends i to self(inner(i))."""
        return self._over(self.base.compose(inner))

    def inverse(self, axes: Sequence[AxisLike] | None = None) -> TileLayout:
        """Always a LayoutError: unswizzling comes before the tile's inverse, and no layout says that."""
        raise LayoutError(
            f"the inverse of {self!r} is no layout\n"
            "  the swizzle is its own inverse: base.inverse().apply(swizzle.apply(place)) gives the index"
        )

    def unpack(self, count: int, axis: AxisLike = m) -> ComposeLayout:
        """Each element becomes `count` narrower ones; bytes stay where they are. `count`: a power of two."""
        bits = self._bits(count)
        s = self.swizzle
        return ComposeLayout(
            s.per_element + bits, s.swizzle_len, s.atom_len, self.base.unpack(count, axis), s.inner
        )

    def pack(self, count: int, axis: AxisLike = m) -> ComposeLayout:
        """Each run of `count` elements becomes one; bytes stay where they are. `count`: a power of two."""
        bits = self._bits(count)
        s = self.swizzle
        if bits > s.per_element:
            raise LayoutError(
                f"{self!r} cannot be packed by {count}: it moves units of 2**{s.per_element} elements"
            )
        return ComposeLayout(
            s.per_element - bits, s.swizzle_len, s.atom_len, self.base.pack(count, axis), s.inner
        )

    def _bits(self, count: int) -> int:
        number = algebra.factor(count)
        if number & (number - 1):
            raise LayoutError(f"a swizzled layout is packed by powers of two, not by {number}")
        return number.bit_length() - 1

    def slice(self, shape: Sequence[int], starts: Sequence[int], sizes: Sequence[int]) -> ComposeLayout:
        """As `TileLayout.slice`: the start becomes an offset of the tile, before the swizzle."""
        return self._over(self.base.slice(shape, starts, sizes))

    def window(
        self, shape: Sequence[int], sizes: Sequence[int], multiples: Sequence[int] | None = None
    ) -> ComposeLayout:
        """As `TileLayout.window`, before the swizzle: add the start's terms to the window's, then swizzle."""
        return self._over(self.base.window(shape, sizes, multiples))

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


Layout = TileLayout | ComposeLayout


def as_layout(layout: object) -> Layout:
    """A TileLayout (a bare `S[…]` is one) or ComposeLayout, checked; else a LayoutError."""
    return layout if isinstance(layout, ComposeLayout) else as_tile(layout)
