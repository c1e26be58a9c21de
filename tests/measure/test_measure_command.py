"""`ptxtile measure` without a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

import ptxtile as pt
from ptxtile import cli
from ptxtile.measure.records import Record, write


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    status = cli.main(["measure", *map(str, arguments)])
    out, err = capsys.readouterr()
    return status, out, err


def test_comparing(records: list[Record], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    write(records, one)
    write(records[:1], two)
    assert run(capsys, "--compare", one, two) == (0, "1 spellings in both; 0 differ by more than 2%\n", "")


def test_a_report_of_records(
    records: list[Record], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(records, tmp_path / "a.jsonl")
    status, out, _ = run(capsys, "--json", tmp_path / "a.jsonl", "--html", tmp_path / "deep" / "a.html")
    assert status == 0
    assert out.startswith("spelling ")
    assert "fma.rn.f32" in (tmp_path / "deep" / "a.html").read_text(encoding="utf-8")


def test_the_kernels_of_a_point(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "--ptx", "--target", "sm_90a", "--scenarios", "memory.latency.shared/4KiB")
    assert status == 0
    assert out.startswith(".version 8.0\n.target sm_90a\n")
    assert pt.check_text(out) == []
    assert out.count("ld.shared.b32 %x, [%x];") == 16 + 48


def test_scenarios_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "--scenarios", "list")
    assert (status, out.splitlines()[0]) == (0, "memory.latency.global/4KiB")


REFUSALS = {
    ("--ptx", "fma.rn*f32"): "--ptx prints the kernels of one spelling or point, not of 4",
    ("--scenarios", "memory.no*"): "no scenario is named 'memory.no*'; --scenarios list lists them",
    (): "name at least one pattern, such as 'fma.*', or --prepared DIR, or --compare A B",
    ("--rebuild",): "--rebuild needs --prepared DIR and --json FILE, beside which FILE.raw is",
    ("--compare", "no-such-file", "b"): "[Errno 2] No such file or directory: 'no-such-file'",
}


@pytest.mark.parametrize("arguments", REFUSALS)
def test_refusals(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, *arguments) == (2, "", f"ptxtile measure: {REFUSALS[arguments]}\n")
