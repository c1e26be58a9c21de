"""Bulk copies in every direction, st.async and red.async, vector atomics, multimem, and who may end when."""

from __future__ import annotations

import numpy as np
import pytest

START = """
.shared .align 128 .b8 s[2048];
.shared .align 8 .b64 bar;
ld.param.u64 %rd1, [A]; ld.param.u64 %rd2, [B];
mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, s; mov.u32 %r3, bar;
shl.b32 %r4, %r1, 2; add.u32 %r5, %r2, %r4; cvt.u64.u32 %rd3, %r4; add.u64 %rd4, %rd2, %rd3; mov.u32 %r9, 120;
"""
INIT = "@%p1 mbarrier.init.shared.b64 [%r3], 1;\n@%p1 fence.mbarrier_init.release.cluster;\nbar.sync 0;\n"
WAIT = "W: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0;\n@!%p2 bra W;\n"
TO_SHARED = (
    "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 128;\n"
    "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 128, [%r3];\n"
)
READ = "ld.shared.b32 %r6, [%r5]; st.global.b32 [%rd4], %r6;\n"
COMMIT = "@%p1 cp.async.bulk.commit_group;\n@%p1 cp.async.bulk.wait_group 0;\n"


def arrays():
    return [np.arange(1, 33, dtype=np.uint32), np.zeros(32, np.uint32)]


def test_global_to_shared(run, fail):
    a, b = arrays()
    body = START + INIT + TO_SHARED + WAIT + READ
    run(body, [a, b])
    assert (a == b).all()
    assert fail(body.replace(WAIT, ""), [a, b]).kind == "in-flight"
    own = body.replace("shared::cluster.global", "shared::cta.global")
    run(
        own.replace("[%r2], [%rd1], 128", "[%r2], [%rd1], 64").replace("], 128;\n", "], 64;\n", 1),
        [a, b[:16]],
        block=16,
    )


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("[%rd1], 128", "[%rd1], %r9", "misaligned: a bulk copy of 120 bytes; it takes a multiple of 16"),
        (
            "[%rd1], 128",
            "[%rd1], 144",
            "out of bounds: copies 16 bytes at 0x7f0000000280, just past the end of ",
        ),
        (
            "[%rd1], 128",
            "[%rd1+8], 64",
            "misaligned: copies 64 bytes at 0x7f0000000208, which is not a multiple of 16",
        ),
        (
            "[%r2], [%rd1]",
            "[%r2+8], [%rd1]",
            "misaligned: copies 128 bytes at shared address 0x408, which is not a multiple of 16",
        ),
    ],
)
def test_sizes_and_addresses(fail, old, new, text):
    body = START + INIT + TO_SHARED + WAIT + READ
    first = str(fail(body.replace(old, new), arrays())).splitlines()[0]
    assert first.startswith(text)


def test_shared_to_global(run, fail):
    a, b = arrays()
    body = START + (
        "add.u32 %r6, %r1, 5; st.shared.b32 [%r5], %r6;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n"
        "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r2], 128;\n"
    )
    run(body + COMMIT, [a, b])
    assert (b == np.arange(5, 37)).all()
    early = fail(body + "ld.global.b32 %r7, [%rd2];\n" + COMMIT, [a, b])
    assert (early.kind, str(early).splitlines()[0]) == (
        "in-flight",
        "in flight: a thread reads what asynchronous work wrote that was not waited for",
    )
    run(body + COMMIT + "@%p1 ld.global.b32 %r7, [%rd2];\n", [a, b])
    read_only = COMMIT.replace("wait_group 0", "wait_group.read 0")
    assert fail(body + read_only + "@%p1 ld.global.b32 %r7, [%rd2];\n", [a, b]).kind == "in-flight"
    run(body + read_only + "@%p1 st.shared.b32 [%r2], 0;\n", [a, b])


def test_a_proxy_fence_covers_the_space_it_names(run, fail):
    a, b = arrays()
    body = START + (
        "st.shared.b32 [%r5], 5;\nfence.proxy.async;\nbar.sync 0;\n"
        "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r2], 128;\n"
    )
    for right in (".shared::cta", ".shared::cluster"):
        run(body.replace("proxy.async", "proxy.async" + right) + COMMIT, [a, b])
    error = fail(body.replace("proxy.async", "proxy.async.global") + COMMIT, [a, b])
    assert error.kind == "proxy"
    assert (
        str(error)
        .splitlines()[0]
        .endswith("without a fence.proxy.async between the two that covers shared memory")
    )
    body = (
        START + INIT + "@%p1 st.global.b32 [%rd1], 7;\nfence.proxy.async.global;\n" + TO_SHARED + WAIT + READ
    )
    run(body, [a, b])
    error = fail(body.replace("proxy.async.global", "proxy.async.shared::cta"), [a, b])
    assert error.kind == "proxy"


@pytest.mark.parametrize(("operation", "due"), [("add", 105), ("max", 100), ("min", 5), ("xor", 97)])
def test_a_reduction_into_global_memory(run, operation, due):
    a, b = arrays()
    b[:] = 100
    kind = "b32" if operation == "xor" else "u32"
    body = START + (
        "st.shared.b32 [%r5], 5;\nfence.proxy.async;\nbar.sync 0;\n"
        f"@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation}.{kind} [%rd2], [%r2], 128;\n"
    )
    run(body + COMMIT, [a, b])
    assert (b == due).all()


CLUSTER = (
    START
    + """
@%p1 mbarrier.init.shared.b64 [%r3], 1;
@%p1 fence.mbarrier_init.release.cluster;
mov.u32 %r10, %cluster_ctarank; xor.b32 %r11, %r10, 1;
barrier.cluster.arrive; barrier.cluster.wait;
mapa.shared::cluster.u32 %r12, %r2, %r11; mapa.shared::cluster.u32 %r13, %r3, %r11;
setp.eq.u32 %p3, %r10, 0; setp.eq.u32 %p4, %r10, 1;
"""
)
END = "barrier.cluster.arrive; barrier.cluster.wait;\n"
SHOW = "@!%p3 ld.shared.b32 %r6, [%r5];\n@!%p3 st.global.b32 [%rd4], %r6;\n"


def in_the_other(push, count=128):
    """CTA 0 pushes into CTA 1, which waits for so many bytes and shows them."""
    expect = f"and.pred %p5, %p1, %p4;\n@%p5 mbarrier.arrive.expect_tx.shared.b64 _, [%r3], {count};\n"
    return CLUSTER + expect + push + "@%p3 bra E;\n" + WAIT + SHOW + "E:\n"


def test_shared_to_the_shared_memory_of_another_cta(run, fail):
    a, b = arrays()
    push = (
        "st.shared.b32 [%r5], %r1;\nfence.proxy.async;\nbar.sync 0;\nand.pred %p6, %p1, %p3;\n"
        "@%p6 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r12+512], [%r2], 128, [%r13];\n"
    )
    body = in_the_other(push).replace("[%r5];\n@!%p3 st", "[%r5+512];\n@!%p3 st")
    run(body + END, [a, b], grid=2, cluster=2)
    assert (b == np.arange(32)).all()
    error = fail(body, [a, b], grid=2, cluster=2)  # CTA 0 ends before its memory has been read
    assert (error.kind, str(error).splitlines()[0]) == (
        "exit",
        "exit: CTA (0, 0, 0) has ended, and asynchronous work still uses its shared memory",
    )


@pytest.mark.parametrize("vector", ["", ".v2", ".v4"])
def test_stores_that_an_mbarrier_counts(run, fail, vector):
    a, b = arrays()
    width = int(vector[2:] or 1)
    value = "{" + ", ".join(["%r1", "77", "78", "79"][:width]) + "}" if vector else "%r1"
    push = (
        f"mul.lo.u32 %r14, %r1, {4 * width}; add.u32 %r14, %r14, %r12; setp.lt.u32 %p7, %r1, {32 // width}; "
        "and.pred %p7, %p7, %p3;\n"
        f"@%p7 st.async.shared::cluster.mbarrier::complete_tx::bytes{vector}.b32 [%r14], {value}, [%r13];\n"
    )
    body = in_the_other(push)
    run(body + END, [a, b], grid=2, cluster=2)
    due = np.stack([np.arange(32 // width), *[np.full(32 // width, v) for v in (77, 78, 79)]], axis=1)[
        :, :width
    ]
    assert (b == due.reshape(-1)).all()
    assert fail(body.replace(WAIT, "") + END, [a, b], grid=2, cluster=2).kind == "in-flight"


def test_reductions_that_an_mbarrier_counts(run):
    a, b = arrays()
    push = (
        "@%p3 bra P;\nst.shared.b32 [%r5], 100;\nP: barrier.cluster.arrive; barrier.cluster.wait;\n"
        "add.u32 %r14, %r12, %r4;\n@%p3 red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 "
        "[%r14], %r1, [%r13];\n"
    )
    run(in_the_other(push) + END, [a, b], grid=2, cluster=2)
    assert (b == 100 + np.arange(32)).all()


def test_a_cta_that_ends_while_another_uses_its_memory(run, fail):
    a, b = arrays()
    body = (
        CLUSTER
        + "st.shared.b32 [%r5], %r1;\n"
        + END
        + "add.u32 %r14, %r12, %r4;\nld.shared::cluster.b32 %r6, [%r14];\n"
    )
    run(body + END, [a, b], grid=2, cluster=2)
    error = fail(body, [a, b], grid=2, cluster=2)
    assert str(error) == (
        "exit: CTA (0, 0, 0) ends, and nothing tells it that this access to its memory is over\n"
        "  line 22: ld.shared::cluster.b32 %r6, [%r14]\n  thread (0, 0, 0) of CTA (1, 0, 0)"
    )
    relaxed = "barrier.cluster.arrive.relaxed; barrier.cluster.wait;\n"
    run(body + relaxed, [a, b], grid=2, cluster=2)


def test_an_mbarrier_handshake_lets_a_cta_end(run):
    """The other CTA reads, arrives on this CTA's mbarrier, and ends; this one waits for that and ends."""
    a, b = arrays()
    shake = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r13];\n"
    body = (CLUSTER + "st.shared.b32 [%r5], %r1;\n" + END + "add.u32 %r14, %r12, %r4;\n").replace(
        "mbarrier.init.shared.b64 [%r3], 1", "mbarrier.init.shared.b64 [%r3], 32"
    )
    run(
        body
        + "ld.shared::cluster.b32 %r6, [%r14];\n"
        + shake
        + WAIT.replace("parity", "parity.acquire.cluster"),
        [a, b],
        grid=2,
        cluster=2,
    )


def test_an_arrival_when_copies_are_done(run, fail):
    a, b = arrays()
    body = (
        START
        + INIT.replace("], 1;", "], 32;")
        + (
            "add.u64 %rd5, %rd1, %rd3;\ncp.async.ca.shared.global [%r5], [%rd5], 4;\n"
            "cp.async.mbarrier.arrive.noinc.shared.b64 [%r3];\n"
        )
    )
    neighbour = "xor.b32 %r5, %r5, 4;\n" + READ
    run(body + WAIT + neighbour, [a, b])
    assert (b.reshape(-1, 2) == a.reshape(-1, 2)[:, ::-1]).all()
    assert fail(body + neighbour, [a, b]).kind in ("in-flight", "race")


@pytest.mark.parametrize(
    ("kind", "width", "operation"),
    [("f32", 2, "add"), ("f32", 4, "add"), ("f16", 4, "max"), ("f16x2", 2, "add")],
)
def test_vector_atomics(run, kind, width, operation):
    a, b = np.zeros(8, np.float32), np.zeros(128, np.float32)
    ptx = {"f32": "f32", "f16": "b16", "f16x2": "b32"}[kind]
    bits = {"f32": "0f3F800000", "f16": "15360", "f16x2": "0x3C003C00"}[kind]
    names = [f"%q{i}" for i in range(width)]
    modifier = "" if kind == "f32" else ".noftz"
    run(
        f".reg .{ptx} %q<9>;\nld.param.u64 %rd1, [A];\n"
        + "".join(f"mov.{ptx} {name}, {bits};\n" for name in names)
        + f"red.global.{operation}{modifier}.v{width}.{kind} [%rd1], {{{', '.join(names)}}};",
        [a, b],
    )
    held = a.view(np.float32 if kind == "f32" else np.float16)
    count = width * (2 if kind == "f16x2" else 1)
    assert (held[:count] == (32 if operation == "add" else 1)).all() and not held[count:].any()


def test_multimem_on_one_device(run):
    a, b = arrays()
    run(
        START
        + "add.u64 %rd5, %rd1, %rd3;\nmultimem.ld_reduce.global.add.u32 %r6, [%rd5];\nmultimem.st.global.u32 [%rd4], %r6;\n"
        "multimem.red.global.add.u32 [%rd4], 1;\n",
        [a, b],
    )
    assert (b == a + 1).all()


RING = (
    START.replace("bar;", "full[2];\n.shared .align 8 .b64 empty[2];", 1).replace("%r3, bar", "%r3, full")
    + """
mov.u32 %r20, empty;
@%p1 mbarrier.init.shared.b64 [%r3], 1;
@%p1 mbarrier.init.shared.b64 [%r3+8], 1;
@%p1 mbarrier.init.shared.b64 [%r20], 32;
@%p1 mbarrier.init.shared.b64 [%r20+8], 32;
FENCE
bar.sync 0;
mov.u32 %r10, 0; mov.u32 %r11, 0; mov.u32 %r12, 0; mov.u32 %r19, 0;
setp.lt.u32 %p3, %r1, 32; @%p3 bra CONSUME;
setp.ne.u32 %p4, %r1, 32; @%p4 bra END;
PRODUCE:
shl.b32 %r13, %r11, 3; add.u32 %r14, %r3, %r13; add.u32 %r15, %r20, %r13; xor.b32 %r16, %r12, 1;
E: mbarrier.try_wait.parity.shared.b64 %p5, [%r15], %r16;
@!%p5 bra E;
mbarrier.arrive.expect_tx.shared.b64 _, [%r14], 128;
shl.b32 %r17, %r11, 7; add.u32 %r17, %r17, %r2; mul.wide.u32 %rd5, %r10, 128; add.u64 %rd5, %rd5, %rd1;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r17], [%rd5], 128, [%r14];
xor.b32 %r11, %r11, 1; setp.eq.u32 %p6, %r11, 0; @%p6 xor.b32 %r12, %r12, 1;
add.u32 %r10, %r10, 1; setp.lt.u32 %p7, %r10, 6; @%p7 bra PRODUCE;
bra END;
CONSUME:
shl.b32 %r13, %r11, 3; add.u32 %r14, %r3, %r13; add.u32 %r15, %r20, %r13;
F: mbarrier.try_wait.parity.shared.b64 %p5, [%r14], %r12;
@!%p5 bra F;
shl.b32 %r17, %r11, 7; add.u32 %r17, %r17, %r5; ld.shared.b32 %r18, [%r17]; add.u32 %r19, %r19, %r18;
mbarrier.arrive.shared.b64 _, [%r15];
xor.b32 %r11, %r11, 1; setp.eq.u32 %p6, %r11, 0; @%p6 xor.b32 %r12, %r12, 1;
add.u32 %r10, %r10, 1; setp.lt.u32 %p7, %r10, 6; @%p7 bra CONSUME;
st.global.b32 [%rd4], %r19;
END:
"""
)


@pytest.mark.parametrize("fence", ["@%p1 fence.mbarrier_init.release.cluster;", "@%p1 fence.proxy.async;"])
def test_a_ring_of_stages_that_threads_read(run, fail, fence):
    """Stages are used again behind an mbarrier; no proxy fence is needed after reads."""
    a, b = np.arange(192, dtype=np.uint32), np.zeros(64, np.uint32)
    text = RING.replace("FENCE", fence)
    for seed in range(3):
        b[:] = 0
        run(text, [a, b], block=64, seed=seed)
        assert (b[:32] == a.reshape(6, 32).sum(axis=0)).all()
    early = text.replace("F: mbarrier.try_wait.parity.shared.b64 %p5, [%r14], %r12;\n@!%p5 bra F;\n", "")
    assert fail(early, [a, b], block=64).kind in ("in-flight", "uninitialised", "race")
    late = text.replace(
        "ld.shared.b32 %r18, [%r17]; add.u32 %r19, %r19, %r18;\nmbarrier.arrive.shared.b64 _, [%r15];",
        ("mbarrier.arrive.shared.b64 _, [%r15];\nld.shared.b32 %r18, [%r17]; add.u32 %r19, %r19, %r18;"),
    )
    assert fail(late, [a, b], block=64).kind == "race"


def test_reductions_meet_in_any_order(run, fail):
    """Four CTAs and a plain atomic operation add to the same place; a plain read has to wait."""
    a, b = arrays()
    b[:] = 0
    body = START + (
        "st.shared.b32 [%r5], 5;\nfence.proxy.async;\nbar.sync 0;\n"
        "@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd2], [%r2], 128;\n"
        "red.global.add.u32 [%rd4], 1;\n"
    )
    run(body + COMMIT, [a, b], grid=4)
    assert (b == 24).all()
    assert fail(body + "ld.global.b32 %r7, [%rd4];\n" + COMMIT, [a, b], grid=4).kind in ("in-flight", "race")
    assert fail(body + "st.global.b32 [%rd4], 1;\n" + COMMIT, [a, b], grid=4).kind in ("in-flight", "race")
