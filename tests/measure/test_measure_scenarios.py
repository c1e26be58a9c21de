"""Scenarios: their points, kernels, proofs, and records."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import ptxtile as pt
from ptxtile import driver, measure
from ptxtile.measure import prepare
from ptxtile.measure.plan import Case, Launch, Point, Rate, batches, load, store
from ptxtile.measure.records import Conditions, Record, build
from ptxtile.measure.scenarios import find, is_scenario, names
from ptxtile.measure.scenarios.recipe import size_name, text
from ptxtile.measure.staging import prove

WHERE = Conditions("a GPU", "13.0", "nvJitLink 13.0", "sm_90a", 1980.0)
HEADER = ".version 8.6\n.target sm_90a\n.address_size 64\n"
GROUPS = {"memory", "atomics", "barriers", "tma", "async", "wgmma", "issue"}


def _tools() -> bool:
    try:
        driver.find_assembler()
    except pt.AssemblerError:
        return False
    return driver.find_disassembler() is not None


needs_tools = pytest.mark.skipif(not _tools(), reason="nvJitLink or nvdisasm is not installed")


def test_every_group_has_points_and_their_names_are_unique() -> None:
    found = list(names())
    assert len(found) == len(set(found)) > 600
    assert {name.partition(".")[0] for name in found} == GROUPS
    assert all(is_scenario(name) for name in found)


def test_globs_match_points_and_scenarios() -> None:
    assert list(names("memory.latency.shared")) == [
        f"memory.latency.shared/{size}" for size in ("4KiB", "32KiB", "128KiB")
    ]
    assert list(names("tma.*.bulk.load/4KiB")) == ["tma.latency.bulk.load/4KiB", "tma.rate.bulk.load/4KiB"]
    assert list(names("no.such")) == []


@pytest.mark.parametrize(
    ("size", "name"), [(16, "16B"), (1 << 16, "64KiB"), (3 << 20, "3MiB"), (1 << 30, "1GiB")]
)
def test_sizes_are_named_by_the_largest_unit(size: int, name: str) -> None:
    assert size_name(size) == name


def test_places_on_an_axis_are_whole_numbers() -> None:
    assert next(names("atomics.red.global.add.f64/1048576"))


SAMPLE = (
    "memory.latency.global/4KiB", "memory.latency.distributed/2", "memory.latency.distributed.generic/4", "memory.latency.global.indexed/4KiB", "memory.conflicts.ld.shared.v4.b32/8",
    "memory.bandwidth.ld.device.b32/32", "memory.bandwidth.st.l2.v4.b32/1", "atomics.atom.global.cas.b32/32",
    "atomics.red.global.add.f32/1024", "barriers.mbarrier/128", "barriers.mbarrier.remote/2", "barriers.bar.sync/64",
    "barriers.fence.acq_rel.gpu/1", "tma.latency.bulk.load/4KiB", "tma.rate.bulk.add.f32/4KiB",
    "tma.latency.bulk.distributed/256B", "tma.rate.tensor.2d.128B/8KiB", "async.rate.cp.async.ca/16",
    "wgmma.dense.registers.f32.f16.f16/64", "wgmma.sparse.shared.s32.s8.s8/64", "issue.fma.f32+prmt/4",
)  # fmt: skip


@pytest.mark.parametrize("name", SAMPLE)
def test_kernels_are_modules_that_the_library_accepts(name: str) -> None:
    recipe = find(name)
    assert recipe is not None
    assert pt.is_valid(recipe.point.form, "sm_90a")
    assert pt.check_text(HEADER + text("k", recipe, 2)) == []


@needs_tools
def test_proven_and_refused(tmp_path: Path) -> None:
    prepare([*SAMPLE, "memory.no.such/1"], "sm_90a", tmp_path, workers=1)
    _, batch = batches(tmp_path)
    assert [case.spelling for case in batch.cases] == list(SAMPLE)
    assert batch.skipped == {"memory.no.such/1": "there is no such scenario"}
    found = {case.spelling: case for case in batch.cases}
    load_ = found["tma.latency.bulk.load/4KiB"]
    assert load_.launch == Launch(1, 32, shared=132096, field=131072)
    assert load_.dependent is not None and load_.dependent.sass["UBLKCP.S.G"] == 1
    wide = found["wgmma.dense.registers.f32.f16.f16/64"].independent
    assert wide is not None and wide.sass["HGMMA.64x64x16.F32"] == 1


@needs_tools
def test_a_target_without_the_form(tmp_path: Path) -> None:
    prepare(["wgmma.dense.shared.f32.f16.f16/64", "memory.latency.shared/4KiB"], "sm_80", tmp_path, workers=1)
    _, batch = batches(tmp_path)
    form = "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16"
    assert batch.skipped == {"wgmma.dense.shared.f32.f16.f16/64": f"sm_80 does not have {form}"}


PROOFS = [
    ({"LDS": 8}, {"LDS": 16, "IMAD": 8}, {"LDS": 1, "IMAD": 1}),
    ({"LDS": 8}, {"LDS": 12}, "8 more steps are 4 LDS more instructions, not 8 LDS"),
    ({"LDS": 8}, {"LDS": 16, "BAR.SYNC": 8}, "8 more steps have BAR.SYNC, which do not belong to them"),
    ({"LDS": 8}, {"LDS": 8}, "8 more steps are no more instructions, not 8 LDS"),
]


@pytest.mark.parametrize(("short", "long", "expected"), PROOFS)
def test_the_named_instruction_has_its_exact_count(
    short: dict[str, int], long: dict[str, int], expected: object
) -> None:
    recipe = find("memory.conflicts.ld.shared.b32/1")
    assert recipe is not None
    assert prove(Counter(short), Counter(long), 8, recipe) == expected
    assert prove(None, Counter(long), 8, recipe) == "the clock is not read twice"


RATE = Rate("short", "long", 8, 1, 16, {"LDS": 1.0}, 8)
POINT = Point("memory.conflicts.ld.shared.b32", "ld.shared.b32", "stride", 1, "B", 4096)
CASE = Case(
    "memory.conflicts.ld.shared.b32/1", "memory", "scenario", ("ld.shared.b32",), (), None, RATE,
    launch=Launch(1, 1024), point=POINT,
)  # fmt: skip


def times(step: float, rest: float = 0.0) -> list[list[float]]:
    return [[rest + step * 8 * 16] * 7, [rest + step * 16 * 16] * 7]


def test_a_rate_is_the_amount_of_a_step_by_its_cycles() -> None:
    found = build(CASE, {"point": times(32.0), "blocks": 1}, {}, WHERE)
    assert (found.rate, found.unit, found.step, found.latency, found.blocks) == (128.0, "B", 32.0, None, 1)
    assert (found.scenario, found.form, found.axis, found.at) == (POINT.scenario, POINT.form, "stride", 1)
    assert found.note == ""


def test_a_kernel_that_does_much_besides_says_so() -> None:
    found = build(CASE, {"point": times(32.0, 8192.0), "blocks": 1}, {}, WHERE)
    assert found.note == "50% of the longer kernel's time is not its steps'"


def test_a_rate_of_all_sms_is_of_the_whole_time() -> None:
    point = replace(POINT, whole="slowest")
    found = build(replace(CASE, point=point), {"point": times(32.0, 8192.0), "blocks": 132}, {}, WHERE)
    assert (found.rate, found.step, found.note) == (64.0, 64.0, "")


def test_a_latency_is_a_step_by_its_instructions() -> None:
    point = replace(POINT, unit="cycles", amount=2)
    found = build(
        replace(CASE, dependent=RATE, independent=None, point=point),
        {"point": times(32.0), "blocks": 2},
        {},
        WHERE,
    )
    assert (found.latency, found.step, found.rate) == (16.0, 32.0, None)


def test_points_that_disagree_give_no_number() -> None:
    wild = [[4096.0] * 7, [8192.0, 9000.0, 7000.0, 8500.0, 7500.0, 9500.0, 8192.0]]
    found = build(CASE, {"point": wild, "blocks": 1}, {}, WHERE)
    assert (found.rate, found.skipped) == (None, "repeats differ by 36.6%, more than 2%")
    assert build(CASE, {}, {}, WHERE).skipped == "it was not timed"


def test_a_case_comes_back_from_its_folder(tmp_path: Path) -> None:
    batch = measure.plan.Batch("batch-001", "sm_90a", "", (CASE.spelling,), (CASE,))
    store(batch, b"", tmp_path)
    assert load(tmp_path / "batch-001.json").cases == (CASE,)


def test_points_have_a_table_and_pictures_of_their_own(records: list[Record]) -> None:
    points = [
        build(replace(CASE, spelling=f"{POINT.scenario}/{at}", point=replace(POINT, at=at)), {"point": times(32.0 * at), "blocks": 1}, {}, WHERE)
        for at in (1, 2)
    ]  # fmt: skip
    assert measure.table(points) == (
        "scenario                          latency    rate      unit  SASS of a step\n"
        "memory.conflicts.ld.shared.b32/1        -  128.00  B/clk/SM  LDS\n"
        "memory.conflicts.ld.shared.b32/2        -   64.00  B/clk/SM  LDS"
    )
    assert measure.table([*records, *points]).count("\n\n") == 1
    page = measure.report([*records, *points])
    assert "<figcaption>memory.conflicts, B/clk/SM</figcaption>" in page
    assert "again: ptxtile measure --scenarios &#x27;memory.conflicts.ld.shared.b32/1&#x27;" in page
