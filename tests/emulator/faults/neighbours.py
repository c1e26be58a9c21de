"""Shared memory of neighbours in a cluster: a ring that reads it, a mailbox that is written asynchronously."""

from __future__ import annotations

import numpy as np

from ptxtile.emulator import launch
from tests.emulator.faults.case import HEAD, Case, Fault

TRY = "mbarrier.try_wait"
RING = f"""{HEAD}.visible .entry k(.param .u64 A, .param .u64 B)
{{
.reg .pred %p<8>;
.reg .b32 %r<30>;
.reg .b64 %rd<10>;
.shared .align 4 .b8 s[128];
ld.param.u64 %rd1, [A];
ld.param.u64 %rd2, [B];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %cluster_ctarank;
mov.u32 %r3, %ctaid.x;
mad.lo.u32 %r4, %r3, 32, %r1;
mul.wide.u32 %rd3, %r4, 4;
add.u64 %rd1, %rd1, %rd3;
add.u64 %rd2, %rd2, %rd3;
ld.global.u32 %r5, [%rd1];
shl.b32 %r6, %r1, 2;
mov.u32 %r7, s;
add.u32 %r8, %r7, %r6;
st.shared.u32 [%r8], %r5;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
add.u32 %r9, %r2, 1;
and.b32 %r9, %r9, 3;
mapa.shared::cluster.u32 %r10, %r7, %r9;
xor.b32 %r11, %r6, 124;
add.u32 %r10, %r10, %r11;
ld.shared::cluster.u32 %r12, [%r10];
st.global.u32 [%rd2], %r12;
barrier.cluster.arrive.aligned;  // last
barrier.cluster.wait.aligned;  // last
ret;
}}
"""


def run_ring(text: str, seed: int, sanitize: bool) -> None:
    a, b = np.arange(256, dtype=np.uint32).reshape(2, 4, 32), np.zeros((2, 4, 32), np.uint32)
    launch(text, "k", 8, 32, [a, b], cluster=4, seed=seed, sanitize=sanitize)
    assert (b == np.roll(a, -1, axis=1)[:, :, ::-1]).all()


RING_FIRST = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
RING_LAST = "barrier.cluster.arrive.aligned;  // last\nbarrier.cluster.wait.aligned;  // last\n"

ring = Case(
    "ring",
    RING,
    run_ring,
    [
        Fault(
            "no barrier of the cluster",
            RING_FIRST,
            "",
            "race or uninitialised",
            "ld.shared::cluster or st.global",
        ),
        Fault(
            "a barrier of the CTA",
            RING_FIRST,
            "bar.sync 0;\n",
            "race or uninitialised",
            "ld.shared::cluster or st.global",
        ),
        Fault(
            "arrives relaxed", "arrive.aligned;\n", "arrive.relaxed.aligned;\n", "race", "ld.shared::cluster"
        ),
        Fault("leaves too early", RING_LAST, "", "exit", "ld.shared::cluster"),
        Fault(
            "arrives and leaves", "barrier.cluster.wait.aligned;  // last\n", "", "exit", "ld.shared::cluster"
        ),
        Fault(
            "arrives and does not wait", "barrier.cluster.wait.aligned;\n", "", "race", "ld.shared::cluster"
        ),
        Fault(
            "waits without having arrived",
            "barrier.cluster.arrive.aligned;\n",
            "",
            "barrier",
            "barrier.cluster.wait",
        ),
        Fault("a rank too high", "and.b32 %r9, %r9, 3;\n", "", "out-of-bounds", "mapa"),
        Fault(
            "beyond its end",
            "add.u32 %r10, %r10, %r11;",
            "add.u32 %r10, %r10, 128;",
            "out-of-bounds",
            "ld.shared::cluster",
        ),
        Fault(
            "as its own memory",
            "ld.shared::cluster.u32",
            "ld.shared::cta.u32",
            "out-of-bounds",
            "ld.shared::cta",
        ),
        Fault(
            "overwritten while it is read",
            "st.global.u32 [%rd2], %r12;\n",
            "st.global.u32 [%rd2], %r12;\nst.shared.u32 [%r8], 0;\n",
            "race",
            "st.shared.u32 [%r8], 0",
        ),
        Fault(
            "half of them arrive",
            "barrier.cluster.arrive.aligned;  // last\nbarrier.cluster.wait.aligned;  // last\n",
            "setp.gt.u32 %p1, %r2, 1;\n@%p1 bra LOOP;\nbarrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nret;\nLOOP:\nld.volatile.shared.u32 %r20, [s];\nsetp.ne.u32 %p2, %r20, 7777;\n@%p2 bra LOOP;\n",
            "deadlock",
            "barrier.cluster.wait or ld.volatile",
        ),
    ],
    {
        "arrives released by a fence": (
            "barrier.cluster.arrive.aligned;\n",
            "fence.acq_rel.cluster;\nbarrier.cluster.arrive.relaxed.aligned;\n",
        ),
        "a plain generic address": (
            "ld.shared::cluster.u32 %r12, [%r10];",
            "cvt.u64.u32 %rd4, %r10;\ncvta.shared::cluster.u64 %rd4, %rd4;\nld.u32 %r12, [%rd4];",
        ),
    },
)

MAILBOX = f"""{HEAD}.visible .entry k(.param .u64 A, .param .u64 B)
{{
.reg .pred %p<8>;
.reg .b32 %r<30>;
.reg .b64 %rd<10>;
.shared .align 16 .b8 s[128];
.shared .align 8 .b64 come;
ld.param.u64 %rd1, [A];
ld.param.u64 %rd2, [B];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %cluster_ctarank;
mul.wide.u32 %rd3, %r1, 4;
add.u64 %rd1, %rd1, %rd3;
add.u64 %rd2, %rd2, %rd3;
mov.u32 %r3, s;
mov.u32 %r4, come;
shl.b32 %r5, %r1, 2;
add.u32 %r6, %r3, %r5;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [%r4], 1;
setp.eq.u32 %p4, %r2, 1;
@%p4 mbarrier.arrive.expect_tx.shared.b64 _, [%r4], 128;
READY:
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
setp.ne.u32 %p2, %r2, 0;
@%p2 bra RECEIVE;
ld.global.u32 %r7, [%rd1];
mapa.shared::cluster.u32 %r8, %r6, 1;
mapa.shared::cluster.u32 %r9, %r4, 1;
st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r8], %r7, [%r9];
bra DONE;
RECEIVE:
mbarrier.try_wait.parity.shared.b64 %p3, [%r4], 0;
@!%p3 bra RECEIVE;
xor.b32 %r10, %r5, 124;
add.u32 %r10, %r10, %r3;
ld.shared.u32 %r11, [%r10];
st.global.u32 [%rd2], %r11;
DONE:
ret;
}}
"""


def run_mailbox(text: str, seed: int, sanitize: bool) -> None:
    a, b = np.arange(32, dtype=np.uint32) + 5, np.zeros(32, np.uint32)
    launch(text, "k", 2, 32, [a, b], cluster=2, seed=seed, sanitize=sanitize)
    assert (b == a[::-1]).all()


MAIL_START = "READY:\nbarrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n"
EXPECT = "@%p4 mbarrier.arrive.expect_tx.shared.b64 _, [%r4], 128;\n"
WAIT = "RECEIVE:\nmbarrier.try_wait.parity.shared.b64 %p3, [%r4], 0;\n@!%p3 bra RECEIVE;\n"
SEND = "st.async"

mailbox = Case(
    "mailbox",
    MAILBOX,
    run_mailbox,
    [
        Fault("no barrier of the cluster", MAIL_START, "READY:\nbar.sync 0;\n", "race or mbarrier", SEND),
        Fault("a byte count too high", EXPECT, EXPECT.replace("128", "132"), "deadlock", TRY),
        Fault("a byte count too low", EXPECT, EXPECT.replace("128", "124"), "in-flight", "ld.shared"),
        Fault(
            "no count at all",
            EXPECT,
            "@%p4 mbarrier.arrive.shared.b64 _, [%r4];\n",
            "in-flight or uninitialised",
            "ld.shared or st.global",
        ),
        Fault("no wait", WAIT, "RECEIVE:\n", "in-flight", "ld.shared"),
        Fault(
            "no init",
            "mbarrier.init.shared.b64 [%r4], 1;\n",
            "",
            "mbarrier",
            "@%p4 mbarrier.arrive.expect_tx",
        ),
        Fault("waits for the wrong parity", "[%r4], 0;\n@!", "[%r4], 1;\n@!", "in-flight", "ld.shared"),
        Fault("the receiver leaves at once", "RECEIVE:\n", "RECEIVE:\nret;\n", "exit", SEND),
        Fault(
            "sent beyond the box",
            "mapa.shared::cluster.u32 %r8, %r6, 1;",
            "mapa.shared::cluster.u32 %r8, %r6, 1;\nadd.u32 %r8, %r8, 4;",
            "out-of-bounds",
            SEND,
        ),
        Fault(
            "sent to itself",
            "mapa.shared::cluster.u32 %r9, %r4, 1;",
            "mapa.shared::cluster.u32 %r9, %r4, 0;",
            "deadlock",
            TRY,
        ),
        Fault(
            "box cleared by the receiver",
            "RECEIVE:\n",
            "RECEIVE:\nst.shared.u32 [%r6], 0;\n",
            "race or in-flight",
            "st.shared or " + SEND,
        ),
    ],
    {
        "expects in a phase of its own": (
            EXPECT,
            "@%p4 mbarrier.expect_tx.relaxed.cta.shared.b64 [%r4], 128;\nmbarrier.arrive.shared.b64 _, [%r4];\n",
        ),
        "expects after the bytes may have come": (
            EXPECT + MAIL_START,
            MAIL_START
            + "setp.eq.u32 %p4, %r4, 0;\n@!%p1 setp.eq.u32 %p4, %r2, 1;\n@%p4 mbarrier.arrive.expect_tx.shared.b64 _, [%r4], 128;\n",
        ),
    },
)
CASES = [ring, mailbox]
