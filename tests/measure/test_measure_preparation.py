"""Kernels assembled and proven; inputs that end the assembler."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

import ptxtile as pt
from ptxtile import driver
from ptxtile.measure import batching, prepare
from ptxtile.measure.plan import Batch, batches, image_of, store


def _tools() -> bool:
    try:
        driver.find_assembler()
    except pt.AssemblerError:
        return False
    return driver.find_disassembler() is not None


needs_tools = pytest.mark.skipif(not _tools(), reason="nvJitLink or nvdisasm is not installed")


@needs_tools
def test_proven_and_refused(tmp_path: Path) -> None:
    """A direct chain, a linked one, a chase; what folds away, what has no chain, what the target lacks."""
    asked = ["fma.rn.f32", "mad.wide.u32", "xor.b32", "ld.global.b32", "mov.b32", "bar.sync", "add.rn.f32x2"]
    prepare(asked, "sm_90a", tmp_path, workers=1)
    anchors, batch = batches(tmp_path)
    assert [case.spelling for case in anchors.cases][-2:] == ["prmt.b32", "lop3.b32"]
    found = {case.spelling: case for case in batch.cases}
    ways = {name: (case.way, case.references) for name, case in found.items()}
    assert ways == {
        "fma.rn.f32": ("direct", ()),
        "mad.wide.u32": ("linked", ("lop3.b32",)),
        "xor.b32": ("linked", ("link.opaque.b32",)),
        "ld.global.b32": ("chase", ()),
    }
    rate = found["fma.rn.f32"].dependent
    assert rate is not None
    assert (rate.sass, rate.chains) == ({"FFMA": 1.0}, 1)
    assert batch.skipped == {
        "mov.b32": "a step is 1 PRMT, which is the link alone: folded away",
        "bar.sync": "it has no result",
        "add.rn.f32x2": "sm_90a does not have it",
    }
    assert image_of(batch, tmp_path)[:4] == b"\x7fELF"


@needs_tools
def test_work_on_operands_that_do_not_change_is_not_hidden(tmp_path: Path) -> None:
    """Two steps merged into one, a factor's product hoisted, half of a count done once: another way, or no number."""
    asked = ["fma.rn.f32", "and.b64", "mad.wide.u32", "div.approx.ftz.f32", "popc.b64"]
    prepare(asked, "sm_90a", tmp_path, workers=1)
    _, batch = batches(tmp_path)
    found = {case.spelling: case for case in batch.cases}
    proofs = {name: case.dependent.sass for name, case in found.items() if case.dependent}
    assert proofs["and.b64"] == {"LOP3.LUT": 2.0, "PRMT": 2.0}
    assert proofs["mad.wide.u32"]["IMAD.WIDE.U32"] == 1.0
    assert proofs["div.approx.ftz.f32"] == {"FMUL.FTZ": 1.0, "MUFU.RCP": 1.0}
    assert set(found) == set(asked) - {"popc.b64"}
    assert batch.skipped == {
        "popc.b64": "steps share 1 POPC that the form alone needs: operands do not change"
    }


def request(spellings: list[str], target: str, folder: Path, name: str) -> str | None:
    """In the process's place: one spelling ends it, the others are stored."""
    if "mul.f32" in spellings:
        return f"it ended by {signal.Signals(signal.SIGSEGV).name}"
    store(Batch(name, target, "nvJitLink 13.0", tuple(spellings), ()), b"", folder)
    return None


def test_what_ends_the_assembler_stands_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "_process", request)
    prepare(["add.f32", "sub.f32", "mul.f32", "fma.rn.f32"], "sm_90a", tmp_path, workers=1)
    found = {batch.name: (batch.asked, dict(batch.skipped)) for batch in batches(tmp_path)}
    assert found["batch-001a"] == (("add.f32", "sub.f32"), {})
    reason = "the assembler cannot be used on it: it ended by SIGSEGV"
    assert found["batch-001ba"] == (("mul.f32",), {"mul.f32": reason})
    assert found["batch-001bb"] == (("fma.rn.f32",), {})


def test_what_is_there_is_left_alone_and_the_rest_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def process(spellings: list[str], target: str, folder: Path, name: str) -> str | None:
        seen.append(name)
        return request(spellings, target, folder, name)

    monkeypatch.setattr(batching, "_process", process)
    prepare(["add.f32", "mul.f32"], "sm_90a", tmp_path, workers=1)
    seen.clear()
    prepare(["add.f32", "mul.f32"], "sm_90a", tmp_path, workers=1)
    assert seen == []
    prepare(["sub.f32"], "sm_90a", tmp_path, workers=1)
    assert seen == ["batch-001"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["batch-000.json", "batch-001.json"]


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(
    ("program", "expected"),
    [("import os, signal\nos.kill(os.getpid(), signal.SIGABRT)", "it ended by SIGABRT"), ("", None)],
)
def test_how_a_process_ended(
    program: str, expected: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", stub(tmp_path, program))
    assert batching._process(["add.f32"], "sm_90a", tmp_path, "batch-001") == expected


def test_a_process_that_complains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", stub(tmp_path, "import sys\nsys.exit('no assembler')"))
    with pytest.raises(pt.AssemblerError, match="^batch-001 was not prepared: no assembler$"):
        batching._process(["add.f32"], "sm_90a", tmp_path, "batch-001")


def stub(folder: Path, program: str) -> str:
    """A program in the place of Python itself."""
    path = folder / "stub"
    path.write_text(f"#!{sys.executable}\nimport sys\nsys.stdin.read()\n{program}\n")
    path.chmod(0o755)
    return str(path)
