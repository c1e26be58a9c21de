"""mbarriers, cp.async, and the queue of what has not completed."""

from __future__ import annotations

import numpy as np
import pytest

from ptxtile.emulator.mbarrier import MBarrier, Misuse

EACH = """
.shared .align 16 .b8 s[512];
.shared .align 8 .b64 bar;
ld.param.u64 %rd1, [A]; ld.param.u64 %rd2, [B];
mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 16; add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;
mov.u32 %r2, s; shl.b32 %r3, %r1, 4; add.u32 %r2, %r2, %r3;
mov.u32 %r9, bar;
"""
COPY = "cp.async.cg.shared.global [%r2], [%rd1], 16;\ncp.async.commit_group;\n"
READ = "ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r2];\nst.global.v4.b32 [%rd2], {%r4, %r5, %r6, %r7};"


def _arrays():
    return np.arange(128, dtype=np.uint32), np.zeros(128, np.uint32)


def test_a_copy_that_is_waited_for(run):
    a, b = _arrays()
    run(EACH + COPY + "cp.async.wait_group 0;\n" + READ, [a, b])
    assert (a == b).all()
    b[:] = 0
    run(EACH + COPY.replace("commit_group", "wait_all") + READ, [a, b])
    assert (a == b).all()


@pytest.mark.parametrize("wait", ["", "cp.async.wait_group 1;\n"])
def test_a_copy_that_is_read_before_its_wait(fail, wait):
    error = fail(EACH + COPY + wait + READ, list(_arrays()))
    assert error.kind == "in-flight"
    line = 16 if wait else 15
    assert str(error) == (
        "in flight: a thread reads what an asynchronous copy wrote that was not waited for\n"
        f"  line {line}: ld.shared.v4.b32 {{%r4, %r5, %r6, %r7}}, [%r2]\n"
        "  thread (0, 0, 0) of CTA (0, 0, 0)\n"
        "  thread (0, 0, 0) of CTA (0, 0, 0) started the copy at line 13: cp.async.cg.shared.global [%r2], [%rd1], 16"
    )


def test_without_the_sanitizer_an_early_read_finds_what_was_there(run):
    a, b = _arrays()
    b[:] = 1
    run(EACH + "st.shared.v4.b32 [%r2], {7, 7, 7, 7};\n" + COPY + READ, [a, b], sanitize=False)
    assert (b == 7).all()


def test_the_copy_of_another_thread_takes_a_barrier_too(run, fail):
    a, b = _arrays()
    body = EACH + COPY + "cp.async.wait_group 0;\nBAR\nxor.b32 %r2, %r2, 16;\n" + READ
    run(body.replace("BAR", "bar.sync 0;"), [a, b])
    assert (b.reshape(-1, 2, 4) == a.reshape(-1, 2, 4)[:, ::-1]).all()
    assert fail(body.replace("BAR", ""), [a, b]).kind == "race"


def test_a_copy_that_reads_less_fills_with_zeros(run):
    a, b = _arrays()
    body = "and.b32 %r8, %r1, 15;\ncp.async.cg.shared.global [%r2], [%rd1], 16, %r8;\ncp.async.wait_all;\n"
    run(EACH + body + READ, [a, b])
    given = a.view(np.uint8).reshape(32, 16)
    kept = np.arange(16) < (np.arange(32) % 16)[:, None]
    assert (b.view(np.uint8).reshape(32, 16) == np.where(kept, given, 0)).all()


# -- mbarriers

INIT = "setp.eq.u32 %p1, %r1, 0;\n@%p1 mbarrier.init.shared.b64 [%r9], {count};\nbar.sync 0;\n"
WAIT = "W{n}: mbarrier.try_wait.parity.shared.b64 %p2, [%r9], {parity};\n@!%p2 bra W{n};\n"
NEIGHBOUR = "xor.b32 %r2, %r2, 256;\n" + READ


def test_a_phase_orders_like_a_barrier(run, fail):
    a, b = _arrays()
    body = (
        EACH
        + INIT.format(count=32)
        + "ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%rd1]; st.shared.v4.b32 [%r2], {%r4, %r5, %r6, %r7};\n"
        + "mbarrier.arrive.shared.b64 %rd9, [%r9];\n"
        + WAIT.format(n=0, parity=0)
        + NEIGHBOUR
    )
    run(body, [a, b])
    assert (b.reshape(2, -1) == a.reshape(2, -1)[::-1]).all()
    assert fail(body.replace(WAIT.format(n=0, parity=0), ""), [a, b]).kind == "race"
    relaxed = body.replace("mbarrier.arrive.shared", "mbarrier.arrive.relaxed.cta.shared")
    assert fail(relaxed, [a, b]).kind == "race"


def test_phases_alternate(run):
    out, unused = np.zeros(32, np.uint32), np.zeros(4, np.uint32)
    run(
        EACH.replace("16; add", "4; add")
        + INIT.format(count=32)
        + """
        mov.u32 %r10, 0; mov.u32 %r11, 0;
        LOOP:
        mbarrier.arrive.shared.b64 %rd9, [%r9];
        W: mbarrier.test_wait.shared.b64 %p2, [%r9], %rd9; @!%p2 bra W;
        shr.u64 %rd10, %rd9, 32;
        mbarrier.pending_count.b64 %r12, %rd9;
        add.u32 %r11, %r11, %r12;
        add.u32 %r10, %r10, 1; setp.lt.u32 %p3, %r10, 5; @%p3 bra LOOP;
        st.global.b32 [%rd1], %r11;
        """,
        [out, unused],
    )
    assert (out == 160).all()


def test_transactions_hold_a_phase_open(run, fail):
    body = (
        EACH
        + INIT.format(count=1)
        + "@!%p1 bra S;\nmbarrier.arrive.expect_tx.shared.b64 _, [%r9], 64;\n"
        + "S: setp.ne.u32 %p4, %r1, 1;\n@!%p4 mbarrier.complete_tx.shared.b64 [%r9], BYTES;\n"
        + WAIT.format(n=0, parity=0)
    )
    run(body.replace("BYTES", "64"), list(_arrays()))
    error = fail(body.replace("BYTES", "32"), list(_arrays()))
    assert error.kind == "deadlock"
    assert str(error).splitlines()[2:] == [
        (
            "  32 threads (thread (0, 0, 0) of CTA (0, 0, 0), …) poll at line 20: "
            "mbarrier.try_wait.parity.shared.b64 %p2, [%r9], 0"
        ),
        (
            "    waits for a phase of parity 0 of the mbarrier at shared offset 528 of CTA (0, 0, 0) (from line 14: "
            "@%p1 mbarrier.init.shared.b64 [%r9], 1), which is in phase 0 and lacks 0 of 1 arrivals and 32 bytes that "
            "were expected and did not come"
        ),
    ]


def test_a_count_that_is_left_at_the_end(fail):
    body = EACH + INIT.format(count=1) + "@%p1 mbarrier.expect_tx.relaxed.cta.shared.b64 [%r9], 64;"
    error = fail(body, list(_arrays()))
    assert str(error) == (
        "transaction count: the mbarrier at shared offset 528 of CTA (0, 0, 0) ends with 64 bytes expected that never "
        "came\n  line 14: @%p1 mbarrier.init.shared.b64 [%r9], 1"
    )
    assert error.kind == "expect-tx"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            "mbarrier.arrive.shared.b64 %rd9, [%r9];",
            "the mbarrier was not initialised, or its memory was used for something else",
        ),
        (
            INIT.format(count=31) + "mbarrier.arrive.shared.b64 %rd9, [%r9];",
            "mbarrier: 32 arrivals, and the phase lacks 31 of 31",
        ),
        (
            "setp.eq.u32 %p1, %r1, 0; mov.u32 %r10, 0; @%p1 mbarrier.init.shared.b64 [%r9], %r10;",
            "an mbarrier takes 1 to 1048575 arrivals, not 0",
        ),
    ],
)
def test_misuse(fail, body, text):
    error = fail(EACH + body, list(_arrays()))
    assert (error.kind, str(error).splitlines()[0]) == ("mbarrier", text)


def test_an_object_by_itself(run):
    barrier = MBarrier(None, 2, 2)
    barrier.expect(-16)  # bytes may come before they are expected
    barrier.arrive(1, {})
    state = barrier.state
    barrier.expect(16)
    assert not barrier.complete(state)
    barrier.arrive(1, {}, drop=True)
    assert barrier.complete(state)
    assert (barrier.phase, barrier.pending) == (1, 1)
    assert barrier.complete_parity(0) and not barrier.complete_parity(1)
    with pytest.raises(Misuse, match="3 arrivals, and the phase lacks 1 of 1"):
        barrier.arrive(3, {})


def test_a_copy_that_reads_less_may_stand_at_the_end_of_its_array(run, fail):
    """Only the bytes that are read must be there; none, where it reads none."""
    a, b = np.arange(126, dtype=np.uint32), np.zeros(128, np.uint32)
    body = (
        "mov.u32 %r8, 504; shl.b32 %r9, %r1, 4; sub.s32 %r8, %r8, %r9; max.s32 %r8, %r8, 0; "
        "min.s32 %r8, %r8, SIZE;\ncp.async.cg.shared.global [%r2], [%rd1], 16, %r8;\ncp.async.wait_all;\n"
    )
    run(EACH + body.replace("SIZE", "16") + READ, [a, b])
    assert (b[:126] == a).all() and not b[126:].any()
    error = fail(EACH + body.replace("min.s32 %r8, %r8, SIZE", "mov.u32 %r8, 16") + READ, [a, b])
    assert (error.kind, error.line) == ("out-of-bounds", 14)


def test_a_flag_that_a_bulk_copy_sets_comes_in_the_end(run):
    """Nobody waits for the copy itself: who polls for what it writes must not be taken for deadlocked."""
    body = """
    .shared .align 16 .b8 s[16];
    ld.param.u64 %rd1, [A]; ld.param.u64 %rd2, [B];
    mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 1; mov.u32 %r2, s;
    @%p1 bra WAIT;
    st.shared.v4.b32 [%r2], {1, 1, 1, 1};
    fence.proxy.async;
    cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2], 16;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0;
    ret;
    WAIT: ld.volatile.global.u32 %r3, [%rd1]; setp.eq.u32 %p2, %r3, 0; @%p2 bra WAIT;
    st.global.u32 [%rd2], %r3;
    """
    flag, out = np.zeros(4, np.uint32), np.zeros(1, np.uint32)
    run(body, [flag, out], grid=2, block=1, sanitize=False)
    assert out[0] == 1
