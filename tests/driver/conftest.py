"""The stand-in driver, in the place of the real one for the length of a test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ptxtile import driver

sys.path.insert(0, str(Path(__file__).parent))

from standin import Standin


@pytest.fixture
def standin() -> Iterator[Standin]:
    made = Standin()
    with driver.use(made):
        yield made
