"""Every line of the table makes forms, and nothing in it is idle."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from ptxtile.isa import cache, listing, rules, table, variants
from ptxtile.isa.bind import written
from ptxtile.isa.line import Line, lines_of
from ptxtile.isa.match import Reading
from ptxtile.isa.signature import form

LINES = [line for name in table.chapters() for line in table.opcode(name).lines]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.source)
def test_the_line_makes_forms(line: Line) -> None:
    """Some filling exists and its operands are all declared."""
    for values, spelling in itertools.islice(listing.spellings(line), 50_000):
        available = rules.available(line, values)
        if available:
            made = form(spelling, [Reading(line, values, True, available)])
            assert made.signatures and made.targets, spelling
            assert all(written(each) or not each.operands for each in made.signatures)
            return
    raise AssertionError(f"{line.source}: no spelling of {line.text} exists")


@pytest.mark.parametrize(
    "path",
    sorted({path for paths in table.chapters().values() for path in paths}),
    ids=lambda path: path.name,
)
def test_every_declaration_is_used(path: Path) -> None:
    for record in cache.load(path, "chapter"):
        made = lines_of(record, path.name)
        used = {name for line in made for each in variants.of(line) for name in each.written}
        declared = {name for line in made for name in line.declarations}
        assert declared <= used, (
            f"{path.name}: {record[0]} declares {sorted(declared - used)} and does not use it"
        )
