"""`S[…]` and `R[…]`: extents and strides as Python writes slices."""

from __future__ import annotations

from ptxtile.errors import LayoutError
from ptxtile.layout.axis import Axis, Step, as_step, counted, whole
from ptxtile.layout.iters import Iter, row_major
from ptxtile.layout.layout import Replica, TileLayout

__all__ = ["R", "S"]


def _extents(value: object) -> tuple[int, ...]:
    values = value if isinstance(value, tuple) else (value,)
    if not values:
        raise LayoutError("a layout needs at least one extent, as in S[1]")
    return tuple(whole(extent, "an extent") for extent in values)


def _strides(value: object, extents: tuple[int, ...], alone: bool) -> tuple[Step, ...]:
    """One step for each extent. (4, laneid) beside a single bare extent is one stride, not two."""
    if not isinstance(value, tuple):
        values: tuple[object, ...] = (value,)
    elif alone and len(value) == 2 and isinstance(value[1], (Axis, str)):
        values = (value,)
    else:
        values = value
    if len(values) != len(extents):
        raise LayoutError(
            f"{counted(len(extents), 'extent')} {extents} but {counted(len(values), 'stride')} {values}\n"
            "  give one stride for each extent"
        )
    return tuple(as_step(stride) for stride in values)


def _iters(letter: str, key: object) -> tuple[Iter, ...]:
    if isinstance(key, slice):
        if key.step is not None:
            raise LayoutError(
                f"{letter}[extents : strides] takes no step; {key.step!r} stands after a second colon"
            )
        if key.start is None or key.stop is None:
            missing = "extents before" if key.start is None else "strides after"
            raise LayoutError(f"{letter}[extents : strides] has no {missing} the colon")
        extents = _extents(key.start)
        steps = _strides(key.stop, extents, alone=not isinstance(key.start, tuple))
        return tuple(Iter(e, step.amount, step.axis) for e, step in zip(extents, steps, strict=True))
    if isinstance(key, tuple) and any(isinstance(item, slice) for item in key):
        raise LayoutError(
            f"{letter}[…] mixes extents with extents : strides\n"
            f"  write {letter}[(8, 4) : (4 @ laneid, 1)]: all extents, a colon, all strides"
        )
    if letter == "R":
        raise LayoutError(
            "R[extents : strides] needs the strides at which the copies lie, as in R[2 : 4 @ warpid]"
        )
    return row_major(_extents(key))


class _Shard:
    """`S[8]`, `S[4, 8]` (row-major on m), `S[(8, 3) : (4 @ laneid, 1)]`: a TileLayout."""

    __slots__ = ()

    def __getitem__(self, key: object) -> TileLayout:
        return TileLayout.from_iters(_iters("S", key))

    def __repr__(self) -> str:
        return "S"


class _Replicas:
    """`R[2 : 4 @ warpid]` gives a Replica: added to a layout, each element also lives 4 warps on."""

    __slots__ = ()

    def __getitem__(self, key: object) -> Replica:
        return Replica(_iters("R", key))

    def __repr__(self) -> str:
        return "R"


S = _Shard()
R = _Replicas()
