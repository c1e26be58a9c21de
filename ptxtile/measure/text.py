"""Records as a plain-text table, and two sets of records side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ptxtile.measure.records import Record
from ptxtile.measure.scenarios import is_scenario

__all__ = ["compare", "table"]

_HEAD = ("spelling", "latency", "step", "results/clk/SM", "warps", "FLOP/clk/SM", "SASS of a step")
_POINTS = ("scenario", "latency", "rate", "unit", "SASS of a step")


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _sass(record: Record) -> str:
    counts = record.sass or record.rate_sass
    return " + ".join(name if count == 1 else f"{count:g} {name}" for name, count in counts.items())


def _row(record: Record) -> tuple[str, ...]:
    if record.skipped:
        return (record.spelling, *"-----", f"skipped: {record.skipped}")
    rate = ("≥" if record.at_least and record.rate else "") + _number(record.rate, 2)
    warps = "-" if record.saturates is None else str(record.saturates)
    return (
        record.spelling, _number(record.latency, 2), _number(record.step, 2), rate, warps,
        _number(record.flop, 0), _sass(record),
    )  # fmt: skip


def _set(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            text.ljust(width) if column in (0, len(row) - 1) else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _point(record: Record) -> tuple[str, ...]:
    if record.skipped:
        return (record.spelling, "-", "-", "-", f"skipped: {record.skipped}")
    unit = "cycles" if record.latency is not None else f"{record.unit}/clk/SM"
    return (record.spelling, _number(record.latency, 2), _number(record.rate, 2), unit, _sass(record))


def table(records: Iterable[Record]) -> str:
    """One line a record: cycles, results per clock per SM, warps that saturate, SASS; points of scenarios below."""
    held = list(records)
    spellings = [each for each in held if not is_scenario(each.spelling)]
    points = [each for each in held if is_scenario(each.spelling)]
    parts = []
    if spellings or not points:
        parts.append(_set([_HEAD, *(_row(each) for each in spellings)]))
    if points:
        parts.append(_set([_POINTS, *(_point(each) for each in points)]))
    return "\n\n".join(parts)


def _change(before: float | None, after: float | None) -> str:
    if before is None or after is None or not before:
        return "-"
    return f"{100 * (after / before - 1):+.2f}%"


def compare(before: Iterable[Record], after: Iterable[Record], limit: float = 0.02) -> tuple[str, bool]:
    """What differs between two sets by more than `limit`, and whether nothing does."""
    later = {each.spelling: each for each in after}
    rows: list[tuple[str, ...]] = [("spelling", "step", "step'", "change", "rate", "rate'", "change")]
    common = lost = 0
    for one in before:
        other = later.get(one.spelling)
        if other is None or one.skipped or other.skipped:
            lost += other is not None and (one.skipped is None) != (other.skipped is None)
            continue
        common += 1
        pairs = [(one.step, other.step), (one.rate, other.rate)]
        if any(a and b and abs(b / a - 1) > limit for a, b in pairs):
            cells = [(_number(a, 3), _number(b, 3), _change(a, b)) for a, b in pairs]
            rows.append((one.spelling, *cells[0], *cells[1]))
    head = f"{common} spellings in both; {len(rows) - 1} differ by more than {limit:.0%}"
    head += f"; {lost} have a number in one alone" if lost else ""
    return (head if len(rows) == 1 else f"{head}\n{_set(rows)}"), len(rows) == 1
