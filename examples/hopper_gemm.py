"""C = A @ B.T on Hopper: bfloat16 in, float32 accumulated, bfloat16 out; any M, N and K (N and K multiples of 8).

One producer warp feeds a ring of stages with tensor copies; two consumer warpgroups multiply 64 x 256 each with wgmma
and store through shared memory. Two CTAs of a cluster work on tiles above each other and share B: each loads half of it
for both. CTAs stay and take tile after tile, in bands of rows, so that what is in L2 is used again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import ptxtile as pt
from ptxtile import ptx, tile
from ptxtile.layout.fragment import wgmma_registers

Size = Any  # an integer, or a run-time uint32
Work = tuple[Size, ...]

BM, BN, BK = 128, 256, 64  # a CTA's tile of C, and a stage's share of K
STAGES = 4
CLUSTER = 2  # CTAs above each other
BAND = 8  # cluster tiles in a band of rows
BOX = 64  # columns of C that a store takes: 128 bytes
CTAS = 132  # of an H200

LOAD = ptx["cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"]
MULTICAST = ptx[
    "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
]
STORE = ptx["cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"]
WGMMA = ptx["wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16"]
FENCE, COMMIT, WAIT = (ptx[f"wgmma.{word}.sync.aligned"] for word in ("fence", "commit_group", "wait_group"))


def tiles_of(M: Size, N: Size, K: Size) -> tuple[Size, Size, Size]:
    """Cluster tiles along M, along N, and stages along K; integers or run-time sizes."""
    rows = BM * CLUSTER
    return (M + (rows - 1)) // rows, (N + (BN - 1)) // BN, (K + (BK - 1)) // BK


def place(index: Size, down: Size, across: Size) -> tuple[Size, Size]:
    """(row, column) of a cluster tile: bands of BAND rows, column by column in each."""
    band = index // (across * BAND)
    inside = index % (across * BAND)
    height = pt.minimum(down - band * BAND, BAND)
    return band * BAND + inside % height, inside // height


@pt.kernel(grid=lambda ctas: ctas, block=384, cluster=(CLUSTER, 1, 1))
def hopper_gemm(
    A: pt.TensorMap(("M", "K"), pt.bfloat16, box=(BM, BK), swizzle=128, l2_promotion=256),
    B: pt.TensorMap(("N", "K"), pt.bfloat16, box=(BN // CLUSTER, BK), swizzle=128, l2_promotion=256),
    C: pt.TensorMap(("M", "N"), pt.bfloat16, box=(64, BOX), swizzle=128),
    *,
    ctas: int = CTAS,
):
    pt.directive("minnctapersm", 1)
    shape = (STAGES, BM, BK)
    a = pt.alloc_shared(shape, pt.bfloat16, layout=pt.shared_layout(shape, pt.bfloat16), align=1024)
    shape = (STAGES, BN, BK)
    b = pt.alloc_shared(shape, pt.bfloat16, layout=pt.shared_layout(shape, pt.bfloat16), align=1024)
    shape = (2, 2, 64, BOX)  # two buffers for each consumer
    c = pt.alloc_shared(shape, pt.bfloat16, layout=pt.shared_layout(shape, pt.bfloat16), align=1024)
    full = pt.mbarrier(1, STAGES)  # the producer, and the bytes
    empty = pt.mbarrier(2 * CLUSTER, STAGES)  # both consumers of both CTAs
    down, across, steps = tiles_of(A.shape[0], B.shape[0], A.shape[1])
    rank, first, count = pt.cluster_rank(), pt.block_idx("x") // CLUSTER, ctas // CLUSTER

    with pt.if_(pt.thread_rank() == 0):
        full.init()
        empty.init()
        pt.fence_mbarrier_init()
    pt.cluster_sync()

    with pt.warpgroup_role(2, decrease_to=24), pt.if_(pt.warp_id() == 8), pt.if_(pt.elect()):
        produce(A, B, a, b, full, empty, rank, (first, count, down, across, steps))
    with pt.else_():  # of the role
        ptx.setmaxnreg.inc.sync.aligned.u32(240)
        consume(C, a, b, c, full, empty, rank, (first, count, down, across, steps))
    pt.cluster_sync()  # no CTA leaves while the other may still write to it


def produce(
    A: pt.TensorMap,
    B: pt.TensorMap,
    a: pt.Tensor,
    b: pt.Tensor,
    full: pt.mbarrier,
    empty: pt.mbarrier,
    rank: Size,
    work: Work,
) -> None:
    first, count, down, across, steps = work
    half = BN // CLUSTER
    fill = pt.ring(STAGES, phase=1)
    with pt.for_range(first, down * across, count) as index:
        row, column = place(index, down, across)
        m, n = (row * CLUSTER + rank) * BM, column * BN + rank * half
        with pt.for_range(pt.uint32(0), steps) as step:
            stage, k = fill.stage, step * BK
            empty[stage].wait(fill.phase)
            full[stage].arrive_expect_tx((BM + BN) * BK * 2)
            tile.apply(LOAD, a[stage], A[m, k], full[stage])
            part = b[stage, rank * half : rank * half + half]
            tile.apply(MULTICAST, part, B[n, k], full[stage], pt.uint16((1 << CLUSTER) - 1))
            fill.advance()


def consume(
    C: pt.TensorMap,
    a: pt.Tensor,
    b: pt.Tensor,
    c: pt.Tensor,
    full: pt.mbarrier,
    empty: pt.mbarrier,
    rank: Size,
    work: Work,
) -> None:
    first, count, down, across, steps = work
    group, thread = pt.warp_id() // 4, pt.thread_rank() % 128
    use, done = pt.ring(STAGES), pt.ring(STAGES)
    acc = pt.alloc_local((4, 32, BN // 2), pt.float32, layout=wgmma_registers(BN // 2))

    def release() -> None:
        empty[done.stage].arrive(cta=thread % CLUSTER, pred=thread < CLUSTER)
        done.advance()

    with pt.for_range(first, down * across, count) as index:
        row, column = place(index, down, across)
        tile.apply(ptx["mov.b32"], acc.view(4, 32, BN // 2, 1), pt.float32(0), scope="warpgroup")
        with pt.for_range(pt.uint32(0), steps) as step:
            stage = use.stage
            full[stage].wait(use.phase)
            FENCE()
            tile.apply(WGMMA, acc, a[stage, group * 64 : group * 64 + 64], b[stage], scope="warpgroup")
            COMMIT()
            use.advance()
            WAIT(1)  # the stage before is read
            with pt.if_(step > 0):
                release()
        WAIT(0)
        release()
        m = (row * CLUSTER + rank) * BM + group * 64
        store(C, acc, c, group, thread, m, column * BN)
    ptx.cp.async_.bulk.wait_group.read(0)


def store(C: pt.TensorMap, acc: pt.Tensor, c: pt.Tensor, group: Size, thread: Size, m: Size, n: Size) -> None:
    barrier, issuer = pt.named_barrier(group + 1, 128), thread == 0
    lane, warp = pt.lane_id(), pt.warp_id() % 4
    for box in range(BN // BOX):
        out = c[group, box % 2]
        ptx.cp.async_.bulk.wait_group.read(1)  # the buffer's last store has read it
        barrier.sync()
        for q in range(BOX // 16):
            at = [acc[0, 0, BOX // 2 * box + 8 * q + i] for i in range(8)]
            words = tuple(ptx.cvt.rn.bf16x2.f32(at[i + 1], at[i]) for i in range(0, 8, 2))
            start = out[warp * 16 + lane % 16, lane // 16 * 8 + q * 16 : lane // 16 * 8 + q * 16 + 8]
            ptx.stmatrix.sync.aligned.m8n8.x4.shared.b16(start, words)
        pt.fence_async()
        barrier.sync()
        with pt.if_(issuer):
            tile.apply(STORE, C[m, n + box * BOX], out)
            ptx.cp.async_.bulk.commit_group()


def main() -> None:
    import ml_dtypes

    M, N, K = 300, 520, 200
    rng = np.random.default_rng(0)
    A, B = (
        rng.standard_normal(shape, dtype=np.float32).astype(ml_dtypes.bfloat16) for shape in ((M, K), (N, K))
    )
    C = np.zeros((M, N), ml_dtypes.bfloat16)
    hopper_gemm(A, B, C)
    due = A.astype(np.float32) @ B.astype(np.float32).T
    np.testing.assert_allclose(C.astype(np.float32), due, rtol=1e-2, atol=1e-1)
    print("right for", (M, N, K), "on", pt.default_device())


if __name__ == "__main__":
    main()
