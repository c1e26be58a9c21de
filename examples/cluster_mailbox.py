"""st.async and red.async: each CTA of a cluster writes to the other's shared memory, which counts the bytes."""

from __future__ import annotations

import numpy as np

import ptxtile as pt
from ptxtile import S, laneid, ptx, tile

STORE = ptx["st.async.shared::cluster.mbarrier::complete_tx::bytes.u32"]
ADD = ptx["red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32"]
LAYOUT = S[(32, 1) : (1 @ laneid, 1)]


@pt.kernel(grid=2, block=32, cluster=(2, 1, 1))
def cluster_mailbox(A: pt.Tensor((2, 32, 1), pt.uint32), Out: pt.Tensor((2, 32, 1), pt.uint32)):
    box, total = pt.alloc_shared((32, 1), pt.uint32), pt.alloc_shared((1,), pt.uint32)
    full = pt.mbarrier(1)
    rank, lane = pt.cluster_rank(), pt.lane_id()
    with pt.if_(lane == 0):
        total[0] = pt.uint32(0)
        full.init()
        pt.fence_mbarrier_init()
        full[0].arrive_expect_tx(2 * 32 * 4)
    pt.cluster_sync()
    value, sums = (pt.alloc_local((32, 1), pt.uint32, layout=LAYOUT) for _ in range(2))
    tile.apply(ptx["ld.global.u32"], value, A[rank], scope="warp")
    tile.apply(STORE, box, value, scope="warp", mbar=full[0], remote=1 - rank)
    everywhere = total.view(32, 1, layout=S[(32, 1) : (0, 1)])  # all lanes add to one place
    tile.apply(ADD, everywhere, value, scope="warp", mbar=full[0], remote=1 - rank)
    full[0].wait(0, scope="cluster")
    tile.apply(ptx["ld.shared.u32"], value, box, scope="warp")
    tile.apply(ptx["ld.shared.u32"], sums, everywhere, scope="warp")
    tile.apply(ptx["add.u32"], value, value, sums, scope="warp")
    tile.apply(ptx["st.global.u32"], Out[rank], value, scope="warp")
    pt.cluster_sync()


def main() -> None:
    a = np.arange(64, dtype=np.uint32).reshape(2, 32, 1)
    out = np.zeros_like(a)
    cluster_mailbox(a, out)
    np.testing.assert_array_equal(out, a[::-1] + a[::-1].sum(axis=1, keepdims=True))
    print(out[0, :4].ravel(), " on:", pt.default_device())


if __name__ == "__main__":
    main()
