"""Bank conflicts of one access, with the lanes that collide."""

from __future__ import annotations

import pytest

from ptxtile.errors import LayoutError
from ptxtile.layout import ComposeLayout, S
from ptxtile.layout.banks import Conflict, bank_conflicts


def test_a_row_has_none_and_a_column_has_all():
    tile = S[32, 32]
    row = bank_conflicts(tile, [(0, i) for i in range(32)], width_bytes=4, element_bits=32)
    assert (row.phases, row.servings, row.conflicts) == (1, 1, ())
    column = bank_conflicts(tile, [(i, 0) for i in range(32)], width_bytes=4, element_bits=32)
    assert (column.phases, column.servings) == (1, 32)
    assert column.conflicts == (Conflict(0, 0, tuple((lane,) for lane in range(32))),)


def test_padding_and_one_word_for_all():
    padded = S[(32, 32) : (33, 1)]
    assert bank_conflicts(padded, [(i, 0) for i in range(32)], width_bytes=4, element_bits=32).servings == 1
    same = bank_conflicts(padded, [(0, 0)] * 32, width_bytes=4, element_bits=32)
    assert (same.servings, same.conflicts) == (1, ())


def test_eight_rows_of_16_bytes_conflict_until_they_are_swizzled():
    """The rows of one 8 by 8 matrix of float16, in lines of 128 bytes."""
    rows = [(row, 0) for row in range(8)]
    plain = bank_conflicts(S[8, 64], rows, width_bytes=16, element_bits=16)
    assert (plain.phases, plain.servings, len(plain.conflicts)) == (1, 8, 4)
    swizzled = bank_conflicts(ComposeLayout(3, 3, 3, S[8, 64]), rows, width_bytes=16, element_bits=16)
    assert (swizzled.servings, swizzled.conflicts) == (1, ())


def test_wide_accesses_take_phases_and_lanes_may_be_off():
    lanes = [(4 * lane,) for lane in range(32)]
    wide = bank_conflicts(S[128], lanes, width_bytes=16, element_bits=32)
    assert (wide.phases, wide.servings) == (4, 4)
    off = bank_conflicts(
        S[128], [lane if lane[0] < 32 else None for lane in lanes], width_bytes=16, element_bits=32
    )
    assert (off.phases, off.servings) == (1, 1)
    halves = bank_conflicts(S[64], [(i,) for i in range(32)], width_bytes=2, element_bits=16)
    assert (halves.servings, halves.conflicts) == (1, ())


def test_the_report_reads():
    report = bank_conflicts(S[64], [(0,), (32,), (32,), (1,)], width_bytes=4, element_bits=32)
    assert (
        str(report)
        == "2 servings where 1 would do, at 4 bytes a lane\n  phase 0, bank 0: lanes 0 against 1,2"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([(0,)], 3, 32), "an access is 1, 2, 4, 8 or 16 bytes wide, not 3"),
        (([(0,)] * 33, 4, 32), "a warp has 32 lanes, not 33"),
        (([(1,)], 8, 32), "lane 0 at byte 4 is not aligned to its 8 bytes"),
        (([(1,)], 1, 4), "coordinate (1,) lies at bit 4, inside a byte"),
    ],
)
def test_messages(arguments, message):
    coords, width, bits = arguments
    with pytest.raises(LayoutError) as caught:
        bank_conflicts(S[64], coords, width_bytes=width, element_bits=bits)
    assert str(caught.value) == message
