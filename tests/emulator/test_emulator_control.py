"""Branches, loops, calls and blocks of odd sizes: what every thread computes, whatever its neighbours do."""

from __future__ import annotations

import numpy as np
import pytest

# %rd1: the address of this thread's element of A; %r1: its number
EACH = """
ld.param.u64 %rd1, [A];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 4;
add.s64 %rd1, %rd1, %rd2;
"""


def test_threads_of_a_warp_take_different_ways(run):
    out = np.zeros(32, np.uint32)
    run(
        EACH
        + """
        and.b32 %r2, %r1, 3;
        setp.eq.u32 %p1, %r2, 0;
        @%p1 bra ZERO;
        setp.eq.u32 %p2, %r2, 1;
        @%p2 bra ONE;
        mov.u32 %r3, 300;
        bra JOIN;
        ZERO: mov.u32 %r3, 100; bra JOIN;
        ONE: mov.u32 %r3, 200;
        JOIN: add.u32 %r3, %r3, %r1;
        st.global.b32 [%rd1], %r3;
        """,
        [out],
    )
    i = np.arange(32)
    assert (out == np.choose(i % 4, [100, 200, 300, 300]) + i).all()


@pytest.mark.parametrize("block", [1, 16, 32, 33, 48, 96])
def test_loops_with_a_different_count_in_each_thread(run, block):
    out = np.zeros(block, np.uint32)
    run(
        EACH
        + """
        mov.u32 %r2, 0; mov.u32 %r3, 0;
        LOOP: setp.ge.u32 %p1, %r2, %r1; @%p1 bra DONE;
        and.b32 %r4, %r2, 1; setp.eq.u32 %p2, %r4, 0; @%p2 bra EVEN;
        add.u32 %r3, %r3, 100; bra.uni NEXT;
        EVEN: add.u32 %r3, %r3, 1;
        NEXT: add.u32 %r2, %r2, 1; bra.uni LOOP;
        DONE: st.global.b32 [%rd1], %r3;
        """,
        [out],
        block=block,
    )
    i = np.arange(block)
    assert (out == (i + 1) // 2 + i // 2 * 100).all()


def test_nested_loops(run):
    out = np.zeros(40, np.uint32)
    run(
        EACH
        + """
        mov.u32 %r3, 0; mov.u32 %r2, 0;
        OUTER: setp.ge.u32 %p1, %r2, %r1; @%p1 bra DONE;
        mov.u32 %r4, 0;
        INNER: setp.gt.u32 %p2, %r4, %r2; @%p2 bra OUT;
        add.u32 %r3, %r3, %r4; add.u32 %r4, %r4, 1; bra INNER;
        OUT: add.u32 %r2, %r2, 1; bra OUTER;
        DONE: st.global.b32 [%rd1], %r3;
        """,
        [out],
        block=40,
    )
    assert out.tolist() == [sum(sum(range(j + 1)) for j in range(i)) for i in range(40)]


def test_predication_without_a_branch(run):
    out = np.zeros(64, np.uint32)
    run(
        EACH
        + """
        setp.lt.u32 %p1, %r1, 20;
        mov.u32 %r2, 7;
        @%p1 add.u32 %r2, %r2, 1;
        @!%p1 add.u32 %r2, %r2, %r1;
        st.global.b32 [%rd1], %r2;
        """,
        [out],
        block=64,
    )
    i = np.arange(64)
    assert (out == np.where(i < 20, 8, 7 + i)).all()


def test_a_grid_of_three_dimensions(run):
    grid, block = (3, 2, 2), (5, 3, 2)
    out = np.zeros((2, 2, 3, 2, 3, 5), np.uint32)
    run(
        """
        ld.param.u64 %rd1, [A];
        mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z;
        mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ctaid.y; mov.u32 %r6, %ctaid.z;
        mov.u32 %r7, %nctaid.x; mov.u32 %r8, %nctaid.y; mov.u32 %r9, %ntid.x; mov.u32 %r10, %ntid.y;
        mov.u32 %r11, %ntid.z;
        mad.lo.u32 %r12, %r6, %r8, %r5; mad.lo.u32 %r12, %r12, %r7, %r4;
        mad.lo.u32 %r12, %r12, %r11, %r3; mad.lo.u32 %r12, %r12, %r10, %r2; mad.lo.u32 %r12, %r12, %r9, %r1;
        mul.wide.u32 %rd2, %r12, 4; add.s64 %rd1, %rd1, %rd2;
        add.u32 %r12, %r12, 1;
        st.global.b32 [%rd1], %r12;
        """,
        [out],
        grid=grid,
        block=block,
    )
    assert (out.reshape(-1) == np.arange(360) + 1).all()


def test_an_indexed_branch(run, fail):
    body = (
        EACH
        + """
        and.b32 %r2, %r1, MASK;
        T: .branchtargets L0, L1, L2;
        brx.idx %r2, T;
        L0: mov.u32 %r3, 10; bra E;
        L1: mov.u32 %r3, 11; bra E;
        L2: mov.u32 %r3, 12;
        E: st.global.b32 [%rd1], %r3;
        """
    )
    out = np.zeros(32, np.uint32)
    run(body.replace("MASK", "1"), [out])
    assert (out == 10 + np.arange(32) % 2).all()
    error = fail(body.replace("MASK", "3"), [out])
    assert (error.kind, str(error).splitlines()[0]) == (
        "out-of-bounds",
        "branch index 3 is outside the list of 3 targets",
    )


FUNCTIONS = """
.func (.reg .b32 r) twice(.reg .b32 x)
{ add.u32 r, x, x; ret; }
.func (.param .b32 r) sum(.param .b32 n)
{
.reg .pred p; .reg .b32 a, b;
.param .b32 in; .param .b32 out;
ld.param.b32 a, [n];
setp.eq.u32 p, a, 0;
@p bra ZERO;
sub.u32 b, a, 1;
st.param.b32 [in], b;
call (out), sum, (in);
ld.param.b32 b, [out];
add.u32 a, a, b;
ZERO: st.param.b32 [r], a;
ret;
}
"""


def test_calls_with_register_parameters(run):
    out = np.zeros(32, np.uint32)
    run(
        EACH
        + """
        call (%r2), twice, (%r1);
        setp.lt.u32 %p1, %r1, 9;
        @%p1 call (%r2), twice, (%r2);
        st.global.b32 [%rd1], %r2;
        """,
        [out],
        module=FUNCTIONS,
    )
    i = np.arange(32)
    assert (out == np.where(i < 9, 4 * i, 2 * i)).all()


def test_recursion_to_a_depth_that_differs_by_thread(run):
    out = np.zeros(32, np.uint32)
    run(
        EACH
        + """
        .param .b32 n; .param .b32 result;
        st.param.b32 [n], %r1;
        call (result), sum, (n);
        ld.param.b32 %r2, [result];
        st.global.b32 [%rd1], %r2;
        """,
        [out],
        module=FUNCTIONS,
    )
    i = np.arange(32)
    assert (out == i * (i + 1) // 2).all()


def test_a_call_through_an_address(run):
    out = np.zeros(32, np.uint32)
    functions = FUNCTIONS + ".func (.reg .b32 r) thrice(.reg .b32 x)\n{ mad.lo.u32 r, x, 2, x; ret; }\n"
    run(
        EACH
        + """
        mov.u64 %rd3, twice;
        mov.u64 %rd4, thrice;
        setp.lt.u32 %p1, %r1, 16;
        selp.b64 %rd5, %rd3, %rd4, %p1;
        P: .callprototype (.reg .b32 _) _ (.reg .b32 _);
        call (%r2), %rd5, (%r1), P;
        st.global.b32 [%rd1], %r2;
        """,
        [out],
        module=functions,
    )
    i = np.arange(32)
    assert (out == np.where(i < 16, 2, 3) * i).all()


def test_threads_that_exit_early(run):
    out = np.zeros(64, np.uint32)
    run(
        EACH
        + """
        setp.ge.u32 %p1, %r1, 40;
        @%p1 exit;
        bar.sync 0;
        st.global.b32 [%rd1], 1;
        """,
        [out],
        block=64,
    )
    assert (out == (np.arange(64) < 40)).all()


def test_trap(fail):
    error = fail(EACH + "setp.eq.u32 %p1, %r1, 5;\n@%p1 trap;", [np.zeros(32, np.uint32)])
    assert (error.kind, error.line) == ("trap", 12)
    assert (
        str(error)
        == "trap: the program stopped itself\n  line 12: @%p1 trap\n  thread (5, 0, 0) of CTA (0, 0, 0)"
    )


def test_step_budget():
    from ptxtile.emulator import EmulatorError, Loaded
    from tests.emulator.conftest import kernel

    loaded = Loaded(kernel("L: bra L;", ""))
    with pytest.raises(EmulatorError) as caught:
        loaded.launch("k", 1, 32, b"", steps=1000)
    assert caught.value.kind == "step-budget"
    assert str(caught.value) == (
        "step budget: 1000 instruction issues are used up and 32 threads still run; an endless loop?\n"
        "  line 7: bra L\n  thread (0, 0, 0) of CTA (0, 0, 0)"
    )


def test_false_assumption(fail):
    error = fail(
        EACH + "setp.lt.u32 %p3, %r1, 30;\n$assume_0_p3:\nst.global.b32 [%rd1], %r1;",
        [np.zeros(32, np.uint32)],
    )
    assert (error.kind, error.line) == ("assume", 11)
    assert str(error) == (
        "false assumption: pt.assume takes for granted what is not so here\n"
        "  line 11: setp.lt.u32 %p3, %r1, 30\n  thread (30, 0, 0) of CTA (0, 0, 0)"
    )
