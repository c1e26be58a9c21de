"""Bulk copies in, a change in place, a bulk reduction out: two chunks through one buffer, in four CTAs."""

from __future__ import annotations

import numpy as np

from ptxtile.emulator import launch
from tests.emulator.faults.case import HEAD, Case, Fault

REDUCE = f"""{HEAD}.visible .entry k(.param .u64 A, .param .u64 B)
{{
.reg .pred %p<8>;
.reg .b32 %r<24>;
.reg .b64 %rd<10>;
.shared .align 128 .b8 s[512];
.shared .align 8 .b64 full;
ld.param.u64 %rd1, [A];
ld.param.u64 %rd2, [B];
mov.u32 %r1, %tid.x;
mov.u32 %r2, s;
mov.u32 %r3, full;
shl.b32 %r4, %r1, 2;
add.u32 %r4, %r4, %r2;
mov.u32 %r5, %ctaid.x;
mul.wide.u32 %rd3, %r5, 1024;
add.u64 %rd1, %rd1, %rd3;
setp.eq.u32 %p1, %r1, 0;
@!%p1 bra READY;
mbarrier.init.shared.b64 [%r3], 1;
fence.mbarrier_init.release.cluster;
READY:
bar.sync 0;
mov.u32 %r6, 0;
CHUNK:
@!%p1 bra WAIT;
mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 512;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 512, [%r3];
WAIT:
mbarrier.try_wait.parity.shared.b64 %p2, [%r3], %r6;
@!%p2 bra WAIT;
ld.shared.u32 %r7, [%r4];
shl.b32 %r7, %r7, 1;
st.shared.u32 [%r4], %r7;
fence.proxy.async.shared::cta;
bar.sync 0;
@!%p1 bra NEXT;
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd2], [%r2], 512;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0;
NEXT:
add.u64 %rd1, %rd1, 512;
add.u64 %rd2, %rd2, 512;
add.u32 %r6, %r6, 1;
setp.lt.u32 %p3, %r6, 2;
@%p3 bra CHUNK;
ret;
}}
"""


def run_reduce(text: str, seed: int, sanitize: bool) -> None:
    a = np.arange(1024, dtype=np.uint32).reshape(4, 256)
    b = np.zeros(256, np.uint32)
    launch(text, "k", 4, 128, [a, b], seed=seed, sanitize=sanitize)
    assert (b == 2 * a.sum(axis=0)).all()


LOAD, OUT = "cp.async.bulk.shared::cluster", "cp.reduce.async.bulk"
INIT, FENCE = "fence.mbarrier_init.release.cluster;\n", "fence.proxy.async.shared::cta;\n"
READY, BAR = "READY:\nbar.sync 0;\n", FENCE + "bar.sync 0;\n"
COMMIT, READ = "cp.async.bulk.commit_group;\n", "cp.async.bulk.wait_group.read 0;\n"
WAIT = "WAIT:\nmbarrier.try_wait.parity.shared.b64 %p2, [%r3], %r6;\n@!%p2 bra WAIT;\n"
EXPECT = "mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 512;\n"
COPY = LOAD + ".global.mbarrier::complete_tx::bytes [%r2], [%rd1], 512, [%r3];\n"
TRY = "mbarrier.try_wait"

bulk_reduce = Case(
    "bulk_reduce",
    REDUCE,
    run_reduce,
    [
        Fault("no init fence", INIT, "", "proxy", LOAD),
        Fault("no init", "mbarrier.init.shared.b64 [%r3], 1;\n", "", "mbarrier", "mbarrier.arrive.expect_tx"),
        Fault("nobody waits for the init", READY, "READY:\n", "race", TRY),
        Fault("too many arrivals expected", "[%r3], 1;", "[%r3], 2;", "deadlock", TRY),
        Fault("no wait", WAIT, "WAIT:\n", "in-flight", "ld.shared"),
        Fault("waits once", "@!%p2 bra WAIT;\n", "", "in-flight", "ld.shared"),
        Fault("wrong parity", "[%r3], %r6;\n@!", "[%r3], 1;\n@!", "in-flight", "ld.shared"),
        Fault("parity not flipped", "[%r3], %r6;\n@!", "[%r3], 0;\n@!", "in-flight", "ld.shared"),
        Fault("too few bytes expected", "_, [%r3], 512", "_, [%r3], 496", "deadlock", TRY),
        Fault("too many bytes expected", "_, [%r3], 512", "_, [%r3], 528", "deadlock", TRY),
        Fault(
            "no bytes expected",
            "mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 512",
            "mbarrier.arrive.shared.b64 _, [%r3]",
            "in-flight",
            "ld.shared or " + LOAD,
        ),
        Fault(
            "no arrival", EXPECT, "mbarrier.expect_tx.relaxed.cta.shared.b64 [%r3], 512;\n", "deadlock", TRY
        ),
        Fault("a smaller copy", "[%rd1], 512, [%r3]", "[%rd1], 496, [%r3]", "deadlock", TRY),
        Fault(
            "a size that is no multiple",
            COPY,
            "mov.u32 %r10, 504;\n" + COPY.replace("512", "%r10"),
            "misaligned",
            LOAD,
        ),
        Fault(
            "a source that is misaligned",
            "mul.wide.u32 %rd3, %r5, 1024",
            "mul.wide.u32 %rd3, %r5, 1028",
            "misaligned",
            LOAD,
        ),
        Fault(
            "a source beyond the end",
            "mul.wide.u32 %rd3, %r5, 1024",
            "mul.wide.u32 %rd3, %r5, 1280",
            "out-of-bounds",
            LOAD,
        ),
        Fault("no proxy fence", FENCE, "", "proxy", OUT),
        Fault(
            "proxy fence before the store",
            "st.shared.u32 [%r4], %r7;\n" + FENCE,
            FENCE + "st.shared.u32 [%r4], %r7;\n",
            "proxy",
            OUT,
        ),
        Fault("no barrier before the reduction", BAR, FENCE, "race", OUT),
        Fault("no commit", COMMIT, "", "in-flight", LOAD),
        Fault("no wait for the source", READ, "", "in-flight", LOAD),
        Fault("waits for all but one", READ, "cp.async.bulk.wait_group.read 1;\n", "in-flight", LOAD),
        Fault(
            "source changed",
            COMMIT,
            COMMIT + "st.shared.u32 [%r4], 0;\n",
            "in-flight",
            "st.shared.u32 [%r4], 0",
        ),
        Fault("result read too early", READ, READ + "ld.global.u32 %r9, [%rd2];\n", "in-flight", "ld.global"),
        Fault(
            "result read beside others' reductions",
            READ,
            "cp.async.bulk.wait_group 0;\nld.global.u32 %r9, [%rd2];\n",
            "in-flight",
            "ld.global or " + OUT,
        ),
        Fault(
            "ends with its source in use",
            READ,
            "setp.eq.u32 %p5, %r6, 0;\n@!%p5 bra NEXT;\n" + READ,
            "exit",
            OUT,
        ),
        Fault(
            "not atomic",
            OUT + ".global.shared::cta.bulk_group.add.u32",
            "cp.async.bulk.global.shared::cta.bulk_group",
            "in-flight",
            "cp.async.bulk.global",
        ),
        Fault("one element too many", "mov.u32 %r2, s;", "mov.u32 %r2, s+4;", "misaligned", LOAD),
        Fault(
            "off by one",
            "ld.shared.u32 %r7, [%r4];",
            "ld.shared.u32 %r7, [%r4+4];",
            "out-of-bounds",
            "ld.shared",
        ),
        Fault(
            "stored over the mbarrier",
            "st.shared.u32 [%r4], %r7;\n",
            "st.shared.u32 [%r4], %r7;\nst.shared.u32 [%r3], %r7;\n",
            "mbarrier",
            "st.shared.u32 [%r3]",
        ),
    ],
    {
        "fences by a stronger one": (INIT, "fence.proxy.async;\n"),
        "waits for the writes too": (READ, "cp.async.bulk.wait_group 0;\n"),
        "expects after the copy": (EXPECT + COPY, COPY + EXPECT),
    },
)
CASES = [bulk_reduce]
