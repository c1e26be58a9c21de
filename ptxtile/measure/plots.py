"""Records as pictures: SVG text with no script, no font file and no address in it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from html import escape

from ptxtile.measure.published import Comparison
from ptxtile.measure.records import Record

__all__ = ["bars", "curves", "strip"]

_WIDTH, _LEFT, _ROW = 900, 250, 20
_TICKS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


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
        near = "near" if abs(each.ratio - 1) <= 0.03 else "far"
        length = span * each.ratio / most
        lines.append(
            f'<text x="{_LEFT - 12}" y="{y + 12}" text-anchor="end">{escape(each.record.spelling)}</text>'
        )
        lines.append(f'<rect class="{near}" x="{_LEFT}" y="{y}" width="{length:.1f}" height="{_ROW - 6}"/>')
        lines.append(
            f'<text x="{_LEFT + length + 6:.1f}" y="{y + 12}">{each.measured:.1f} of {each.row.results:g}</text>'
        )
    one = _LEFT + span / most
    lines.append(f'<line class="one" x1="{one:.1f}" x2="{one:.1f}" y1="0" y2="{bottom}"/>')
    return _frame(title, bottom + 6, lines)


def curves(title: str, records: Sequence[Record]) -> str:
    """Rate by warps of an SM, one line a spelling, both axes logarithmic."""
    shown = [record for record in records if len(record.rates) > 1]
    if not shown:
        return ""
    low, high, ticks = _scale([value for record in shown for value in record.rates.values()])
    tall = 300
    lines = []
    for tick in ticks:
        y = tall * (1 - math.log(tick / low) / math.log(high / low)) + 8
        lines.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - 30}" y1="{y:.1f}" y2="{y:.1f}"/>')
        lines.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for warps in (1, 2, 4, 8, 16, 32):
        x = _at(warps, 1, 32)
        lines.append(f'<text x="{x:.1f}" y="{tall + 26}" text-anchor="middle">{warps}</text>')
    for record in shown:
        points = _points(record.rates, low, high, tall)
        lines.append(f'<polyline points="{points}"><title>{escape(record.spelling)}</title></polyline>')
    return _frame(title, tall + 34, lines)


def _points(rates: Mapping[str, float], low: float, high: float, tall: float) -> str:
    return " ".join(
        f"{_at(int(warps), 1, 32):.1f},{tall * (1 - math.log(rate / low) / math.log(high / low)) + 8:.1f}"
        for warps, rate in sorted(rates.items(), key=lambda pair: int(pair[0]))
    )
