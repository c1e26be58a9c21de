"""Real and mutated spellings with the verdicts of ptxas, where PTXTILE_CORPUS names a file or folder of them.

Each line is a JSON object: `form`, `ok` {target: bool}, and for mutants `lax`, why ptxas seems to take one only by
being lax.
Those with a foreign or duplicated modifier are left out: the table refuses them on purpose.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ptxtile.isa import is_valid, table

LEAST = 0.999
"""Share of (form, target) pairs on which table and assembler agree: never less than was reached."""


def _corpus() -> Path | None:
    named = os.environ.get("PTXTILE_CORPUS")
    if not named:
        return None
    path = Path(named)
    return path / "forms_dev.jsonl" if path.is_dir() else path


def test_agrees_with_the_assembler_on_real_spellings() -> None:
    path = _corpus()
    if path is None or not path.is_file():
        pytest.skip("no corpus: set PTXTILE_CORPUS to forms_dev.jsonl or its folder")
    known = table.chapters()
    right, wrong = 0, []
    for row in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(row)
        if record["form"].split(".")[0] not in known or {"duplicate", "foreign"} & set(
            record.get("lax") or ()
        ):
            continue
        for target, verdict in record["ok"].items():
            if is_valid(record["form"], target) == verdict:
                right += 1
            else:
                wrong.append(f"{record['form']} on {target}: the assembler says {verdict}")
    assert right, "no form of the corpus has an opcode of the table"
    share = right / (right + len(wrong))
    assert share >= LEAST, f"{share:.4%} agree; {len(wrong)} do not:\n" + "\n".join(wrong[:40])
