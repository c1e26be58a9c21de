"""CTA barriers: who they order, who they wait for, and what is said when they cannot be met."""

from __future__ import annotations

import numpy as np
import pytest

REVERSE = """
.shared .align 4 .b32 s[64];
ld.param.u64 %rd1, [A]; ld.param.u64 %rd2, [B];
mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4;
add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;
ld.global.b32 %r2, [%rd1];
mov.u32 %r3, s; shl.b32 %r4, %r1, 2; add.u32 %r5, %r3, %r4;
st.shared.b32 [%r5], %r2;
bar.sync 0;
xor.b32 %r6, %r1, 63; shl.b32 %r6, %r6, 2; add.u32 %r7, %r3, %r6;
ld.shared.b32 %r8, [%r7];
st.global.b32 [%rd2], %r8;
"""


@pytest.mark.parametrize("grid", [1, 3])
def test_shared_memory_is_ordered_by_a_barrier(run, grid):
    a, b = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    run(REVERSE, [a, b], block=64)
    assert (b == a[::-1]).all()


def test_without_the_barrier_it_is_a_race(fail):
    a, b = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    error = fail(REVERSE.replace("bar.sync 0;", ""), [a, b], block=64)
    assert (error.kind, error.line) == ("race", 16)
    assert str(error) == (
        "race: a thread reads what another wrote, and nothing orders the two\n"
        "  line 16: ld.shared.b32 %r8, [%r7]\n"
        "  thread (0, 0, 0) of CTA (0, 0, 0)\n"
        "  thread (63, 0, 0) of CTA (0, 0, 0) wrote it at line 13: st.shared.b32 [%r5], %r2"
    )


def test_warps_meet_at_one_barrier_in_different_branches(run):
    a, b = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    body = REVERSE.replace(
        "bar.sync 0;", "setp.lt.u32 %p1, %r1, 32; @%p1 bra X; bar.sync 0; bra.uni Y; X: bar.sync 0; Y:"
    )
    run(body, [a, b], block=64)
    assert (b == a[::-1]).all()


def test_a_warp_that_is_split_over_two_aligned_barriers(fail):
    error = fail(
        """
        mov.u32 %r1, %tid.x;
        setp.lt.u32 %p1, %r1, 16;
        @%p1 bra X;
        bar.sync 0;
        bra.uni Y;
        X: bar.sync 0;
        Y:
        """,
        [],
        block=64,
    )
    assert (error.kind, error.line) == ("barrier", 12)
    assert str(error) == (
        "divergent barrier: bar.sync is .aligned, so that all threads of a warp must come to the same instruction, but "
        "two threads of one warp wait at two\n"
        "  line 12: bar.sync 0\n"
        "  thread (0, 0, 0) of CTA (0, 0, 0)\n"
        "  the other: thread (16, 0, 0) of CTA (0, 0, 0), line 10: bar.sync 0"
    )


def test_an_unaligned_barrier_takes_split_warps(run):
    run(
        """
        mov.u32 %r1, %tid.x;
        setp.lt.u32 %p1, %r1, 16;
        @%p1 bra X;
        barrier.sync 0;
        bra.uni Y;
        X: barrier.sync 0;
        Y:
        """,
        [],
        block=64,
    )


def test_deadlock_names_who_waits_where(fail):
    error = fail(
        """
        mov.u32 %r1, %tid.x;
        setp.lt.u32 %p1, %r1, 32;
        @%p1 bra X;
        bar.sync 0;
        bra.uni Y;
        X: bar.sync 1;
        Y:
        """,
        [],
        block=96,
    )
    assert (error.kind, error.line) == ("deadlock", 10)
    assert str(error) == (
        "deadlock: all 96 threads left wait\n"
        "  line 10: bar.sync 0\n"
        "  CTA (0, 0, 0): barrier 0 has 64 of 96 threads; waiting: warp 1, warp 2 at line 10: bar.sync 0\n"
        "  CTA (0, 0, 0): barrier 1 has 32 of 96 threads; waiting: warp 0 at line 12: bar.sync 1"
    )


def test_threads_that_have_ended_are_not_waited_for(run):
    a, b = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    body = """
    ld.param.u64 %rd2, [B]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd2, %rd2, %rd3;
    setp.lt.u32 %p1, %r1, 32;
    @%p1 bar.sync 0;
    @!%p1 bra END;
    st.global.b32 [%rd2], 1;
    END:
    """
    run(body, [a, b], block=64)
    assert (b == (np.arange(64) < 32)).all()


PIPE = """
.shared .align 4 .b32 s[32];
ld.param.u64 %rd1, [A];
mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; shl.b32 %r3, %r2, 2;
mov.u32 %r4, s; add.u32 %r4, %r4, %r3;
cvt.u64.u32 %rd2, %r3; add.s64 %rd1, %rd1, %rd2;
setp.lt.u32 %p1, %r1, 32;
mov.u32 %r5, 0;
@%p1 bra CONSUMER;
PRODUCER:
bar.sync 1, 64;
mad.lo.u32 %r6, %r5, 100, %r2;
st.shared.b32 [%r4], %r6;
bar.arrive 2, 64;
add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 5; @%p2 bra PRODUCER;
bra.uni END;
CONSUMER:
mov.u32 %r7, 0;
NEXT:
bar.arrive 1, 64;
bar.sync 2, 64;
xor.b32 %r8, %r4, 4;
ld.shared.b32 %r6, [%r8];
add.u32 %r7, %r7, %r6;
FREE
add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 5; @%p2 bra NEXT;
st.global.b32 [%rd1], %r7;
END:
"""


def test_a_producer_and_a_consumer_warp_with_named_barriers(run):
    out = np.zeros(32, np.uint32)
    run(PIPE.replace("FREE", ""), [out], block=64)
    lane = np.arange(32) ^ 1
    assert (out == 5 * lane + 100 * 10).all()


def test_a_consumer_that_reads_on_after_it_said_it_was_done(fail):
    out = np.zeros(32, np.uint32)
    late = PIPE.replace("FREE", "").replace("bar.arrive 1, 64;\nbar.sync 2, 64;", "bar.sync 2, 64;")
    late = late.replace("mov.u32 %r7, 0;", "mov.u32 %r7, 0; bar.arrive 1, 64;")
    late = late.replace("xor.b32 %r8", "setp.lt.u32 %p3, %r5, 4; @%p3 bar.arrive 1, 64;\nxor.b32 %r8")
    error = fail(late, [out], block=64)
    assert error.kind == "race"


def test_reductions(run):
    out = np.zeros((3, 64), np.uint32)
    run(
        """
        ld.param.u64 %rd1, [A];
        mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd1, %rd1, %rd3;
        setp.lt.u32 %p1, %r1, 40;
        bar.red.popc.u32 %r2, 0, %p1;
        bar.red.and.pred %p2, 0, %p1;
        bar.red.or.pred %p3, 0, !%p1;
        selp.u32 %r3, 1, 0, %p2; selp.u32 %r4, 1, 0, %p3;
        st.global.b32 [%rd1], %r2; st.global.b32 [%rd1+256], %r3; st.global.b32 [%rd1+512], %r4;
        """,
        [out],
        block=64,
    )
    assert (out == [[40], [0], [1]]).all()


def test_counts_that_differ(fail):
    error = fail(
        "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; selp.u32 %r2, 64, 96, %p1;\nbar.sync 0, %r2;",
        [],
        block=96,
    )
    assert (error.kind, error.line) == ("barrier", 8)
    assert str(error) == (
        "threads of one CTA come to barrier 0 with different thread counts: 64 and 96\n"
        "  line 8: bar.sync 0, %r2\n"
        "  thread (32, 0, 0) of CTA (0, 0, 0)"
    )


def test_a_barrier_that_does_not_exist(fail):
    error = fail("mov.u32 %r1, 16;\nbar.sync %r1;", [])
    assert str(error) == (
        "barrier 16 does not exist: 0 to 15 do\n  line 8: bar.sync %r1\n  thread (0, 0, 0) of CTA (0, 0, 0)"
    )


def test_a_loop_with_a_barrier_in_every_round(run):
    """A tree sum in shared memory, as everybody writes it."""
    a, b = np.arange(256, dtype=np.uint32), np.zeros(2, np.uint32)
    run(
        """
        .shared .align 4 .b32 s[128];
        ld.param.u64 %rd1, [A]; ld.param.u64 %rd2, [B];
        mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 128, %r1;
        mul.wide.u32 %rd3, %r3, 4; add.s64 %rd1, %rd1, %rd3; ld.global.b32 %r4, [%rd1];
        mov.u32 %r5, s; shl.b32 %r6, %r1, 2; add.u32 %r5, %r5, %r6; st.shared.b32 [%r5], %r4;
        mov.u32 %r7, 64;
        LOOP: bar.sync 0;
        setp.ge.u32 %p1, %r1, %r7; @%p1 bra SKIP;
        shl.b32 %r8, %r7, 2; add.u32 %r8, %r8, %r5;
        ld.shared.b32 %r9, [%r8]; ld.shared.b32 %r10, [%r5]; add.u32 %r9, %r9, %r10; st.shared.b32 [%r5], %r9;
        SKIP: shr.u32 %r7, %r7, 1; setp.ne.u32 %p2, %r7, 0; @%p2 bra LOOP;
        setp.ne.u32 %p3, %r1, 0; @%p3 bra END;
        mul.wide.u32 %rd4, %r2, 4; add.s64 %rd2, %rd2, %rd4; ld.shared.b32 %r9, [%r5]; st.global.b32 [%rd2], %r9;
        END:
        """,
        [a, b],
        grid=2,
        block=128,
    )
    assert b.tolist() == [a[:128].sum(), a[128:].sum()]


def test_threads_of_a_warp_need_bar_warp_sync(run, fail):
    """Lanes of one warp are not ordered by standing in one warp."""
    body = REVERSE.replace("63", "31").replace("bar.sync 0;", "bar.warp.sync -1;")
    a, b = np.arange(32, dtype=np.uint32), np.zeros(32, np.uint32)
    run(body, [a, b])
    assert (b == a[::-1]).all()
    assert fail(body.replace("bar.warp.sync -1;", ""), [a, b]).kind == "race"
    half = (
        body.replace("31;", "15;")
        .replace("-1", "%r9")
        .replace("mov.u32 %r3", "and.b32 %r9, %r1, 16; shl.b32 %r9, 0xffff, %r9; mov.u32 %r3")
    )
    run(half, [a, b])
    assert (b == np.concatenate([a[15::-1], a[:15:-1]])).all()
    assert fail(half.replace("15;", "31;"), [a, b]).kind == "race"


def test_a_rendezvous_across_program_counters(run):
    run(
        """
        mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 7; @%p1 bra X;
        bar.warp.sync 0xffffffff; bra Y;
        X: bar.warp.sync 0xffffffff;
        Y:
        """,
        [],
    )


def test_a_rendezvous_that_nobody_comes_to(fail):
    error = fail(
        "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 8;\n@%p1 bra X;\nbar.warp.sync 0xffffffff; bra Y;\n"
        "X: bar.warp.sync 0xff;\nbar.sync 0;\nY:",
        [],
        block=64,
    )
    assert error.kind == "deadlock"
    assert str(error) == (
        "deadlock: all 32 threads left wait\n"
        "  line 11: bar.sync 0\n"
        "  CTA (0, 0, 0): barrier 0 has 8 of 32 threads; waiting: warp 0 (8 threads) at line 11: bar.sync 0\n"
        "  CTA (0, 0, 0): lanes 0xffffff00 of warp 0 wait for member mask 0xffffffff at line 9: "
        "bar.warp.sync 4294967295"
    )
