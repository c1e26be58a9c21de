"""What an H200 computed of a million results a form, kept as hashes: the first block of some forms, recomputed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parent.parent.parent / "benchmarks"
KEPT = json.loads((BENCHMARKS / "results" / "h200" / "tensor_core_proof.json").read_text(encoding="utf-8"))
FORMS = [
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
    "mma.sync.aligned.m16n8k32.row.col.f16.e5m2.e4m3.f16",
    "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 A shared",
    "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e5m2 A registers",
]


@pytest.fixture(scope="module")
def proof():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import device_tensor_core_proof
    finally:
        sys.path.remove(str(BENCHMARKS))
    return device_tensor_core_proof


def test_every_form_agreed_in_every_bit():
    assert len(KEPT["cases"]) == 48
    for row in KEPT["cases"]:
        assert row["agree"] == row["elements"]
        assert row["results"] == 1 << 20
    assert "H200" in KEPT["device"]


@pytest.mark.parametrize("name", FORMS)
def test_the_emulator_still_computes_what_the_hardware_did(proof, name):
    known = {row["case"]: row["blocks"] for row in KEPT["cases"]}[name]
    row = proof.ask((name, KEPT["seed"], 1, None, known))
    assert row["blocks"] == known[:1]
    assert row["wrong"] == []
