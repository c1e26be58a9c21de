"""What there is to see of a layout: a grid of cells, each with who owns it, where it lies, and its colour.

`draw` turns a Picture into SVG or into text. The last two dimensions of the shape are rows and columns; leading ones
give one panel each; one dimension is folded into rows of 32.

Colour says the owner's innermost axis (a lane: eight hues of four shades, so that a quad has one hue), turned a little
for each value of the outer ones (a warp). Without owners it says the bank of shared memory in which an element begins:
a hue is 16 bytes, a shade 4.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from ptxtile.errors import LayoutError
from ptxtile.layout.axis import Axis, m, whole
from ptxtile.layout.banks import BankReport, bank_conflicts
from ptxtile.layout.coordinates import checked_shape
from ptxtile.layout.layout import TileLayout
from ptxtile.layout.swizzle import ComposeLayout, Layout, as_layout

__all__ = ["MOST_CELLS", "Cell", "Picture", "picture"]

MOST_CELLS = 1 << 14
_FOLD = 32
_BANKS = 32

# From the coarsest owner to the finest.
_OUTER_FIRST = "bz by bx cbz cby cbx wgid warpid wid_in_wg tx tid_in_wg laneid".split()
_LETTERS = {
    "m": "r", "TLane": "L", "TCol": "c", "laneid": "L", "warpid": "w", "wgid": "g", "wid_in_wg": "w",
    "tid_in_wg": "t", "tx": "t",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cell:
    """One element: what is written in it (a text a line), what it shares its colour and its frame with, and notes.

    labels    from the outer owner to the place: ("w5,9", "L0", "r1"), replicas listed; ("37",) in memory
    hue       0 to 1 round the circle; shade 0 (light) to 1 (dark)
    owner     the owner's values: neighbours with equal ones touch
    outer     the outer owner's values: a wider gap stands between different ones
    title     the whole story, for a pointer that rests on it
    lane      of the drawn access, the lane that begins here; None outside it
    conflict  whether that lane collides with another
    """

    labels: tuple[str, ...]
    hue: float
    shade: float
    owner: tuple[int, ...]
    outer: tuple[int, ...]
    title: str
    lane: int | None = None
    conflict: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    """Panels of rows of cells (None: past the end of a folded line), each with its title, and what to write below."""

    title: str
    panels: tuple[tuple[str, tuple[tuple[Cell | None, ...], ...]], ...]
    row_labels: tuple[str, ...]
    column_labels: tuple[str, ...]
    legend: tuple[str, ...]


def _extents(extents: Sequence[int]) -> tuple[int, ...]:
    """Extents to draw: those of 1 would only cut a matrix into slices."""
    wide = tuple(extent for extent in extents if extent != 1)
    return wide if len(extents) > 2 and len(wide) >= 2 else tuple(extents)


def picture(
    layout: object,
    shape: Sequence[int] | None = None,
    *,
    bits: int | None = None,
    access: int | None = None,
    along: int = 0,
) -> Picture:
    """The cells of a layout seen in `shape` (by default its extents, without those of 1 beyond two).

    bits    the width of an element, by which banks are counted; by default 32, or for a swizzle the width at which
            its unit is 16 bytes
    access  also show one access of a warp: lane i takes this many bytes from coordinate i of dimension `along` on,
            the others being 0 (wrapping into the next dimension where there are fewer than 32)

    Raises LayoutError for a shape of another size, more than MOST_CELLS elements, or an access of a layout that is
    not in memory.
    """
    known = as_layout(layout)
    dims = _extents(known.extents) if shape is None else checked_shape(shape, known.size())
    size = math.prod(dims)
    if size > MOST_CELLS:
        raise LayoutError(
            f"a picture has at most {MOST_CELLS} elements, not {size}; draw a slice() of the layout"
        )
    width = _bits(known) if bits is None else whole(bits, "bits")
    if not 1 <= width <= 128:
        raise LayoutError(f"bits must be 1 to 128, not {width}")
    report, lanes = _access(known, dims, width, access, along)
    cells = _Cells(known, dims, width)
    collided = {lane for c in report.conflicts for group in c.lanes for lane in group} if report else set()
    flat = [cells.cell(coord, lanes.get(coord), collided) for coord in itertools.product(*map(range, dims))]
    legend = [*cells.legend(), *([_access_text(report, along)] if report else [])]
    return _arranged(repr(known), dims, flat, tuple(legend))


def _bits(layout: Layout) -> int:
    if isinstance(layout, ComposeLayout) and layout.swizzle.per_element <= 5:
        return 128 >> layout.swizzle.per_element
    return 32


def _access(
    layout: Layout, dims: tuple[int, ...], bits: int, access: int | None, along: int
) -> tuple[BankReport | None, dict[tuple[int, ...], int]]:
    """The report on an access, and the lane that begins at each coordinate."""
    if access is None:
        return None, {}
    if any(axis != m for axis in layout.axes):
        raise LayoutError("an access is shown of a layout in memory, one that names no axis but m")
    first = whole(along, "along")
    if not 0 <= first < len(dims):
        raise LayoutError(f"along must be a dimension of {dims}, 0 to {len(dims) - 1}, not {first}")
    order = [first, *(d for d in reversed(range(len(dims))) if d != first)]
    step = max(
        whole(access, "access") * 8 // bits, 1
    )  # elements that one lane takes of the innermost dimension
    counts = [range(0, n, step if d == len(dims) - 1 else 1) for d, n in enumerate(dims)]
    coords: list[tuple[int, ...]] = []
    for digits in itertools.islice(itertools.product(*(counts[d] for d in reversed(order))), 32):
        place = dict(zip(reversed(order), digits))
        coords.append(tuple(place[d] for d in range(len(dims))))
    report = bank_conflicts(layout, coords, width_bytes=access, element_bits=bits, shape=dims)
    return report, {coord: lane for lane, coord in enumerate(coords)}


def _access_text(report: BankReport, along: int) -> str:
    verdict = "free of conflicts" if report.servings == report.phases else "ringed red lanes collide"
    return (
        f"one access, lanes along dimension {along}, {report.width_bytes} bytes a lane: {report.servings} servings "
        f"where {report.phases} would do; {verdict}"
    )


def _listed(found: Sequence[dict[str, int]], axis: str) -> str:
    """The values on an axis, all of them if they are few: "5,9"."""
    values = list(dict.fromkeys(values[axis] for values in found))
    return ",".join(map(str, values)) if len(values) < 3 else f"{values[0]}…"


class _Cells:
    """Makes the cells of one layout: knows its axes, and how many values each has."""

    def __init__(self, layout: Layout, dims: tuple[int, ...], bits: int) -> None:
        self.layout, self.dims, self.bits = layout, dims, bits
        owners = {axis.name: axis for axis in layout.owner_axes}
        self.owners: tuple[Axis, ...] = tuple(owners[name] for name in _OUTER_FIRST if name in owners)
        self.places: tuple[Axis, ...] = layout.memory_axes or (m,)
        self.spans = {axis.name: layout.span(axis) for axis in (*self.owners, *self.places)}
        self.inner = self.owners[-1:]

    def cell(self, coord: tuple[int, ...], lane: int | None, collided: set[int]) -> Cell:
        found = self.layout.owners(*coord, shape=self.dims)
        values = found[0]
        owner = tuple(values[axis.name] for axis in self.owners)
        hue, shade = self._colour(values)
        title = f"({', '.join(map(str, coord))}) → " + " | ".join(self._told(each) for each in found)
        return Cell(
            labels=self._labels(found),
            hue=hue,
            shade=shade,
            owner=owner or (self._unit(values),),
            outer=owner[:-1],
            title=title if lane is None else f"{title}; lane {lane} of the access",
            lane=lane,
            conflict=lane in collided,
        )

    def _labels(self, found: Sequence[dict[str, int]]) -> tuple[str, ...]:
        if not self.owners and self.places == (m,):
            return (_listed(found, "m"),)
        named = {
            axis.name: f"{_LETTERS.get(axis.name, axis.name)}{_listed(found, axis.name)}"
            for axis in (*self.owners, *self.places)
        }
        outer = "".join(named[axis.name] for axis in self.owners[:-1])
        rest = [
            named[axis.name]
            for axis in (*self.inner, *self.places)
            if axis in self.inner or self.spans[axis.name] > 1
        ]
        return (outer, *rest) if outer else tuple(rest)

    def _unit(self, values: dict[str, int]) -> int:
        """What neighbours without an owner share to touch: 16 bytes of memory, a lane of tensor memory."""
        place = values[self.places[0].name]
        return place * self.bits // 128 if self.places[0] == m else place

    def _told(self, values: dict[str, int]) -> str:
        parts = [f"{axis.name} {values[axis.name]}" for axis in (*self.owners, *self.places)]
        if not self.owners and self.places == (m,):
            parts.append(f"bank {self._bank(values['m'])}")
        return ", ".join(parts)

    def _bank(self, place: int) -> int:
        return place * self.bits // 32 % _BANKS

    def _colour(self, values: dict[str, int]) -> tuple[float, float]:
        if not self.owners and self.places == (m,):
            return self._bank(values["m"]) // 4 / 8, self._bank(values["m"]) % 4 / 3
        axis = (*self.inner, *self.places)[0]
        count = max(self.spans[axis.name], 1)
        hues = min(count, 8)
        per_hue = -(-count // hues)
        group, step = divmod(values[axis.name], per_hue)
        turn = 0.0
        for outer in self.owners[:-1]:
            turn = (turn + values[outer.name]) / max(self.spans[outer.name], 1)
        return (group + turn * 0.8) / hues, step / max(per_hue - 1, 1)

    def legend(self) -> list[str]:
        """What the letters and the colours of this layout mean."""
        if not self.owners and self.places == (m,):
            unit = f"the bank of shared memory where it begins, at {self.bits} bits an element"
            return [f"number: place on m; colour: {unit} (a hue: 16 bytes)"]
        shown = [
            f"{_LETTERS.get(axis.name, axis.name)}: {'register' if axis == m else axis.name}"
            for axis in (*self.owners, *self.places)
            if axis not in self.places or self.spans[axis.name] > 1
        ]
        lines = [", ".join(shown)]
        replica = self.layout.replica if isinstance(self.layout, TileLayout) else ()
        if replica:
            copies = ", ".join(f"{it.extent} at steps of {it.stride} on {it.axis.name}" for it in replica)
            lines.append(f"each element has {math.prod(it.extent for it in replica)} places: {copies}")
        return lines


def _arranged(title: str, dims: tuple[int, ...], flat: list[Cell], legend: tuple[str, ...]) -> Picture:
    if len(dims) == 1:
        columns = min(dims[0], _FOLD)
        padded: list[Cell | None] = [*flat, *[None] * (-len(flat) % columns)]
        rows = tuple(tuple(padded[i : i + columns]) for i in range(0, len(padded), columns))
        starts = tuple(str(i * columns) for i in range(len(rows)))
        return Picture(title, (("", rows),), starts, tuple(map(str, range(columns))), legend)
    height, width = dims[-2:]
    panels: list[tuple[str, tuple[tuple[Cell | None, ...], ...]]] = []
    for number, lead in enumerate(itertools.product(*map(range, dims[:-2]))):
        start = number * height * width
        rows = tuple(tuple(flat[start + r * width : start + (r + 1) * width]) for r in range(height))
        name = f"({', '.join(map(str, lead))}, :, :)" if lead else ""
        panels.append((name, rows))
    return Picture(
        title, tuple(panels), tuple(map(str, range(height))), tuple(map(str, range(width))), legend
    )
