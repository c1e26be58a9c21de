"""The command line: whole outputs, exit statuses, and the shape of its JSON."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import source

import ptxtile as pt
from ptxtile import cli

MODULE = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .f32 x)
{
	.reg .f32 %f<2>;
	ld.param.f32 %f0, [x];
	fmb.rn.f32 %f1, %f0, %f0, %f0;
	ret;
}
"""


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = cli.main(arguments)
    out, err = capsys.readouterr()
    return status, out, err


ANSWERS = {
    "check fma.rn.f32": (0, "fma.rn.f32: valid on sm_20 and later\n"),
    "check fma.rn.f32 --target sm_90": (0, "fma.rn.f32: valid on sm_90, from PTX ISA 7.8\n"),
    "check fma.f32.rn": (
        0,
        (
            "fma.f32.rn: tolerated on sm_20 and later\n"
            "  canonical: fma.rn.f32\n"
            "  the modifiers are not in the order of the manual: fma.rn.f32\n"
        ),
    ),
    "check fma.rn.f32 add.rn.f32x2 --target sm_90": (
        1,
        (
            "fma.rn.f32: valid on sm_90, from PTX ISA 7.8\n"
            "add.rn.f32x2 is not available on sm_90\n"
            "  add.rn.f32x2\n"
            "         ^^^^^ .f32x2 needs sm_100 or later (PTX ISA 8.6)\n"
        ),
    ),
    "check add.rn.f32x2 --target sm_120 --ptx-version 8.6": (
        1,
        (
            "add.rn.f32x2 is not available on sm_120 in PTX ISA 8.6\n"
            "  add.rn.f32x2\n"
            "  ^^^^^^^^^^^^ sm_120 needs PTX ISA 8.7\n"
        ),
    ),
    "forms fma.r?.f32": (0, "fma.rn.f32\nfma.rz.f32\nfma.rm.f32\nfma.rp.f32\n"),
    "forms fma.r?.f32 --limit 1": (0, "fma.rn.f32\n"),
    "forms fma.r?.f32 --count": (0, "4\n"),
    "forms fma.r?.f32 --count --json": (0, '{"pattern": "fma.r?.f32", "target": null, "count": 4}\n'),
    "layout S[4,8] --shape 2,16": (
        0,
        (
            "TileLayout(S[4, 8])\n"
            "\n"
            "   0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15\n"
            "0  0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15\n"
            "1  16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31\n"
            "\n"
            "number: place on m; colour: the bank of shared memory where it begins, at 32 bits an element"
            " (a hue: 16 bytes)\n"
        ),
    ),
}


@pytest.mark.parametrize("line", ANSWERS)
def test_answers(capsys: pytest.CaptureFixture[str], line: str) -> None:
    status, out = ANSWERS[line]
    assert run(capsys, *line.split()) == (status, out, "")


FAULTS = {
    ("check", "no.ptx"): (2, "ptxtile check: there is no file no.ptx\n"),
    ("check", "."): (1, ""),
    ("check", "./"): (2, "ptxtile check: ./ is a folder, not a PTX file\n"),
    ("check", "a.ptx", "--ptx-version", "8.6"): (
        2,
        "ptxtile check: --ptx-version is for spellings; a module says its own .version\n",
    ),
    ("check", "fma.rn.f32", "--ptx-version", "9.9"): (
        2,
        "ptxtile check: unknown PTX ISA version '9.9'; versions are 1.0 to 9.5, written as text\n",
    ),
    ("forms", "zzz*"): (1, "ptxtile forms: no spelling matches 'zzz*'\n"),
    ("forms", "wgmma*", "--target", "sm_75", "--limit", "1"): (
        1,
        "ptxtile forms: no spelling matches 'wgmma*' on sm_75\n",
    ),
    ("forms", "--limit", "0"): (2, "ptxtile forms: --limit must be at least 1, not 0\n"),
    ("layout", "S[4,8"): (
        2,
        "ptxtile layout: this is no layout: a sign or a bracket is wrong\n  S[4,8\n   ^\n",
    ),
    ("layout", "S[8]", "--shape", "a"): (2, "ptxtile layout: --shape is written like 8,16, not 'a'\n"),
    ("layout", "S[8]", "--shape", "3"): (2, "ptxtile layout: shape (3,) has 3 elements, the layout has 8\n"),
    ("layout", "S[8]", "--svg", "no/such/folder.svg"): (
        2,
        "ptxtile layout: no/such/folder.svg cannot be written: No such file or directory\n",
    ),
}


@pytest.mark.parametrize("arguments", FAULTS, ids=" ".join)
def test_faults(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    status, err = FAULTS[arguments]
    got = run(capsys, *arguments)
    assert (got[0], got[2]) == (status, err)


def test_an_unknown_target(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(pt.TargetError) as caught:
        pt.validate("fma.rn.f32", "90")
    for question in (
        ["check", "fma.rn.f32"],
        ["forms", "fma.*"],
        ["check", str(source.ROOT / "pyproject.toml")],
    ):
        got = run(capsys, *question, "--target", "90")
        assert got == (2, "", f"ptxtile {question[0]}: {caught.value}\n")


@pytest.mark.parametrize("arguments", [[], ["check"], ["nosuch"], ["forms", "--limit", "x"], ["explain"]])
def test_wrong_usage_is_status_2(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("usage: ptxtile")


def test_a_module_with_a_fault(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(MODULE)
    status, out, _ = run(capsys, "check", str(path))
    assert status == 1
    lines = out.splitlines()
    assert lines[0] == f"{path}:8:2: error: fmb.rn.f32 is not a PTX form"
    assert all(line.startswith("  ") for line in lines[1:-1])
    assert lines[-1] == f"{path}: 1 error"
    path.write_text(MODULE.replace("fmb", "fma"))
    assert run(capsys, "check", str(path)) == (0, f"{path}: valid\n", "")
    assert run(capsys, "check", str(path), "--target", "sm_80") == (0, f"{path}: valid on sm_80\n", "")


def test_a_module_from_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff\x00 not PTX")))
    status, out, _ = run(capsys, "check", "-", "--json")
    answer = json.loads(out)
    assert (status, answer["valid"], answer["results"][0]["input"]) == (1, False, "<stdin>")
    names = {"line", "column", "severity", "message", "hint"}
    assert {frozenset(each) for each in answer["results"][0]["diagnostics"]} == {frozenset(names)}


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    form = pt.validate("add.rn.f32x2")
    status, out, _ = run(capsys, "explain", "add.rn.f32x2")
    assert (status, out) == (
        0,
        (
            "add.rn.f32x2: Sum of two values (PTX manual, section 9.7.3.3)\n"
            "targets: sm_100 and later\n"
            "\n"
            "signature 1 of 1: add.rn.f32x2 d, a, b\n"
            "  d     written  .f32x2  b64 register\n"
            "  a, b  read     .f32x2  b64 register\n"
            f"  table:   add{{.rnd}}{{.ftz}}.f32x2 d, a, b  ({form.signatures[0].source})\n"
        ),
    )


def test_explain_says_what_differs_between_signatures(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "explain", "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16")
    rows = [line for line in out.splitlines() if line.startswith(("  a ", "  d "))]
    assert rows == [
        "  d                         both  .f32   {…} of 4 elements, each f32 or b32 register",
        "  d                         both  .f32   {…} of 4 elements, each f32 or b32 register",
        "  a                         read  .b32   {…} of 4 elements, each b32 or s32 or u32 register",
    ]


def test_explain_what_is_no_form(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "explain", "fma")
    assert status == 1
    assert out.startswith("fma is not a PTX form\n  fma\n     ^ it lacks ")
    assert out.endswith("\n  ptxtile forms 'fma.*' lists what begins so: fma.rn.f32, …\n")


def test_json_of_check(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "check", "fma.rn.f32", "fma.f32.rn", "fma.rx.f32", "--json")
    answer = json.loads(out)
    assert (status, set(answer), answer["valid"]) == (1, {"valid", "target", "results"}, False)
    one, two, three = answer["results"]
    assert (one["verdict"], two["verdict"], three["verdict"]) == ("canonical", "tolerated", "rejected")
    assert (two["canonical"], three["canonical"]) == ("fma.rn.f32", None)
    assert one["targets"] == dict(pt.validate("fma.rn.f32").targets)
    names = {"kind", "input", "valid", "verdict", "canonical", "ptx_version", "reasons", "targets"}
    assert (set(one), set(two), set(three)) == (names, names, names | {"message"})
    assert tuple(three["reasons"]) == pt.verdict("fma.rx.f32").reasons


def test_json_of_forms_and_explain(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "forms", "fma.r?.f32", "--json", "--target", "sm_90")
    assert json.loads(out) == {
        "pattern": "fma.r?.f32",
        "target": "sm_90",
        "forms": ["fma.rn.f32", "fma.rz.f32", "fma.rm.f32", "fma.rp.f32"],
    }
    _, out, _ = run(capsys, "explain", "mov.b64", "--json")
    answer = json.loads(out)
    form = pt.validate("mov.b64")
    assert len(answer["signatures"]) == len(form.signatures)
    assert answer["targets"] == dict(form.targets)
    first = answer["signatures"][0]
    assert set(first) == {"operands", "targets", "removed", "slots", "syntax", "source"}
    assert set(first["operands"][0]) == {field.name for field in dataclasses.fields(pt.isa.Operand)}
    assert first["operands"][0]["registers"] == sorted(form.signatures[0].operands[0].registers)
    assert run(capsys, "explain", "fma", "--json")[0] == 1


def test_json_of_layout(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "layout", "S[2 : 1 @ laneid] + R[2 : 4 @ laneid]", "--json")
    assert json.loads(out) == {
        "layout": "TileLayout(S[2 : 1 @ laneid] + R[2 : 4 @ laneid])",
        "shape": [2],
        "elements": [
            [{"laneid": 0, "m": 0}, {"laneid": 4, "m": 0}],
            [{"laneid": 1, "m": 0}, {"laneid": 5, "m": 0}],
        ],
    }


def test_layout_writes_the_svg_that_python_makes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "out.svg"
    assert run(capsys, "layout", "S[4, 8]", "--svg", str(path)) == (0, f"wrote {path}\n", "")
    assert path.read_text(encoding="utf-8") == pt.S[4, 8].svg()
    assert run(capsys, "layout", "S[4, 8]", "--svg", "-") == (0, pt.S[4, 8].svg(), "")


def test_colours_are_for_terminals(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" not in run(capsys, "layout", "S[8]")[1]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert "\x1b[38;2;20;23;28;48;2;" in run(capsys, "layout", "S[8]")[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in run(capsys, "layout", "S[8]")[1]


def test_doctor_names_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "doctor", "--json")
    answer = json.loads(out)
    assert (status, list(answer)) == (
        0,
        [
            *("ptxtile", "python", "platform", "packages", "table", "runs on", "driver", "assembler"),
            *("disassembler", "cache of the table", "cache of cubins"),
        ],
    )
    assert answer["ptxtile"].startswith(f"{pt.__version__}, ")
    assert run(capsys, "doctor")[1].startswith(f"ptxtile             {pt.__version__}, ")


def test_a_closed_pipe_is_no_complaint() -> None:
    command = [sys.executable, "-m", "ptxtile", "forms", "mma*"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=source.ROOT, env=dict(os.environ)
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_help_loads_nothing_large() -> None:
    code = (
        "import sys\nfrom ptxtile import cli\ntry:\n    cli.main(['--help'])\nexcept SystemExit:\n    pass\n"
        "assert not {'numpy', 'lark', 'cuda', 'ptxtile.isa', 'ptxtile.layout'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=source.ROOT, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: ptxtile [-h] [--version] COMMAND ...")
