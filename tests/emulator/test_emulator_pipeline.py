"""A pipeline as GEMMs have them, right and with each part of it left out: what the sanitizer finds, and where."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from ptxtile.emulator import EmulatorError, launch
from ptxtile.ir.tensor_map import Mapped, TiledMap

STEPS, STAGES, N = 6, 2, 16
STAGE = 64 * 128 + N * 128  # bytes of A and B
D = "{" + ", ".join(f"%f{i}" for i in range(8)) + "}"
KERNEL = f"""
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 A[128], .param .align 64 .b8 B[128], .param .align 64 .b8 C[128])
{{
.reg .pred %p<9>; .reg .b32 %r<32>; .reg .b64 %rd<16>; .reg .f32 %f<9>;
.shared .align 1024 .b8 s[{STAGES * STAGE}];
.shared .align 128 .b8 out[{64 * N * 4}];
.shared .align 8 .b64 full[{STAGES}];
.shared .align 8 .b64 empty[{STAGES}];
mov.u64 %rd1, A; cvta.param.u64 %rd1, %rd1; mov.u64 %rd2, B; cvta.param.u64 %rd2, %rd2;
mov.u64 %rd3, C; cvta.param.u64 %rd3, %rd3;
mov.u32 %r1, %tid.x; mov.u32 %r2, s; mov.u32 %r3, full; mov.u32 %r4, empty; mov.u32 %r5, out;
setp.eq.u32 %p1, %r1, 0;
@!%p1 bra READY;
mbarrier.init.shared.b64 [%r3], 1;
mbarrier.init.shared.b64 [%r3+8], 1;
mbarrier.init.shared.b64 [%r4], 128;
mbarrier.init.shared.b64 [%r4+8], 128;
fence.mbarrier_init.release.cluster;
READY:
bar.sync 0;
mov.u32 %r6, 0; mov.u32 %r7, 0; mov.u32 %r8, 0;
setp.lt.u32 %p2, %r1, 128; @%p2 bra CONSUME;
setp.ne.u32 %p3, %r1, 128; @%p3 bra END;
PRODUCE:
shl.b32 %r9, %r7, 3; add.u32 %r10, %r3, %r9; add.u32 %r11, %r4, %r9;
mul.lo.u32 %r12, %r7, {STAGE}; add.u32 %r12, %r12, %r2; add.u32 %r13, %r12, 8192;
xor.b32 %r14, %r8, 1;
WAIT_EMPTY: mbarrier.try_wait.parity.shared.b64 %p4, [%r11], %r14;
@!%p4 bra WAIT_EMPTY;
mbarrier.arrive.expect_tx.shared.b64 _, [%r10], {STAGE};
shl.b32 %r15, %r6, 6; mov.u32 %r16, 0;
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r12], [%rd1, {{%r15, %r16}}], [%r10];
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r13], [%rd2, {{%r15, %r16}}], [%r10];
add.u32 %r7, %r7, 1; setp.eq.u32 %p5, %r7, {STAGES}; @%p5 xor.b32 %r8, %r8, 1; @%p5 mov.u32 %r7, 0;
add.u32 %r6, %r6, 1; setp.lt.u32 %p6, %r6, {STEPS}; @%p6 bra PRODUCE;
bra END;
CONSUME:
setp.ne.u32 %p7, %r1, %r1;
STEP:
shl.b32 %r9, %r7, 3; add.u32 %r10, %r3, %r9; add.u32 %r11, %r4, %r9;
WAIT_FULL: mbarrier.try_wait.parity.shared.b64 %p4, [%r10], %r8;
@!%p4 bra WAIT_FULL;
mul.lo.u32 %r12, %r7, {STAGE}; add.u32 %r12, %r12, %r2; shr.u32 %r12, %r12, 4; and.b32 %r12, %r12, 0x3fff;
cvt.u64.u32 %rd4, %r12; add.u64 %rd4, %rd4, {1 << 62 | 64 << 32 | 1 << 16}; add.u64 %rd5, %rd4, 512;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {D}, %rd4, %rd5, %p7, 1, 1, 0, 0;
add.u64 %rd6, %rd4, 2; add.u64 %rd7, %rd5, 2; setp.eq.u32 %p7, %r1, %r1;
wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {D}, %rd6, %rd7, %p7, 1, 1, 0, 0;
add.u64 %rd6, %rd6, 2; add.u64 %rd7, %rd7, 2;
wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {D}, %rd6, %rd7, %p7, 1, 1, 0, 0;
add.u64 %rd6, %rd6, 2; add.u64 %rd7, %rd7, 2;
wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {D}, %rd6, %rd7, %p7, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
mbarrier.arrive.shared.b64 _, [%r11];
add.u32 %r7, %r7, 1; setp.eq.u32 %p5, %r7, {STAGES}; @%p5 xor.b32 %r8, %r8, 1; @%p5 mov.u32 %r7, 0;
add.u32 %r6, %r6, 1; setp.lt.u32 %p6, %r6, {STEPS}; @%p6 bra STEP;
shr.u32 %r9, %r1, 5; shl.b32 %r9, %r9, 4; shr.u32 %r10, %r1, 2; and.b32 %r10, %r10, 7; add.u32 %r9, %r9, %r10;
shl.b32 %r9, %r9, 6; and.b32 %r10, %r1, 3; shl.b32 %r10, %r10, 3; add.u32 %r9, %r9, %r10; add.u32 %r9, %r9, %r5;
st.shared.v2.f32 [%r9], {{%f0, %f1}};
st.shared.v2.f32 [%r9+512], {{%f2, %f3}};
st.shared.v2.f32 [%r9+32], {{%f4, %f5}};
st.shared.v2.f32 [%r9+544], {{%f6, %f7}};
fence.proxy.async.shared::cta;
bar.sync 1, 128;
@!%p1 bra END;
mov.u32 %r16, 0;
cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd3, {{%r16, %r16}}], [%r5];
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0;
END:
ret;
}}
""".strip()


def run(text=KERNEL, seed=0, sanitize=True):
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 5, (rows, STEPS * 64)).astype(ml_dtypes.bfloat16) for rows in (64, N))
    c = np.zeros((64, N), np.float32)

    def tiles(x, element, box, swizzle):
        made = TiledMap(element, x.shape[::-1], (x.strides[0],), box, (1, 1), 0, swizzle)
        return Mapped(made, x.view(np.uint16) if element == "bf16" else x)

    maps = [tiles(a, "bf16", (64, 64), 128), tiles(b, "bf16", (64, N), 128), tiles(c, "f32", (N, 64), 0)]
    launch(text, "k", 1, 160, maps, seed=seed, sanitize=sanitize)
    assert (c == a.astype(np.float32) @ b.astype(np.float32).T).all()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_right_pipeline(seed):
    run(seed=seed)
    run(seed=seed, sanitize=False)


FULL = "WAIT_FULL: mbarrier.try_wait.parity.shared.b64 %p4, [%r10], %r8;\n@!%p4 bra WAIT_FULL;\n"
EMPTY = "WAIT_EMPTY: mbarrier.try_wait.parity.shared.b64 %p4, [%r11], %r14;\n@!%p4 bra WAIT_EMPTY;\n"
LOAD_A = "[%r12], [%rd1, {%r15, %r16}], [%r10];"
FAULTS = [
    # what is changed, the kind, the beginning of the instruction that is stopped
    ("fence.mbarrier_init.release.cluster;\n", "", "proxy", "cp.async.bulk.tensor.2d.shared"),
    ("READY:\nbar.sync 0;\n", "READY:\n", "race", "mbarrier.try_wait"),
    (FULL, "", "uninitialised", "wgmma.mma_async"),
    (EMPTY, "", "mbarrier", "mbarrier.arrive.expect_tx"),
    ("[%r10], %r8;\n", "[%r10], %r14;\n", "uninitialised", "mbarrier.try_wait"),
    ("wgmma.fence.sync.aligned;\n", "", "in-flight", "wgmma.mma_async"),
    ("wgmma.wait_group.sync.aligned 0;\n", "", "in-flight", "cp.async.bulk.tensor.2d.shared"),
    (
        "wgmma.wait_group.sync.aligned 0;\n",
        "wgmma.wait_group.sync.aligned 1;\n",
        "in-flight",
        "cp.async.bulk.tensor",
    ),
    ("wgmma.commit_group.sync.aligned;\n", "", "in-flight", "cp.async.bulk.tensor.2d.shared"),
    (
        "wgmma.commit_group.sync.aligned;\n",
        "mov.f32 %f3, 0f00000000;\nwgmma.commit_group.sync.aligned;\n",
        "in-flight",
        "mov.f32 %f3",
    ),
    ("mbarrier.arrive.shared.b64 _, [%r11];\n", "", "deadlock", "mbarrier.try_wait"),
    (
        "wgmma.wait_group.sync.aligned 0;\nmbarrier.arrive.shared.b64 _, [%r11];\n",
        "mbarrier.arrive.shared.b64 _, [%r11];\nwgmma.wait_group.sync.aligned 0;\n",
        "in-flight",
        "cp.async.bulk.tensor.2d.shared",
    ),
    (
        "mbarrier.arrive.shared.b64 _, [%r11];\n",
        "mbarrier.arrive.relaxed.cta.shared.b64 _, [%r11];\n",
        "in-flight",
        "cp.async.bulk.tensor.2d.shared",
    ),
    (f"_, [%r10], {STAGE};\n", f"_, [%r10], {STAGE - 16};\n", "deadlock", "mbarrier.try_wait"),
    (f"_, [%r10], {STAGE};\n", f"_, [%r10], {STAGE + 16};\n", "deadlock", "mbarrier.try_wait"),
    (LOAD_A, LOAD_A.replace("[%r12]", "[%r12+128]"), "in-flight", "cp.async.bulk.tensor.2d.shared"),
    ("add.u64 %rd5, %rd4, 512;\n", "add.u64 %rd5, %rd4, 528;\n", "in-flight", "wgmma.mma_async"),
    ("fence.proxy.async.shared::cta;\n", "", "proxy", "cp.async.bulk.tensor.2d.global"),
    ("bar.sync 1, 128;\n", "", "race", "cp.async.bulk.tensor.2d.global"),
    ("cp.async.bulk.wait_group.read 0;\n", "", "exit", "cp.async.bulk.tensor.2d.global"),
    ("cp.async.bulk.wait_group.read 0;\n", "st.shared.b32 [%r5], 1;\n", "in-flight", "st.shared.b32"),
    ("cp.async.bulk.commit_group;\n", "", "exit", "cp.async.bulk.tensor.2d.global"),
    (
        "fence.proxy.async.shared::cta;\nbar.sync 1, 128;\n",
        "bar.sync 1, 128;\n",
        "proxy",
        "cp.async.bulk.tensor.2d.gl",
    ),
]


@pytest.mark.parametrize(("old", "new", "kind", "where"), FAULTS)
def test_a_fault_is_found(old, new, kind, where):
    assert old in KERNEL
    text = KERNEL.replace(old, new, 1)
    with pytest.raises(EmulatorError) as caught:
        run(text)
    line = text.splitlines()[caught.value.line - 1]
    assert (caught.value.kind, where in line) == (kind, True), str(caught.value)


def test_a_fence_by_the_thread_that_issues_is_enough():
    moved = KERNEL.replace("fence.proxy.async.shared::cta;\nbar.sync 1, 128;\n", "bar.sync 1, 128;\n")
    run(moved.replace("@!%p1 bra END;\nmov", "@!%p1 bra END;\nfence.proxy.async.shared::cta;\nmov"))


def test_the_stage_of_the_mbarrier_that_was_waited_for():
    """Waiting for one stage says nothing of the other."""
    wrong = KERNEL.replace(f"mul.lo.u32 %r12, %r7, {STAGE}; add.u32 %r12, %r12, %r2; shr", "xor.b32 %r20, %r7, 1; "
                           f"mul.lo.u32 %r12, %r20, {STAGE}; add.u32 %r12, %r12, %r2; shr")  # fmt: skip
    with pytest.raises(EmulatorError) as caught:
        run(wrong)
    assert caught.value.kind == "in-flight"
