"""The page that a report is put into: one HTML file with style and script, which asks no network for anything."""

from __future__ import annotations

from string import Template

__all__ = ["PAGE"]

PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>What PTX instructions cost</title><style>
:root{color-scheme:light dark}
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem}
figure{margin:1.5rem 0;overflow-x:auto} figcaption{font-weight:600}
svg{width:100%;min-width:40rem;font-size:12px;fill:currentColor} .grid{stroke:#8884}
circle{fill:#3978c6;fill-opacity:.65} polyline{fill:none;stroke:#3978c6;stroke-opacity:.6;stroke-width:1.5}
polyline:hover{stroke-opacity:1;stroke-width:4} .one{stroke:currentColor;stroke-dasharray:4 3}
rect.near{fill:#3978c6} rect.far{fill:#d2571e} tr.far td{color:#d2571e}
table{border-collapse:collapse;width:100%;font-size:13px} td,th{padding:.2rem .5rem;text-align:left;vertical-align:top}
tbody tr{border-top:1px solid #8883} .n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
thead th{position:sticky;top:0;background:Canvas} th button{all:unset;cursor:pointer;font-weight:600}
th button:focus-visible{outline:2px solid} pre{white-space:pre-wrap}
summary,pre,td:last-child{font-family:ui-monospace,monospace}
summary{cursor:pointer} .bar{display:flex;gap:1rem;flex-wrap:wrap;margin:1rem 0}
input,select{font:inherit;padding:.25rem} nav{display:flex;gap:1rem;flex-wrap:wrap}
</style></head><body>
<h1>What PTX instructions cost</h1><ul>$facts</ul>
<nav><a href="#published">beside NVIDIA's table</a><a href="#papers">beside papers</a>
<a href="#scenarios">memory, copies, barriers, matrices</a><a href="#spellings">all spellings</a>
<a href="#skipped">skipped</a></nav>
<p>Latency is of one dependent chain, in cycles, with what links the chain subtracted; a step is the whole of it. The
rate is of independent chains on one SM; ≥ marks a lower bound, where links take issue slots too; issued are the warps'
instructions per clock at that rate, links included. Every number has its SASS: the instructions between the clock reads
were counted.</p>
$pictures
<h2 id="published">Beside NVIDIA's table for compute capability 9.0</h2>
$published
<h2 id="papers">Beside published measurements of Hopper</h2>
$papers
<h2 id="scenarios">Memory, contention, barriers, copies, matrices, issue</h2>
<p>Each point is a kernel of its own. Latencies are of one after the other; rates are of one SM, or of all at once where
they meet in the caches (the blocks of a point say which).</p>
$scenarios
<div class="bar" data-table="points"><label>Point or SASS <input type="search" placeholder="conflicts LDS"></label>
<label>Group <select><option value="">all</option>$names</select></label>
<label><input type="checkbox"> with a latency</label><output>$measured</output></div>
<table id="points"><thead><tr><th><button>point</button></th><th class="n"><button>latency</button></th>
<th class="n"><button>rate</button></th><th>unit</th><th>SASS of a step</th></tr></thead><tbody>
$points
</tbody></table>
<h2 id="spellings">All spellings</h2>
<div class="bar" data-table="all"><label>Spelling or SASS <input type="search" placeholder="cvt.rn  HFMA2"></label>
<label>Family <select><option value="">all</option>$options</select></label>
<label><input type="checkbox"> with a latency</label><output>$count</output></div>
<table id="all"><thead><tr><th><button>spelling</button></th><th class="n"><button>latency</button></th>
<th class="n"><button>step</button></th><th class="n"><button>results/clk/SM</button></th>
<th class="n"><button>warps to saturate</button></th><th class="n"><button>issued/clk/SM</button></th>
<th class="n"><button>FLOP/clk/SM</button></th><th>SASS of a step</th></tr></thead><tbody>
$rows
</tbody></table>
<details id="skipped"><summary>$left skipped, with reasons</summary><table><tbody>
$skipped
</tbody></table></details>
<script>
for (const bar of document.querySelectorAll(".bar")) {
  const table = document.getElementById(bar.dataset.table), body = table.tBodies[0], rows = [...body.rows];
  const [text, family, alone] = bar.querySelectorAll("input[type=search], select, input[type=checkbox]");
  const seen = bar.querySelector("output"), name = row => row.cells[0].querySelector("summary").textContent;
  const low = rows.map(row => (name(row) + " " + row.cells[row.cells.length - 1].textContent).toLowerCase());
  const filter = () => {
    const words = text.value.toLowerCase().split(/\\s+/).filter(Boolean);
    let count = 0;
    rows.forEach((row, number) => {
      row.hidden = !(words.every(word => low[number].includes(word))
        && (!family.value || row.dataset.f === family.value)
        && (!alone.checked || row.cells[1].dataset.v !== ""));
      count += !row.hidden;
    });
    seen.textContent = count + " shown";
  };
  for (const each of [text, family, alone]) each.addEventListener("input", filter);
  table.querySelectorAll("th button").forEach((button, column) => {
    let up = false;
    button.addEventListener("click", () => {
      up = !up;
      const value = row => column ? (row.cells[column].dataset.v === "" ? Infinity : +row.cells[column].dataset.v)
        : name(row);
      const order = [...rows];
      order.sort((a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0) * (up ? 1 : -1));
      body.append(...order);
    });
  });
  filter();
}
</script></body></html>
""")
