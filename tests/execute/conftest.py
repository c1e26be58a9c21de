"""The stand-in driver of tests/driver, in the place of the real one for the length of a test; an empty cache."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ptxtile import driver

sys.path.insert(0, str(Path(__file__).parents[1] / "driver"))

from standin import Standin


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Standin]:
    monkeypatch.delenv("PTXTILE_DEVICE", raising=False)
    made = Standin()
    with driver.use(made):
        yield made


@pytest.fixture
def cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("PTXTILE_CACHE", str(tmp_path / "cubins"))
    return tmp_path / "cubins"
