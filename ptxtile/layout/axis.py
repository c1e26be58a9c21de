"""Named axes, and steps along them: `4 @ laneid`.

A layout sends a coordinate to one integer on each axis that it names. The memory axes say where an element
lies (`m` in elements from the tensor's base; `TLane` and `TCol` in tensor memory); all other axes say which
thread, warp or block owns it. The set of axes is closed: a misspelt name is an error, never a new axis.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Literal, SupportsIndex

from ptxtile.errors import LayoutError

__all__ = [
    "AXES",
    "Axis",
    "AxisLike",
    "Step",
    "StepLike",
    "TCol",
    "TLane",
    "as_axis",
    "as_step",
    "bx",
    "by",
    "bz",
    "cbx",
    "cby",
    "cbz",
    "counted",
    "laneid",
    "m",
    "tid_in_wg",
    "tx",
    "warpid",
    "wgid",
    "whole",
    "wid_in_wg",
]

_KINDS: dict[str, Literal["memory", "owner"]] = {
    "m": "memory",
    "bx": "owner",
    "by": "owner",
    "bz": "owner",
    "cbx": "owner",
    "cby": "owner",
    "cbz": "owner",
    "tx": "owner",
    "warpid": "owner",
    "laneid": "owner",
    "wgid": "owner",
    "tid_in_wg": "owner",
    "wid_in_wg": "owner",
    "TLane": "memory",
    "TCol": "memory",
}


def counted(number: int, noun: str) -> str:
    """`1 stride`, `2 strides`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def whole(value: object, what: str) -> int:
    """`value` as a plain int, or a LayoutError that names `what`; bools and floats are refused."""
    if type(value) is int:  # nearly always; asking for the protocol costs microseconds
        return value
    if not isinstance(value, bool) and isinstance(value, SupportsIndex) and not getattr(value, "ndim", 0):
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise LayoutError(f"{what} must be an int, not {value!r} ({type(value).__name__})")


@dataclass(frozen=True, slots=True, repr=False)
class Axis:
    """One named axis. `1 @ laneid` (or `laneid @ 1`) is a step of 1 along it.

    Raises LayoutError for a name that is not in the closed set `AXES`.
    """

    name: str

    def __post_init__(self) -> None:
        if self.name not in _KINDS:
            raise LayoutError(_unknown(self.name))

    @property
    def kind(self) -> Literal["memory", "owner"]:
        """ "memory" for m, TLane and TCol, else "owner"."""
        return _KINDS[self.name]

    @property
    def order(self) -> int:
        """Position in `AXES`; what offsets and replicas are sorted by."""
        return _ORDER[self.name]

    def __rmatmul__(self, amount: object) -> Step:
        return Step(whole(amount, f"the step along {self.name}"), self)

    def __matmul__(self, amount: object) -> Step:
        return Step(whole(amount, f"the step along {self.name}"), self)

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, repr=False)
class Step:
    """`amount @ axis`: a stride, or an offset. Along `m` it is counted in elements."""

    amount: int
    axis: Axis

    def __repr__(self) -> str:
        return str(self.amount) if self.axis.name == "m" else f"{self.amount} @ {self.axis.name}"


AxisLike = Axis | str
StepLike = int | Step | Axis | str | tuple[int, AxisLike]

_ORDER = {name: order for order, name in enumerate(_KINDS)}
AXES: tuple[Axis, ...] = tuple(Axis(name) for name in _KINDS)
m, bx, by, bz, cbx, cby, cbz, tx, warpid, laneid, wgid, tid_in_wg, wid_in_wg, TLane, TCol = AXES


def _unknown(name: object) -> str:
    text = f"unknown axis {name!r}"
    if isinstance(name, str):
        import difflib

        near = difflib.get_close_matches(name, _KINDS, n=1)
        if near:
            text += f"; did you mean {near[0]!r}?"
    return f"{text}\n  the axes are {' '.join(_KINDS)}"


def as_axis(value: object) -> Axis:
    """An Axis, or the axis of that name."""
    if isinstance(value, Axis):
        return value
    if isinstance(value, str):
        return Axis(value)
    raise LayoutError(_unknown(value))


def as_step(value: object) -> Step:
    """A stride as a Step: `4` (on m), `4 @ laneid`, `laneid` or `"laneid"` (a step of 1), `(4, laneid)`."""
    if isinstance(value, Step):
        return value
    if isinstance(value, (Axis, str)):
        return Step(1, as_axis(value))
    if isinstance(value, tuple):
        if len(value) != 2:
            raise LayoutError(f"a stride is n, n @ axis, an axis, or a pair (n, axis), not {value!r}")
        return Step(whole(value[0], "a stride"), as_axis(value[1]))
    return Step(whole(value, "a stride"), m)
