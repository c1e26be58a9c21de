"""Records as one HTML file: pictures, tables with filters, and what was skipped."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from html import escape

from ptxtile.measure import plots
from ptxtile.measure.page import PAGE
from ptxtile.measure.published import PAPERS_90, Comparison, against
from ptxtile.measure.records import Record

__all__ = ["report"]


def report(records: Iterable[Record]) -> str:
    """A page for a browser.

    Args:
        records: of one device.
    """
    held = list(records)
    timed = [record for record in held if record.skipped is None]
    spellings = [record for record in timed if not record.scenario]
    points = [record for record in timed if record.scenario]
    guide, papers = against(spellings), against(timed, PAPERS_90)
    pictures = [
        plots.strip("Latency by family, cycles", spellings, "latency"),
        plots.strip("Throughput by family, results per clock per SM", spellings, "rate"),
        plots.strip("Warps of an SM that reach 95% of the throughput, by family", spellings, "saturates"),
        plots.bars("Measured and published, results per clock per SM", guide),
        plots.curves(
            "Throughput by warps of an SM, of the forms in the published table",
            [each.record for each in guide],
        ),
    ]
    return PAGE.substitute(
        facts="".join(f"<li>{escape(line)}</li>" for line in _facts(held, timed)),
        pictures="\n".join(each for each in pictures if each),
        published=_published("row of the guide", guide),
        papers=_published("row of the paper", papers),
        scenarios="\n".join(_scenario_pictures(points)),
        options=_options(record.family for record in spellings),
        rows="\n".join(_row(record) for record in spellings),
        names=_options(record.scenario.partition(".")[0] for record in points),
        points="\n".join(_point(record) for record in points),
        skipped="\n".join(_skipped(record) for record in held if record.skipped is not None),
        count=len(spellings),
        measured=len(points),
        left=len(held) - len(timed),
    )


def _options(words: Iterable[str]) -> str:
    return "".join(f"<option>{escape(word)}</option>" for word in sorted(set(words)))


def _facts(held: Sequence[Record], timed: Sequence[Record]) -> list[str]:
    mnemonics = {name for record in timed for name in (*record.sass, *record.rate_sass)}
    opcodes = {name.partition(".")[0] for name in mnemonics}
    made = [_names(record.driver for record in held), _names(record.assembler for record in held)]
    points = sum(bool(record.scenario) for record in timed)
    lines = [
        _names(record.device for record in held),
        f"driver {made[0]}; {made[1]}; {_names(record.target for record in held)}",
        f"{len(timed) - points} spellings and {points} points of scenarios measured, {len(held) - len(timed)} skipped",
        f"{len(mnemonics)} SASS mnemonics, {len(opcodes)} SASS opcodes",
    ]
    clocks = [record.mhz for record in timed if record.mhz]
    if clocks:
        lines.append(f"SM clock while timing: {min(clocks):g} to {max(clocks):g} MHz")
    return lines


def _names(words: Iterable[str]) -> str:
    return ", ".join(sorted(set(words) - {""})) or "none"


def _scenario_pictures(points: Sequence[Record]) -> list[str]:
    """A picture for each group of scenarios that share an axis and a unit."""
    groups: dict[tuple[str, str, str], list[Record]] = defaultdict(list)
    for record in points:
        unit = "cycles" if record.latency is not None else f"{record.unit}/clk/SM"
        words = record.scenario.split(".")
        groups[".".join(words[: 3 if words[0] in ("wgmma", "tma") else 2]), record.axis, unit].append(record)
    found = []
    for (group, axis, unit), records in groups.items():
        series: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for record in records:
            value = record.rate if record.latency is None else record.latency
            if value is not None and record.at is not None:
                series[record.scenario.removeprefix(f"{group}.")].append((record.at, value))
        found.append(plots.lines(f"{group}, {unit}", axis, series))
    return [each for each in found if each]


def _cell(value: float | None, digits: int = 2) -> str:
    if value is None:
        return '<td class="n" data-v=""></td>'
    return f'<td class="n" data-v="{value:g}">{value:.{digits}f}</td>'


def _sass(record: Record) -> str:
    counts = record.sass or record.rate_sass
    return " + ".join(name if count == 1 else f"{count:g} {name}" for name, count in counts.items())


def _details(name: str, lines: Iterable[str]) -> str:
    inside = escape("\n".join(each for each in lines if each))
    return f"<td><details><summary>{escape(name)}</summary><pre>{inside}</pre></details></td>"


def _row(record: Record) -> str:
    rate = _cell(record.rate)
    if record.at_least and record.rate is not None:
        rate = rate.replace(">", ">≥ ", 1)
    details = [
        "\n".join(record.chain),
        *(f"{name}: {cycles:g} cycles subtracted" for name, cycles in record.subtracted.items()),
        *(f"{warps} warps: {value:g}" for warps, value in record.rates.items()),
        f"spread {100 * (record.spread or 0):.2f}% of the latency, {100 * (record.rate_spread or 0):.2f}% of the rate",
        record.note,
        f"again: ptxtile measure {record.spelling}",
    ]
    return (
        f'<tr data-f="{escape(record.family)}">{_details(record.spelling, details)}{_cell(record.latency)}'
        f"{_cell(record.step)}{rate}{_cell(record.saturates, 0)}{_cell(record.issue)}{_cell(record.flop, 0)}"
        f"<td>{escape(_sass(record))}</td></tr>"
    )


def _point(record: Record) -> str:
    spread = record.spread if record.latency is not None else record.rate_spread
    details = [
        record.form,
        "\n".join(record.chain),
        f"{record.blocks} blocks, {record.step:g} cycles a step, spread {100 * (spread or 0):.2f}%",
        record.note,
        f"again: ptxtile measure --scenarios '{record.spelling}'",
    ]
    unit = "cycles" if record.latency is not None else f"{record.unit}/clk/SM"
    return (
        f'<tr data-f="{escape(record.scenario.partition(".")[0])}">{_details(record.spelling, details)}'
        f"{_cell(record.latency)}{_cell(record.rate)}<td>{escape(unit)}</td><td>{escape(_sass(record))}</td></tr>"
    )


def _skipped(record: Record) -> str:
    return f"<tr><td>{escape(record.spelling)}</td><td>{escape(record.skipped or '')}</td></tr>"


def _published(head: str, found: Sequence[Comparison]) -> str:
    lines = []
    for each in found:
        why = "" if each.near else " — ".join(filter(None, [each.row.reason, _sass(each.record)]))
        lines.append(
            f'<tr class="{"near" if each.near else "far"}"><td>{escape(each.row.row)}</td>'
            f"<td>{escape(each.record.spelling)}</td><td class='n'>{each.row.value:g}</td>"
            f"<td class='n'>{each.measured:.1f}</td><td class='n'>{100 * (each.ratio - 1):+.1f}%</td>"
            f"<td>{escape(why)}</td></tr>"
        )
    counts = Counter(each.near for each in found)
    return (
        f"<p>{counts[True]} of {len(found)} within 3%; for the others the SASS is shown.</p><table><thead><tr>"
        f"<th>{head}</th><th>spelling</th><th>published</th><th>measured</th><th>change</th><th>SASS</th>"
        f"</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    )
