"""The tables of docs/measure.md are those of the kept records."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from ptxtile.measure import Record, read

ROOT = Path(__file__).parent.parent.parent


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("measure_tables", ROOT / "benchmarks" / "measure_tables.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def kept() -> list[Record]:
    return list(read(ROOT / "benchmarks" / "results" / "h200" / "measure.jsonl"))


def test_the_document_says_what_the_records_say(kept: list[Record]) -> None:
    """`python benchmarks/measure_tables.py` writes it."""
    page = (ROOT / "docs" / "measure.md").read_text(encoding="utf-8")
    assert script().filled(page, kept) == page


def test_what_the_kept_run_holds(kept: list[Record]) -> None:
    """The scope that the table promises."""
    timed = [record for record in kept if record.skipped is None]
    opcodes = {record.spelling.partition(".")[0] for record in timed}
    mnemonics = {name for record in timed for name in (*record.sass, *record.rate_sass)}
    assert len(timed) >= 1500
    assert len(mnemonics) >= 250
    assert {"fma", "cvt", "setp", "lop3", "shfl", "mma", "ld", "atom"} <= opcodes
