"""The known differences between the table and the assembler: divergences.txt."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from pathlib import Path

PATH = Path(__file__).with_name("divergences.txt")


@dataclass(frozen=True, slots=True)
class Divergence:
    """One rule: in which sweep, for which statements (a glob), and why."""

    sweep: str
    pattern: str
    reason: str

    def covers(self, sweep: str, text: str) -> bool:
        return sweep == self.sweep and fnmatch.fnmatchcase(text, self.pattern)


def listed() -> list[Divergence]:
    """The rules of the file."""
    found = []
    for row in PATH.read_text(encoding="utf-8").splitlines():
        if row.strip() and not row.startswith("#"):
            sweep, pattern, reason = (part.strip() for part in row.split("|", 2))
            found.append(Divergence(sweep, pattern, reason))
    return found
