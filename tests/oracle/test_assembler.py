"""The oracle itself: what it says of lines whose verdict is beyond doubt, and that the sweeps can find a wrong table."""

from __future__ import annotations

import random

import pytest

from ptxtile import check_text
from ptxtile.isa import table
from tests.oracle import divergences, sweep
from tests.oracle.assembler import Assembler, find, head


@pytest.fixture(scope="module")
def assembler() -> Assembler:
    path = find()
    if path is None:
        pytest.skip("no ptxas: set PTXTILE_PTXAS or install nvidia-cuda-nvcc")
    return Assembler(path)


def test_each_line_is_judged_alone(assembler: Assembler) -> None:
    lines = [
        "add.u32 r1, r2, r3;",
        "add.u33 r1, r2, r3;",
        "add.u32 r1, r2 r3;",
        "add.u32 r1, r2, d3;",
        "bra there;",
        "add.u32 r1, r2, ;",
        "mov.b32 r1, in_shared;",
    ]
    assert sorted(assembler.refusals(lines, "sm_90", "9.0")) == [1, 2, 3, 5]


def test_what_a_line_stands_for_is_looked_into_though_others_are_wrong(assembler: Assembler) -> None:
    lines = [
        "mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e4m3.f32 {r1,r2,r3,r4}, {r5,r6}, {r7}, {r8,3,r9,r10};",
        "add.u33 r1, r2, r3;",
        "add.u32 r1, r2, r3;",
    ]
    assert sorted(assembler.refusals(lines, "sm_90", "9.0")) == [0, 1]


def test_version_and_target_are_asked_for(assembler: Assembler) -> None:
    line = ["add.rn.f32x2 d1, d2, d3;"]
    assert assembler.refusals(line, "sm_100", "8.6") == {}
    assert set(assembler.refusals(line, "sm_100", "8.5")) == {0}
    assert set(assembler.refusals(line, "sm_90", "8.6")) == {0}


def test_what_only_code_generation_refuses(assembler: Assembler) -> None:
    line = "cvta.global.u32 r1, r2;"
    assert assembler.refusals([line], "sm_90", "9.0") == {}
    assert not assembler.assembles(line, "sm_90", "9.0")


def test_every_supported_target_assembles_the_preamble(assembler: Assembler) -> None:
    for target in sweep.SUPPORTED:
        assert assembler.assembles("mov.b32 r1, r2;", target, sweep.NEWEST), target


def test_a_wrong_table_is_found(assembler: Assembler) -> None:
    """A spelling too many, a floor too low and a floor too high each make a difference."""
    question = sweep.Question("sound", "add.rn.f32x2 d1, d2, d3;", "sm_90", "9.0", True, "here")
    low = replace_question(question, target="sm_100", version="8.5")
    high = replace_question(question, target="sm_100", version="8.6", wanted=False)
    right = replace_question(question, target="sm_100", version="8.6")
    assert [found for found, _ in sweep.ask(assembler, [question, low, high, right])] == [question, low, high]


def replace_question(question: sweep.Question, **changes: object) -> sweep.Question:
    return question._replace(**changes)


def test_a_clause_that_is_dropped_has_a_witness() -> None:
    opcode = table.opcode("fma")
    assert opcode is not None
    line = next(
        each for each in opcode.lines if each.source.startswith("float.isa") and ".f32x2" in each.text
    )
    clause = next(each for each in line.clauses if "sm_100" in each.text)
    witness = next(sweep.witnesses(clause, line, 100, random.Random(0)))
    assert witness.text == "fma.rn.f32x2 d1, d2, d3, d4;"
    assert witness.target == "sm_75"


_TAKEN = [each.pattern for each in divergences.listed() if each.sweep == "taken"]


def test_what_the_assembler_takes_in_silence(assembler: Assembler) -> None:
    """The kinds of statement that the table refuses against the assembler: it still takes each of them."""
    assert assembler.refusals(_TAKEN, "sm_100a", sweep.NEWEST) == {}


@pytest.mark.parametrize("text", _TAKEN)
def test_what_the_table_refuses_all_the_same(text: str) -> None:
    assert check_text(f"{head('sm_100a', sweep.NEWEST)}{text}\nthere:\nret;\n}}\n")
