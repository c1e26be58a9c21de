"""Bulk copies: rows come by cp.async.bulk, and cp.reduce.async.bulk adds them to a row in global memory."""

from __future__ import annotations

import numpy as np

import ptxtile as pt
from ptxtile import ptx, tile

ROWS, COLUMNS = 8, 64
LOAD = ptx["cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"]
ADD = ptx["cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32"]


@pt.kernel(grid=ROWS // 2, block=32)
def bulk_sum(A: pt.Tensor((ROWS, COLUMNS), pt.uint32), Out: pt.Tensor((COLUMNS,), pt.uint32)):
    rows = pt.alloc_shared((2, COLUMNS), pt.uint32)
    full = pt.mbarrier(1)
    with pt.if_(pt.thread_idx("x") == 0):
        full.init()
        pt.fence_mbarrier_init()
        full[0].arrive_expect_tx(2 * 4 * COLUMNS)
        first = pt.block_idx("x") * 2
        tile.apply(LOAD, rows, A[first : first + 2], chunk_bytes=4 * COLUMNS, mbar=full[0])
        full[0].wait(0)
        for row in range(2):
            tile.apply(ADD, Out, rows[row], chunk_bytes=4 * COLUMNS)
        ptx.cp.async_.bulk.commit_group()
        ptx.cp.async_.bulk.wait_group.read(0)


def main() -> None:
    a = np.arange(ROWS * COLUMNS, dtype=np.uint32).reshape(ROWS, COLUMNS)
    out = np.zeros(COLUMNS, np.uint32)
    bulk_sum(a, out)
    np.testing.assert_array_equal(out, a.sum(axis=0))
    print(out[:4], " on:", pt.default_device())


if __name__ == "__main__":
    main()
