"""A cluster of two, of which each copies half of every stage to both, and both free it."""

from __future__ import annotations

import numpy as np

from ptxtile.emulator import launch
from tests.emulator.faults.case import HEAD, Case, Fault

MULTICAST = f"""{HEAD}.visible .entry k(.param .u64 A, .param .u64 B)
{{
.reg .pred %p<8>;
.reg .b16 %h<2>;
.reg .b32 %r<30>;
.reg .b64 %rd<10>;
.shared .align 128 .b8 s[1024];
.shared .align 8 .b64 full[2];
.shared .align 8 .b64 empty[2];
ld.param.u64 %rd1, [A];
ld.param.u64 %rd2, [B];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %cluster_ctarank;
mov.u32 %r3, s;
mov.u32 %r4, full;
mov.u32 %r5, empty;
setp.eq.u32 %p1, %r1, 0;
@!%p1 bra READY;
mbarrier.init.shared.b64 [%r4], 1;
mbarrier.init.shared.b64 [%r4+8], 1;
mbarrier.init.shared.b64 [%r5], 2;
mbarrier.init.shared.b64 [%r5+8], 2;
fence.mbarrier_init.release.cluster;
READY:
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
mapa.shared::cluster.u32 %r6, %r5, 0;
mapa.shared::cluster.u32 %r7, %r5, 1;
mul.wide.u32 %rd3, %r2, 256;
add.u64 %rd1, %rd1, %rd3;
add.u64 %rd2, %rd2, %rd3;
mul.wide.u32 %rd4, %r1, 4;
add.u64 %rd2, %rd2, %rd4;
shl.b32 %r8, %r2, 8;
mov.u16 %h1, 3;
mov.u32 %r10, 0;
mov.u32 %r11, 0;
mov.u32 %r12, 0;
ROUND:
shl.b32 %r13, %r11, 3;
add.u32 %r14, %r4, %r13;
add.u32 %r15, %r5, %r13;
shl.b32 %r16, %r11, 9;
add.u32 %r16, %r16, %r3;
@!%p1 bra CONSUME;
xor.b32 %r17, %r12, 1;
FREE:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r15], %r17;
@!%p2 bra FREE;
mbarrier.arrive.expect_tx.shared.b64 _, [%r14], 512;
add.u32 %r18, %r16, %r8;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r18], [%rd1], 256, [%r14], %h1;
CONSUME:
mbarrier.try_wait.parity.shared.b64 %p3, [%r14], %r12;
@!%p3 bra CONSUME;
shl.b32 %r19, %r1, 2;
add.u32 %r19, %r19, %r16;
ld.shared.u32 %r20, [%r19];
ld.shared.u32 %r21, [%r19+256];
sub.u32 %r20, %r20, %r21;
st.global.u32 [%rd2], %r20;
bar.sync 0;
@!%p1 bra NEXT;
add.u32 %r22, %r6, %r13;
mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r22];
add.u32 %r23, %r7, %r13;
mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r23];
NEXT:
add.u64 %rd1, %rd1, 512;
add.u64 %rd2, %rd2, 512;
add.u32 %r11, %r11, 1;
setp.eq.u32 %p4, %r11, 2;
@%p4 xor.b32 %r12, %r12, 1;
@%p4 mov.u32 %r11, 0;
add.u32 %r10, %r10, 1;
setp.lt.u32 %p5, %r10, 5;
@%p5 bra ROUND;
barrier.cluster.arrive.release.aligned;  // last
barrier.cluster.wait.acquire.aligned;  // last
ret;
}}
"""


def run_multicast(text: str, seed: int, sanitize: bool) -> None:
    a = np.arange(5 * 128, dtype=np.uint32).reshape(5, 2, 64) ** 2
    b = np.zeros((5, 2, 64), np.uint32)
    launch(text, "k", 2, 64, [a, b], cluster=2, seed=seed, sanitize=sanitize)
    assert (b == (a[:, 0] - a[:, 1])[:, None]).all()


START = "READY:\nbarrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n"
LAST = "barrier.cluster.arrive.release.aligned;  // last\nbarrier.cluster.wait.acquire.aligned;  // last\n"
FREE = "FREE:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r15], %r17;\n@!%p2 bra FREE;\n"
FULL = "CONSUME:\nmbarrier.try_wait.parity.shared.b64 %p3, [%r14], %r12;\n@!%p3 bra CONSUME;\n"
INIT = "fence.mbarrier_init.release.cluster;\n"
COPY, TRY = "cp.async.bulk.shared::cluster", "mbarrier.try_wait"
ARRIVE0 = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r22];\n"
ARRIVE1 = ARRIVE0.replace("%r22", "%r23")
HANDSHAKE = """@!%p1 bra DONE;
LAST0:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r5], 0;
@!%p2 bra LAST0;
LAST1:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r5+8], 1;
@!%p2 bra LAST1;
DONE:
"""

multicast = Case(
    "multicast",
    MULTICAST,
    run_multicast,
    [
        Fault("no init fence", INIT, "", "proxy", COPY),
        Fault("fence of the generic proxy", INIT, "fence.acq_rel.cluster;\n", "proxy", COPY),
        Fault(
            "no cluster barrier at first",
            START,
            "READY:\nbar.sync 0;\n",
            "race or mbarrier",
            COPY + " or mbarrier",
        ),
        Fault("no wait for the cluster", "barrier.cluster.wait.acquire.aligned;\n", "", "race", COPY),
        Fault("leaves too early", LAST, "", "exit", "mbarrier.arrive.release.cluster or " + COPY),
        Fault(
            "stages not waited for",
            FREE,
            "FREE:\n",
            "mbarrier or in-flight or race",
            "mbarrier.arrive.expect_tx or " + COPY,
        ),
        Fault(
            "data not waited for", FULL, "CONSUME:\n", "in-flight or uninitialised", "ld.shared or st.global"
        ),
        Fault(
            "data looked at once",
            "@!%p3 bra CONSUME;\n",
            "",
            "in-flight or uninitialised",
            "ld.shared or st.global",
        ),
        Fault("the other CTA is not told", ARRIVE1, "", "deadlock", TRY),
        Fault("its own CTA is not told", ARRIVE0, "", "deadlock", TRY),
        Fault(
            "told before the loads of all",
            "bar.sync 0;\n@!%p1 bra NEXT;\n",
            "@!%p1 bra NEXT;\n",
            "race or in-flight",
            COPY + " or ld.shared",
        ),
        Fault("arrives relaxed", ARRIVE0, ARRIVE0.replace("release", "relaxed"), "race or in-flight", COPY),
        Fault(
            "half of the bytes",
            "_, [%r14], 512",
            "_, [%r14], 256",
            "in-flight or deadlock",
            "ld.shared or " + TRY + " or " + COPY,
        ),
        Fault("only to itself", "mov.u16 %h1, 3;", "mov.u16 %h1, 1;", "deadlock", TRY),
        Fault("to a CTA that is not there", "mov.u16 %h1, 3;", "mov.u16 %h1, 7;", "out-of-bounds", COPY),
        Fault("both write one half", "shl.b32 %r8, %r2, 8;", "mov.u32 %r8, 0;", "in-flight", COPY),
        Fault(
            "one arrival is enough",
            "mbarrier.init.shared.b64 [%r5], 2;",
            "mbarrier.init.shared.b64 [%r5], 1;",
            "race or mbarrier or in-flight",
            COPY + " or mbarrier",
        ),
        Fault(
            "three arrivals",
            "mbarrier.init.shared.b64 [%r5], 2;",
            "mbarrier.init.shared.b64 [%r5], 3;",
            "deadlock",
            TRY,
        ),
        Fault(
            "the stage's parity",
            "@%p4 xor.b32 %r12, %r12, 1;\n",
            "",
            "deadlock or in-flight or mbarrier",
            TRY + " or ld.shared or mbarrier or " + COPY,
        ),
        Fault("parity of the free stages", "xor.b32 %r17, %r12, 1;", "mov.u32 %r17, %r12;", "deadlock", TRY),
        Fault(
            "a rank too high",
            "mapa.shared::cluster.u32 %r7, %r5, 1;",
            "mapa.shared::cluster.u32 %r7, %r5, 2;",
            "out-of-bounds",
            "mapa",
        ),
        Fault(
            "a stage for a row", "shl.b32 %r16, %r11, 9;", "shl.b32 %r16, %r11, 10;", "out-of-bounds", COPY
        ),
        Fault(
            "the neighbour's memory as its own",
            "mapa.shared::cluster.u32 %r7, %r5, 1;",
            "mov.u32 %r7, %r5;",
            "mbarrier or deadlock or race or in-flight",
            "mbarrier or " + COPY,
        ),
    ],
    {
        "a handshake at the end": (LAST, HANDSHAKE),
        "the proxy fence": (INIT, "fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;\n"),
        "arrival before the copy's bytes": (FREE, FREE + "nanosleep.u32 20;\n"),
        "the init's fence releases": ("arrive.release.aligned;\nbarrier", "arrive.relaxed.aligned;\nbarrier"),
        "arrives without order": ("arrive.release.aligned;  // last", "arrive.relaxed.aligned;  // last"),
    },
)

CASES = [multicast]
