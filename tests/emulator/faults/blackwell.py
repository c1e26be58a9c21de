"""A product of tcgen05 in tensor memory: allocation, stores, the product, its commit, loads."""

from __future__ import annotations

import numpy as np

from ptxtile.emulator import launch
from tests.emulator import tensor_memory_kernel as made
from tests.emulator.faults.case import Case, Fault

M, N, K, SIZE = 128, 32, 16, 8192


def _inputs() -> tuple[np.ndarray, np.ndarray, np.ndarray, str]:
    """What is due, the words of C, the bytes of A and B, and the product's instructions."""
    chance = np.random.default_rng(2)
    a, b, c = (chance.integers(-4, 5, shape) for shape in ((M, K), (N, K), (M, N)))
    raw_a, along_a, down_a = made.place(a.astype(np.float16).view(np.uint8), 32, 4096)
    raw_b, along_b, down_b = made.place(b.astype(np.float16).view(np.uint8), 32, 4096)
    shared = np.concatenate([raw_a, raw_b])
    work = (
        f"mov.b32 %r55, {made.instruction(M, N)};\n"
        f"add.u64 %rd11, %rd10, {made.descriptor(along_a, down_a, 32)};\n"
        f"add.u64 %rd12, %rd10, {made.descriptor(along_b, down_b, 32, 4096)};\n"
        "tcgen05.mma.cta_group::1.kind::f16 [%r50], %rd11, %rd12, %r55, %p5;"
    )
    return a @ b.T + c, c.astype(np.float32).view(np.uint32), shared, work


DUE, WORDS, SHARED, WORK = _inputs()
TEXT = made.text(WORK, SIZE, N).replace("; ", ";\n").replace(": ", ":\n")


def run(text: str, seed: int, sanitize: bool) -> None:
    out = np.zeros_like(WORDS)
    launch(text, "k", 1, 128, [SHARED, WORDS, out], seed=seed, sanitize=sanitize)
    assert (out.view(np.float32) == DUE).all()


WAIT_LD, WAIT_ST = "tcgen05.wait::ld.sync.aligned;\n", "tcgen05.wait::st.sync.aligned;\n"
COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];\n"
POLL = "mbarrier.try_wait.parity.shared.b64 %p7, [bar], 0;\n@!%p7 bra WORKED;\n"
DEALLOC = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r50, 32;\n"
MMA, LD, OUT = "tcgen05.mma", "tcgen05.ld", "st.global.b32 [%rd3+0]"

tensor_product = Case(
    "tensor_product",
    TEXT,
    run,
    [
        Fault("no wait for the loads", WAIT_LD, "", "in-flight", OUT),
        Fault("waits for the stores instead", WAIT_LD, WAIT_ST, "in-flight", OUT),
        Fault(
            "a register read before the wait",
            WAIT_LD,
            "add.u32 %r40, %v7, 1;\n" + WAIT_LD,
            "in-flight",
            "add.u32 %r40",
        ),
        Fault(
            "a register set before the wait",
            WAIT_LD,
            "mov.b32 %v9, 0;\n" + WAIT_LD,
            "in-flight",
            "mov.b32 %v9",
        ),
        Fault(
            "waits too late",
            WAIT_LD + "st.global.b32 [%rd3+0], %v0;\n",
            "st.global.b32 [%rd3+0], %v0;\n" + WAIT_LD,
            "in-flight",
            OUT,
        ),
        Fault("no wait for the stores", WAIT_ST, "", "in-flight or race", MMA),
        Fault("no wait for the product", POLL, "", "in-flight", LD),
        Fault("looks at the mbarrier once", "@!%p7 bra WORKED;\n", "", "in-flight", LD),
        Fault("wrong parity", "[bar], 0;\n", "[bar], 1;\n", "in-flight", LD),
        Fault("no commit", COMMIT, "", "deadlock", "mbarrier.try_wait"),
        Fault("two arrivals expected", "[bar], 1;\n", "[bar], 2;\n", "deadlock", "mbarrier.try_wait"),
        Fault("no proxy fence", "fence.proxy.async;\n", "", "proxy", MMA),
        Fault(
            "matrices overwritten early",
            COMMIT,
            COMMIT + "st.shared.b32 [s], 0;\n",
            "in-flight",
            "st.shared.b32 [s], 0",
        ),
        Fault("never given back", DEALLOC, "", "tensor-memory", "tcgen05.alloc"),
        Fault("given back twice", DEALLOC, DEALLOC + DEALLOC, "tensor-memory", "tcgen05.dealloc"),
        Fault("columns beyond", "[%r51+0], {%v0", "[%r51+8], {%v0", "tensor-memory", "tcgen05.st"),
        Fault(
            "another warp's lanes",
            "shl.b32 %r13, %r3, 21;",
            "shl.b32 %r13, %r3, 22;",
            "tensor-memory",
            "tcgen05.st or " + LD,
        ),
        Fault(
            "address not waited for",
            "bar.sync 0;\nld.shared.u32 %r50",
            "ld.shared.u32 %r50",
            "race or uninitialised",
            "ld.shared.u32 %r50 or tcgen05.st",
        ),
    ],
    {"a commit of nothing first": (WAIT_LD, WAIT_LD + WAIT_LD)},
)
CASES = [tensor_product]
