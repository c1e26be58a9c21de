"""docs/isa says what the table says: it is made anew and compared."""

from __future__ import annotations

import json
import re
import runpy
import sys
from functools import lru_cache
from typing import Any

import pytest
import source

from ptxtile.isa import table

FOLDER = source.ROOT / "docs" / "isa"


@lru_cache(maxsize=1)
def build() -> dict[str, Any]:
    before = list(sys.path)
    try:
        return runpy.run_path(str(source.ROOT / "docs" / "build.py"), run_name="docs_build")
    finally:
        sys.path[:] = before


def test_the_pages_are_what_the_table_says() -> None:
    assert build()["stale"]() == [], "the table has changed: run python docs/build.py"


def test_every_instruction_and_every_line_has_its_place() -> None:
    made = build()["chapters"]()
    assert {entry.line.opcode for c in made for block in c.instructions for entry in block.entries} == set(
        table.chapters()
    )
    for chapter in made:
        text = (FOLDER / f"{chapter.name}.md").read_text(encoding="utf-8")
        lines = [entry.line.text for block in chapter.instructions for entry in block.entries]
        assert re.findall(r"^```\n(.*)\n```$", text, re.MULTILINE) == lines


def test_every_line_has_an_example() -> None:
    """A line that no supported target has would be one that nobody can use."""
    without = [
        entry.line.text
        for chapter in build()["chapters"]()
        for block in chapter.instructions
        for entry in block.entries
        if entry.form is None and not any(clause.kind == "removed" for clause in entry.line.clauses)
    ]
    assert without == []


def test_links_of_the_index_lead_to_headings() -> None:
    links = re.findall(r"\]\(([\w.]+)(?:#([\w-]+))?\)", (FOLDER / "index.md").read_text(encoding="utf-8"))
    assert len(links) > 100
    anchors: dict[str, set[str]] = {}
    for name in {name for name, _ in links}:
        seen: list[str] = []
        for heading in re.findall(r"^## (.*)$", (FOLDER / name).read_text(encoding="utf-8"), re.MULTILINE):
            plain = re.sub(r"[^\w-]", "", heading.lower())
            count = sum(re.fullmatch(rf"{plain}(-\d+)?", each) is not None for each in seen)
            seen.append(f"{plain}-{count}" if count else plain)
        anchors[name] = set(seen)
    assert [link for link in links if link[1] and link[1] not in anchors[link[0]]] == []


def test_the_search_page_holds_every_line_and_nothing_foreign() -> None:
    text = (FOLDER / "index.html").read_text(encoding="utf-8")
    rows = re.search(r"const rows = (\[.*?\n\]);", text, re.DOTALL)
    assert rows
    lines = [row["line"] for row in json.loads(rows[1].replace("<\\/", "</"))]
    made = build()["chapters"]()
    assert lines == [e.line.text for c in made for block in c.instructions for e in block.entries]
    assert re.findall(r"""(?:src|href)=["']""", text) == []
    assert "@" not in re.sub(r"const rows = \[.*?\n\];", "", text, flags=re.DOTALL)


def test_stale_pages_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """The test of the test: it can fail."""
    made = build()["pages"]()
    for name, text in made.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    stale = build()["stale"]
    monkeypatch.setitem(stale.__globals__, "FOLDER", tmp_path)
    assert stale() == []
    (tmp_path / "float.md").write_text("old")
    (tmp_path / "gone.md").write_text("old")
    (tmp_path / "index.md").unlink()
    assert stale() == ["float.md", "gone.md", "index.md"]
