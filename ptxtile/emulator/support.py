"""What the emulator can run."""

from __future__ import annotations

import re
from fnmatch import translate
from functools import cache
from pathlib import Path

from ptxtile.emulator import actions, semantics
from ptxtile.emulator.step import ACTIONS, CONTROLS


@cache
def missing() -> tuple[str, ...]:
    """The globs of `missing.txt`: spellings of the table that the emulator lacks."""
    text = Path(__file__).with_name("missing.txt").read_text(encoding="utf-8")
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return tuple(line for line in lines if line)


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile("|".join(translate(glob) for glob in missing()))


def supports(spelling: str) -> bool:
    """Whether the emulator can run a spelling."""
    return has_opcode(spelling.partition(".")[0]) and _pattern().match(spelling) is None


def has_opcode(opcode: str) -> bool:
    """Whether anything is known of the first word of a spelling."""
    actions.load()
    return opcode in CONTROLS or opcode in ACTIONS or semantics.find(opcode) is not None
