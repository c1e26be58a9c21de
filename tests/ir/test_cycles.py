"""What was read is gone when its last name is: a reading keeps the cycle collector away, so it must leave it no work."""

from __future__ import annotations

import gc
from contextlib import suppress

import pytest

import ptxtile as pt

GOOD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k()
{
	.reg .b32 %r<4>;
	{
	.reg .pred p;
	setp.eq.u32 p, %r1, 3;
	@p add.u32 %r1, %r2, %r3;
	}
L:	bra L;
}
"""
TEXTS = {
    "good": GOOD,
    "undeclared": GOOD.replace("%r3;", "%q3;"),
    "no form": GOOD.replace("add.u32", "add.u36"),
    "operands": GOOD.replace("%r2, %r3;", "%r2;"),
    "twice": GOOD.replace("L:", "L: L:"),
    "garbage": "\x01\x02 .foo bar(; add.u32",
    "cut": GOOD[:150],
}


def read(text: str) -> None:
    pt.check_text(text)
    with suppress(pt.ModuleSyntaxError):
        pt.parse(text)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_reading_leaves_no_cycles(text: str) -> None:
    read(text)  # what is made at a first use may well be in cycles
    gc.collect()
    gc.disable()
    try:
        read(text)
        assert gc.collect() == 0
    finally:
        gc.enable()
