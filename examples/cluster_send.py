"""cp.async.bulk between CTAs: CTA 0 of a cluster sends 256 bytes of its shared memory to CTA 1."""

from __future__ import annotations

import numpy as np

import ptxtile as pt
from ptxtile import ptx, tile

SEND = ptx["cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"]


@pt.kernel(grid=2, block=64, cluster=(2, 1, 1))
def cluster_send(A: pt.Tensor((64,), pt.float32), Out: pt.Tensor((64,), pt.float32)):
    source, received = (pt.alloc_shared((64,), pt.float32) for _ in range(2))
    full = pt.mbarrier(1)
    thread, rank = pt.thread_idx("x"), pt.cluster_rank()
    with pt.if_(thread == 0):
        full.init()
        pt.fence_mbarrier_init()
        with pt.if_(rank == 1):
            full[0].arrive_expect_tx(256)
    source[thread] = A[thread]
    pt.fence_async()  # plain stores before a read by the asynchronous proxy
    pt.cluster_sync()
    with pt.if_(rank == 0), pt.if_(thread == 0):
        tile.apply(SEND, received, source, chunk_bytes=256, mbar=full[0], remote=1)
    with pt.if_(rank == 1):
        full[0].wait(0)
        Out[thread] = received[thread]
    pt.cluster_sync()  # no CTA leaves while the other still reads from it


def main() -> None:
    a = np.arange(64, dtype=np.float32)
    out = np.zeros_like(a)
    cluster_send(a, out)
    np.testing.assert_array_equal(out, a)
    print(out[:4], " on:", pt.default_device())


if __name__ == "__main__":
    main()
