"""The nearest spellings: single edits of a wrong one that the table has, the likeliest first."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from ptxtile.isa import table
from ptxtile.isa.match import Opcode

COUNT = 3
"""Suggestions offered."""


def nearest(spelling: str, count: int = COUNT) -> tuple[str, ...]:
    """Up to `count` canonical spellings that one or two edits make of `spelling`, nearest first; () if none
    is near.
    """
    name, words = table.split(spelling)
    found: dict[str, None] = {}
    for opcode in _opcodes(name):
        known = table.opcode(opcode)
        if known is None:
            continue
        for edited in _edits(known, words, opcode != name):
            analysis = table.analyse(opcode + "".join(edited))
            if analysis is not None:
                found[analysis.spelling] = None
    ranked = sorted(found, key=lambda each: -difflib.SequenceMatcher(None, each, spelling).ratio())
    return tuple(ranked[:count])


def _opcodes(name: str) -> list[str]:
    if name in table.chapters():
        return [name]
    return difflib.get_close_matches(name.lower(), list(table.chapters()), n=3, cutoff=0.6)


def _edits(opcode: Opcode, words: Sequence[str], unchanged: bool) -> Iterator[list[str]]:
    """The words without one, with one replaced by a similar one, with one more; two edits if a word is no
    modifier at all.
    """
    base = list(words)
    if unchanged:
        yield base
    strangers = [at for at, word in enumerate(base) if word not in opcode.vocabulary]
    if len(strangers) > 1:
        return
    if strangers:
        at = strangers[0]
        near = difflib.get_close_matches(base[at], list(opcode.vocabulary), n=6, cutoff=0.3)
        bases = [base[:at] + base[at + 1 :], *([*base[:at], other, *base[at + 1 :]] for other in near)]
        for each in bases:
            yield each
            yield from _single(opcode, each, False)
        return
    yield from _single(opcode, base, True)


def _single(opcode: Opcode, words: list[str], replace: bool) -> Iterator[list[str]]:
    for at in range(len(words)):
        yield words[:at] + words[at + 1 :]
    for word in opcode.vocabulary:
        for at in range(len(words) + 1):
            yield [*words[:at], word, *words[at:]]
            if replace and at < len(words):
                yield [*words[:at], word, *words[at + 1 :]]
