"""Reductions of tensor copies: every CTA adds its box to one matrix; a prefetch brings the box to L2 first (sm_90)."""

from __future__ import annotations

import numpy as np

import ptxtile as pt
from ptxtile import ptx, tile

ROWS, COLUMNS, STEPS = 16, 32, 4
LOAD = ptx["cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"]
ADD = ptx["cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group"]
AHEAD = ptx["cp.async.bulk.prefetch.tensor.2d.L2.global.tile"]


@pt.kernel(grid=STEPS, block=32)
def tensor_sum(
    A: pt.TensorMap((STEPS * ROWS, COLUMNS), pt.float32, box=(ROWS, COLUMNS)),
    Total: pt.TensorMap((ROWS, COLUMNS), pt.float32, box=(ROWS, COLUMNS)),
):
    box, full = pt.alloc_shared((ROWS, COLUMNS), pt.float32, align=128), pt.mbarrier(1)
    row = pt.cast(pt.block_idx(), pt.int32) * ROWS
    with pt.if_(pt.thread_idx() == 0):
        full.init()
        pt.fence_mbarrier_init()
        tile.apply(AHEAD, A[row, 0])
        full[0].arrive_expect_tx(A.box_bytes)
        tile.apply(LOAD, box, A[row, 0], full[0])
        full[0].wait(0)
        tile.apply(ADD, Total[0, 0], box)
        ptx.cp.async_.bulk.commit_group()
        ptx["cp.async.bulk.wait_group"](0)


def main() -> None:
    a = np.arange(STEPS * ROWS * COLUMNS, dtype=np.float32).reshape(STEPS * ROWS, COLUMNS)
    total = np.zeros((ROWS, COLUMNS), np.float32)
    tensor_sum(a, total)
    np.testing.assert_array_equal(total, a.reshape(STEPS, ROWS, COLUMNS).sum(axis=0))
    print(total[0, :4], " on:", pt.default_device())


if __name__ == "__main__":
    main()
