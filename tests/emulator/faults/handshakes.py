"""Two warps hand buffers to two others through named barriers; warps exchange within themselves; CTAs pass flags."""

from __future__ import annotations

import numpy as np

from ptxtile.emulator import launch
from tests.emulator.faults.case import HEAD, Case, Fault

PING_PONG = f"""{HEAD}.visible .entry k(.param .u64 A, .param .u64 B)
{{
.reg .pred %p<8>;
.reg .b32 %r<24>;
.reg .b64 %rd<10>;
.shared .align 16 .b8 s[512];
ld.param.u64 %rd1, [A];
ld.param.u64 %rd2, [B];
mov.u32 %r1, %tid.x;
and.b32 %r2, %r1, 63;
mul.wide.u32 %rd3, %r2, 4;
add.u64 %rd1, %rd1, %rd3;
add.u64 %rd2, %rd2, %rd3;
mov.u32 %r3, s;
mov.u32 %r4, 0;
mov.u32 %r5, 0;
setp.ge.u32 %p1, %r1, 64;
@%p1 bra CONSUMER;
shl.b32 %r6, %r2, 2;
add.u32 %r6, %r6, %r3;
PRODUCE:
add.u32 %r7, %r5, 3;
bar.sync %r7, 128;
ld.global.u32 %r8, [%rd1];
shl.b32 %r9, %r5, 8;
add.u32 %r9, %r9, %r6;
st.shared.u32 [%r9], %r8;
add.u32 %r10, %r5, 1;
bar.arrive %r10, 128;
add.u64 %rd1, %rd1, 256;
xor.b32 %r5, %r5, 1;
add.u32 %r4, %r4, 1;
setp.lt.u32 %p2, %r4, 6;
@%p2 bra PRODUCE;
bra DONE;
CONSUMER:
xor.b32 %r6, %r2, 63;
shl.b32 %r6, %r6, 2;
add.u32 %r6, %r6, %r3;
bar.arrive 3, 128;
bar.arrive 4, 128;
CONSUME:
add.u32 %r10, %r5, 1;
bar.sync %r10, 128;
shl.b32 %r9, %r5, 8;
add.u32 %r9, %r9, %r6;
ld.shared.u32 %r8, [%r9];
st.global.u32 [%rd2], %r8;
add.u32 %r7, %r5, 3;
bar.arrive %r7, 128;
add.u64 %rd2, %rd2, 256;
xor.b32 %r5, %r5, 1;
add.u32 %r4, %r4, 1;
setp.lt.u32 %p2, %r4, 6;
@%p2 bra CONSUME;
DONE:
ret;
}}
"""


def run_ping_pong(text: str, seed: int, sanitize: bool) -> None:
    a, b = np.arange(384, dtype=np.uint32).reshape(6, 64), np.zeros((6, 64), np.uint32)
    launch(text, "k", 1, 128, [a, b], seed=seed, sanitize=sanitize)
    assert (b == a[:, ::-1]).all()


FREE, FULL = "bar.sync %r7, 128;\n", "bar.sync %r10, 128;\n"
FILLED, FREED = "bar.arrive %r10, 128;\n", "bar.arrive %r7, 128;\n"

ping_pong = Case(
    "ping_pong",
    PING_PONG,
    run_ping_pong,
    [
        Fault("the producer waits for nothing", FREE, "", "race", "st.shared or ld.shared"),
        Fault("the consumer waits for nothing", FULL, "", "race", "ld.shared or st.shared"),
        Fault("the producer does not say so", FILLED, "", "deadlock", "bar.sync"),
        Fault("the consumer does not say so", FREED, "", "deadlock", "bar.sync"),
        Fault("a buffer is not free at first", "bar.arrive 4, 128;\n", "", "deadlock", "bar.sync"),
        Fault("counts differ", FILLED, "bar.arrive %r10, 96;\n", "barrier", "bar.sync or bar.arrive"),
        Fault("a count that never comes", FULL, "bar.sync %r10, 160;\n", "barrier", "bar.sync or bar.arrive"),
        Fault("counts too small", "128;", "64;", "race", "st.shared or ld.shared", 99),
        Fault(
            "said before the store",
            "st.shared.u32 [%r9], %r8;\nadd.u32 %r10, %r5, 1;\n" + FILLED,
            "add.u32 %r10, %r5, 1;\n" + FILLED + "st.shared.u32 [%r9], %r8;\n",
            "race",
            "st.shared or ld.shared",
        ),
        Fault(
            "freed before the load",
            "shl.b32 %r9, %r5, 8;\nadd.u32 %r9, %r9, %r6;\nld.shared",
            "add.u32 %r7, %r5, 3;\n" + FREED + "shl.b32 %r9, %r5, 8;\nadd.u32 %r9, %r9, %r6;\nld.shared",
            "race",
            "ld.shared or st.shared",
        ),
        Fault(
            "the other barrier",
            "add.u32 %r10, %r5, 1;\nbar.sync",
            "sub.u32 %r10, 2, %r5;\nbar.sync",
            "deadlock",
            "bar.sync",
        ),
        Fault(
            "one buffer", "shl.b32 %r9, %r5, 8;\n", "mov.u32 %r9, 0;\n", "race", "ld.shared or st.shared", 2
        ),
        Fault(
            "buffers overlap",
            "shl.b32 %r9, %r5, 8;\n",
            "shl.b32 %r9, %r5, 7;\n",
            "race",
            "ld.shared or st.shared",
            2,
        ),
        Fault(
            "a count of no whole warps",
            FILLED,
            "mov.u32 %r11, 120;\nbar.arrive %r10, %r11;\n",
            "barrier",
            "bar.arrive",
        ),
        Fault(
            "no such barrier",
            "add.u32 %r7, %r5, 3;\nbar.sync",
            "add.u32 %r7, %r5, 16;\nbar.sync",
            "barrier",
            "bar.sync",
        ),
        Fault(
            "a round too few", "setp.lt.u32 %p2, %r4, 6;", "setp.lt.u32 %p2, %r4, 5;", "deadlock", "bar.sync"
        ),
    ],
    {
        "the whole is written with barrier": ("bar.sync %r7", "barrier.sync.aligned %r7"),
        "sync where arrive would do": (FILLED + "add.u64 %rd1", FILLED + "bar.warp.sync -1;\nadd.u64 %rd1"),
    },
)

CHAIN = f"""{HEAD}.visible .entry k(.param .u64 A, .param .u64 S, .param .u64 F)
{{
.reg .pred %p<8>;
.reg .b32 %r<24>;
.reg .b64 %rd<12>;
.shared .align 4 .b32 before;
ld.param.u64 %rd1, [A];
ld.param.u64 %rd2, [S];
ld.param.u64 %rd3, [F];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
mul.wide.u32 %rd4, %r2, 4;
add.u64 %rd5, %rd2, %rd4;
add.u64 %rd6, %rd3, %rd4;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra TOGETHER;
mov.u32 %r3, 0;
setp.eq.u32 %p2, %r2, 0;
@%p2 bra FIRST;
LOOK:
ld.acquire.gpu.global.u32 %r4, [%rd6+-4];
setp.eq.u32 %p3, %r4, 0;
@%p3 bra LOOK;
ld.global.u32 %r3, [%rd5+-4];
FIRST:
st.shared.u32 [before], %r3;
add.u32 %r5, %r2, 1;
add.u32 %r6, %r3, %r5;
st.global.u32 [%rd5], %r6;
st.release.gpu.global.u32 [%rd6], 1;
TOGETHER:
bar.sync 0;
ld.shared.u32 %r7, [before];
mad.lo.u32 %r8, %r2, 32, %r1;
mul.wide.u32 %rd7, %r8, 4;
add.u64 %rd7, %rd1, %rd7;
ld.global.u32 %r9, [%rd7];
add.u32 %r9, %r9, %r7;
st.global.u32 [%rd7], %r9;
ret;
}}
"""


def run_chain(text: str, seed: int, sanitize: bool) -> None:
    a = np.zeros((8, 32), np.uint32)
    sums, flags = np.zeros(8, np.uint32), np.zeros(8, np.uint32)
    launch(text, "k", 8, 32, [a, sums, flags], seed=seed, sanitize=sanitize)
    assert (a == np.array([i * (i + 1) // 2 for i in range(8)])[:, None]).all()


ACQUIRE, RELEASE = "ld.acquire.gpu.global.u32 %r4", "st.release.gpu.global.u32 [%rd6], 1;\n"
LOOKS, TELLS = "ld.global.u32 %r3", "st.global.u32 [%rd5]"

chain = Case(
    "chain",
    CHAIN,
    run_chain,
    [
        Fault("read relaxed", ACQUIRE, "ld.relaxed.gpu.global.u32 %r4", "race", LOOKS),
        Fault("read volatile", ACQUIRE, "ld.volatile.global.u32 %r4", "race", LOOKS),
        Fault(
            "acquires in its CTA only",
            ACQUIRE,
            "ld.acquire.cta.global.u32 %r4",
            "race",
            "ld.acquire or st.release",
        ),
        Fault("written relaxed", RELEASE, RELEASE.replace("release", "relaxed"), "race", LOOKS),
        Fault(
            "releases to its CTA only",
            RELEASE,
            RELEASE.replace("gpu", "cta"),
            "race",
            "ld.acquire or st.release",
        ),
        Fault(
            "written weakly",
            RELEASE,
            "st.global.u32 [%rd6], 1;\n",
            "race",
            "st.global.u32 [%rd6] or ld.acquire",
        ),
        Fault(
            "flag before the sum",
            "st.global.u32 [%rd5], %r6;\n" + RELEASE,
            RELEASE + "st.global.u32 [%rd5], %r6;\n",
            "race",
            TELLS + " or " + LOOKS,
        ),
        Fault("does not look", "@%p3 bra LOOK;\n", "", "race", LOOKS + " or " + TELLS),
        Fault("no flag", RELEASE, "", "deadlock", "ld.acquire"),
        Fault("the wrong flag", "[%rd6+-4]", "[%rd6]", "deadlock", "ld.acquire"),
        Fault(
            "a flag of the next one", RELEASE, RELEASE.replace("[%rd6]", "[%rd6+4]"), "deadlock", "ld.acquire"
        ),
        Fault("no barrier", "bar.sync 0;\n", "", "race", "ld.shared"),
        Fault(
            "shared variable not written",
            "st.shared.u32 [before], %r3;\n",
            "",
            "uninitialised",
            "st.global.u32 [%rd7]",
        ),
        Fault(
            "fence after the store",
            RELEASE,
            "st.relaxed.gpu.global.u32 [%rd6], 1;\nfence.acq_rel.gpu;\n",
            "race",
            LOOKS,
        ),
        Fault(
            "fence before the load",
            ACQUIRE,
            "fence.acq_rel.gpu;\nld.relaxed.gpu.global.u32 %r4",
            "race",
            LOOKS,
        ),
    ],
    {
        "fences": (RELEASE, "fence.acq_rel.gpu;\n" + RELEASE.replace("release", "relaxed")),
        "fences as of old": (RELEASE, "membar.gl;\n" + RELEASE.replace("release.gpu", "volatile")),
        "an exchange": (RELEASE, "atom.release.gpu.global.exch.b32 %r10, [%rd6], 1;\n"),
        "a reduction": (RELEASE, "red.release.gpu.global.add.u32 [%rd6], 1;\n"),
        "polls with an atomic": (ACQUIRE + ", [%rd6+-4]", "atom.acquire.gpu.global.or.b32 %r4, [%rd6+-4], 0"),
        "a fence after the loop": ("@%p3 bra LOOK;\n", "@%p3 bra LOOK;\nfence.acq_rel.gpu;\n"),
        "sleeps": ("@%p3 bra LOOK;\n", "@%p3 nanosleep.u32 40;\n@%p3 bra LOOK;\n"),
    },
)

EXCHANGE = f"""{HEAD}.visible .entry k(.param .u64 A)
{{
.reg .pred %p<8>;
.reg .b32 %r<24>;
.reg .b64 %rd<12>;
.shared .align 4 .b8 s[256];
ld.param.u64 %rd1, [A];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 4;
add.u64 %rd1, %rd1, %rd2;
shl.b32 %r2, %r1, 2;
mov.u32 %r3, s;
add.u32 %r4, %r3, %r2;
xor.b32 %r5, %r2, 124;
add.u32 %r5, %r5, %r3;
ld.global.u32 %r6, [%rd1];
st.shared.u32 [%r4], %r6;
bar.warp.sync -1;
ld.shared.u32 %r7, [%r5];
shfl.sync.bfly.b32 %r8, %r7, 1, 31, -1;
add.u32 %r8, %r8, %r7;
bar.warp.sync -1;
st.shared.u32 [%r4], %r8;
bar.warp.sync -1;
ld.shared.u32 %r9, [%r5];
st.global.u32 [%rd1], %r9;
ret;
}}
"""


def run_exchange(text: str, seed: int, sanitize: bool) -> None:
    a = np.arange(64, dtype=np.uint32)
    b = a.copy()
    launch(text, "k", 1, 64, [b], seed=seed, sanitize=sanitize)
    turned = a.reshape(2, 32)[:, ::-1]
    pairs = turned + turned.reshape(2, 16, 2)[:, :, ::-1].reshape(2, 32)
    assert (b.reshape(2, 32) == pairs[:, ::-1]).all()


SYNC = "bar.warp.sync -1;\n"
exchange = Case(
    "exchange",
    EXCHANGE,
    run_exchange,
    [
        Fault("no sync before the load", "[%r4], %r6;\n" + SYNC, "[%r4], %r6;\n", "race", "ld.shared"),
        Fault("no sync before the store", "%r8, %r7;\n" + SYNC, "%r8, %r7;\n", "race", "st.shared"),
        Fault("no sync before the last load", "[%r4], %r8;\n" + SYNC, "[%r4], %r8;\n", "race", "ld.shared"),
        Fault("half of the warp", SYNC, "bar.warp.sync 0xffff;\n", "barrier", "bar.warp.sync"),
        Fault("the neighbour warp's", "xor.b32 %r5, %r2, 124", "xor.b32 %r5, %r2, 252", "race", "ld.shared"),
        Fault(
            "some lanes stay away",
            SYNC,
            "setp.lt.u32 %p1, %r1, 40;\n@%p1 bar.warp.sync 0xff;\n",
            "barrier",
            "@%p1 bar.warp.sync",
        ),
        Fault(
            "a shuffle some never reach",
            "shfl.sync.bfly.b32 %r8, %r7, 1, 31, -1;\n",
            "mov.u32 %r8, 0;\nand.b32 %r10, %r1, 1;\nsetp.eq.u32 %p2, %r10, 0;\n@%p2 shfl.sync.bfly.b32 %r8, %r7, 1, 31, -1;\n",
            "deadlock",
            "@%p2 shfl or bar.warp",
        ),
    ],
    {
        "a barrier of all": (SYNC, "bar.sync 0;\n"),
        "in two halves": (
            "bar.warp.sync -1;\nld.shared.u32 %r9",
            "bar.warp.sync 0xffffffff;\nld.shared.u32 %r9",
        ),
    },
)
CASES = [ping_pong, chain, exchange]
