"""A few spellings of every instruction of the table: what is not listed as missing runs, or is stopped for a reason."""

from __future__ import annotations

import random
from itertools import islice

import pytest

from ptxtile.emulator import EmulatorError, Loaded
from ptxtile.emulator.support import supports
from ptxtile.isa import find, forms, table
from tests.oracle.assembler import head, independent
from tests.oracle.operands import statement

EACH = 2
# Operands are zeros or made up, so addresses lead nowhere and member masks name nobody.
EXPECTED = {
    "out-of-bounds",
    "misaligned",
    "barrier",
    "mbarrier",
    "uninitialised",
    "handle",
    "registers",
    "tensor-memory",
}
CONTROL = {"bra", "brx", "call", "trap"}


def outcome(text: str, sanitize: bool) -> str:
    """The kind of error that stops the program, or nothing."""
    try:
        Loaded(text).launch("k", 1, 40, bytes(128), sanitize=sanitize)
    except EmulatorError as error:
        return error.kind
    return ""


@pytest.mark.parametrize("sanitize", [False, True])
def test_every_instruction_runs(sanitize):
    chance = random.Random(7)
    ran = 0
    for opcode in sorted(set(table.chapters()) - CONTROL):
        known = [spelling for spelling in islice(forms(f"{opcode}.*"), 500) if supports(spelling)]
        for spelling in chance.sample(sorted(known), min(len(known), EACH)):
            form = find(spelling)
            assert form is not None
            for signature in form.signatures[:2]:
                line = statement(spelling, signature)
                text = f"{head('sm_100a', '9.5', independent(line))}{line}\nthere:\nret;\n}}\n"
                kind = outcome(text, sanitize)
                # The closed list has depth comparisons of textures, which their spelling does not show.
                closed = kind == "unsupported" and opcode in ("tex", "tld4")
                assert not kind or kind in EXPECTED or closed, spelling
                ran += not kind
    assert ran > 80
