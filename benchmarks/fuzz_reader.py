"""Fuzzes the reader with atheris: no text ends in anything but a Module, a ModuleSyntaxError or Diagnostics.

    python benchmarks/fuzz_reader.py [FOLDER] [-max_total_time=3600] [other libFuzzer options]

Needs atheris from PyPI beside ptxtile's own requirements. FOLDER keeps the inputs that reach new code; the programs of
`tests/ir/programs` are the first ones. A text is also read twice, so that what a reading remembers changes nothing.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import atheris

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

with atheris.instrument_imports(include=["ptxtile"]):
    from ptxtile import check_text, parse
    from ptxtile.errors import ModuleSyntaxError

LONGEST = 20_000


def one(data: bytes) -> None:
    text = data[:LONGEST].decode("utf-8", "replace")
    found = check_text(text)
    assert all(each.line >= 1 and each.column >= 1 for each in found)
    assert check_text(text) == found
    try:
        module = parse(text)
    except ModuleSyntaxError as error:
        if not found or error.line < 1 or error.column < 1:
            raise RuntimeError("parse and check_text disagree") from error
        return
    assert parse(str(module)) == module


def main() -> None:
    options = [each for each in sys.argv[1:] if each.startswith("-")]
    folders = [each for each in sys.argv[1:] if not each.startswith("-")] or [tempfile.mkdtemp()]
    corpus = Path(folders[0])
    corpus.mkdir(parents=True, exist_ok=True)
    for program in (ROOT / "tests" / "ir" / "programs").glob("*.ptx"):
        shutil.copy(program, corpus)
    atheris.Setup([sys.argv[0], *options, *folders], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
