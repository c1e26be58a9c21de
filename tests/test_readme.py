"""The README's code runs, and prints what the README says."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import ptxtile as pt

TEXT = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(python)?\n(.*?)```", TEXT, re.DOTALL)


def _after(marker: str) -> str:
    """The code block that follows the first block with `marker` in it."""
    index = next(i for i, (_, body) in enumerate(BLOCKS) if marker in body)
    return BLOCKS[index + 1][1]


def _block(marker: str) -> str:
    return next(body for _, body in BLOCKS if marker in body)


def _run(tmp_path: Path, name: str, source: str) -> dict[str, object]:
    file = tmp_path / name
    file.write_text(source, encoding="utf-8")
    return runpy.run_path(str(file))


def test_the_kernel_prints_the_text_shown(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PTXTILE_DEVICE", "emulator")
    _run(tmp_path, "scaled.py", _block("def scaled("))
    assert capsys.readouterr().out.strip() == _after("def scaled(").strip()


def test_the_questions_have_the_answers_shown():
    lines = _block(">>> pt.is_valid").splitlines()
    starts = [i for i, line in enumerate(lines) if line.startswith(">>> ")]
    for start, stop in zip(starts, [*starts[1:], len(lines)]):
        due = "\n".join(lines[start + 1 : stop])
        try:
            said = repr(eval(lines[start][4:].split("  #")[0], {"pt": pt}))
        except pt.FormError as error:
            said = f"FormError: {error}"
        assert said == due, lines[start]


def test_the_missing_barrier_is_found(tmp_path):
    head = "import ptxtile as pt\n" + "\n" * 8
    reverse = _run(tmp_path, "reverse.py", head + _block("def reverse("))["reverse"]
    with pytest.raises(pt.EmulatorError) as caught:
        reverse.launch(np.zeros(64, np.float32), device="emulator")
    said = str(caught.value).replace(f"{tmp_path}/", "")
    due = _after("def reverse(").strip()
    assert re.sub(r"reverse\.py:\d+.*", "reverse.py", f"EmulatorError: {said}") == re.sub(
        r"reverse\.py:\d+", "reverse.py", due
    )


def test_two_set_up_commands():
    commands = [line for line in TEXT.splitlines() if line.startswith("python3 -m venv")]
    assert commands == [
        "python3 -m venv .venv && .venv/bin/pip install -e . && .venv/bin/python examples/activation.py",
        "python3 -m venv .venv && .venv/bin/pip install -e '.[test]' && .venv/bin/pytest",
    ]
