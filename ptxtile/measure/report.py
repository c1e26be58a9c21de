"""Records as one HTML file: pictures, a table with filters, and what was skipped. It asks no network for anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from string import Template

from ptxtile.measure import plots
from ptxtile.measure.published import Comparison, against
from ptxtile.measure.records import Record

__all__ = ["report"]

_NEAR = 0.03


def report(records: Iterable[Record]) -> str:
    """A page for a browser.

    Args:
        records: of one device.
    """
    held = list(records)
    timed = [record for record in held if record.skipped is None]
    beside = against(timed)
    known = [each.record for each in beside]
    pictures = [
        plots.strip("Latency by family, cycles", timed, "latency"),
        plots.strip("Throughput by family, results per clock per SM", timed, "rate"),
        plots.bars("Measured and published, results per clock per SM", beside),
        plots.curves("Throughput by warps of an SM, of the forms in the published table", known),
    ]
    families = sorted({record.family for record in timed})
    return _PAGE.substitute(
        facts="".join(f"<li>{escape(line)}</li>" for line in _facts(held, timed)),
        pictures="\n".join(each for each in pictures if each),
        published=_published(beside),
        options="".join(f"<option>{escape(family)}</option>" for family in families),
        rows="\n".join(_row(record) for record in timed),
        skipped="\n".join(_skipped(record) for record in held if record.skipped is not None),
        count=len(timed),
        left=len(held) - len(timed),
    )


def _facts(held: Sequence[Record], timed: Sequence[Record]) -> list[str]:
    mnemonics = {name for record in timed for name in (*record.sass, *record.rate_sass)}
    opcodes = {name.partition(".")[0] for name in mnemonics}
    made = [_names(record.driver for record in held), _names(record.assembler for record in held)]
    lines = [
        _names(record.device for record in held),
        f"driver {made[0]}; {made[1]}; {_names(record.target for record in held)}",
        f"{len(timed)} spellings measured, {len(held) - len(timed)} skipped",
        f"{len(mnemonics)} SASS mnemonics, {len(opcodes)} SASS opcodes",
    ]
    clocks = [record.mhz for record in timed if record.mhz]
    if clocks:
        lines.append(f"SM clock while timing: {min(clocks):g} to {max(clocks):g} MHz")
    return lines


def _names(words: Iterable[str]) -> str:
    return ", ".join(sorted(set(words) - {""})) or "none"


def _cell(value: float | None, digits: int = 2) -> str:
    if value is None:
        return '<td class="n" data-v=""></td>'
    return f'<td class="n" data-v="{value:g}">{value:.{digits}f}</td>'


def _sass(record: Record) -> str:
    counts = record.sass or record.rate_sass
    return " + ".join(name if count == 1 else f"{count:g} {name}" for name, count in counts.items())


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
    ]
    inside = escape("\n".join(each for each in details if each))
    return (
        f'<tr data-f="{escape(record.family)}"><td><details><summary>{escape(record.spelling)}</summary>'
        f"<pre>{inside}</pre></details></td>{_cell(record.latency)}{_cell(record.step)}{rate}"
        f"{_cell(record.saturates, 0)}{_cell(record.flop, 0)}<td>{escape(_sass(record))}</td></tr>"
    )


def _skipped(record: Record) -> str:
    return f"<tr><td>{escape(record.spelling)}</td><td>{escape(record.skipped or '')}</td></tr>"


def _published(found: Sequence[Comparison]) -> str:
    lines = []
    for each in found:
        near = abs(each.ratio - 1) <= _NEAR
        why = "" if near else _sass(each.record)
        lines.append(
            f'<tr class="{"near" if near else "far"}"><td>{escape(each.row.row)}</td>'
            f"<td>{escape(each.record.spelling)}</td><td class='n'>{each.row.results:g}</td>"
            f"<td class='n'>{each.measured:.1f}</td><td class='n'>{100 * (each.ratio - 1):+.1f}%</td>"
            f"<td>{escape(why)}</td></tr>"
        )
    counts = Counter(abs(each.ratio - 1) <= _NEAR for each in found)
    return (
        f"<p>{counts[True]} of {len(found)} within 3%; for the others the SASS is shown.</p><table><thead><tr>"
        "<th>row of the guide</th><th>spelling</th><th>published</th><th>measured</th><th>change</th><th>SASS</th>"
        f"</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    )


_PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>What PTX instructions cost</title><style>
:root{color-scheme:light dark}
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem}
figure{margin:1.5rem 0;overflow-x:auto} figcaption{font-weight:600}
svg{width:100%;min-width:40rem;font-size:12px;fill:currentColor} .grid{stroke:#8884}
circle{fill:#3978c6;fill-opacity:.65} polyline{fill:none;stroke:#3978c6;stroke-opacity:.6;stroke-width:1.5}
polyline:hover{stroke:#d2571e;stroke-opacity:1;stroke-width:3} .one{stroke:currentColor;stroke-dasharray:4 3}
rect.near{fill:#3978c6} rect.far{fill:#d2571e} tr.far td{color:#d2571e}
table{border-collapse:collapse;width:100%;font-size:13px} td,th{padding:.2rem .5rem;text-align:left;vertical-align:top}
tbody tr{border-top:1px solid #8883} .n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
thead th{position:sticky;top:0;background:Canvas} th button{all:unset;cursor:pointer;font-weight:600}
th button:focus-visible{outline:2px solid} summary,pre,td:last-child{font-family:ui-monospace,monospace}
summary{cursor:pointer} .bar{display:flex;gap:1rem;flex-wrap:wrap;margin:1rem 0}
input,select{font:inherit;padding:.25rem}
</style></head><body>
<h1>What PTX instructions cost</h1><ul>$facts</ul>
<p>Latency is of one dependent chain, in cycles, with what links the chain subtracted; a step is the whole of it. The
rate is of independent chains on one SM; ≥ marks a lower bound, where links take issue slots too. Every number has its
SASS: the instructions between the clock reads were counted.</p>
$pictures
<h2>Against NVIDIA's table for compute capability 9.0</h2>
$published
<h2>All spellings</h2>
<div class="bar"><label>Spelling or SASS <input id="text" type="search" placeholder="cvt.rn  HFMA2"></label>
<label>Family <select id="family"><option value="">all</option>$options</select></label>
<label><input id="alone" type="checkbox"> with a latency</label><output id="seen">$count</output></div>
<table id="all"><thead><tr><th><button>spelling</button></th><th class="n"><button>latency</button></th>
<th class="n"><button>step</button></th><th class="n"><button>results/clk/SM</button></th>
<th class="n"><button>warps to saturate</button></th><th class="n"><button>FLOP/clk/SM</button></th>
<th>SASS of a step</th></tr></thead><tbody>
$rows
</tbody></table>
<details><summary>$left skipped, with reasons</summary><table><tbody>
$skipped
</tbody></table></details>
<script>
const body = document.querySelector("#all tbody"), rows = [...body.rows];
const text = document.querySelector("#text"), family = document.querySelector("#family");
const alone = document.querySelector("#alone"), seen = document.querySelector("#seen");
function filter() {
  const words = text.value.toLowerCase().split(/\\s+/).filter(Boolean);
  let count = 0;
  for (const row of rows) {
    const shown = row.cells[0].querySelector("summary").textContent + " " + row.cells[6].textContent;
    const low = shown.toLowerCase();
    row.hidden = !(words.every(word => low.includes(word)) && (!family.value || row.dataset.f === family.value)
      && (!alone.checked || row.cells[1].dataset.v !== ""));
    count += !row.hidden;
  }
  seen.textContent = count + " shown";
}
for (const each of [text, family, alone]) each.addEventListener("input", filter);
document.querySelectorAll("#all th button").forEach((button, column) => {
  let up = false;
  button.addEventListener("click", () => {
    up = !up;
    const value = row => column ? (row.cells[column].dataset.v === "" ? Infinity : +row.cells[column].dataset.v)
      : row.cells[0].querySelector("summary").textContent;
    rows.sort((a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0) * (up ? 1 : -1));
    body.append(...rows);
  });
});
filter();
</script></body></html>
""")
