"""Chosen spellings of each chapter, right and wrong, with what the table says of them: spellings/<chapter>.txt."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ptxtile.isa import verdict

FOLDER = Path(__file__).with_name("spellings")
_PLACE = re.compile(r" \(\w+\.isa:\d+\)")
"""Where a clause stands in the table: not part of what is tested, since it moves."""


def _rows() -> Iterator[tuple[str, str, str]]:
    for path in sorted(FOLDER.glob("*.txt")):
        for row in path.read_text(encoding="utf-8").splitlines():
            if row and not row.startswith("#"):
                spelling, target, said = (part.strip() for part in row.split(" | ", 2))
                yield spelling, target, said


ROWS = list(_rows())


@pytest.mark.parametrize(("spelling", "target", "said"), ROWS, ids=[f"{s}-{t}" for s, t, _ in ROWS])
def test_the_table_says(spelling: str, target: str, said: str) -> None:
    found = verdict(spelling, target)
    if found.kind == "canonical" and found.form is not None:
        assert said == f"since {found.form.targets[target]}"
    elif found.kind == "tolerated" and found.form is not None:
        assert said == f"written {found.form.spelling}"
    else:
        assert said == f"no: {_PLACE.sub('', found.reasons[0])}"


def test_a_third_are_refusals() -> None:
    assert 3 * sum(said.startswith("no:") for _, _, said in ROWS) >= len(ROWS)
