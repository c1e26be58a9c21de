"""One tile of C = A @ B.T on sm_100: tcgen05.mma from shared to tensor memory, then tcgen05.ld and plain stores."""

from __future__ import annotations

import numpy as np

import ptxtile as pt
from ptxtile import S, laneid, ptx, tile, warpid
from ptxtile.layout.mma_fragment import stacked
from ptxtile.layout.tensor_memory import datapath, tensor_memory_fragment

M, N, K = 128, 64, 64
MMA = ptx["tcgen05.mma.cta_group::1.kind::f16"]
COMMIT = ptx["tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64"]
WORDS = tensor_memory_fragment("32x32b", N)


@pt.kernel(grid=1, block=128)
def blackwell_tile(
    A: pt.Tensor((M, K), pt.float16), B: pt.Tensor((N, K), pt.float16), C: pt.Tensor((M, N), pt.float32)
):
    memory = pt.tensor_memory(64)
    full = pt.mbarrier(1)
    a, b = (
        pt.alloc_shared(
            each.shape, pt.float16, layout=pt.shared_layout(each.shape, pt.float16, 128), align=1024
        )
        for each in (A, B)
    )
    with pt.if_(pt.warp_id() == 0):
        memory.alloc()
        with pt.if_(pt.elect()):
            full.init()
            pt.fence_mbarrier_init()
    for source, to in ((A, a), (B, b)):
        chunks = to.shape[0] * K // 8 // 128  # 16 bytes a thread and chunk
        shape = (4, 32, chunks, 8)
        tile.apply(
            ptx["cp.async.cg.shared.global"],
            to.view(*shape),
            source.view(*shape),
            scope="cta",
            chunk_bytes=16,
        )
    ptx.cp.async_.wait_all()
    pt.fence_async()
    pt.cta_sync()
    d = memory.tensor((M, N), pt.float32, layout=datapath("D", N))
    with pt.if_(pt.warp_id() == 0), pt.if_(pt.elect()):
        tile.apply(MMA, d, a, b, instruction_shape=(M, N), accumulate=False)
        COMMIT(full[0])
    full[0].wait(0)
    ptx["tcgen05.fence::after_thread_sync"]()
    r = pt.alloc_local((4, 32, N), pt.float32, layout=stacked(WORDS, warps=4))
    tile.apply(ptx[f"tcgen05.ld.sync.aligned.32x32b.x{N}.b32"], r, d.view(4, 32, N), scope="cta")
    ptx["tcgen05.wait::ld.sync.aligned"]()
    shape = (4, 32, N // 4, 4)
    rows = r.view(*shape, layout=S[shape : (1 @ warpid, 1 @ laneid, 4, 1)])
    tile.apply(ptx["st.global.v4.f32"], C.view(*shape), rows, scope="cta")
    pt.cta_sync()
    with pt.if_(pt.warp_id() == 0):
        memory.dealloc()


def main() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 8, (rows, K)).astype(np.float16) for rows in (M, N))
    c = np.zeros((M, N), np.float32)
    blackwell_tile(a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)
    print(c[0, :4], " on:", pt.default_device())


if __name__ == "__main__":
    main()
