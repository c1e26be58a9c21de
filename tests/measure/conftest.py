"""Records made by hand, and the stand-in driver, which lies beside the driver's tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ptxtile import driver
from ptxtile.measure.plan import Batch, Case, Rate, store
from ptxtile.measure.records import Record

sys.path.insert(0, str(Path(__file__).parent.parent / "driver"))

from standin import Standin

IMAGE = b"".join(b".visible .entry k%d_%d() { ret; }\n" % (k, n) for k in range(2) for n in range(4))
LINK = "link.opaque.b32"


@pytest.fixture
def standin() -> Iterator[Standin]:
    made = Standin()
    with driver.use(made):
        yield made


@pytest.fixture
def records() -> list[Record]:
    """One of each kind: exact, linked, of a matrix, skipped."""
    where = ("a GPU", "13.0", "nvJitLink 13.0", "sm_90a", 1980.0)
    rates = {"1": 32.0, "4": 128.0}
    return [
        Record(
            "fma.rn.f32", "float", *where, sass={"FFMA": 1.0}, chain=("fma.rn.f32 %a, %a, %b, %c;",), way="direct",
            latency=4.0, step=4.0, spread=0.0, rate=128.0, rate_spread=0.0, best_warps=4, rates=rates, saturates=4,
            independent=8, rate_sass={"FFMA": 1.0},
        ),
        Record(
            "abs.f32", "float", *where, sass={"FADD": 1.0, "PRMT": 1.0}, way="linked", latency=6.0, step=10.0,
            spread=0.001, subtracted={LINK: 4.0}, rate=63.75, at_least=True, saturates=16,
        ),
        Record("mma.sync.aligned.m16n8k16", "mma", *where, sass={"HMMA": 1.0}, step=25.0, latency=25.0, flop=2560.0),
        Record("bra", "", *where, skipped="it branches"),
    ]  # fmt: skip


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    """A prepared folder of two batches that nothing has assembled: a link, two cases, a refusal."""

    def case(spelling: str, name: str, *references: str) -> Case:
        rate = Rate(f"{name}_0", f"{name}_1", 10, 1, 2, {"FFMA": 1.0})
        wide = Rate(f"{name}_2", f"{name}_3", 10, 4, 2, {"FFMA": 1.0})
        return Case(spelling, "float", "direct", ("step",), references, rate, wide)

    folder = tmp_path / "prepared"
    link = Case(LINK, "link", "link", ("prmt",), (), Rate("k0_0", "k0_1", 10, 1, 2, {"PRMT": 1.0}), None)
    store(Batch("batch-000", "sm_90a", "nvJitLink 13.0", (LINK,), (link,)), IMAGE, folder)
    cases = (case("fma.rn.f32", "k0"), case("abs.f32", "k1", LINK))
    asked = ("fma.rn.f32", "abs.f32", "bra")
    store(Batch("batch-001", "sm_90a", "nvJitLink 13.0", asked, cases, {"bra": "it branches"}), IMAGE, folder)
    return folder
