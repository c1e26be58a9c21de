"""A transposition through shared memory, in rounds: barriers on both sides of each."""

from __future__ import annotations

import numpy as np

from ptxtile.emulator import launch
from tests.emulator.faults.case import HEAD, Case, Fault

TRANSPOSE = f"""{HEAD}.visible .entry k(.param .u64 A, .param .u64 B)
{{
.reg .pred %p<8>;
.reg .b32 %r<24>;
.reg .b64 %rd<12>;
.shared .align 4 .b8 s[1088];
ld.param.u64 %rd1, [A];
ld.param.u64 %rd2, [B];
mov.u32 %r1, %tid.x;
and.b32 %r2, %r1, 15;
shr.u32 %r3, %r1, 4;
mov.u32 %r4, s;
mul.wide.u32 %rd3, %r1, 4;
add.u64 %rd1, %rd1, %rd3;
add.u64 %rd2, %rd2, %rd3;
mov.u32 %r10, 0;
ROUND:
ld.global.u32 %r5, [%rd1];
mad.lo.u32 %r6, %r3, 17, %r2;
shl.b32 %r6, %r6, 2;
add.u32 %r6, %r6, %r4;
st.shared.u32 [%r6], %r5;
bar.sync 0;
mad.lo.u32 %r7, %r2, 17, %r3;
shl.b32 %r7, %r7, 2;
add.u32 %r7, %r7, %r4;
ld.shared.u32 %r8, [%r7];
st.global.u32 [%rd2], %r8;
bar.sync 0;
add.u64 %rd1, %rd1, 1024;
add.u64 %rd2, %rd2, 1024;
add.u32 %r10, %r10, 1;
setp.lt.u32 %p1, %r10, 3;
@%p1 bra ROUND;
ret;
}}
"""


def run_transpose(text: str, seed: int, sanitize: bool) -> None:
    a = np.arange(3 * 256, dtype=np.uint32).reshape(3, 16, 16)
    b = np.zeros_like(a)
    launch(text, "k", 1, 256, [a, b], seed=seed, sanitize=sanitize)
    assert (b == a.transpose(0, 2, 1)).all()


transpose = Case(
    "transpose",
    TRANSPOSE,
    run_transpose,
    [
        Fault(
            "no barrier before the loads",
            "st.shared.u32 [%r6], %r5;\nbar.sync 0;\n",
            "st.shared.u32 [%r6], %r5;\n",
            "race",
            "ld.shared",
        ),
        Fault(
            "no barrier before the next round",
            "st.global.u32 [%rd2], %r8;\nbar.sync 0;\n",
            "st.global.u32 [%rd2], %r8;\n",
            "race",
            "st.shared",
        ),
        Fault("barriers of a warp", "bar.sync 0;\n", "bar.warp.sync -1;\n", "race", "ld.shared", 9),
        Fault(
            "rows differ",
            "mad.lo.u32 %r7, %r2, 17, %r3;",
            "mad.lo.u32 %r7, %r2, 16, %r3;",
            "uninitialised",
            "st.global",
        ),
        Fault(
            "rows overlap",
            "mad.lo.u32 %r6, %r3, 17, %r2;",
            "mad.lo.u32 %r6, %r3, 15, %r2;",
            "race",
            "st.shared",
        ),
        Fault("memory too small", "s[1088]", "s[1080]", "out-of-bounds", "st.shared"),
        Fault("a round too many", "%r10, 3;", "%r10, 4;", "out-of-bounds", "ld.global"),
        Fault(
            "a barrier that half skips",
            "st.global.u32 [%rd2], %r8;\nbar.sync 0;\n",
            "st.global.u32 [%rd2], %r8;\nsetp.gt.u32 %p2, %r2, 7;\n@%p2 bra OVER;\nbar.sync 0;\nOVER:\n",
            "barrier",
            "bar.sync",
        ),
        Fault(
            "a barrier that a warp skips",
            "st.global.u32 [%rd2], %r8;\nbar.sync 0;\n",
            "st.global.u32 [%rd2], %r8;\nsetp.gt.u32 %p2, %r1, 223;\n@%p2 bra OVER;\nbar.sync 0;\nOVER:\n",
            "race or deadlock",
            "ld.shared or st.shared or bar.sync",
        ),
        Fault(
            "a store through a pointer to const",
            "add.u64 %rd2, %rd2, %rd3;\n",
            "mov.u64 %rd2, 0;\nadd.u64 %rd2, %rd2, %rd3;\n",
            "out-of-bounds",
            "st.global",
        ),
        Fault("no pointer", "ld.param.u64 %rd2, [B];\n", "", "uninitialised", "st.global"),
    ],
    {
        "numbered barriers": ("bar.sync 0;", "bar.sync 5, 256;"),
        "unaligned barriers": ("bar.sync 0;", "barrier.sync 0;"),
    },
)
CASES = [transpose]
