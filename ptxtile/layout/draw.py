"""Draws a Picture: as SVG for a browser or a notebook, as text for a terminal.

The SVG has no background of its own and needs no style sheet: what stands outside the cells is a grey that can be read
on white and on black, what stands inside has its own colour under it. Every cell carries its whole story as a title.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from ptxtile.layout.picture import Cell, Picture

__all__ = ["svg", "text"]

_INK = "#7b8088"
_DARK, _LIGHT, _ALARM = "#14171c", "#ffffff", "#e5182d"
_FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
_MARGIN = 14.0
_OUTER_GAP, _INNER_GAP = 9.0, 2.0
_SMALL = 2048  # cells; above, they are drawn without labels


def _escaped(words: str) -> str:
    return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _linear(channel: float) -> int:
    """A linear-light channel as an sRGB byte."""
    clipped = min(max(channel, 0.0), 1.0)
    value = 12.92 * clipped if clipped <= 0.0031308 else 1.055 * clipped ** (1 / 2.4) - 0.055
    return round(value * 255)


def _rgb(cell: Cell) -> tuple[int, int, int]:
    """OKLCH: equal steps look equal, and every hue is as light as the others."""
    lightness, chroma = 0.89 - 0.20 * cell.shade, 0.075 + 0.045 * cell.shade
    angle = 2 * math.pi * (cell.hue + 0.06)
    a, b = chroma * math.cos(angle), chroma * math.sin(angle)
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        _linear(4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short),
        _linear(-1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short),
        _linear(-0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short),
    )


def _label_lines(picture: Picture) -> int:
    return max(len(cell.labels) for _, rows in picture.panels for row in rows for cell in row if cell)


def _cell_size(picture: Picture) -> tuple[float, float, bool]:
    """Width and height of a cell, and whether it has labels."""
    cells = [cell for _, rows in picture.panels for row in rows for cell in row if cell]
    if len(cells) > _SMALL:
        return 11.0, 11.0, False
    longest = max(len(label) for cell in cells for label in cell.labels)
    lane = 9.0 if any(cell.lane is not None for cell in cells) else 0.0
    return max(7.0 * longest + 10, 26.0), max(12.5 * _label_lines(picture) + 8, 26.0) + lane, True


def _gaps(lines: Sequence[Sequence[Cell | None]], step: float) -> list[float]:
    """Where each line of cells begins: a gap stands before one whose outer owner differs from the line before."""
    differs = [False] + [
        any(a is not None and b is not None and a.outer != b.outer for a, b in zip(before, line))
        for before, line in itertools.pairwise(lines)
    ]
    # Where warps take turns at every line, wide gaps everywhere would only tear the picture apart.
    gap = _OUTER_GAP if sum(differs) * 2 <= len(lines) else _OUTER_GAP / 2
    places: list[float] = []
    at = 0.0
    for number, wide in enumerate(differs):
        at += gap if wide else 0.0
        places.append(at + number * step)
    return places


def _text(x: float, y: float, words: str, size: float, fill: str, extra: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" fill="{fill}"{extra}>{_escaped(words)}</text>'


class _Panel:
    """One grid of cells at a place of the drawing."""

    def __init__(self, picture: Picture, rows: tuple[tuple[Cell | None, ...], ...]) -> None:
        self.rows = rows
        self.wide, self.high, self.labelled = _cell_size(picture)
        self.x = _gaps(tuple(zip(*rows)), self.wide)
        self.y = _gaps(rows, self.high)
        self.width = self.x[-1] + self.wide
        self.height = self.y[-1] + self.high

    def _touches(self, cell: Cell, row: int, column: int) -> bool:
        if not (0 <= row < len(self.rows) and 0 <= column < len(self.rows[0])):
            return False
        other = self.rows[row][column]
        return other is not None and other.owner == cell.owner and other.outer == cell.outer

    def cell(self, cell: Cell, row: int, column: int, left: float, top: float) -> list[str]:
        """A rectangle that leaves a gap to cells of another owner, its labels, its marks."""
        inset = _INNER_GAP / 2 if self.labelled else _INNER_GAP / 4
        near = [
            0.0 if self._touches(cell, row + down, column + right) else inset
            for down, right in ((0, -1), (0, 1), (-1, 0), (1, 0))
        ]
        x, y = left + self.x[column] + near[0], top + self.y[row] + near[2]
        width, height = self.wide - near[0] - near[1], self.high - near[2] - near[3]
        red, green, blue = _rgb(cell)
        box = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
        fill = f"#{red:02x}{green:02x}{blue:02x}"
        parts = [f'<g><title>{_escaped(cell.title)}</title><rect {box} fill="{fill}"/>']
        if near[0] == 0.0 and self.labelled:  # a hairline between registers of one thread
            parts.append(
                f'<path d="M{x:.1f} {y + 3:.1f}v{height - 6:.1f}" stroke="{_DARK}" stroke-opacity=".18"/>'
            )
        middle = left + self.x[column] + self.wide / 2
        if self.labelled:
            first = (
                top
                + self.y[row]
                + self.high / 2
                - 6.25 * (len(cell.labels) - 1)
                + (4 if cell.lane is None else 0)
            )
            for number, label in enumerate(cell.labels):
                bold = ' font-weight="700"' if len(cell.labels) > 1 and number == len(cell.labels) - 2 else ""
                parts.append(_text(middle, first + 12.5 * number, label, 11, _DARK, bold))
        if cell.lane is not None:
            parts.append(self._ring(cell, x, y, width, height))
        return [*parts, "</g>"]

    def _ring(self, cell: Cell, x: float, y: float, width: float, height: float) -> str:
        colour, dashes = (_ALARM, "") if cell.conflict else (_DARK, ' stroke-dasharray="3 2"')
        ring = (
            f'<rect x="{x + 1:.1f}" y="{y + 1:.1f}" width="{width - 2:.1f}" height="{height - 2:.1f}" fill="none"'
            f' stroke="{colour}" stroke-width="2"{dashes}/>'
        )
        return ring + (
            _text(x + width - 4, y + height - 4, str(cell.lane), 8, colour, ' text-anchor="end"')
            if self.labelled
            else ""
        )

    def draw(self, picture: Picture, left: float, top: float) -> list[str]:
        """The cells with the numbers of rows and columns."""
        every = 1 if self.labelled else 8
        parts: list[str] = []
        for number in range(0, len(self.x), every):
            at = left + self.x[number] + self.wide / 2
            parts.append(_text(at, top - 6, picture.column_labels[number], 10, _INK))
        for number in range(0, len(self.y), every):
            at = top + self.y[number] + self.high / 2 + 3.5
            parts.append(_text(left - 7, at, picture.row_labels[number], 10, _INK, ' text-anchor="end"'))
        for row, cells in enumerate(self.rows):
            for column, cell in enumerate(cells):
                if cell is not None:
                    parts += self.cell(cell, row, column, left, top)
        return parts


def svg(picture: Picture) -> str:
    """A whole SVG document, readable on a light and on a dark page; equal pictures give equal text."""
    panels = [_Panel(picture, rows) for _, rows in picture.panels]
    left = _MARGIN + 7.0 * max(map(len, picture.row_labels)) + 8
    headed = any(name for name, _ in picture.panels)
    across = _across(panels)
    step_x = max(panel.width for panel in panels) + left
    step_y = max(panel.height for panel in panels) + (56.0 if headed else 40.0)
    body: list[str] = []
    top = 56.0 + (16.0 if headed else 0.0)
    for number, (panel, (name, _)) in enumerate(zip(panels, picture.panels)):
        x, y = left + number % across * step_x, top + number // across * step_y
        if name:
            body.append(_text(x, y - 22, name, 11, _INK, ' text-anchor="start" font-weight="700"'))
        body += panel.draw(picture, x, y)
    down = -(-len(panels) // across)
    bottom = top + (down - 1) * step_y + max(panel.height for panel in panels)
    longest = max(len(line) for line in (picture.title, *picture.legend))
    width = max(
        left + (across - 1) * step_x + max(p.width for p in panels) + _MARGIN, 6.7 * longest + 2 * _MARGIN
    )
    anchor = ' text-anchor="start"'
    heading = _text(_MARGIN, 22, picture.title, 11.5, _INK, anchor + ' font-weight="700"')
    legend = [
        _text(_MARGIN, bottom + 24 + 16 * i, line, 11, _INK, anchor) for i, line in enumerate(picture.legend)
    ]
    height = bottom + 24 + 16 * len(legend)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}"'
        f' viewBox="0 0 {width:.0f} {height:.0f}" font-family="{_FONT}" text-anchor="middle" role="img">'
    )
    return "\n".join([head, heading, *body, *legend, "</svg>\n"])


def _across(panels: Sequence[_Panel]) -> int:
    """How many panels stand side by side: about as wide as high."""
    width = max(panel.width for panel in panels) + 40
    height = max(panel.height for panel in panels) + 60
    best = round(math.sqrt(len(panels) * 1.4 * height / width))
    return min(max(best, 1), len(panels), max(int(1600 // width), 1))


def text(picture: Picture, colour: bool = False) -> str:
    """The picture in characters, a cell a word; with `colour`, on its own background (24-bit ANSI codes).

    A lane of a drawn access is marked with `*`, with `!` where it collides.
    """
    cells = [cell for _, rows in picture.panels for row in rows for cell in row if cell]
    words = {id(cell): _word(cell) for cell in cells}
    wide = max(map(len, [*words.values(), *picture.column_labels])) + 1
    side = max(map(len, picture.row_labels))
    lines = [picture.title]
    for name, rows in picture.panels:
        lines += ["", *([name] if name else [])]
        lines.append(
            " " * side + " " + "".join(label.center(wide) for label in picture.column_labels).rstrip()
        )
        for label, row in zip(picture.row_labels, rows):
            painted = [
                _painted(cell, words[id(cell)].center(wide), colour) for cell in row if cell is not None
            ]
            lines.append(f"{label:>{side}} {''.join(painted)}".rstrip())
    return "\n".join([*lines, "", *picture.legend]) + "\n"


def _word(cell: Cell) -> str:
    mark = "" if cell.lane is None else "!" if cell.conflict else "*"
    return "".join(cell.labels) + mark


def _painted(cell: Cell, word: str, colour: bool) -> str:
    if not colour:
        return word
    red, green, blue = _rgb(cell)
    ink = "1;38;2;190;0;20" if cell.conflict else "38;2;20;23;28"
    return f"\x1b[{ink};48;2;{red};{green};{blue}m{word}\x1b[0m"
