"""`ptxtile emulate`: whole outputs, exit statuses, and every wrong question."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ptxtile import cli

AXPY = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry axpy(.param .u64 X, .param .u64 Y, .param .f32 a, .param .u32 n)
{
.reg .pred %p<2>; .reg .b32 %r<5>; .reg .f32 %f<4>; .reg .b64 %rd<5>;
ld.param.u64 %rd1, [X]; ld.param.u64 %rd2, [Y]; ld.param.f32 %f1, [a]; ld.param.u32 %r4, [n];
mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r1, %r1, %r2, %r3;
setp.ge.u32 %p1, %r1, %r4; @%p1 ret;
mul.wide.u32 %rd3, %r1, 4; add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;
ld.global.f32 %f2, [%rd1]; ld.global.f32 %f3, [%rd2];
fma.rn.f32 %f3, %f1, %f2, %f3;
st.global.f32 [%rd2], %f3;
ret;
}
"""
MESSAGE = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry pass(.param .u64 M)
{
.reg .b32 %r<5>; .reg .b64 %rd<5>; .reg .pred %p<3>;
.shared .b32 s;
ld.param.u64 %rd1, [M]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0;
@%p1 st.shared.b32 [s], 7;
ld.shared.b32 %r2, [s];
st.global.b32 [%rd1], %r2;
ret;
}
.visible .entry nothing() .reqntid 32, 2, 1
{
ret;
}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("axpy.ptx").write_text(AXPY, encoding="utf-8")
    Path("two.ptx").write_text(MESSAGE, encoding="utf-8")
    Path("wrong.ptx").write_text(AXPY.replace("fma.rn.f32 %f3,", "fma.rn.f32 %f3 %f3,"), encoding="utf-8")
    np.save("in.npy", np.arange(4, dtype=np.float32))


def run(capsys: pytest.CaptureFixture[str], arguments: str) -> tuple[int, str, str]:
    status = cli.main(["emulate", *arguments.split()])
    out, err = capsys.readouterr()
    return status, out, err


def test_a_kernel_that_runs(capsys: pytest.CaptureFixture[str]) -> None:
    question = (
        "axpy.ptx --grid 2 --block 32 --arg arange:f32:64 --arg ones:f32:8x8:out.npy --arg f32=2.0 --arg 64"
    )
    status, out, err = run(capsys, question)
    assert (status, err) == (0, "")
    assert out == (
        "axpy.ptx: axpy ran to its end, no findings\n"
        "  X: float32 (64,), not changed: 0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 …\n"
        "  Y: float32 (8, 8), changed: 1.0 3.0 5.0 7.0 9.0 11.0 13.0 15.0 … -> out.npy\n"
    )
    assert (np.load("out.npy").reshape(-1) == 2 * np.arange(64) + 1).all()


def test_a_kernel_that_is_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "two.ptx --entry pass --block 64 --arg zeros:u32:1")
    assert (status, err) == (1, "")
    assert out == (
        "two.ptx: race: a thread reads what another wrote, and nothing orders the two\n"
        "  line 10: ld.shared.b32 %r2, [s]\n"
        "  thread (1, 0, 0) of CTA (0, 0, 0)\n"
        "  thread (0, 0, 0) of CTA (0, 0, 0) wrote it at line 9: @%p1 st.shared.b32 [s], 7\n"
    )
    status, out, _ = run(capsys, "two.ptx --entry pass --block 64 --arg zeros:u32:1 --no-sanitize")
    assert (status, out) == (
        0,
        "two.ptx: pass ran to its end, unchecked (--no-sanitize)\n  M: uint32 (1,), changed: 7\n",
    )


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    question = "axpy.ptx --block 4 --arg in.npy --arg in.npy:y.npy --arg f32:inf --arg u32:3 --seed 5 --json"
    status, out, _ = run(capsys, question)
    assert status == 0
    assert json.loads(out) == {
        "good": True,
        "file": "axpy.ptx",
        "entry": "axpy",
        "sanitize": True,
        "seed": 5,
        "error": None,
        "arguments": [
            {
                "parameter": "X",
                "given": "in.npy",
                "dtype": "float32",
                "shape": [4],
                "changed": False,
                "values": [0, 1, 2, 3],
                "file": None,
            },
            {
                "parameter": "Y",
                "given": "in.npy:y.npy",
                "dtype": "float32",
                "shape": [4],
                "changed": True,
                "values": ["nan", "inf", "inf", 3],
                "file": "y.npy",
            },
            {"parameter": "a", "given": "f32:inf"},
            {"parameter": "n", "given": "u32:3"},
        ],
        "printed": "",
    }
    status, out, _ = run(capsys, "axpy.ptx --block 8 --arg in.npy --arg in.npy --arg 1 --arg 8 --json")
    found = json.loads(out)
    assert (status, found["good"], found["error"]["kind"], found["error"]["line"]) == (
        1,
        False,
        "out-of-bounds",
        11,
    )
    status, out, _ = run(capsys, "wrong.ptx --json")
    found = json.loads(out)
    assert (status, found["error"]["kind"], found["error"]["line"]) == (1, "syntax", 12)


def test_the_block_that_the_kernel_demands(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "two.ptx --entry nothing")[:2] == (0, "two.ptx: nothing ran to its end, no findings\n")


def test_trace(capsys: pytest.CaptureFixture[str]) -> None:
    question = "axpy.ptx --block 4 --arg in.npy --arg in.npy --arg 1 --arg 3 --trace 12,13 --show %f3,%q,%r1"
    status, _, err = run(capsys, question)
    assert (status, err) == (
        0,
        (
            "line 12: fma.rn.f32 %f3, %f1, %f2, %f3  [thread (0, 0, 0) of CTA (0, 0, 0) and 2 more]\n"
            "    %f3: 0.0 1.0 2.0\n"
            "    %r1: 0 1 2\n"
            "line 13: st.global.f32 [%rd2], %f3  [thread (0, 0, 0) of CTA (0, 0, 0) and 2 more]\n"
            "    %f3: 0.0 2.0 4.0\n"
            "    %r1: 0 1 2\n"
        ),
    )
    _, _, err = run(capsys, "two.ptx --entry nothing --trace")
    assert err == "line 16: ret  [thread (0, 0, 0) of CTA (0, 0, 0) and 63 more]\n"


GOOD = "--arg in.npy --arg in.npy --arg 1 --arg 3"
WRONG = {
    "nothing.ptx": "nothing.ptx cannot be read: No such file or directory",
    "in.npy": "in.npy is no text in UTF-8",
    "two.ptx": "--entry must say which kernel to run; there are: pass, nothing",
    "two.ptx --entry k": "the module has no kernel k; it has: pass, nothing",
    "axpy.ptx --arg 3": "axpy takes 4 parameters (.u64 X, .u64 Y, .f32 a, .u32 n), 1 --arg were given",
    f"axpy.ptx {GOOD} --grid 0": "--grid is one to three positive numbers, written like 4,2,1, not '0'",
    f"axpy.ptx {GOOD} --block 1,2,3,4": "--block is one to three positive numbers, written like 4,2,1, not '1,2,3,4'",
    f"axpy.ptx {GOOD} --block 2000": "block.x is 2000; 1024 is the most",
    f"axpy.ptx {GOOD} --cluster a": "--cluster is one to three positive numbers, written like 4,2,1, not 'a'",
    f"axpy.ptx {GOOD} --trace x": "--trace takes lines of the file, written like 12,15, not 'x'",
    "axpy.ptx --arg 1 --arg 1 --arg 1 --arg 1.5": "argument 4 (n) is .u32; the float 1.5 is no integer",
    "axpy.ptx --arg x --arg 1 --arg 1 --arg 1": (
        "--arg 'x' is no argument: write a number (2.0, u32=7), an array (zeros:f32:1024) or a file (in.npy)"
    ),
    "axpy.ptx --arg u8=256 --arg 1 --arg 1 --arg 1": "--arg 'u8=256': 256 does not fit into u8",
    "axpy.ptx --arg u8:1.5 --arg 1 --arg 1 --arg 1": "--arg 'u8:1.5': '1.5' is no number of type u8",
    "axpy.ptx --arg other.npy --arg 1 --arg 1 --arg 1": "--arg 'other.npy': there is no file other.npy",
    "axpy.ptx --arg in.npyx --arg 1 --arg 1 --arg 1": (
        "--arg 'in.npyx': a file is written like in.npy or in.npy:out.npy"
    ),
    "axpy.ptx --arg zeros:f32:9999999999999999 --arg 1 --arg 1 --arg 1": (
        "--arg 'zeros:f32:9999999999999999': 9999999999999999 elements do not fit into memory"
    ),
    "axpy.ptx --arg zeros:f31:4 --arg 1 --arg 1 --arg 1": (
        "--arg 'zeros:f31:4': an array is written like zeros:f32:1024 or zeros:f32:32x64; types are s8, s16, s32, "
        "s64, u8, u16, u32, u64, b8, b16, b32, b64, f16, bf16, f32, f64"
    ),
}


@pytest.mark.parametrize("question", WRONG)
def test_a_wrong_question(capsys: pytest.CaptureFixture[str], question: str) -> None:
    assert run(capsys, question) == (2, "", f"ptxtile emulate: {WRONG[question]}\n")


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("s8=-1", 0xFF),
        ("b16=-1", 0xFFFF),
        ("f16=1.5", 0x3E00),
        ("bf16:1.5", 0x3FC0),
        ("u32:0x10", 16),
        ("f64=2", 2**62),
    ],
)
def test_numbers_by_their_bits(text: str, bits: int) -> None:
    from ptxtile.cli.values import given

    assert int.from_bytes(given(text).value.tobytes(), "little") == bits


def test_random_arrays_go_by_the_seed() -> None:
    from ptxtile.cli.values import given

    a, b, c = (given("random:bf16:4x4", seed).value for seed in (1, 1, 2))
    assert a.shape == (4, 4) and str(a.dtype) == "bfloat16"
    assert a.tobytes() == b.tobytes() != c.tobytes()
