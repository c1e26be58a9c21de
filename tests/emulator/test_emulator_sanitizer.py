"""What the sanitizer stops on, and what it must let pass: bits that were never written, races, memory order."""

from __future__ import annotations

import numpy as np
import pytest

OUT = "ld.param.u64 %rd1, [A];\n"


@pytest.mark.parametrize(
    ("body", "use", "source"),
    [
        ("st.global.b32 [%rd1], %r1;", "the stored value", "register %r1"),
        ("add.u32 %r2, %r1, 1; st.global.b32 [%rd1], %r2;", "the stored value", "register %r2"),
        ("mov.b32 %r2, {%h1, %h2}; st.global.b32 [%rd1], %r2;", "the stored value", "register %r2"),
        ("ld.global.b32 %r2, [%rd2];", "the address [%rd2]", "register %rd2"),
        ("@%p1 bra X; X:", "whether bra is executed", "predicate %p1"),
        ("setp.eq.u32 %p1, %r1, 0; @!%p1 mov.u32 %r2, 1;", "whether mov.u32 is executed", "predicate %p1"),
        ("ld.local.b32 %r2, [l]; st.global.b32 [%rd1], %r2;", "the stored value", "register %r2"),
        (
            "st.local.b8 [l], 1; ld.local.b32 %r2, [l]; st.global.b32 [%rd1], %r2;",
            "the stored value",
            "register %r2",
        ),
        ("ld.shared.b32 %r2, [s]; st.global.b32 [%rd1], %r2;", "the stored value", "register %r2"),
    ],
)
def test_bits_that_were_never_written(fail, body, use, source):
    declared = ".local .align 4 .b8 l[4]; .shared .align 4 .b8 s[4];\n"
    body = body.replace("; st.", ";\nst.").replace("; @", ";\n@").replace("; ld", ";\nld")
    error = fail(declared + OUT + body, [np.zeros(8, np.uint32)], block=1)
    assert error.kind == "uninitialised"
    assert (
        str(error).splitlines()[0]
        == f"uninitialised: {use} depends on {source}, which holds bits that were never written"
    )


@pytest.mark.parametrize(
    "body",
    [
        "and.b32 %r2, %r1, 0; st.global.b32 [%rd1], %r2;",
        "mov.b32 %r2, {%h1, %h2}; and.b32 %r2, %r2, 0xffff0000; mov.b32 {%h3, %h4}, %r2; st.global.b16 [%rd1], %h3;",
        "mov.u32 %r2, 5; setp.eq.u32 %p1, %r2, 5; selp.b32 %r3, %r2, %r1, %p1; st.global.b32 [%rd1], %r3;",
        "or.b32 %r2, %r1, -1; st.global.b32 [%rd1], %r2;",
        "mov.u16 %h1, 7; mov.b32 %r2, {%h1, %h2}; mov.b32 {%h3, %h4}, %r2; st.global.b16 [%rd1], %h3;",
        "add.u32 %r2, %r1, 1;",
    ],
)
def test_undefined_bits_that_reach_nothing(run, body):
    run(OUT + body, [np.zeros(8, np.uint32)], block=1)


def test_a_register_written_in_some_threads_only(run, fail):
    body = (
        OUT
        + "mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2; setp.lt.u32 %p1, %r1, 20;\n"
        + "@%p1 mov.u32 %r2, 1;\nGUARD st.global.b32 [%rd1], %r2;"
    )
    out = np.zeros(32, np.uint32)
    run(body.replace("GUARD", "@%p1"), [out])
    error = fail(body.replace("GUARD", ""), [out])
    assert str(error).splitlines()[1:] == [
        "  line 10: st.global.b32 [%rd1], %r2",
        "  thread (20, 0, 0) of CTA (0, 0, 0)",
    ]


def test_a_called_function_starts_with_undefined_registers(fail):
    function = (
        ".func f(.reg .b32 x, .reg .b64 a)\n{ .reg .pred p; .reg .b32 y; setp.eq.u32 p, x, 0;\n"
        "@p mov.u32 y, 1;\nst.global.b32 [a], y; ret; }"
    )
    error = fail(
        OUT + "call f, (0, %rd1);\ncall f, (1, %rd1);", [np.zeros(1, np.uint32)], block=1, module=function
    )
    assert (error.kind, error.line) == ("uninitialised", 7)


# -- races


def test_two_ctas_write_one_place(fail):
    error = fail(
        OUT + "mov.u32 %r1, %ctaid.x;\nst.global.b32 [%rd1], %r1;", [np.zeros(1, np.uint32)], grid=2, block=1
    )
    assert (error.kind, error.line) == ("race", 9)
    assert str(error) == (
        "race: two threads write different values to one place in the same instruction\n"
        "  line 9: st.global.b32 [%rd1], %r1\n"
        "  thread (0, 0, 0) of CTA (1, 0, 0)\n"
        "  the other: thread (0, 0, 0) of CTA (0, 0, 0)"
    )


def test_equal_values_to_one_place_in_one_instruction_are_no_race(run):
    out = np.zeros(1, np.uint32)
    run(OUT + "st.global.b32 [%rd1], 3;", [out], grid=4, block=64)
    assert out[0] == 3


def test_ctas_in_different_waves_race_too(fail):
    out = np.zeros(1, np.uint32)
    body = (
        OUT
        + "mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 0; @%p1 bra W;\n"
        + "ld.global.b32 %r2, [%rd1]; ret;\nW: st.global.b32 [%rd1], 3;"
    )
    error = fail(body, [out], grid=130, block=1024)
    assert error.kind == "race"
    assert error.args[0].splitlines()[0] in (
        "race: a thread reads what another wrote, and nothing orders the two",
        "race: a thread writes what another read, and nothing orders the two",
    )


def test_neighbouring_bytes_are_no_race(run):
    out = np.zeros(64, np.uint8)
    body = "mov.u32 %r1, %tid.x; cvt.u64.u32 %rd2, %r1; add.s64 %rd1, %rd1, %rd2; st.global.u8 [%rd1], %r1;"
    run(OUT + body, [out], block=64)
    assert (out == np.arange(64)).all()


def test_a_write_after_reads_of_many(fail, run):
    body = (
        OUT
        + "mov.u32 %r1, %tid.x;\nld.global.b32 %r2, [%rd1];\nBARRIER\n"
        + "setp.ne.u32 %p1, %r1, 0; @%p1 bra X;\nst.global.b32 [%rd1], 9;\nX:"
    )
    out = np.zeros(1, np.uint32)
    run(body.replace("BARRIER", "bar.sync 0;"), [out], block=64)
    error = fail(body.replace("BARRIER", ""), [out], block=64)
    assert (error.kind, error.line) == ("race", 12)
    assert str(error) == (
        "race: a thread writes what another read, and nothing orders the two\n"
        "  line 12: st.global.b32 [%rd1], 9\n"
        "  thread (0, 0, 0) of CTA (0, 0, 0)\n"
        "  thread (1, 0, 0) of CTA (0, 0, 0) read it at line 9: ld.global.b32 %r2, [%rd1]"
    )


def test_partial_barriers_order_only_those_who_come(fail, run):
    """Warps 0 and 1 meet; warp 2 read too, and warp 0 writes."""
    body = (
        OUT
        + "mov.u32 %r1, %tid.x; ld.global.b32 %r2, [%rd1];\nsetp.ge.u32 %p1, %r1, LIMIT; @%p1 bra X;\n"
        + "bar.sync 1, LIMIT;\n"
        + "setp.ne.u32 %p1, %r1, 0; @%p1 bra X;\nst.global.b32 [%rd1], 9;\nX:"
    )
    out = np.zeros(1, np.uint32)
    run(body.replace("LIMIT", "96"), [out], block=96)
    assert fail(body.replace("LIMIT", "64"), [out], block=96).kind == "race"


MESSAGE = """
ld.param.u64 %rd1, [A]; ld.param.u64 %rd2, [B];
mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 1; @%p1 bra SEND;
WAIT: LOAD
setp.eq.u32 %p2, %r2, 0; @%p2 bra WAIT;
AFTER
ld.global.b32 %r3, [%rd2]; st.global.b32 [%rd2+4], %r3; bra END;
SEND: st.global.b32 [%rd2], 77;
STORE
END:
"""
ACQUIRE, RELEASE = "ld.acquire.gpu.global.b32 %r2, [%rd1];", "st.release.gpu.global.b32 [%rd1], 1;"
RELAXED_LOAD, RELAXED_STORE = "ld.relaxed.gpu.global.b32 %r2, [%rd1];", "st.relaxed.gpu.global.b32 [%rd1], 1;"


@pytest.mark.parametrize(
    ("load", "after", "store", "good"),
    [
        (ACQUIRE, "", RELEASE, True),
        (ACQUIRE, "", f"fence.acq_rel.gpu; {RELAXED_STORE}", True),
        (RELAXED_LOAD, "fence.acq_rel.gpu;", RELEASE, True),
        (RELAXED_LOAD, "membar.gl;", f"membar.gl; {RELAXED_STORE}", True),
        (
            "ld.volatile.global.b32 %r2, [%rd1];",
            "membar.sys;",
            "membar.sys; st.volatile.global.b32 [%rd1], 1;",
            True,
        ),
        (RELAXED_LOAD, "", RELEASE, False),
        (ACQUIRE, "", RELAXED_STORE, False),
        (RELAXED_LOAD, "fence.acq_rel.gpu;", RELAXED_STORE, False),
        (ACQUIRE.replace("gpu", "cta"), "", RELEASE, False),
        (ACQUIRE, "", RELEASE.replace("gpu", "cta"), False),
        (RELAXED_LOAD, "membar.cta;", f"membar.gl; {RELAXED_STORE}", False),
        (ACQUIRE, "", "st.global.b32 [%rd1], 1;", False),
    ],
)
def test_release_and_acquire_between_ctas(run, fail, load, after, store, good):
    """The reader sees the flag and then the message; that is no race exactly where the model orders them."""
    body = MESSAGE.replace("LOAD", load).replace("AFTER", after).replace("STORE", store)
    flag, message = np.zeros(1, np.uint32), np.zeros(2, np.uint32)
    if good:
        run(body, [flag, message], grid=2, block=1)
        assert message.tolist() == [77, 77]
    else:
        assert fail(body, [flag, message], grid=2, block=1).kind == "race"


def test_what_a_barrier_ordered_is_passed_on_by_a_release(run):
    """Thread 1 writes, the CTA meets, thread 0 releases: another CTA that acquires sees thread 1's write."""
    body = """
    ld.param.u64 %rd1, [A]; ld.param.u64 %rd2, [B];
    mov.u32 %r1, %ctaid.x; mov.u32 %r4, %tid.x; setp.eq.u32 %p1, %r1, 1; @%p1 bra SEND;
    WAIT: ld.acquire.gpu.global.b32 %r2, [%rd1]; setp.eq.u32 %p2, %r2, 0; @%p2 bra WAIT;
    ld.global.b32 %r3, [%rd2];
    mul.wide.u32 %rd3, %r4, 4; add.s64 %rd4, %rd2, %rd3; st.global.b32 [%rd4+4], %r3; bra END;
    SEND: setp.eq.u32 %p3, %r4, 63; @%p3 st.global.b32 [%rd2], 77;
    bar.sync 0;
    setp.eq.u32 %p3, %r4, 0; @%p3 st.release.gpu.global.b32 [%rd1], 1;
    END:
    """
    flag, message = np.zeros(1, np.uint32), np.zeros(65, np.uint32)
    run(body, [flag, message], grid=2, block=64)
    assert (message == 77).all()


def test_waiting_for_what_never_comes(fail):
    body = MESSAGE.replace("LOAD", ACQUIRE).replace("AFTER", "").replace("STORE", "")
    error = fail(body, [np.zeros(1, np.uint32), np.zeros(2, np.uint32)], grid=2, block=1)
    assert (error.kind, error.line) == ("deadlock", 9)
    assert str(error) == (
        "deadlock: the 1 thread left waits\n"
        "  line 9: ld.acquire.gpu.global.b32 %r2, [%rd1]\n"
        "  thread (0, 0, 0) of CTA (0, 0, 0) polls at line 9: ld.acquire.gpu.global.b32 %r2, [%rd1]"
    )


@pytest.mark.parametrize("store", ["st.global.b32 [%rd1], 1;", RELEASE])
def test_waiting_with_an_ordinary_load(fail, store):
    """Nothing in the loop counts, so it waits for another thread: that one goes on, and the two race."""
    body = MESSAGE.replace("LOAD", "ld.global.b32 %r2, [%rd1];").replace("AFTER", "").replace("STORE", store)
    assert fail(body, [np.zeros(1, np.uint32), np.zeros(2, np.uint32)], grid=2, block=1).kind == "race"
    never = MESSAGE.replace("LOAD", "ld.global.b32 %r2, [%rd1];").replace("AFTER", "").replace("STORE", "")
    assert fail(never, [np.zeros(1, np.uint32), np.zeros(2, np.uint32)], grid=2, block=1).kind == "deadlock"


def test_waiting_for_a_cta_that_finds_no_room(fail, monkeypatch):
    """A device does not start the whole of a large grid at once, and neither does the emulator."""
    body = MESSAGE.replace("LOAD", ACQUIRE).replace("AFTER", "").replace("STORE", RELEASE)
    body = body.replace("setp.eq.u32 %p1, %r1, 1", "setp.eq.u32 %p1, %r1, 4")
    monkeypatch.setattr("ptxtile.emulator.machine.RESIDENT_THREADS", 4)
    error = fail(body, [np.zeros(1, np.uint32), np.zeros(2, np.uint32)], grid=5, block=1)
    assert error.kind == "deadlock"
    assert str(error).splitlines()[-1] == "  these leave no room for 1 CTA of the grid"


@pytest.mark.parametrize("lane", [0, 31])
def test_a_thread_may_wait_for_another_of_its_warp(run, lane):
    """Forward progress within a warp: all lanes but one poll for what that one writes after the loop."""
    body = f"""
    ld.param.u64 %rd1, [A];
    mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, {lane}; @%p1 bra SEND;
    WAIT: ld.acquire.cta.global.b32 %r2, [%rd1]; setp.eq.u32 %p2, %r2, 0; @%p2 bra WAIT;
    bra END;
    SEND: mov.u32 %r3, 0;
    WORK: add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, 500; @%p3 bra WORK;
    st.release.cta.global.b32 [%rd1], 1;
    END:
    """
    run(body, [np.zeros(1, np.uint32)])


# -- lines


def test_lines_are_those_of_the_text_given_or_written():
    from ptxtile.emulator import EmulatorError, launch
    from ptxtile.ir import parse
    from tests.emulator.conftest import kernel

    text = kernel(
        "\n\n// a comment\nld.param.u64 %rd1,\n  [A];\n\nst.global.b32\n [%rd1], %r1;", ".param .u64 A"
    )
    for module in (text, parse(text)):
        with pytest.raises(EmulatorError) as caught:
            launch(module, "k", 1, 1, [np.zeros(1, np.uint32)])
        line = str(module).splitlines()[caught.value.line - 1]
        assert line.strip().startswith("st.global.b32")
