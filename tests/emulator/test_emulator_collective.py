"""Warp collectives, atomics and clusters."""

from __future__ import annotations

import numpy as np
import pytest

from ptxtile.emulator.actions.atomic import rounds

EACH = """
ld.param.u64 %rd1, [A]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
"""
STORE = "st.global.b32 [%rd1], %r2;"


@pytest.mark.parametrize(
    ("mode", "b", "c", "source"),
    [
        ("bfly", 1, 31, lambda i: i ^ 1),
        ("up", 2, 0, lambda i: np.where(i >= 2, i - 2, i)),
        ("down", 3, 31, lambda i: np.where(i + 3 < 32, i + 3, i)),
        ("idx", 5, 31, lambda i: i * 0 + 5),
        ("idx", 1, 0x181F, lambda i: i // 8 * 8 + 1),
        ("down", 3, 0x181F, lambda i: np.where(i % 8 + 3 < 8, i + 3, i)),
        ("up", 1, 0x1800, lambda i: np.where(i % 8 >= 1, i - 1, i)),
    ],
)
def test_shuffles(run, mode, b, c, source):
    out = np.zeros(64, np.uint32)
    run(
        EACH + f"mul.lo.u32 %r2, %r1, 10; shfl.sync.{mode}.b32 %r2|%p1, %r2, {b}, {c}, -1;\n" + STORE,
        [out],
        block=64,
    )
    i = np.arange(32)
    assert (out[:32] == 10 * source(i)).all()
    assert (out[32:] == 10 * (source(i) + 32)).all()


def test_votes(run):
    out = np.zeros((4, 32), np.uint32)
    run(
        EACH
        + """
        setp.lt.u32 %p1, %r1, 5;
        vote.sync.ballot.b32 %r2, %p1, -1; vote.sync.any.pred %p2, %p1, -1; vote.sync.all.pred %p3, !%p1, -1;
        vote.sync.uni.pred %p4, %p1, -1;
        st.global.b32 [%rd1], %r2;
        selp.u32 %r2, 1, 0, %p2; st.global.b32 [%rd1+128], %r2;
        selp.u32 %r2, 1, 0, %p3; st.global.b32 [%rd1+256], %r2;
        selp.u32 %r2, 1, 0, %p4; st.global.b32 [%rd1+384], %r2;
        """,
        [out],
    )
    assert (out == [[31], [1], [0], [0]]).all()


def test_match_reduce_and_elect(run):
    out = np.zeros((5, 32), np.uint32)
    run(
        EACH
        + """
        and.b32 %r3, %r1, 3;
        match.any.sync.b32 %r2, %r3, -1; st.global.b32 [%rd1], %r2;
        match.all.sync.b32 %r2|%p1, %r3, -1; st.global.b32 [%rd1+128], %r2;
        redux.sync.add.u32 %r2, %r1, -1; st.global.b32 [%rd1+256], %r2;
        neg.s32 %r4, %r1; redux.sync.min.s32 %r2, %r4, -1; st.global.b32 [%rd1+384], %r2;
        elect.sync %r2|%p1, -1; @%p1 add.u32 %r2, %r2, 7; st.global.b32 [%rd1+512], %r2;
        """,
        [out],
    )
    i = np.arange(32)
    assert (out[0] == np.uint32(0x11111111) << (i % 4).astype(np.uint32)).all()
    assert (out[1] == 0).all()
    assert (out[2] == 496).all()
    assert (out[3].view(np.int32) == -31).all()
    assert (out[4] == np.where(i == 0, 7, 0)).all()


def test_two_halves_of_a_warp_shuffle_apart(run):
    """Each half comes with its own mask, from its own branch."""
    out = np.zeros(32, np.uint32)
    run(
        EACH
        + """
        setp.lt.u32 %p1, %r1, 16; @%p1 bra LOW;
        shfl.sync.idx.b32 %r2, %r1, 20, 31, 0xffff0000; bra END;
        LOW: shfl.sync.idx.b32 %r2, %r1, 3, 31, 0xffff;
        END:
        """
        + STORE,
        [out],
    )
    assert (out == np.where(np.arange(32) < 16, 3, 20)).all()


def test_lanes_meet_from_two_branches(run):
    out = np.zeros(32, np.uint32)
    run(
        EACH
        + """
        setp.lt.u32 %p1, %r1, 16; @%p1 bra LOW;
        mov.u32 %r3, 100; shfl.sync.bfly.b32 %r2, %r3, 16, 31, -1; bra END;
        LOW: mov.u32 %r3, 200; shfl.sync.bfly.b32 %r2, %r3, 16, 31, -1;
        END:
        """
        + STORE,
        [out],
    )
    assert (out == np.where(np.arange(32) < 16, 100, 200)).all()


def test_the_active_mask_is_whole_again_after_a_branch(run):
    out = np.zeros((2, 48), np.uint32)
    run(
        EACH
        + """
        and.b32 %r3, %r1, 1; setp.eq.u32 %p1, %r3, 0; @%p1 bra X;
        activemask.b32 %r2; bra Y;
        X: activemask.b32 %r2;
        Y: st.global.b32 [%rd1], %r2;
        activemask.b32 %r2; st.global.b32 [%rd1+192], %r2;
        """,
        [out],
        block=48,
    )
    i = np.arange(48)
    whole = np.where(i < 32, 0xFFFFFFFF, 0xFFFF)
    assert (out[1] == whole).all()
    assert (out[0] == whole & np.where(i % 2, 0xAAAAAAAA, 0x55555555)).all()


def test_a_mask_without_the_thread_itself(fail):
    error = fail(EACH + "shfl.sync.idx.b32 %r2, %r1, 0, 31, 0xff;", [np.zeros(32, np.uint32)])
    assert (error.kind, str(error).splitlines()[0]) == (
        "barrier",
        "the member mask 0xff does not name the thread that executes it",
    )


# -- atomics


def test_rounds_keep_the_order_of_threads():
    places = np.array([5, 3, 5, 5, 3, 9])
    assert [chosen.tolist() for chosen in rounds(places)] == [[0, 1, 5], [2, 4], [3]]


def test_atomic_addition_gives_every_thread_its_own_ticket(run):
    tickets, total = np.zeros((4, 64), np.uint32), np.zeros(1, np.uint32)
    run(
        """
        ld.param.u64 %rd1, [A]; ld.param.u64 %rd2, [B];
        mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r1, %r2, 64, %r1;
        mul.wide.u32 %rd3, %r1, 4; add.s64 %rd1, %rd1, %rd3;
        atom.global.add.u32 %r3, [%rd2], 2; st.global.b32 [%rd1], %r3;
        red.global.add.u32 [%rd2], 1;
        """,
        [tickets, total],
        grid=4,
        block=64,
    )
    assert total[0] == 768
    assert sorted(tickets.reshape(-1).tolist()) == list(range(0, 512, 2))


@pytest.mark.parametrize(
    ("operation", "start", "values", "expected"),
    [
        ("min.s32", 5, [3, -7, 9], -7),
        ("max.u32", 5, [3, 7, 9], 9),
        ("and.b32", 0b1111, [0b0111, 0b1101], 0b0101),
        ("xor.b32", 1, [2, 4], 7),
        ("inc.u32", 0, [1, 1, 1], 1),
        ("dec.u32", 1, [5, 5, 5], 4),
        ("exch.b32", 1, [2, 3, 4], 4),
    ],
)
def test_atomic_operations(run, operation, start, values, expected):
    place, source = np.array([start], np.int32), np.array(values, np.int32)
    run(
        EACH.replace("[A]", "[B]") + "ld.param.u64 %rd3, [A]; ld.global.b32 %r2, [%rd1];\n"
        f"atom.global.{operation} %r3, [%rd3], %r2;",
        [place, source],
        block=len(values),
    )
    assert place[0] == expected


def test_a_lock_made_of_compare_and_swap(run):
    """Every thread of every warp takes the lock once; the sum under it is not atomic."""
    lock, total = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    run(
        """
        ld.param.u64 %rd1, [A]; ld.param.u64 %rd2, [B];
        TRY: atom.acquire.gpu.global.cas.b32 %r1, [%rd1], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra TRY;
        ld.global.b32 %r2, [%rd2]; add.u32 %r2, %r2, 1; st.global.b32 [%rd2], %r2;
        atom.release.gpu.global.exch.b32 %r1, [%rd1], 0;
        """,
        [lock, total],
        grid=2,
        block=40,
    )
    assert total[0] == 80


def test_floats_in_shared_memory(run):
    out = np.zeros(1, np.float32)
    run(
        """
        .shared .align 4 .b32 s;
        ld.param.u64 %rd1, [A]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.b32 [s], 0;
        bar.sync 0;
        cvt.rn.f32.u32 %f1, %r1; red.shared.add.f32 [s], %f1;
        bar.sync 0;
        ld.shared.f32 %f2, [s]; st.global.f32 [%rd1], %f2;
        """,
        [out],
    )
    assert out[0] == 496


def test_atomics_do_not_race_with_each_other_but_with_plain_writes(fail):
    error = fail(
        "ld.param.u64 %rd1, [A]; mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 0;\n@%p1 st.global.b32 [%rd1], 1;\n"
        "@!%p1 red.global.add.u32 [%rd1], 1;",
        [np.zeros(1, np.uint32)],
        grid=2,
        block=1,
    )
    assert (error.kind, error.line) == ("race", 9)


# -- clusters

CLUSTER = """
.shared .align 4 .b32 s[32];
ld.param.u64 %rd1, [A];
mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; mov.u32 %r3, %ctaid.x;
mad.lo.u32 %r4, %r3, 32, %r1; mul.wide.u32 %rd2, %r4, 4; add.s64 %rd1, %rd1, %rd2;
mov.u32 %r5, s; shl.b32 %r6, %r1, 2; add.u32 %r5, %r5, %r6;
st.shared.b32 [%r5], %r4;
SYNC
xor.b32 %r7, %r2, 1;
mapa.shared::cluster.u32 %r8, %r5, %r7;
ld.shared::cluster.b32 %r9, [%r8];
DONE
st.global.b32 [%rd1], %r9;
"""
MEET = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"


def test_distributed_shared_memory(run, fail):
    out = np.zeros(128, np.uint32)
    run(CLUSTER.replace("SYNC", MEET).replace("DONE", MEET), [out], grid=4, cluster=2)
    assert (out == np.arange(128) ^ 32).all()
    assert fail(CLUSTER.replace("SYNC", "").replace("DONE", MEET), [out], grid=4, cluster=2).kind in (
        "race",
        "uninitialised",
    )
    relaxed = MEET.replace("arrive", "arrive.relaxed")
    assert (
        fail(CLUSTER.replace("SYNC", relaxed).replace("DONE", MEET), [out], grid=4, cluster=2).kind == "race"
    )


def test_a_rank_that_the_cluster_does_not_have(fail):
    body = CLUSTER.replace("SYNC", MEET).replace("DONE", "").replace("xor.b32 %r7, %r2, 1", "mov.u32 %r7, 2")
    error = fail(body, [np.zeros(128, np.uint32)], grid=4, cluster=2)
    assert str(error).splitlines()[0] == "the cluster has 2 CTAs, and no rank 2"


def test_half_a_cluster_waits(fail):
    error = fail(
        "mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p1, %r1, 0; @%p1 bra X;\nbar.sync 0, 64;\n"
        "X: barrier.cluster.arrive;\nbarrier.cluster.wait;",
        [],
        grid=2,
        cluster=2,
    )
    assert str(error) == (
        "deadlock: all 64 threads left wait\n"
        "  line 8: bar.sync 0, 64\n"
        "  CTA (1, 0, 0): barrier 0 has 32 of 64 threads; waiting: warp 0 at line 8: bar.sync 0, 64\n"
        "  the cluster barrier has 32 of 64 threads; waiting: thread (0, 0, 0) of CTA (0, 0, 0), … at line 10: "
        "barrier.cluster.wait"
    )


def test_what_global_memory_adds_otherwise(run):
    """As an H200: .f32 without subnormals, .f64 leaves a NaN alone; generic addresses go by where they lead."""
    tiny, snan = 0x00000003, 0x7FF0000000000001
    for space in (".global", ""):
        floats = np.full(32, tiny, np.uint32)
        doubles = np.full(32, snan, np.uint64)
        run(
            EACH
            + f"""
            ld.param.u64 %rd3, [B]; add.s64 %rd3, %rd3, %rd2; add.s64 %rd3, %rd3, %rd2;
            atom{space}.add.f32 %r2, [%rd1], 0f00000001;
            atom{space}.add.f64 %rd4, [%rd3], 0d3FF0000000000000;
            """,
            [floats, doubles],
        )
        assert (floats == 0).all() and (doubles == snan).all()
    out = np.zeros(1, np.uint32)
    run(
        """
        ld.param.u64 %rd1, [A]; st.shared.b32 [s], 3; mov.u64 %rd2, s; cvta.shared.u64 %rd2, %rd2;
        atom.add.f32 %r2, [%rd2], 0f00000001; ld.shared.b32 %r3, [s]; st.global.b32 [%rd1], %r3;
        """,
        [out],
        block=1,
        module=".shared .align 4 .b8 s[4];",
    )
    assert out.tolist() == [4]
