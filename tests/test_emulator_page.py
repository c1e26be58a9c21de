"""docs/emulator.md has one line for every instruction, made from the code and from what an H200 said."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_the_table_is_what_the_code_says(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    spec = importlib.util.spec_from_file_location("build_emulator", ROOT / "docs" / "build_emulator.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = module.PAGE.read_text(encoding="utf-8")
    assert module.page(text) == text, "run python docs/build_emulator.py"
    lines = [line for line in text.splitlines() if line.startswith("| `") and line.count("|") == 6]
    assert len(lines) == len(module.blocks())
    assert not [line for line in lines if "in every bit" in line]  # an H200 and the emulator differ
