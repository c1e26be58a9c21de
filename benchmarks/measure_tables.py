"""Writes the tables of docs/measure.md from the kept records.

    python benchmarks/measure_tables.py            # after a new run is in benchmarks/results/h200/

Tables stand in the document between `<!-- table: NAME -->` and `<!-- end -->`; what is between is replaced.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ptxtile.measure import Record, read
from ptxtile.measure.published import PAPERS_90, TABLE_90, Published, against
from ptxtile.measure.scenarios.recipe import place_name

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "benchmarks" / "results" / "h200" / "measure.jsonl"
PAGE = ROOT / "docs" / "measure.md"
SHOWN = (
    "fma.rn.f32 add.f32 fma.rn.f64 fma.rn.f16x2 add.s32 mad.lo.u32 mul.hi.u32 mad.wide.u32 lop3.b32 "
    "prmt.b32 shf.l.wrap.b32 shl.b32 popc.b32 brev.b32 bfind.u32 dp4a.u32.u32 min.s32 ex2.approx.ftz.f32 "
    "rcp.approx.ftz.f32 sin.approx.ftz.f32 rcp.rn.f32 sqrt.rn.f32 div.rn.f32 div.rn.f64 rem.u32 "
    "cvt.rn.f32.s32 cvt.f64.f32 cvt.rn.f16x2.f32 shfl.sync.idx.b32 redux.sync.add.s32 match.any.sync.b32 "
    "vote.sync.ballot.b32 ld.shared.b32 ld.global.b32 atom.shared.add.u32 atom.global.add.u32 "
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
    "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 "
).split()


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    words = [any(re.search(r"[A-Za-z]", row[column]) for row in rows) for column in range(len(head))]
    rule = ["---" if wordy or not column else "---:" for column, wordy in enumerate(words)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *rows))


def _number(value: float | None) -> str:
    if value is None:
        return ""
    digits = next((digits for limit, digits in ((1000, 0), (10, 1), (0.1, 2)) if value >= limit), 4)
    return f"{value:.{digits}f}"


def _sass(record: Record) -> str:
    counts = record.sass or record.rate_sass
    return ", ".join(name if count == 1 else f"{count:g} {name}" for name, count in list(counts.items())[:4])


def _value(record: Record) -> float | None:
    return record.rate if record.latency is None else record.latency


def facts(records: Sequence[Record]) -> str:
    """What was measured, and where."""
    timed = [record for record in records if record.skipped is None]
    points = sum(bool(record.scenario) for record in timed)
    mnemonics = {name for record in timed for name in (*record.sass, *record.rate_sass)}
    opcodes = {name.partition(".")[0] for name in mnemonics}
    first = timed[0]
    clocks = [record.mhz for record in timed if record.mhz]
    return (
        f"{first.device}, driver {first.driver}, {first.assembler}, {first.target}, SM clock {min(clocks):g} to "
        f"{max(clocks):g} MHz: {len(timed) - points} spellings and {points} points of scenarios have a number, "
        f"{len(records) - len(timed)} are skipped with a reason; {len(mnemonics)} SASS mnemonics of "
        f"{len(opcodes)} opcodes."
    )


def instructions(records: Sequence[Record]) -> str:
    """A selection of spellings."""
    found = {record.spelling: record for record in records}
    rows = []
    for spelling in SHOWN:
        record = found.get(spelling)
        if record is not None and record.skipped is None:
            rate = ("≥ " if record.at_least else "") + _number(record.rate) if record.rate else ""
            rows.append(
                [
                    f"`{spelling}`", _number(record.latency), rate, str(record.saturates or ""), _number(record.flop),
                    _sass(record),
                ]
            )  # fmt: skip
    return _table(
        ("spelling", "latency", "results/clk/SM", "warps to saturate", "FLOP/clk/SM", "SASS of a step"), rows
    )


def beside(table: Sequence[Published]) -> Callable[[Sequence[Record]], str]:
    """Measured beside published."""

    def made(records: Sequence[Record]) -> str:
        found = against([record for record in records if record.skipped is None], table)
        rows = []
        for each in found:
            why = "" if each.near else "; ".join(filter(None, [each.row.reason, _sass(each.record)]))
            rows.append(
                [
                    each.row.row, f"`{each.record.spelling}`", _number(each.row.value), _number(each.measured),
                    f"{100 * (each.ratio - 1):+.1f}%", why,
                ]
            )  # fmt: skip
        near = sum(each.near for each in found)
        head = ("row", "spelling", "published", "measured", "change", "SASS of what differs")
        return f"{near} of {len(found)} are within 3%.\n\n{_table(head, rows)}"

    return made


def pivot(*prefixes: str, axis: str = "") -> Callable[[Sequence[Record]], str]:
    """Scenarios whose names begin so, one a row; their points are the columns."""

    def made(records: Sequence[Record]) -> str:
        groups: dict[str, dict[float, Record]] = defaultdict(dict)
        for record in records:
            if not record.scenario.startswith(prefixes) or record.at is None or record.skipped is not None:
                continue
            if not axis or record.axis == axis:
                groups[record.scenario][record.at] = record
        places = sorted({at for points in groups.values() for at in points})
        axes = {record.axis for points in groups.values() for record in points.values()}
        rows = [
            [f"`{scenario}`", *(_number(_value(points[at])) if at in points else "" for at in places)]
            for scenario, points in groups.items()
        ]
        return _table(
            (" / ".join(sorted(axes)) + " →", *(place_name(next(iter(axes)), at) for at in places)), rows
        )

    return made


TABLES: Mapping[str, Callable[[Sequence[Record]], str]] = {
    "facts": facts,
    "instructions": instructions,
    "guide": beside(TABLE_90),
    "papers": beside(PAPERS_90),
    "latency": pivot("memory.latency.global"),
    "near": pivot("memory.latency.shared"),
    "distributed": pivot("memory.latency.distributed"),
    "conflicts": pivot("memory.conflicts"),
    "bandwidth": pivot("memory.bandwidth"),
    "atomics": pivot("atomics"),
    "threads": pivot("barriers", axis="threads"),
    "clusters": pivot("barriers", axis="blocks of the cluster"),
    "fences": pivot("barriers.fence", "barriers.membar"),
    "tma latency": pivot("tma.latency"),
    "tma rate": pivot("tma.rate"),
    "cp.async": pivot("async"),
    "wgmma": pivot("wgmma.dense", "wgmma.sparse"),
    "wgmma latency": pivot("wgmma.latency"),
    "issue": pivot("issue"),
}


def filled(text: str, records: Sequence[Record]) -> str:
    """The document with its tables made anew."""

    def replaced(match: re.Match[str]) -> str:
        return f"<!-- table: {match[1]} -->\n{TABLES[match[1]](records)}\n<!-- end -->"

    return re.sub(r"<!-- table: ([\w. ]+) -->\n.*?<!-- end -->", replaced, text, flags=re.S)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), list(read(KEPT))), encoding="utf-8")
