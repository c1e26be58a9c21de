"""What a tile layout is made of: iters, replicas and offsets, without the user's syntax."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ptxtile.errors import LayoutError
from ptxtile.layout.axis import Axis, Step, as_axis, m, whole

__all__ = ["Iter", "Parts", "extents_text", "parts_text", "row_major", "sum_offsets", "weights"]


@dataclass(frozen=True, slots=True)
class Iter:
    """A digit of the coordinate: it counts 0 … extent - 1 and moves `stride` along `axis` at each count.

    A stride of 0 broadcasts; a negative one runs backwards.
    """

    extent: int
    stride: int
    axis: Axis = field(default=m)

    def __post_init__(self) -> None:
        extent = whole(self.extent, "an extent")
        if extent < 1:
            raise LayoutError(f"an extent must be at least 1, not {extent}")
        object.__setattr__(self, "extent", extent)
        object.__setattr__(self, "stride", whole(self.stride, "a stride"))
        object.__setattr__(self, "axis", as_axis(self.axis))

    @property
    def step(self) -> Step:
        """`stride @ axis`."""
        return Step(self.stride, self.axis)

    @property
    def reach(self) -> int:
        """The value at the last count: (extent - 1) * stride."""
        return (self.extent - 1) * self.stride


@dataclass(frozen=True, slots=True)
class Parts:
    """Shard iters (outermost first), replica iters, and offsets (one a named axis, in the order of AXES)."""

    shard: tuple[Iter, ...]
    replica: tuple[Iter, ...] = ()
    offset: tuple[Step, ...] = ()

    @property
    def extents(self) -> tuple[int, ...]:
        return tuple(it.extent for it in self.shard)

    @property
    def size(self) -> int:
        return math.prod(self.extents)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes named anywhere, in the order of first mention."""
        named = [it.axis for it in self.shard + self.replica] + [step.axis for step in self.offset]
        return tuple(dict.fromkeys(named))

    def offset_on(self, axis: Axis) -> int:
        return sum(step.amount for step in self.offset if step.axis == axis)

    def bounds(self, axis: Axis) -> tuple[int, int]:
        """The least and the greatest value on `axis`, replicas and offset counted."""
        reaches = [it.reach for it in self.shard + self.replica if it.axis == axis]
        start = self.offset_on(axis)
        return start + sum(r for r in reaches if r < 0), start + sum(r for r in reaches if r > 0)

    def width(self, axis: Axis) -> int:
        """How many places on `axis` the layout stretches over, wherever its offset puts it."""
        low, high = self.bounds(axis)
        return high - low + 1


def sum_offsets(steps: Iterable[Step]) -> tuple[Step, ...]:
    """One Step an axis, in the order of AXES; zero sums stay, because they name an axis."""
    sums: dict[Axis, int] = {}
    for step in steps:
        sums[step.axis] = sums.get(step.axis, 0) + step.amount
    return tuple(Step(sums[axis], axis) for axis in sorted(sums, key=lambda axis: axis.order))


def weights(extents: Sequence[int]) -> tuple[int, ...]:
    """Row-major weights: (2, 32, 4) gives (128, 4, 1)."""
    result: list[int] = []
    weight = 1
    for extent in reversed(extents):
        result.append(weight)
        weight *= extent
    return tuple(reversed(result))


def row_major(extents: Sequence[int]) -> tuple[Iter, ...]:
    """Iters on `m` that store `extents` row by row, without gaps."""
    return tuple(Iter(extent, weight) for extent, weight in zip(extents, weights(extents), strict=True))


def _listed(values: Sequence[object]) -> str:
    return str(values[0]) if len(values) == 1 else f"({', '.join(map(str, values))})"


def extents_text(letter: str, iters: Sequence[Iter]) -> str:
    """The source of iters: `S[4, 8]`, `S[8 : 4 @ laneid]`, `R[2 : 4 @ warpid]`."""
    extents = [it.extent for it in iters]
    if letter == "S" and tuple(iters) == row_major(extents):
        return f"S[{', '.join(map(str, extents))}]"
    return f"{letter}[{_listed(extents)} : {_listed([it.step for it in iters])}]"


def parts_text(parts: Parts) -> str:
    """The source of a whole layout, as the argument of `TileLayout`."""
    text = extents_text("S", parts.shard)
    if parts.replica:
        text += " + " + extents_text("R", parts.replica)
    return text + "".join(f" + {step!r}" for step in parts.offset)
