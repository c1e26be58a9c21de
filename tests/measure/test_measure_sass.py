"""The proof: what is counted, and what is refused."""

from __future__ import annotations

from collections import Counter

import pytest

from ptxtile.measure import sass

LISTING = """
.text.k0_0:
        /*0000*/                   S2R R0, SR_TID.X ;
        /*0010*/                   CS2R R2, SR_CLOCKLO ;
        /*0020*/                   FFMA R4, R4, R5, R6 ;
        /*0030*/              @!P0 FFMA R4, R4, R5, R6 ;
        /*0040*/                   CS2R R8, SR_CLOCKLO ;
        /*0050*/                   EXIT ;
.text.other:
        /*0000*/                   EXIT ;
"""


def test_what_stands_between_the_clock_reads() -> None:
    code = sass.functions(LISTING)
    assert list(code) == ["k0_0", "other"]
    assert sass.between_clocks(code["k0_0"]) == Counter({"FFMA": 2})
    assert sass.between_clocks(code["other"]) is None


PROOFS = [
    ({"FFMA": 4, "BRA": 1}, {"FFMA": 8, "BRA": 1}, {"FFMA": 1}),
    # moves may come to a fraction a step, and twins of one instruction are summed
    (
        {"IADD3": 2, "IMAD.IADD": 2},
        {"IADD3": 4, "IMAD.IADD": 4, "MOV": 1},
        {"IADD3": 0.5, "IMAD.IADD": 0.5, "MOV": 0.25},
    ),
    (
        {"HFMA2.RELU": 2, "HFMA2.MMA.RELU": 2},
        {"HFMA2.RELU": 4, "HFMA2.MMA.RELU": 4},
        {"HFMA2.RELU": 0.5, "HFMA2.MMA.RELU": 0.5},
    ),
    ({"FFMA": 4}, {"FFMA": 4}, "4 more steps add no instruction but none: folded away"),
    ({"MOV": 4}, {"MOV": 8}, "4 more steps add no instruction but 4 MOV: folded away"),
    ({"HADD2": 2}, {"HADD2": 4}, "4 more steps are 2 HADD2 more instructions: merged or folded"),
    ({"SHF": 4}, {"SHF": 1, "LEA": 4}, "4 more steps are 4 LEA, -3 SHF more instructions: merged or folded"),
]


@pytest.mark.parametrize(("short", "long", "expected"), PROOFS)
def test_a_step_is_the_difference_of_two_kernels(
    short: dict[str, int], long: dict[str, int], expected: object
) -> None:
    assert sass.per_step(Counter(short), Counter(long), 4) == expected


def test_without_clock_reads_there_is_no_proof() -> None:
    assert sass.per_step(None, Counter(), 4) == "the clock is not read twice"


def test_what_is_left_beside_the_links() -> None:
    assert sass.beside({"F2F.F64.F32": 1, "LOP3.LUT": 1}, {"LOP3": 1}) == {"F2F.F64.F32": 1}
    assert sass.beside({"PRMT": 1, "MOV": 0.5}, {"PRMT": 1}) == {}
    assert sass.beside({"PRMT": 2}, {"PRMT": 1}) == {"PRMT": 1}
    assert sass.beside({"FSETP.EQ.AND": 1, "FSEL": 1}, {"SEL": 1}) == {"FSETP.EQ.AND": 1}
