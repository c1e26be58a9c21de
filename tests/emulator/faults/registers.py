"""A GEMM whose A comes from registers: what wgmma asks of registers, step by step."""

from __future__ import annotations

import numpy as np

from ptxtile.emulator import launch
from tests.emulator.faults.case import HEAD, Case, Fault

D4 = "{%f1, %f2, %f3, %f4}"
A4 = "{%r20, %r21, %r22, %r23}"
LOADS = """ld.global.b32 %r20, [%rd4];
ld.global.b32 %r21, [%rd4+1024];
ld.global.b32 %r22, [%rd4+16];
ld.global.b32 %r23, [%rd4+1040];
"""
FENCE, COMMIT = "wgmma.fence.sync.aligned;\n", "wgmma.commit_group.sync.aligned;\n"
WAIT = "wgmma.wait_group.sync.aligned 0;\n"
MMA = f"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {D4}, {A4}, %rd7, %p7, 1, 1, 0;\n"
TEXT = f"""{HEAD}.visible .entry k(.param .u64 A, .param .u64 B, .param .u64 C)
{{
.reg .pred %p<8>;
.reg .b32 %r<40>;
.reg .b64 %rd<12>;
.reg .f32 %f<8>;
.shared .align 128 .b8 s[1024];
ld.param.u64 %rd1, [A];
ld.param.u64 %rd2, [B];
ld.param.u64 %rd3, [C];
mov.u32 %r1, %tid.x;
mov.u32 %r2, s;
setp.ge.u32 %p1, %r1, 64;
@%p1 bra FILLED;
shr.u32 %r3, %r1, 3;
and.b32 %r4, %r1, 7;
shl.b32 %r5, %r1, 4;
cvt.u64.u32 %rd5, %r5;
add.u64 %rd5, %rd2, %rd5;
ld.global.v4.b32 {{%r6, %r7, %r8, %r9}}, [%rd5];
shl.b32 %r10, %r4, 7;
shl.b32 %r11, %r3, 4;
add.u32 %r10, %r10, %r11;
add.u32 %r10, %r10, %r2;
st.shared.v4.b32 [%r10], {{%r6, %r7, %r8, %r9}};
fence.proxy.async.shared::cta;
FILLED:
bar.sync 0;
shr.u32 %r12, %r1, 5;
shl.b32 %r12, %r12, 4;
shr.u32 %r13, %r1, 2;
and.b32 %r13, %r13, 7;
add.u32 %r12, %r12, %r13;
and.b32 %r14, %r1, 3;
shl.b32 %r15, %r12, 7;
shl.b32 %r16, %r14, 2;
add.u32 %r15, %r15, %r16;
cvt.u64.u32 %rd4, %r15;
add.u64 %rd4, %rd1, %rd4;
shr.u32 %r17, %r2, 4;
cvt.u64.u32 %rd7, %r17;
add.u64 %rd7, %rd7, {(16 << 32) | (8 << 16)};
mov.f32 %f1, 0f00000000;
mov.f32 %f2, 0f00000000;
mov.f32 %f3, 0f00000000;
mov.f32 %f4, 0f00000000;
setp.eq.u32 %p7, %r1, %r1;
mov.u32 %r18, 0;
STEP:
{LOADS}{FENCE}{MMA}{COMMIT}{WAIT}add.u64 %rd4, %rd4, 32;
add.u64 %rd7, %rd7, 16;
add.u32 %r18, %r18, 1;
setp.lt.u32 %p2, %r18, 4;
@%p2 bra STEP;
shl.b32 %r19, %r12, 5;
shl.b32 %r30, %r14, 3;
add.u32 %r19, %r19, %r30;
cvt.u64.u32 %rd8, %r19;
add.u64 %rd8, %rd3, %rd8;
st.global.v2.f32 [%rd8], {{%f1, %f2}};
st.global.v2.f32 [%rd8+256], {{%f3, %f4}};
ret;
}}
"""


def run(text: str, seed: int, sanitize: bool) -> None:
    chance = np.random.default_rng(5)
    a = chance.integers(-3, 4, (64, 64)).astype(np.float16)
    b = chance.integers(-3, 4, (8, 64)).astype(np.float16)
    c = np.zeros((64, 8), np.float32)
    launch(text, "k", 1, 128, [a, b, c], seed=seed, sanitize=sanitize)
    assert (c == a.astype(np.float32) @ b.astype(np.float32).T).all()


ISSUE, FIRST = "wgmma.mma_async", "ld.global.b32 %r20"
registers_gemm = Case(
    "registers_gemm",
    TEXT,
    run,
    [
        Fault("no wgmma.fence", FENCE, "", "in-flight", ISSUE),
        Fault("fence before the loads", LOADS + FENCE, FENCE + LOADS, "in-flight", ISSUE),
        Fault(
            "fence amid the loads",
            LOADS + FENCE,
            LOADS.replace("ld.global.b32 %r22", FENCE + "ld.global.b32 %r22"),
            "in-flight",
            ISSUE,
        ),
        Fault("fence after the issue", FENCE + MMA, MMA + FENCE, "in-flight", ISSUE),
        Fault(
            "fence once, before the loop",
            "STEP:\n" + LOADS + FENCE,
            FENCE + "STEP:\n" + LOADS,
            "in-flight",
            ISSUE,
        ),
        Fault(
            "an element changed after the fence",
            FENCE,
            FENCE + "xor.b32 %r22, %r22, 0;\n",
            "in-flight",
            ISSUE,
        ),
        Fault("accumulator set after the fence", FENCE, FENCE + "mov.f32 %f4, %f4;\n", "in-flight", ISSUE),
        Fault("no wait", WAIT, "", "in-flight", FIRST),
        Fault("waits for all but one", WAIT, "wgmma.wait_group.sync.aligned 1;\n", "in-flight", FIRST),
        Fault("no commit", COMMIT, "", "in-flight", FIRST),
        Fault("commit after the wait", COMMIT + WAIT, WAIT + COMMIT, "in-flight", FIRST),
        Fault(
            "A read before the wait", COMMIT, COMMIT + "add.u32 %r31, %r23, 1;\n", "in-flight", "add.u32 %r31"
        ),
        Fault(
            "A overwritten before the wait",
            COMMIT,
            COMMIT + "mov.b32 %r21, 0;\n",
            "in-flight",
            "mov.b32 %r21",
        ),
        Fault(
            "D read before the wait", COMMIT, COMMIT + "add.f32 %f5, %f1, %f1;\n", "in-flight", "add.f32 %f5"
        ),
        Fault("no proxy fence", "fence.proxy.async.shared::cta;\n", "", "proxy", ISSUE),
        Fault("no barrier", "bar.sync 0;\n", "", "race", ISSUE),
        Fault("A loaded in part", "ld.global.b32 %r22, [%rd4+16];\n", "", "uninitialised", "st.global.v2"),
        Fault("a step too many", "%r18, 4;", "%r18, 5;", "out-of-bounds", ISSUE + " or ld.global.b32"),
        Fault(
            "B overwritten early",
            COMMIT,
            COMMIT + "@!%p1 st.shared.b32 [%r10], 0;\n",
            "in-flight",
            "@!%p1 st.shared",
        ),
    ],
    {
        "waits at the head of the loop": ("STEP:\n", "STEP:\n" + WAIT),
        "a fence more": (MMA, FENCE + MMA),
        "a group of nothing": (COMMIT, COMMIT + COMMIT),
    },
)
CASES = [registers_gemm]
