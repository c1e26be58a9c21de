"""The page in a real browser: its filters, its sorting, its pictures."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ptxtile import measure
from ptxtile.measure.records import Record

BROWSER = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")
DRIVE = """<script>
const found = {}, table = id => [...document.querySelectorAll("#" + id + " tbody tr")];
const shown = id => table(id).filter(row => !row.hidden).map(row => row.querySelector("summary").textContent);
const [points, all] = document.querySelectorAll(".bar");
const set = (element, value) => { element.value = value; element.dispatchEvent(new Event("input")); };
found.start = shown("all");
set(all.querySelector("input"), "f32 fadd");
found.words = shown("all");
set(all.querySelector("input"), "");
set(all.querySelector("select"), "mma");
found.family = shown("all");
found.count = all.querySelector("output").textContent;
set(all.querySelector("select"), "");
document.querySelectorAll("#all th button")[1].click();
found.sorted = shown("all");
document.querySelectorAll("#all th button")[1].click();
found.reversed = shown("all");
set(points.querySelector("input"), "lds");
found.points = shown("points");
found.pictures = [...document.querySelectorAll("svg")].filter(svg => svg.getBoundingClientRect().height > 10).length;
document.body.textContent = "found" + JSON.stringify(found) + "end";
</script>"""


@pytest.mark.skipif(BROWSER is None, reason="no browser is installed")
def test_filters_and_sorting(records: list[Record], tmp_path: Path) -> None:
    assert BROWSER is not None
    place = {"scenario": "memory.conflicts", "axis": "stride", "unit": "B", "latency": None}
    points = [
        replace(records[0], spelling=f"memory.conflicts/{at}", at=at, rate=128 / at, rate_sass={"LDS": 1.0}, sass={}, **place)  # type: ignore[arg-type]
        for at in (1, 2)
    ]  # fmt: skip
    page = tmp_path / "page.html"
    page.write_text(
        measure.report([*records, *points]).replace("</body>", f"{DRIVE}</body>"), encoding="utf-8"
    )
    done = subprocess.run(
        [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", page.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    match = re.search(r"found(\{.*\})end", done.stdout)
    assert match is not None
    fma, fabs, matrix = "fma.rn.f32", "abs.f32", "mma.sync.aligned.m16n8k16"
    assert json.loads(match[1]) == {
        "start": [fma, fabs, matrix],
        "words": [fabs],
        "family": [matrix],
        "count": "1 shown",
        "sorted": [fma, fabs, matrix],
        "reversed": [matrix, fabs, fma],
        "points": ["memory.conflicts/1", "memory.conflicts/2"],
        "pictures": 6,
    }
