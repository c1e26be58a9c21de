"""The timing process watched: hung and faulting kernels, going on, the process itself on the stand-in driver."""

from __future__ import annotations

import ctypes
import io
import json
import sys
from pathlib import Path
from typing import Literal

import pytest
from standin import Parameters, Standin

import ptxtile as pt
from ptxtile.measure import device, read, rebuild, run
from ptxtile.measure.plan import Batch, Case, Launch, Point, Rate, store
from ptxtile.measure.records import Record

IMAGE = b"".join(b".visible .entry k0_%d() { ret; }\n" % number for number in range(2))
STUB = """#!{python}
import json, os, sys, time
done = sys.stdin.read().split("\\n")
def say(**values): print(json.dumps(values), flush=True)
say(event="device", name="a GPU", target="sm_90", driver="13.0", sms=132)
say(event="batch", batch="batch-001", mhz=1980.0)
for spelling in ("link.opaque.b32", "fma.rn.f32", "abs.f32"):
    if spelling in done:
        continue
    say(event="begin", spelling=spelling)
    {fault}
    step = 80 if spelling != "abs.f32" else 200
    say(event="end", spelling=spelling, dependent=[[100] * 7, [100 + step] * 7])
"""


def stub(folder: Path, monkeypatch: pytest.MonkeyPatch, fault: str = "") -> None:
    """A program in the timing process's place."""
    path = folder / "stub"
    path.write_text(STUB.format(python=sys.executable, fault=fault or "pass"))
    path.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(path))


def by_spelling(found: list[Record]) -> dict[str, Record]:
    return {each.spelling: each for each in found}


def test_times_become_records(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub(tmp_path, monkeypatch)
    seen: list[str] = []
    found = by_spelling(run(prepared, tmp_path / "out.jsonl", progress=seen.append))
    assert seen == ["link.opaque.b32", "fma.rn.f32", "abs.f32"]
    assert (found["fma.rn.f32"].latency, found["fma.rn.f32"].device, found["fma.rn.f32"].mhz) == (
        4.0,
        "a GPU",
        1980.0,
    )
    assert (found["abs.f32"].latency, found["abs.f32"].subtracted) == (6.0, {"link.opaque.b32": 4.0})
    assert found["bra"].skipped == "it branches"
    assert [each.spelling for each in read(tmp_path / "out.jsonl")] == list(found)


FAULTS = {
    'if spelling == "fma.rn.f32": time.sleep(60)': "the kernel did not end within 1 s and was stopped",
    'if spelling == "fma.rn.f32": sys.exit("CUDA_ERROR_ILLEGAL_ADDRESS")': (
        "the kernel faulted: CUDA_ERROR_ILLEGAL_ADDRESS"
    ),
    'if spelling == "fma.rn.f32": os._exit(9)': "the kernel faulted: exit status 9",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_costs_one_spelling(
    fault: str, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub(tmp_path, monkeypatch, fault)
    found = by_spelling(run(prepared, tmp_path / "out.jsonl", limit=1.0))
    assert found["fma.rn.f32"].skipped == FAULTS[fault]
    assert found["abs.f32"].latency == 6.0


def test_a_stopped_run_goes_on(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was timed is not timed again; a torn line is."""
    out = tmp_path / "out.jsonl"
    stub(tmp_path, monkeypatch)
    run(prepared, out)
    raw = out.with_suffix(".jsonl.raw")
    lines = raw.read_text().splitlines(keepends=True)
    raw.write_text("".join(lines[:-1]) + lines[-1][:20])
    seen: list[str] = []
    found = by_spelling(run(prepared, out, progress=seen.append))
    assert seen == ["abs.f32"]
    assert found["abs.f32"].latency == 6.0
    out.unlink()
    assert by_spelling(rebuild(prepared, out)) == found


def test_without_times_nothing_is_rebuilt(prepared: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"out\.jsonl\.raw: no times$"):
        rebuild(prepared, tmp_path / "out.jsonl")


def test_a_process_that_ends_outside_a_measurement(
    prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "stub"
    path.write_text(f"#!{sys.executable}\nimport sys\nsys.stdin.read()\nsys.exit('no GPU')\n")
    path.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(path))
    with pytest.raises(pt.DriverError, match="^the timing process ended outside a measurement: no GPU$"):
        run(prepared, tmp_path / "out.jsonl")


def test_the_process_itself(
    standin: Standin, prepared: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the stand-in driver: kernels whose clock goes by their names' last digit."""

    def timed(cycles: int) -> object:
        def kernel(given: Parameters) -> None:
            out = given.read(0, ctypes.c_uint64)
            threads = given.config.blockDimX
            for warp in range(threads // 32):
                slot = (ctypes.c_uint64 * 2).from_address(out + 16 * warp)
                slot[0], slot[1] = 1000 + warp, 1000 + warp + cycles

        return kernel

    for number in range(4):
        for name in ("k0", "k1"):
            standin.kernels[f"{name}_{number}"] = timed(100 + 80 * (number % 2))  # type: ignore[assignment]
    standin.function_attributes["PARAMETERS"] = 5
    monkeypatch.setattr(device, "_clock", lambda ground: 1980.0)
    monkeypatch.setattr(sys, "stdin", io.StringIO("abs.f32\n"))
    assert device.main([str(prepared), "0"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["event"] for each in events] == ["device", "batch", "begin", "end", "batch", "begin", "end"]
    end = events[-1]
    assert (end["spelling"], end["dependent"]) == ("fma.rn.f32", [[100] * 7, [180] * 7])
    assert end["independent"]["32"] == [[131] * 5, [211] * 5]


@pytest.mark.parametrize(
    ("whole", "expected", "passes"),
    [("", [150.0, 300.0], 2), ("mean", [150.0, 300.0], 1), ("slowest", [200.0, 400.0], 1)],
)
def test_a_point_on_several_blocks(
    whole: Literal["", "mean", "slowest"],
    expected: list[float],
    passes: int,
    standin: Standin,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Two blocks of two warps, of which the second block takes twice as long."""
    seen: list[int] = []

    def timed(cycles: int) -> object:
        def kernel(given: Parameters) -> None:
            out = given.read(0, ctypes.c_uint64)
            seen.append(given.read(4, ctypes.c_uint32))
            for block in range(given.config.gridDimX):
                for warp in range(2):
                    slot = (ctypes.c_uint64 * 2).from_address(out + 16 * (2 * block + warp))
                    slot[0], slot[1] = 1000 * block, 1000 * block + cycles * (block + 1)

        return kernel

    point = Point("memory.bandwidth", "ld.global.b32", "stride", 1, "B", 256, whole)
    rate = Rate("k0_0", "k0_1", 10, 1, 2, {"LDG.E": 1.0}, 10)
    case = Case(
        "memory.bandwidth/1", "memory", "scenario", (), (), None, rate, "", Launch(2, 64, field=256), point
    )
    store(Batch("batch-001", "sm_90a", "nvJitLink 13.0", (case.spelling,), (case,)), IMAGE, tmp_path)
    for number in range(2):
        standin.kernels[f"k0_{number}"] = timed(100 * (number + 1))  # type: ignore[assignment]
    standin.function_attributes["PARAMETERS"] = 5
    monkeypatch.setattr(device, "_clock", lambda ground: 1980.0)
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert device.main([str(tmp_path), "0"]) == 0
    end = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (end["point"], end["blocks"]) == ([[expected[0]] * 7, [expected[1]] * 7], 2)
    assert set(seen) == {passes}
