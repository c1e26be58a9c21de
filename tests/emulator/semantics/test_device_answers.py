"""A sample of what an H200 answered (benchmarks/results/h200), which the emulator must still compute."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"
EVERY = 61
"""One case of so many; `benchmarks/device_semantics.py --against` and its kin ask for all."""


@pytest.fixture(scope="module")
def benchmarks():
    """The modules of the comparison, loaded from the folder of benchmarks."""
    before = set(sys.modules)
    sys.path.insert(0, str(BENCHMARKS))
    import device_lanes
    import device_semantics
    import device_textures

    yield device_semantics, device_lanes, device_textures
    sys.path.remove(str(BENCHMARKS))
    for name in set(sys.modules) - before:
        if name.startswith("device_"):
            del sys.modules[name]


def kept(name):
    return json.loads((BENCHMARKS / "results" / "h200" / name).read_text())


def test_value_functions(benchmarks):
    module, _, _ = benchmarks
    answers = kept("semantics.json")
    rows = {row[0]: dict(zip(answers["columns"], row)) for row in answers["cases"]}
    cases = [case for name in module.CHAPTERS for case in module.CHAPTERS[name]()]
    record = module.record
    assert {record.key(case) for case in cases} == set(rows), (
        "run device_semantics.py again: the cases have changed"
    )
    assert all(row["agree"] == row["elements"] for row in rows.values())
    for case in cases[::EVERY]:
        row = rows[record.key(case)]
        offsets = answers["offsets"].get(row["case"])
        assert record.recheck(case, answers["seed"], row["sha256"], offsets), case.spelling


def test_what_an_h200_does_its_own_way(benchmarks):
    """Cases of which nobody would think: each was a difference once."""
    module, _, _ = benchmarks
    answers = kept("semantics.json")
    rows = {row[0]: row[3] for row in answers["cases"]}
    wanted = {
        "addc.sat.s32",
        "subc.sat.s32",
        "madc.hi.s16",
        "madc.hi.u16",
        "madc.hi.sat.s32",
        "rcp.rn.ftz.f64",
    }
    wanted |= {"cvt.rm.f32.bf16", "cvt.f16.f16", "fma.rm.oob.bf16", "mul.rn.ftz.f32", "fma.rz.relu.bf16"}
    cases = [case for name in module.CHAPTERS for case in module.CHAPTERS[name]()]
    chosen = [case for case in cases if case.spelling in wanted]
    assert len(chosen) == len(wanted)
    for case in chosen:
        assert module.record.recheck(case, answers["seed"], rows[case.spelling], None), case.spelling


def test_video_and_warp_instructions(benchmarks):
    _, module, _ = benchmarks
    answers = kept("lanes.json")
    seed = int(answers["seed"])
    hashes = {row[0]: row[2] for row in answers["cases"] + kept("atomics.json")["cases"]}
    for name in ("warp", "simd", "scalar", "atomic"):
        kernels = [k for k in module.table.CHAPTERS[name](seed) if k.text.replace("\n", " ") in hashes]
        some = kernels[:: 11 if name in ("warp", "atomic") else 8 * EVERY]
        some = [k for k in some if not module.misassembled(k.text)]
        for kernel, found in zip(some, module.emulated(some, seed)):
            assert not isinstance(found, str), found
            assert module.digest(found) == hashes[kernel.text.replace("\n", " ")], kernel.text


def test_textures_and_surfaces(benchmarks):
    _, _, module = benchmarks
    answers = kept("textures.json")
    hashes = {row["case"]: row["sha256"] for row in answers["cases"]}
    assert {case.name for case in module.CASES} == set(hashes)
    some = list(module.CASES[::9])
    for case, found in zip(some, module.emulated(some, answers["seed"])):
        assert module.digest(found) == hashes[case.name], case.name
