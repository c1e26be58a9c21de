"""A sum of blocks of which the last adds up the parts, and a histogram: shared memory, atomics, flags."""

from __future__ import annotations

import numpy as np

from ptxtile.emulator import launch
from tests.emulator.faults.case import HEAD, Case, Fault

SUM = f"""{HEAD}.visible .entry k(.param .u64 A, .param .u64 P, .param .u64 T, .param .u64 O)
{{
.reg .pred %p<8>;
.reg .b32 %r<24>;
.reg .b64 %rd<12>;
.shared .align 4 .b32 s[128];
.shared .align 4 .b32 last;
ld.param.u64 %rd1, [A];
ld.param.u64 %rd2, [P];
ld.param.u64 %rd3, [T];
ld.param.u64 %rd4, [O];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
mov.u32 %r3, %nctaid.x;
mad.lo.u32 %r4, %r2, 128, %r1;
mul.wide.u32 %rd5, %r4, 4;
add.u64 %rd5, %rd1, %rd5;
ld.global.u32 %r5, [%rd5];
shl.b32 %r6, %r1, 2;
mov.u32 %r7, s;
add.u32 %r6, %r6, %r7;
st.shared.u32 [%r6], %r5;
mov.u32 %r8, 64;
HALVE:
bar.sync 0;
setp.ge.u32 %p1, %r1, %r8;
@%p1 bra NEXT;
shl.b32 %r9, %r8, 2;
add.u32 %r9, %r9, %r6;
ld.shared.u32 %r10, [%r9];
ld.shared.u32 %r11, [%r6];
add.u32 %r11, %r11, %r10;
st.shared.u32 [%r6], %r11;
NEXT:
shr.u32 %r8, %r8, 1;
setp.ne.u32 %p2, %r8, 0;
@%p2 bra HALVE;
mul.wide.u32 %rd6, %r2, 4;
add.u64 %rd6, %rd2, %rd6;
setp.ne.u32 %p3, %r1, 0;
@%p3 bra MEET;
st.global.u32 [%rd6], %r11;
fence.acq_rel.gpu;
atom.relaxed.gpu.global.add.u32 %r12, [%rd3], 1;
fence.acq_rel.gpu;
add.u32 %r12, %r12, 1;
st.shared.u32 [last], %r12;
MEET:
bar.sync 0;
ld.shared.u32 %r13, [last];
setp.ne.u32 %p4, %r13, %r3;
@%p4 bra DONE;
setp.ge.u32 %p5, %r1, 32;
@%p5 bra DONE;
mov.u32 %r14, 0;
setp.ge.u32 %p6, %r1, %r3;
mul.wide.u32 %rd7, %r1, 4;
add.u64 %rd7, %rd2, %rd7;
@!%p6 ld.global.u32 %r14, [%rd7];
redux.sync.add.u32 %r15, %r14, 0xffffffff;
setp.eq.u32 %p7, %r1, 0;
@%p7 st.global.u32 [%rd4], %r15;
DONE:
ret;
}}
"""


def run_sum(text: str, seed: int, sanitize: bool) -> None:
    a = np.arange(5 * 128, dtype=np.uint32)
    parts, ticket, out = np.zeros(5, np.uint32), np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    launch(text, "k", 5, 128, [a, parts, ticket, out], seed=seed, sanitize=sanitize)
    assert out[0] == a.sum()


ATOM = "atom.relaxed.gpu.global.add.u32 %r12, [%rd3], 1;\n"
FENCE = "fence.acq_rel.gpu;\n"

block_sum = Case(
    "block_sum",
    SUM,
    run_sum,
    [
        Fault("no barrier in the loop", "HALVE:\nbar.sync 0;\n", "HALVE:\n", "race", "ld.shared"),
        Fault(
            "a barrier before the loop alone",
            "HALVE:\nbar.sync 0;\n",
            "bar.sync 0;\nHALVE:\n",
            "race",
            "ld.shared",
        ),
        Fault(
            "barrier where not all come",
            "setp.ge.u32 %p1, %r1, %r8;\n@%p1 bra NEXT;\n",
            "setp.ge.u32 %p1, %r1, %r8;\n@%p1 bra NEXT;\nbar.sync 0;\n",
            "barrier",
            "bar.sync",
        ),
        Fault(
            "one row too far",
            "mov.u32 %r8, 64;",
            "mov.u32 %r8, 65;",
            "race or out-of-bounds or uninitialised",
            "ld.shared or bar.sync or st.shared or @%p4",
        ),
        Fault(
            "begins at twice the distance",
            "mov.u32 %r8, 64;",
            "mov.u32 %r8, 128;",
            "out-of-bounds",
            "ld.shared",
        ),
        Fault(
            "index off by one",
            "ld.shared.u32 %r10, [%r9];",
            "ld.shared.u32 %r10, [%r9+4];",
            "out-of-bounds",
            "ld.shared",
        ),
        Fault("no fence before the ticket", FENCE + ATOM, ATOM, "race", "@!%p6 ld.global"),
        Fault("no fence after the ticket", ATOM + FENCE, ATOM, "race", "@!%p6 ld.global"),
        Fault("fences of the CTA", FENCE, "fence.acq_rel.cta;\n", "race", "@!%p6 ld.global", 9),
        Fault(
            "the ticket is no atomic",
            ATOM,
            "ld.global.u32 %r12, [%rd3];\nadd.u32 %r16, %r12, 1;\nst.global.u32 [%rd3], %r16;\n",
            "race",
            "st.global.u32 [%rd3] or ld.global.u32 %r12",
        ),
        Fault(
            "the ticket before the part",
            "st.global.u32 [%rd6], %r11;\n" + FENCE + ATOM,
            FENCE + ATOM + "st.global.u32 [%rd6], %r11;\n",
            "race",
            "@!%p6 ld.global",
        ),
        Fault("no barrier for the message", "MEET:\nbar.sync 0;\n", "MEET:\n", "race", "ld.shared.u32 %r13"),
        Fault("all threads take a ticket", "@%p3 bra MEET;\n", "", "uninitialised", "st.global.u32 [%rd6]"),
        Fault("sum not set", "mov.u32 %r14, 0;\n", "", "uninitialised", "redux"),
        Fault(
            "too many parts read",
            "setp.ge.u32 %p6, %r1, %r3;",
            "setp.gt.u32 %p6, %r1, %r3;",
            "out-of-bounds",
            "@!%p6 ld.global",
        ),
        Fault("a warp that is not asked", "0xffffffff;", "0xffff;", "barrier", "redux"),
        Fault("result by all CTAs", "@%p4 bra DONE;\n", "", "race", "@!%p6 ld.global or @%p7 st.global"),
        Fault(
            "wrong pointer",
            "add.u64 %rd5, %rd1, %rd5;",
            "add.u64 %rd5, %rd4, %rd5;",
            "out-of-bounds",
            "ld.global.u32 %r5",
        ),
        Fault("pointer not added", "add.u64 %rd5, %rd1, %rd5;\n", "", "out-of-bounds", "ld.global.u32 %r5"),
        Fault("predicate not set", "setp.ne.u32 %p3, %r1, 0;\n", "", "uninitialised", "@%p3 bra"),
    ],
    {
        "an acquiring ticket": (FENCE + ATOM + FENCE, ATOM.replace("relaxed", "acq_rel")),
        "an old fence": (FENCE, "membar.gl;\n"),
        "a mask that names who is gone": ("setp.ge.u32 %p5, %r1, 32;\n", "setp.ge.u32 %p5, %r1, 16;\n"),
        "who is done leaves": (
            "setp.ge.u32 %p5, %r1, 32;\n@%p5 bra DONE;\n",
            "setp.ge.u32 %p5, %r1, 32;\n@%p5 ret;\n",
        ),
    },
)

HISTOGRAM = f"""{HEAD}.visible .entry k(.param .u64 A, .param .u64 H)
{{
.reg .pred %p<8>;
.reg .b32 %r<24>;
.reg .b64 %rd<12>;
.shared .align 4 .b32 bins[32];
.shared .align 4 .b32 seen;
ld.param.u64 %rd1, [A];
ld.param.u64 %rd2, [H];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
mov.u32 %r3, bins;
shl.b32 %r4, %r1, 2;
add.u32 %r5, %r3, %r4;
setp.lt.u32 %p1, %r1, 32;
@%p1 st.shared.u32 [%r5], 0;
setp.eq.u32 %p2, %r1, 0;
@%p2 st.shared.u32 [seen], 0;
bar.sync 0;
mad.lo.u32 %r6, %r2, 64, %r1;
mul.wide.u32 %rd3, %r6, 4;
add.u64 %rd3, %rd1, %rd3;
ld.global.u32 %r7, [%rd3];
and.b32 %r7, %r7, 31;
shl.b32 %r7, %r7, 2;
add.u32 %r7, %r7, %r3;
red.shared.add.u32 [%r7], 1;
red.shared.add.u32 [seen], 1;
bar.sync 0;
@!%p1 bra DONE;
ld.shared.u32 %r8, [%r5];
mul.wide.u32 %rd4, %r1, 4;
add.u64 %rd4, %rd2, %rd4;
red.global.add.u32 [%rd4], %r8;
DONE:
ret;
}}
"""


def run_histogram(text: str, seed: int, sanitize: bool) -> None:
    a = np.random.default_rng(6).integers(0, 1 << 16, 256).astype(np.uint32)
    h = np.zeros(32, np.uint32)
    launch(text, "k", 4, 64, [a, h], seed=seed, sanitize=sanitize)
    assert (h == np.bincount(a & 31, minlength=32)).all()


RED = "red.shared.add.u32 [%r7], 1;\n"
PLAIN = "ld.shared.u32 %r9, [%r7];\nadd.u32 %r9, %r9, 1;\nst.shared.u32 [%r7], %r9;\n"

histogram = Case(
    "histogram",
    HISTOGRAM,
    run_histogram,
    [
        Fault("bins not cleared", "@%p1 st.shared.u32 [%r5], 0;\n", "", "uninitialised", "red.shared"),
        Fault(
            "some bins not cleared",
            "setp.lt.u32 %p1, %r1, 32;\n@%p1 st",
            "setp.lt.u32 %p1, %r1, 31;\n@%p1 st",
            "uninitialised",
            "red.shared",
        ),
        Fault(
            "too many bins cleared",
            "setp.lt.u32 %p1, %r1, 32;\n@%p1 st",
            "setp.lt.u32 %p1, %r1, 33;\n@%p1 st",
            "out-of-bounds",
            "@%p1 st.shared",
        ),
        Fault(
            "no barrier after clearing",
            "@%p2 st.shared.u32 [seen], 0;\nbar.sync 0;\n",
            "@%p2 st.shared.u32 [seen], 0;\n",
            "race",
            "red.shared",
        ),
        Fault(
            "no barrier before reading",
            "[seen], 1;\nbar.sync 0;\n",
            "[seen], 1;\n",
            "race",
            "ld.shared or red.shared",
        ),
        Fault("counts without an atomic", RED, PLAIN, "race", "st.shared or ld.shared"),
        Fault(
            "counts without one, elsewhere",
            "red.shared.add.u32 [seen], 1;\n",
            "ld.shared.u32 %r9, [seen];\nadd.u32 %r9, %r9, 1;\nst.shared.u32 [seen], %r9;\n",
            "race",
            "st.shared.u32 [seen]",
        ),
        Fault(
            "mask of the bins",
            "and.b32 %r7, %r7, 31;",
            "and.b32 %r7, %r7, 63;",
            "out-of-bounds",
            "red.shared",
        ),
        Fault(
            "merged without an atomic",
            "red.global.add.u32 [%rd4], %r8;",
            "ld.global.u32 %r9, [%rd4];\nadd.u32 %r9, %r9, %r8;\nst.global.u32 [%rd4], %r9;",
            "race",
            "ld.global or st.global",
        ),
        Fault(
            "merged in its own CTA's sight",
            "red.global.add.u32",
            "red.relaxed.cta.global.add.u32",
            "race",
            "red.relaxed.cta",
        ),
        Fault(
            "a tail that is not guarded",
            "mad.lo.u32 %r6, %r2, 64, %r1;",
            "mad.lo.u32 %r6, %r2, 65, %r1;",
            "out-of-bounds",
            "ld.global",
        ),
        Fault(
            "half a word",
            "add.u32 %r7, %r7, %r3;",
            "add.u32 %r7, %r7, %r3;\nadd.u32 %r7, %r7, 2;",
            "misaligned",
            "red.shared",
        ),
        Fault(
            "merged too early",
            "@!%p1 bra DONE;\nld.shared.u32 %r8, [%r5];",
            "@!%p1 bra DONE;\nld.shared.u32 %r8, [%r5+4];",
            "out-of-bounds",
            "ld.shared",
        ),
    ],
    {
        "a relaxed reduction": (RED, "red.relaxed.cta.shared.add.u32 [%r7], 1;\n"),
        "atomics": (RED, "atom.shared.add.u32 %r9, [%r7], 1;\n"),
        "threads that are done leave": ("@!%p1 bra DONE;\n", "@!%p1 ret;\n"),
    },
)

CASES = [block_sum, histogram]
