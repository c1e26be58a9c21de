"""Products of matrix forms, counted in PTX and in SASS; the values that operands hold; PTX versions of modules."""

from __future__ import annotations

import pytest

from ptxtile.measure.assembling import version_of
from ptxtile.measure.chain import candidates, find
from ptxtile.measure.kernel import Shape, entry, step_text
from ptxtile.measure.values import image, offset
from ptxtile.measure.work import operations, performed

PTX = {
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32": 4096,
    "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32": 8192,
    "wmma.mma.sync.aligned.row.col.m8n32k16.f32.f32": 8192,
    "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64": 512,
    "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32": 2048,  # each quarter of a warp has matrices of its own
    "fma.rn.f32": 0,
}
SASS = {
    "HMMA.16816.F32": 4096, "HMMA.1688.F32.TF32": 2048, "HMMA.SP.16832.F32.BF16": 8192, "IMMA.16832.S8.S8": 8192,
    "IMMA.8816.S8.S8": 2048, "DMMA.8x8x4": 512, "DMMA.16x8x16": 4096, "FADD": 0, "HFMA2.MMA": 0,
}  # fmt: skip


@pytest.mark.parametrize("spelling", PTX)
def test_operations_of_a_form(spelling: str) -> None:
    assert operations(spelling) == PTX[spelling]


@pytest.mark.parametrize("mnemonic", SASS)
def test_operations_of_an_instruction(mnemonic: str) -> None:
    assert performed({mnemonic: 2.0}) == 2 * SASS[mnemonic]


def test_a_matrix_form_is_fed_where_its_product_would_be_computed_once() -> None:
    spelling = "mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e4m3.f32"
    form = find(spelling)
    ways = list(candidates(form, "sm_90a"))
    assert [(way.kind, way.position, way.feed) for way in ways] == [("direct", 3, -1), ("direct", 3, 1)]
    operands = (
        "{%b32_0, %b32_1, %b32_2, %b32_3}, {%b32_4, %b32_5}, {%b32_6}, {%b32_0, %b32_1, %b32_2, %b32_3}"
    )
    assert step_text(form, ways[1]) == (f"{spelling} {operands};", "mov.b32 %b32_4, %b32_0;")


def test_registers_of_a_fragment_are_read_from_different_places() -> None:
    """Equal ones would be merged, and with them their instructions."""
    form = find("wmma.mma.sync.aligned.row.col.m8n32k16.f32.f32")
    way = next(candidates(form, "sm_90a"))
    text = entry("k", form, way, Shape(2, 4))
    sums = [line for line in text.splitlines() if line.startswith("ld.global.b32 ")][:16]
    assert len(sums) == len({line.partition("[")[2] for line in sums}) == 16


def test_values_lie_in_the_image() -> None:
    places = {offset(pattern, number, 4) for pattern in ("int", "zero") for number in range(32)}
    assert len(places) == 64
    assert max(places) + 1023 * 16 + 4 <= len(image())


def test_a_module_asks_for_the_highest_floor_of_its_forms() -> None:
    assert version_of([]) == "8.0"
    assert version_of(["7.8", "8.6", "8.2"]) == "8.6"
    assert version_of(["9.9", "9.10"]) == "9.10"


def test_shuffles_have_literal_lanes() -> None:
    form = find("shfl.sync.down.b32")
    assert step_text(form, next(candidates(form, "sm_90a"))) == (
        "shfl.sync.down.b32 %b32_0, %b32_0, 1, 31, 0xffffffff;",
    )
