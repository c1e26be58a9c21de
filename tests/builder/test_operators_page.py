"""docs/operators.md says what is emitted: every cell of its tables of sequences is read and tried."""

from __future__ import annotations

from pathlib import Path

import pytest

import ptxtile as pt
from builder.running import failure, spellings

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operators.md"


def cells() -> list[tuple[str, str, str]]:
    """(expression, dtype, sequence) of every filled cell of the tables whose header names dtypes."""
    found: list[tuple[str, str, str]] = []
    columns: list[str] = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            columns = []
            continue
        row = [cell.replace("\0", "|").strip() for cell in line.replace("\\|", "\0").strip("|").split("|")]
        if "bool_" in row:
            columns = row[1:]
        elif columns and not row[0].startswith("---"):
            for dtypes, cell in zip(columns, row[1:]):
                found.extend((row[0].strip("`"), dtype, cell.strip("`")) for dtype in dtypes.split() if cell)
    return found


CELLS = cells()


def test_the_page_has_its_tables() -> None:
    assert len(CELLS) > 250


@pytest.mark.parametrize("row", sorted({row[0] for row in CELLS}))
def test_a_row_of_the_page(row: str) -> None:
    for expression, name, sequence in CELLS:
        if expression != row:
            continue
        dtype = getattr(pt, name)

        def body(a: object, b: object, expression: str = expression) -> object:
            return eval(expression, {"pt": pt, "a": a, "b": b})

        if sequence == "–":
            assert isinstance(failure(body, dtype, dtype), pt.TraceError), (expression, name)
            continue
        expected = [_spelled(word, dtype) for word in sequence.split()]
        emitted = [
            spelling for spelling in spellings(body, dtype, dtype) if not spelling.startswith("mov.b16")
        ]
        assert emitted == expected, (expression, name)


def _spelled(word: str, dtype: pt.DType) -> str:
    parts = {"T": dtype.ptx[1:], "B": f"b{dtype.bits}"}
    return ".".join(parts.get(part, part) for part in word.split("."))
