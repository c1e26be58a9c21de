"""From times to records, and back from files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ptxtile.measure.plan import Case, Rate, batches, image_of
from ptxtile.measure.records import SCHEMA, Conditions, Record, build, read, write

WHERE = Conditions("a GPU", "13.0", "nvJitLink 13.0", "sm_90a", 1980.0)
RATE = Rate("short", "long", 10, 1, 2, {"FFMA": 1.0})
CASE = Case("fma.rn.f32", "float", "direct", ("step",), (), RATE, replace(RATE, chains=4))


def times(step: float, steps: int = 20, repeats: int = 7) -> list[list[int]]:
    return [[100] * repeats, [100 + round(step * steps)] * repeats]


def test_the_slope_is_the_latency() -> None:
    found = build(CASE, {"dependent": times(4.0)}, {}, WHERE)
    assert (found.latency, found.step, found.spread, found.rate) == (4.0, 4.0, 0.0, None)
    assert (found.device, found.mhz, found.sass) == ("a GPU", 1980.0, {"FFMA": 1.0})


def test_links_are_subtracted() -> None:
    linked = replace(CASE, way="linked", references=("prmt.b32",))
    found = build(linked, {"dependent": times(10.0)}, {"prmt.b32": 4.0}, WHERE)
    assert (found.latency, found.step, found.subtracted) == (6.0, 10.0, {"prmt.b32": 4.0})


@pytest.mark.parametrize("references", [("declared",), ("prmt.b32",)])
def test_without_the_link_s_latency_there_is_a_step_alone(references: tuple[str, ...]) -> None:
    found = build(replace(CASE, references=references), {"dependent": times(10.0)}, {}, WHERE)
    assert (found.latency, found.step, found.subtracted) == (None, 10.0, {})


def test_no_latency_of_nothing() -> None:
    """A link beside the path would be subtracted from what it does not lengthen."""
    linked = replace(CASE, way="linked", references=("prmt.b32",))
    found = build(linked, {"dependent": times(4.0)}, {"prmt.b32": 4.0}, WHERE)
    assert (found.latency, found.step) == (None, 4.0)
    assert found.note == "latency: the links (prmt.b32 4 cycles) do not all lie on the path of a step of 4"


def test_rates_by_warps() -> None:
    raw = {"independent": {"1": times(4.0), "4": times(4.0), "8": times(8.0)}}
    found = build(CASE, raw, {}, WHERE)
    assert found.rates == {"1": 32.0, "4": 128.0, "8": 128.0}
    assert (found.rate, found.best_warps, found.saturates, found.at_least) == (128.0, 4, 4, False)
    assert build(replace(CASE, way="linked"), raw, {}, WHERE).at_least


def test_repeats_that_disagree_give_no_number() -> None:
    wild = [[100] * 7, [180, 200, 220, 240, 160, 150, 260]]
    found = build(CASE, {"dependent": wild, "independent": {"1": wild}}, {}, WHERE)
    assert (found.latency, found.step, found.rate) == (None, None, None)
    assert found.skipped == "throughput: repeats differ by more than 2%"


def test_one_outlier_is_forgiven() -> None:
    short, long = times(4.0)
    assert build(CASE, {"dependent": [short, [*long[1:], 9999]]}, {}, WHERE).latency == 4.0


@pytest.mark.parametrize(
    ("spelling", "flop"),
    [("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 16384.0), ("fma.rn.f32", None)],
)
def test_operations_of_matrix_forms(spelling: str, flop: float | None) -> None:
    found = build(replace(CASE, spelling=spelling), {"independent": {"4": times(4.0)}}, {}, WHERE)
    assert found.flop == flop


def test_lines_come_back_as_they_went(records: list[Record], tmp_path: Path) -> None:
    write(records, tmp_path / "a.jsonl")
    found = list(read(tmp_path / "a.jsonl"))
    assert [replace(each, chain=tuple(each.chain)) for each in found] == records


def test_a_later_field_is_left_out_and_another_schema_refused(records: list[Record], tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write(records[:1], path)
    line = json.loads(path.read_text())
    path.write_text(json.dumps({**line, "humidity": 3}) + "\n")
    assert next(read(path)).spelling == "fma.rn.f32"
    path.write_text(json.dumps({**line, "schema": SCHEMA + 1}) + "\n")
    with pytest.raises(ValueError, match=rf"^{path}:1: no record of schema 1$"):
        list(read(path))


def test_a_prepared_folder_comes_back_as_it_went(prepared: Path) -> None:
    first, second = batches(prepared)
    assert (first.name, second.skipped) == ("batch-000", {"bra": "it branches"})
    assert second.cases[1].dependent == Rate("k1_0", "k1_1", 10, 1, 2, {"FFMA": 1.0})
    assert b".entry k0_0()" in image_of(second, prepared)


def test_instructions_behind_a_branch_are_not_counted_as_issued() -> None:
    """A routine's call that is jumped over stands in the SASS, and was not run: no issue rate is claimed."""
    where = Conditions("a GPU", "13.0", "nvJitLink 13.0", "sm_90a")
    for sass, issue in (({"FFMA": 2.0}, 2.0), ({"FFMA": 1.0, "BRA": 1.0, "CALL.ABS.NOINC": 1.0}, None)):
        rate = Rate("k_0", "k_1", 10, 1, 2, sass)
        case = Case("sqrt.rn.f32", "float", "direct", (), (), None, rate)
        record = build(case, {"independent": {"1": [[20, 20, 20], [660, 660, 660]]}}, {}, where)
        assert (record.rate, record.issue) == (1.0, 0.062 if issue else None)


def test_lines_that_are_no_records(tmp_path: Path) -> None:
    """The file and the line stand in the message."""
    path = tmp_path / "a.jsonl"
    for line, said in (("{", "no JSON"), ('{"schema": 1, "spelling": "x"}', "no record")):
        path.write_text(line + "\n")
        with pytest.raises(ValueError, match=rf"a\.jsonl:1: {said}"):
            list(read(path))
