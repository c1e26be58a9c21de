"""The debugger's minimum: a hook before each instruction, breakpoints, registers and memory as arrays."""

from __future__ import annotations

import builtins
from pathlib import Path

import numpy as np
import pytest

import ptxtile as pt
from ptxtile import ptx
from ptxtile.emulator import EmulatorError, Moment, launch, tracing
from tests.emulator.conftest import kernel

TEXT = kernel(
    """
ld.param.u64 %rd1, [A];
mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
cvt.rn.f32.s32 %f1, %r1;
shl.b32 %r3, %r1, 2; mov.u32 %r4, s; add.u32 %r4, %r4, %r3;
setp.lt.u32 %p1, %r1, 2;
@%p1 st.shared.f32 [%r4], %f1;
bar.sync 0;
mul.wide.u32 %rd2, %r3, 1; add.s64 %rd1, %rd1, %rd2;
setp.eq.u32 %p2, %r2, 0;
@%p2 st.global.f32 [%rd1], %f1;
""",
    ".param .u64 A",
    ".shared .align 4 .f32 s[4]; .global .u32 g[2] = {7, 9}; .const .s16 c = -3;",
)


def seen(breakpoints=None, block=4, grid=2):
    moments = []
    out = np.zeros(block, np.float32)
    with tracing(lambda moment: moments.append((moment, repr(moment))), breakpoints=breakpoints):
        launch(TEXT, "k", grid, block, [out])
    return moments


def test_every_instruction_once():
    lines = [int(text.partition(":")[0].removeprefix("line ")) for _, text in seen()]
    assert lines == [8, 9, 9, 10, 11, 11, 11, 12, 13, 14, 15, 15, 16, 17, 18]


def test_a_launch_outside_the_block_is_not_traced():
    moments = []
    with tracing(moments.append):
        pass
    launch(TEXT, "k", 1, 4, [np.zeros(4, np.float32)])
    assert moments == []


def test_what_a_moment_shows():
    out = np.zeros(4, np.float32)
    checked = []

    def look(moment: Moment) -> None:
        checked.append(moment.line)
        registers = moment.registers
        assert registers["%r1"].dtype == np.uint32
        assert registers["%f1"].dtype == np.float32
        assert registers["%p1"].dtype == np.bool_
        assert registers["%r1"].tolist() == [[0, 1, 2, 3]] * 2
        assert registers["%r2"].tolist() == [[0] * 4, [1] * 4]
        assert registers["%f1"].tolist() == [[0, 1, 2, 3]] * 2
        assert not registers.defined("%r20").any() and registers.defined("%r1").all()
        assert "%r63" in registers and "%r64" not in registers
        assert moment.ctas.tolist() == [0, 1]
        assert moment.function == "k" and moment.location is None
        assert moment.variable("g").tolist() == [7, 9]
        assert moment.variable("c").tolist() == -3
        assert moment.shared.shape == (2, 16)
        if moment.line == 17:
            assert moment.active.tolist() == [[True] * 4, [False] * 4]
            assert moment.variable("s")[:, :2].tolist() == [[0, 1]] * 2
            assert moment.shared[0, :8].view(np.float32).tolist() == [0, 1]
            address = int(registers["%rd1"][0, 0])
            assert moment.memory(address, 4, "float32").tolist() == [0, 0, 0, 0]
            assert moment.instruction == "@%p2 st.global.f32 [%rd1], %f1;"
            assert repr(moment) == (
                "line 17: @%p2 st.global.f32 [%rd1], %f1  [thread (0, 0, 0) of CTA (0, 0, 0) and 3 more]"
            )
        registers["%r1"][:] = 99  # a copy: nothing happens

    with tracing(look, breakpoints=[13, 17]):
        launch(TEXT, "k", 2, 4, [out])
    assert checked == [13, 17]
    assert out.tolist() == [0, 1, 2, 3]


def test_names_that_are_not_there():
    (moment, _), *_ = seen([13])
    with pytest.raises(KeyError, match="no register %q is declared here"):
        moment.registers["%q"]
    with pytest.raises(EmulatorError) as caught:
        moment.variable("nothing")
    assert str(caught.value) == "no variable nothing is declared here"


def test_open_arrays_are_what_the_launch_gives():
    text = kernel("mov.u32 %r1, d;\nst.shared.u16 [%r1+2], 5;", "", ".extern .shared .align 16 .b16 d[];")
    found = []
    with tracing(lambda moment: found.append(moment.variable("d")), breakpoints=[10]):
        launch(text, "k", 1, 1, [], dynamic_shared=6)
    assert [each.tolist() for each in found] == [[[0, 5, 0]]]


def test_a_python_line():
    lines = {}

    @pt.kernel(grid=1, block=32)
    def double(x: pt.Tensor((32,), pt.float32)):
        i = pt.thread_idx("x")
        v = pt.reg(pt.float32)
        v.set(x[i])
        ptx.add.rn.f32(v, v, v)  # HERE
        x[i] = v

    source = Path(__file__).read_text(encoding="utf-8").splitlines()
    here = next(n for n, line in enumerate(source, 1) if line.endswith("# HERE"))
    x = np.arange(32, dtype=np.float32)

    def look(moment: Moment) -> None:
        assert moment.location is not None
        lines[moment.location.line] = moment.instruction

    with tracing(look, breakpoints=[f"emulator/test_emulator_debugger.py:{here}"]):
        double.launch(x, device="emulator")
    assert list(lines) == [here] and lines[here].startswith("add.rn.f32")
    assert (x == 2 * np.arange(32)).all()


def test_what_a_callback_raises_ends_the_launch():
    class Enough(Exception):
        pass

    def stop(moment: Moment) -> None:
        raise Enough

    with pytest.raises(Enough), tracing(stop, breakpoints=[15]):
        launch(TEXT, "k", 1, 4, [np.zeros(4, np.float32)])


def test_without_a_callback_pythons_own_debugger_is_called(monkeypatch, capsys):
    called = []
    monkeypatch.setattr(builtins, "breakpoint", lambda: called.append(1))
    with tracing(breakpoints=[14]):
        launch(TEXT, "k", 1, 4, [np.zeros(4, np.float32)])
    assert called == [1]
    assert capsys.readouterr().err == "line 14: bar.sync 0  [thread (0, 0, 0) of CTA (0, 0, 0) and 3 more]\n"


@pytest.mark.parametrize("wrong", [0, -1, True, "kernel.py", ":3", "k.py:x", 1.5])
def test_what_is_no_breakpoint(wrong):
    with pytest.raises(EmulatorError) as caught, tracing(print, breakpoints=[wrong]):
        pass
    assert (caught.value.kind, str(caught.value)) == (
        "launch",
        (
            f"{wrong!r} is no breakpoint: give a line of the PTX text, such as 12, or of Python, such as "
            '"kernel.py:30"'
        ),
    )


def test_tracing_needs_something_to_do():
    with pytest.raises(EmulatorError) as caught, tracing():
        pass
    assert str(caught.value) == "tracing takes a callback, or breakpoints to stop at"


def test_the_example_of_the_documents(capsys):
    page = Path(__file__).parents[2].joinpath("docs", "emulator.md").read_text(encoding="utf-8")
    section = page[page.index("## As a debugger") :]
    code = section[section.index("```python\n") + 10 :]
    exec(code[: code.index("```")], {})
    assert capsys.readouterr().out == (
        "line 9: bar.sync 0  [thread (0, 0, 0) of CTA (0, 0, 0) and 3 more]\n[[0 1 2 3]]\n[[0 1 2 3]]\n"
    )


@pytest.mark.parametrize("given", [9, "kernel.py:30"])
def test_breakpoints_are_a_list(given):
    with pytest.raises(pt.EmulatorError) as caught, pt.emulator.tracing(print, breakpoints=given):
        pass
    assert str(caught.value) == f"breakpoints= takes a list, such as [{given!r}]"
