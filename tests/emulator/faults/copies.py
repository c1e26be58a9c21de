"""A GEMM with three stages of cp.async, and one that stages through registers and multiplies with wgmma."""

from __future__ import annotations

import numpy as np

from ptxtile.emulator import launch
from tests.emulator.faults.case import HEAD, Case, Fault

LOAD = """add.u32 %r14, %r13, %r6;
cp.async.cg.shared.global [%r14], [%rd4], 16;
add.u32 %r15, %r13, %r10;
@%p1 cp.async.cg.shared.global [%r15], [%rd5], 16;
{commit}add.u64 %rd4, %rd4, 32;
add.u64 %rd5, %rd5, 32;
add.u32 %r13, %r13, 1280;
{wrap}add.u32 %r12, %r12, 1;
"""
WRAP = "setp.eq.u32 %p4, %r13, %r30;\n@%p4 mov.u32 %r13, %r2;\n"
PIPELINE = f"""{HEAD}.visible .entry k(.param .u64 A, .param .u64 B, .param .u64 C)
{{
.reg .pred %p<8>;
.reg .b32 %r<40>;
.reg .b64 %rd<10>;
.reg .f32 %f<8>;
.shared .align 128 .b8 s[3840];
ld.param.u64 %rd1, [A];
ld.param.u64 %rd2, [B];
ld.param.u64 %rd3, [C];
mov.u32 %r1, %tid.x;
mov.u32 %r2, s;
add.u32 %r30, %r2, 3840;
xor.b32 %r3, %r1, 32;
shr.u32 %r4, %r3, 1;
and.b32 %r5, %r3, 1;
shl.b32 %r5, %r5, 4;
shl.b32 %r6, %r4, 5;
add.u32 %r6, %r6, %r5;
mad.lo.u32 %r7, %r4, 192, %r5;
cvt.u64.u32 %rd4, %r7;
add.u64 %rd4, %rd1, %rd4;
shr.u32 %r8, %r1, 1;
and.b32 %r9, %r1, 1;
shl.b32 %r9, %r9, 4;
shl.b32 %r10, %r8, 5;
add.u32 %r10, %r10, %r9;
add.u32 %r10, %r10, 1024;
mad.lo.u32 %r11, %r8, 192, %r9;
cvt.u64.u32 %rd5, %r11;
add.u64 %rd5, %rd2, %rd5;
setp.lt.u32 %p1, %r1, 16;
mov.u32 %r12, 0;
mov.u32 %r13, %r2;
FILL:
{LOAD.format(commit="cp.async.commit_group;  // fill" + chr(10), wrap="")}setp.lt.u32 %p2, %r12, 2;
@%p2 bra FILL;
and.b32 %r18, %r1, 31;
shr.u32 %r19, %r1, 5;
and.b32 %r31, %r18, 15;
shl.b32 %r32, %r19, 4;
add.u32 %r31, %r31, %r32;
shl.b32 %r31, %r31, 5;
and.b32 %r32, %r18, 16;
add.u32 %r31, %r31, %r32;
and.b32 %r33, %r18, 7;
shl.b32 %r33, %r33, 5;
and.b32 %r34, %r18, 8;
shl.b32 %r34, %r34, 1;
add.u32 %r33, %r33, %r34;
mov.u32 %r16, 0;
mov.u32 %r17, %r2;
mov.f32 %f1, 0f00000000;
mov.f32 %f2, 0f00000000;
mov.f32 %f3, 0f00000000;
mov.f32 %f4, 0f00000000;
STEP:
cp.async.wait_group 1;
bar.sync 0;
setp.ge.u32 %p3, %r12, 6;
@%p3 bra SKIP;
{LOAD.format(commit="", wrap=WRAP)}SKIP:
cp.async.commit_group;  // step
add.u32 %r35, %r17, %r31;
ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r20, %r21, %r22, %r23}}, [%r35];
add.u32 %r36, %r17, %r33;
ldmatrix.sync.aligned.m8n8.x2.shared.b16 {{%r24, %r25}}, [%r36+1024];
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%f1, %f2, %f3, %f4}}, {{%r20, %r21, %r22, %r23}}, {{%r24, %r25}}, {{%f1, %f2, %f3, %f4}};
add.u32 %r17, %r17, 1280;
setp.eq.u32 %p5, %r17, %r30;
@%p5 mov.u32 %r17, %r2;
add.u32 %r16, %r16, 1;
setp.lt.u32 %p6, %r16, 6;
@%p6 bra STEP;
shl.b32 %r37, %r19, 4;
shr.u32 %r38, %r18, 2;
add.u32 %r37, %r37, %r38;
and.b32 %r38, %r18, 3;
shl.b32 %r37, %r37, 5;
shl.b32 %r38, %r38, 3;
add.u32 %r37, %r37, %r38;
cvt.u64.u32 %rd6, %r37;
add.u64 %rd6, %rd3, %rd6;
st.global.v2.f32 [%rd6], {{%f1, %f2}};
st.global.v2.f32 [%rd6+256], {{%f3, %f4}};
ret;
}}
"""


def run_pipeline(text: str, seed: int, sanitize: bool) -> None:
    chance = np.random.default_rng(3)
    a = chance.integers(-3, 4, (32, 96)).astype(np.float16)
    b = chance.integers(-3, 4, (8, 96)).astype(np.float16)
    c = np.zeros((32, 8), np.float32)
    launch(text, "k", 1, 64, [a, b, c], seed=seed, sanitize=sanitize)
    assert (c == a.astype(np.float32) @ b.astype(np.float32).T).all()


WAIT, BAR = "cp.async.wait_group 1;\n", "bar.sync 0;\n"
STEP_COMMIT, FILL_COMMIT = "cp.async.commit_group;  // step\n", "cp.async.commit_group;  // fill\n"
STEP_LOAD = LOAD.format(commit="", wrap=WRAP)
GUARDED = f"setp.ge.u32 %p3, %r12, 6;\n@%p3 bra SKIP;\n{STEP_LOAD}SKIP:\n"
COPY_A = "cp.async.cg.shared.global [%r14]"

cp_async_gemm = Case(
    "cp_async_gemm",
    PIPELINE,
    run_pipeline,
    [
        Fault("no wait", WAIT, "", "in-flight", "ldmatrix"),
        Fault("waits for too little", WAIT, "cp.async.wait_group 2;\n", "in-flight", "ldmatrix"),
        Fault("no barrier", BAR, "", "race", "ldmatrix"),
        Fault("barrier before the wait", WAIT + BAR, BAR + WAIT, "race", "ldmatrix"),
        Fault("fill not committed", FILL_COMMIT, "", "in-flight", "ldmatrix"),
        Fault("step not committed", STEP_COMMIT, "", "in-flight", "ldmatrix"),
        Fault(
            "commit only where there is a load",
            "SKIP:\n" + STEP_COMMIT,
            STEP_COMMIT + "SKIP:\n",
            "in-flight",
            "ldmatrix",
        ),
        Fault(
            "two stages of three",
            "@%p4 mov.u32 %r13, %r2;",
            "@%p4 add.u32 %r13, %r2, 1280;",
            "in-flight",
            "ldmatrix",
        ),
        Fault("loads before the barrier", BAR + GUARDED, GUARDED + BAR, "race", COPY_A),
        Fault(
            "next stage read", "mov.u32 %r17, %r2;\n", "add.u32 %r17, %r2, 1280;\n", "in-flight", "ldmatrix"
        ),
        Fault(
            "accumulator not set",
            "mov.f32 %f3, 0f00000000;\n",
            "",
            "uninitialised",
            "st.global.v2.f32 [%rd6+256]",
        ),
        Fault(
            "B loaded in part",
            "setp.lt.u32 %p1, %r1, 16",
            "setp.lt.u32 %p1, %r1, 15",
            "uninitialised",
            "st.global.v2",
        ),
        Fault("pitch of A", "mad.lo.u32 %r7, %r4, 192", "mad.lo.u32 %r7, %r4, 208", "out-of-bounds", COPY_A),
        Fault(
            "one step too many",
            "setp.ge.u32 %p3, %r12, 6",
            "setp.ge.u32 %p3, %r12, 7",
            "out-of-bounds",
            COPY_A,
        ),
        Fault("misaligned", "add.u64 %rd4, %rd4, 32;", "add.u64 %rd4, %rd4, 36;", "misaligned", COPY_A),
        Fault("wrap forgotten", "@%p4 mov.u32 %r13, %r2;\n", "", "out-of-bounds", COPY_A),
        Fault(
            "rows of C", "shl.b32 %r37, %r37, 5;", "shl.b32 %r37, %r37, 6;", "out-of-bounds", "st.global.v2"
        ),
        Fault("C stored by both warps", "shl.b32 %r37, %r19, 4;", "mov.u32 %r37, 0;", "race", "st.global.v2"),
        Fault(
            "source overwritten",
            STEP_COMMIT,
            STEP_COMMIT + "@!%p3 st.global.u32 [%rd4+-32], 0;\n",
            "in-flight",
            "@!%p3 st.global",
        ),
        Fault(
            "stage cleared early",
            STEP_COMMIT,
            STEP_COMMIT + "@!%p3 st.shared.u32 [%r14], 0;\n",
            "in-flight",
            "@!%p3 st.shared",
        ),
        Fault(
            "read at once",
            FILL_COMMIT,
            FILL_COMMIT + "ld.shared.u32 %r39, [%r14];\n",
            "in-flight",
            "ld.shared",
        ),
    ],
    {
        "waits for all groups": (WAIT, "cp.async.wait_group 0;\n"),
        "waits for everything": (WAIT, "cp.async.wait_all;\n"),
        "a barrier more": (STEP_COMMIT, STEP_COMMIT + BAR),
        "loads after the product": ("bar.sync 0;\nsetp.ge", "bar.sync 0;\nbar.warp.sync -1;\nsetp.ge"),
    },
)

D4 = "{%f1, %f2, %f3, %f4}"
STAGED = f"""{HEAD}.visible .entry k(.param .u64 A, .param .u64 B, .param .u64 C)
{{
.reg .pred %p<8>;
.reg .b32 %r<40>;
.reg .b64 %rd<12>;
.reg .f32 %f<8>;
.shared .align 128 .b8 s[4608];
ld.param.u64 %rd1, [A];
ld.param.u64 %rd2, [B];
ld.param.u64 %rd3, [C];
mov.u32 %r1, %tid.x;
mov.u32 %r2, s;
shr.u32 %r3, %r1, 1;
and.b32 %r4, %r1, 1;
shl.b32 %r5, %r3, 7;
shl.b32 %r6, %r4, 4;
add.u32 %r5, %r5, %r6;
cvt.u64.u32 %rd4, %r5;
add.u64 %rd5, %rd2, %rd4;
add.u64 %rd4, %rd1, %rd4;
shr.u32 %r7, %r3, 3;
shl.b32 %r7, %r7, 8;
shl.b32 %r8, %r4, 7;
and.b32 %r9, %r3, 7;
shl.b32 %r9, %r9, 4;
add.u32 %r7, %r7, %r8;
add.u32 %r7, %r7, %r9;
setp.lt.u32 %p1, %r1, 16;
setp.ne.u32 %p7, %r1, %r1;
mov.u32 %r10, 0;
mov.u32 %r11, 0;
STEP:
ld.global.v4.b32 {{%r20, %r21, %r22, %r23}}, [%rd4];
@%p1 ld.global.v4.b32 {{%r24, %r25, %r26, %r27}}, [%rd5];
add.u32 %r12, %r2, %r11;
add.u32 %r13, %r12, %r7;
st.shared.v4.b32 [%r13], {{%r20, %r21, %r22, %r23}};
@%p1 st.shared.v4.b32 [%r13+2048], {{%r24, %r25, %r26, %r27}};
fence.proxy.async.shared::cta;
bar.sync 0;
shr.u32 %r14, %r12, 4;
cvt.u64.u32 %rd6, %r14;
add.u64 %rd6, %rd6, {(16 << 32) | (8 << 16)};
add.u64 %rd7, %rd6, 128;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {D4}, %rd6, %rd7, %p7, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
setp.eq.u32 %p7, %r1, %r1;
wgmma.wait_group.sync.aligned 1;
add.u64 %rd4, %rd4, 32;
add.u64 %rd5, %rd5, 32;
xor.b32 %r11, %r11, 2304;
add.u32 %r10, %r10, 1;
setp.lt.u32 %p2, %r10, 4;
@%p2 bra STEP;
wgmma.wait_group.sync.aligned 0;
shr.u32 %r15, %r1, 2;
and.b32 %r16, %r15, 7;
shr.u32 %r17, %r1, 5;
shl.b32 %r17, %r17, 4;
add.u32 %r16, %r16, %r17;
shl.b32 %r16, %r16, 5;
and.b32 %r18, %r1, 3;
shl.b32 %r18, %r18, 3;
add.u32 %r16, %r16, %r18;
cvt.u64.u32 %rd8, %r16;
add.u64 %rd8, %rd3, %rd8;
st.global.v2.f32 [%rd8], {{%f1, %f2}};
st.global.v2.f32 [%rd8+256], {{%f3, %f4}};
ret;
}}
"""


def run_staged(text: str, seed: int, sanitize: bool) -> None:
    chance = np.random.default_rng(4)
    a = chance.integers(-3, 4, (64, 64)).astype(np.float16)
    b = chance.integers(-3, 4, (8, 64)).astype(np.float16)
    c = np.zeros((64, 8), np.float32)
    launch(text, "k", 1, 128, [a, b, c], seed=seed, sanitize=sanitize)
    assert (c == a.astype(np.float32) @ b.astype(np.float32).T).all()


PROXY, FENCE = "fence.proxy.async.shared::cta;\n", "wgmma.fence.sync.aligned;\n"
COMMIT, WAIT1, WAIT0 = (
    "wgmma.commit_group.sync.aligned;\n",
    "wgmma.wait_group.sync.aligned 1;\n",
    "wgmma.wait_group.sync.aligned 0;\n",
)
MMA = "wgmma.mma_async"
STORES = (
    "st.shared.v4.b32 [%r13], {%r20, %r21, %r22, %r23};\n"
    "@%p1 st.shared.v4.b32 [%r13+2048], {%r24, %r25, %r26, %r27};\n"
)

staged_wgmma = Case(
    "staged_wgmma",
    STAGED,
    run_staged,
    [
        Fault("no proxy fence", PROXY, "", "proxy", MMA),
        Fault("no barrier", "bar.sync 0;\n", "", "race", MMA),
        Fault("proxy fence before the stores", STORES + PROXY, PROXY + STORES, "proxy", MMA),
        Fault("no wgmma.fence", FENCE, "", "in-flight", MMA),
        Fault("no commit", COMMIT, "", "in-flight", "st.shared.v4"),
        Fault(
            "waits for too little", WAIT1, "wgmma.wait_group.sync.aligned 2;\n", "in-flight", "st.shared.v4"
        ),
        Fault("no wait in the loop", WAIT1, "", "in-flight", "st.shared.v4"),
        Fault(
            "no wait at the end",
            "@%p2 bra STEP;\n" + WAIT0,
            "@%p2 bra STEP;\n",
            "in-flight",
            "st.global.v2.f32 [%rd8]",
        ),
        Fault("one stage", "xor.b32 %r11, %r11, 2304;\n", "", "in-flight", "st.shared.v4"),
        Fault(
            "accumulator cleared", COMMIT, COMMIT + "mov.f32 %f2, 0f00000000;\n", "in-flight", "mov.f32 %f2"
        ),
        Fault("accumulator read", COMMIT, COMMIT + "add.f32 %f5, %f4, %f4;\n", "in-flight", "add.f32 %f5"),
        Fault("accumulator scaled", WAIT1, WAIT1 + "mul.f32 %f1, %f1, %f1;\n", "in-flight", "mul.f32 %f1"),
        Fault(
            "fence before the accumulator",
            FENCE,
            FENCE + "mov.f32 %f1, 0f00000000;\n",
            "in-flight",
            "mov.f32 %f1 or " + MMA,
        ),
        Fault(
            "B not stored",
            "@%p1 st.shared.v4.b32 [%r13+2048], {%r24, %r25, %r26, %r27};\n",
            "",
            "uninitialised",
            MMA,
        ),
        Fault(
            "B stored in part",
            "setp.lt.u32 %p1, %r1, 16",
            "setp.lt.u32 %p1, %r1, 14",
            "uninitialised",
            "st.global.v2",
        ),
        Fault(
            "descriptor leads away",
            "add.u64 %rd7, %rd6, 128;",
            "add.u64 %rd7, %rd6, 1200;",
            "out-of-bounds",
            MMA,
        ),
        Fault(
            "half of the warpgroup leaves",
            "STEP:\n",
            "setp.gt.u32 %p3, %r1, 95;\n@%p3 ret;\nSTEP:\n",
            "barrier",
            MMA,
        ),
    ],
    {
        "the issuer fences": (PROXY + "bar.sync 0;\n", PROXY + "bar.sync 0;\n" + PROXY),
        "the reader fences": (PROXY + "bar.sync 0;\n", "bar.sync 0;\n" + PROXY),
        "waits for all": (WAIT1, WAIT0),
        "a wait more": (WAIT0 + "shr", WAIT0 + WAIT0 + "shr"),
    },
)
CASES = [cp_async_gemm, staged_wgmma]
