"""Ways to chain a form, and the kernels that they make."""

from __future__ import annotations

import pytest

import ptxtile as pt
from ptxtile.measure.chain import candidates, find, refusal
from ptxtile.measure.kernel import Shape, entry, step_text

HEADER = ".version 8.0\n.target sm_90a\n.address_size 64\n"
WAYS = {
    "fma.rn.f32": ["direct"] * 3 + ["fibonacci"] * 6 + ["linked"] * 3,
    "popc.b64": ["linked"],
    "setp.eq.s32": ["linked"] * 2,
    "ld.global.b32": ["chase"],
}
STEPS = {
    "fma.rn.f32": ("fma.rn.f32 %f32_0, %f32_0, %f32_1, %f32_2;",),
    "mul.wide.u32": (
        "mul.wide.u32 %b64_0, %b32_0, %b32_1;",
        "mov.b64 {%b32_2, %b32_3}, %b64_0;",
        "xor.b32 %b32_2, %b32_2, %b32_3;",
        "mov.b32 %b32_0, %b32_2;",
    ),
    "setp.eq.s32": ("setp.eq.s32 %pred_0, %b32_0, %b32_1;", "selp.b32 %b32_0, %b32_2, %b32_3, %pred_0;"),
    "ld.shared.b32": (
        "ld.shared.b32 %b32_1, [%b32_0];",
        "mov.b32 %b32_2, %b32_1;",
        "mov.b32 %b32_0, %b32_2;",
    ),
}


@pytest.mark.parametrize("spelling", WAYS)
def test_ways_of_a_form(spelling: str) -> None:
    assert [way.kind for way in candidates(find(spelling), "sm_90a")] == WAYS[spelling]


@pytest.mark.parametrize("spelling", STEPS)
def test_the_first_way_written_out(spelling: str) -> None:
    form = find(spelling)
    assert step_text(form, next(candidates(form, "sm_90a"))) == STEPS[spelling]


def test_a_chain_has_as_many_steps_as_its_shape() -> None:
    form = find("fma.rn.f32")
    way = next(candidates(form, "sm_90a"))
    assert entry("k", form, way, Shape(3, 5)).count("fma.rn.f32 ") == 15


@pytest.mark.parametrize(
    "spelling", ["fma.rn.f32", "vote.sync.all.pred", "ld.global.v4.f32", "atom.shared.add.u32", "add.cc.u64"]
)
def test_kernels_are_modules_that_the_library_accepts(spelling: str) -> None:
    form = find(spelling)
    for way in candidates(form, "sm_90a"):
        assert pt.check_text(HEADER + entry("k", form, way, Shape(2, 4))) == []


REFUSALS = {
    "bar.sync": "it has no result",
    "bra": "it branches",
    "st.global.b32": "it reads or writes memory, and chains of registers do not",
    "add.rn.f32x2": "sm_90a does not have it",
}


@pytest.mark.parametrize("spelling", REFUSALS)
def test_forms_without_a_chain_say_why(spelling: str) -> None:
    form = find(spelling)
    assert list(candidates(form, "sm_90a")) == []
    assert refusal(form, "sm_90a") == REFUSALS[spelling]
