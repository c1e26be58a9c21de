"""Records as pictures: SVG text with no script, no font file and no address in it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from html import escape

from ptxtile.measure.published import Comparison
from ptxtile.measure.records import Record
from ptxtile.measure.scenarios.recipe import place_name

__all__ = ["bars", "curves", "lines", "strip"]

_WIDTH, _LEFT, _ROW = 900, 250, 20
_TICKS = tuple(2.0**power for power in range(-10, 18))


def _scale(values: Sequence[float]) -> tuple[float, float, list[float]]:
    """The least, the greatest and the ticks of a logarithmic axis."""
    low = max((tick for tick in _TICKS if tick <= min(values)), default=min(values))
    high = min((tick for tick in _TICKS if tick >= max(values)), default=max(values))
    high = high if high > low else low * 2
    return low, high, [tick for tick in _TICKS if low <= tick <= high]


def _at(value: float, low: float, high: float) -> float:
    return _LEFT + (_WIDTH - _LEFT - 30) * math.log(value / low) / math.log(high / low)


def _frame(title: str, height: float, content: Sequence[str]) -> str:
    head = f'<svg viewBox="0 0 {_WIDTH} {height:g}" role="img" aria-label="{escape(title)}">'
    return "\n".join([f"<figure><figcaption>{escape(title)}</figcaption>{head}", *content, "</svg></figure>"])


def _axis(ticks: Sequence[float], low: float, high: float, bottom: float) -> list[str]:
    lines = []
    for tick in ticks:
        x = _at(tick, low, high)
        lines.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{bottom:g}"/>')
        lines.append(f'<text x="{x:.1f}" y="{bottom + 14:g}" text-anchor="middle">{tick:g}</text>')
    return lines


def strip(title: str, records: Sequence[Record], field: str) -> str:
    """One line a family, one dot a spelling, at its latency or rate on a logarithmic axis."""
    groups: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for record in records:
        value = getattr(record, field)
        if value is not None and value > 0 and record.family != "link":
            groups[record.family].append((value, record.spelling))
    if not groups:
        return ""
    low, high, ticks = _scale([value for group in groups.values() for value, _ in group])
    bottom = _ROW * len(groups) + 6
    lines = _axis(ticks, low, high, bottom)
    for row, (family, group) in enumerate(sorted(groups.items())):
        y = _ROW * (row + 0.5) + 3
        lines.append(
            f'<text x="{_LEFT - 12}" y="{y + 4:g}" text-anchor="end">{escape(family)} ({len(group)})</text>'
        )
        dots: dict[float, list[str]] = defaultdict(list)
        for value, spelling in group:
            dots[round(_at(value, low, high))].append(f"{spelling} {value:g}")
        for x, texts in sorted(dots.items()):
            radius = min(2.5 + math.log(len(texts)), 8)
            shown = escape("\n".join(texts[:12] + (["…"] if len(texts) > 12 else [])))
            lines.append(f'<circle cx="{x}" cy="{y:g}" r="{radius:.1f}"><title>{shown}</title></circle>')
    return _frame(title, bottom + 22, lines)


def bars(title: str, found: Sequence[Comparison]) -> str:
    """Measured over published: one bar a spelling, a line at 1."""
    if not found:
        return ""
    bottom = _ROW * len(found) + 6
    span = _WIDTH - _LEFT - 120
    most = max(2.0, *(each.ratio for each in found))
    lines = []
    for row, each in enumerate(found):
        y = _ROW * row + 4
        near = "near" if each.near else "far"
        length = span * each.ratio / most
        lines.append(
            f'<text x="{_LEFT - 12}" y="{y + 12}" text-anchor="end">{escape(each.record.spelling)}</text>'
        )
        lines.append(f'<rect class="{near}" x="{_LEFT}" y="{y}" width="{length:.1f}" height="{_ROW - 6}"/>')
        lines.append(
            f'<text x="{_LEFT + length + 6:.1f}" y="{y + 12}">{each.measured:.1f} of {each.row.value:g}</text>'
        )
    one = _LEFT + span / most
    lines.append(f'<line class="one" x1="{one:.1f}" x2="{one:.1f}" y1="0" y2="{bottom}"/>')
    return _frame(title, bottom + 6, lines)


def lines(title: str, axis: str, series: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """One line a name, its points (place on the axis, value), both axes logarithmic, a legend below.

    A point at 0 has no place on the axis and is left out.
    """
    shown = {name: sorted(p for p in points if p[0] > 0 and p[1] > 0) for name, points in series.items()}
    shown = {name: points for name, points in shown.items() if points}
    if not any(len(points) > 1 for points in shown.values()):
        return ""
    low, high, ticks = _scale([y for points in shown.values() for _, y in points])
    marks = sorted({x for points in shown.values() for x, _ in points})
    left, right = marks[0], max(marks[-1], marks[0] * 2)
    parts = []
    for tick in ticks:
        y = _height(tick, low, high)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - 30}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for x in _spaced([_at(mark, left, right) for mark in marks], marks):
        parts.append(
            f'<text x="{x[0]:.1f}" y="{_TALL + 26}" text-anchor="middle">{place_name(axis, x[1])}</text>'
        )
    parts.append(f'<text x="{_LEFT - 34}" y="{_TALL + 26}" text-anchor="end">{escape(axis)}</text>')
    for number, (name, points) in enumerate(shown.items()):
        places = [(_at(x, left, right), _height(y, low, high)) for x, y in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        values = "\n".join(f"{place_name(axis, x)}: {y:g}" for x, y in points)
        hint = f"<title>{escape(name)}\n{escape(values)}</title>"
        colour = f"hsl({number * 137.5 % 360:.0f} 60% 50%)"
        parts.append(f'<polyline style="stroke:{colour}" points="{path}">{hint}</polyline>')
        parts += [
            f'<circle style="fill:{colour}" r="3" cx="{x:.1f}" cy="{y:.1f}">{hint}</circle>'
            for x, y in places
        ]
        if len(shown) > _LEGEND:
            continue  # names are seen by pointing at a line
        top = _TALL + 48 + 16 * (number // 2)
        beside = _LEFT + 310 * (number % 2)
        parts.append(f'<circle style="fill:{colour}" r="4" cx="{beside}" cy="{top - 4}"/>')
        parts.append(f'<text x="{beside + 10}" y="{top}">{escape(name)}</text>')
    rows = -(-len(shown) // 2) if len(shown) <= _LEGEND else 0
    return _frame(title, _TALL + 50 + 16 * rows, parts)


_TALL = 300
_LEGEND = 24
"""Lines that are named below a picture, at most."""


def _height(value: float, low: float, high: float) -> float:
    return _TALL * (1 - math.log(value / low) / math.log(high / low)) + 8


def _spaced(xs: Sequence[float], places: Sequence[float]) -> list[tuple[float, float]]:
    """Places whose labels do not run into each other."""
    found: list[tuple[float, float]] = []
    for x, place in zip(xs, places):
        if not found or x - found[-1][0] >= 44:
            found.append((x, place))
    return found


def curves(title: str, records: Sequence[Record]) -> str:
    """Rate by warps of an SM, one line a spelling."""
    return lines(
        title,
        "warps",
        {
            record.spelling: [(int(warps), rate) for warps, rate in record.rates.items()]
            for record in records
            if len(record.rates) > 1
        },
    )
