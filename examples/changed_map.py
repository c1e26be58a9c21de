"""tensormap.replace: one tensor map for a list of matrices, each read through a changed copy of the map (sm_90a)."""

from __future__ import annotations

import numpy as np

import ptxtile as pt
from ptxtile import ptx, tile

ROWS, COLUMNS, COUNT = 8, 32, 3
LOAD = ptx["cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"]
REPLACE = ptx["tensormap.replace.tile.global_address.shared::cta.b1024.b64"]
RELEASE = ptx["tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"]
ACQUIRE = ptx["fence.proxy.tensormap::generic.acquire.gpu"]


@pt.kernel(grid=COUNT, block=32)
def changed_map(
    First: pt.TensorMap((ROWS, COLUMNS), pt.float32, box=(ROWS, COLUMNS)),
    All: pt.Tensor((COUNT, ROWS, COLUMNS), pt.float32),
    Maps: pt.Tensor((COUNT, 16), pt.uint64, align=128),
    Out: pt.Tensor((COUNT, ROWS, COLUMNS), pt.float32),
):
    map_, box = (
        pt.alloc_shared((16,), pt.uint64, align=128),
        pt.alloc_shared((ROWS, COLUMNS), pt.float32, align=128),
    )
    full, lane, which = pt.mbarrier(1), pt.lane_id(), pt.block_idx()
    with pt.if_(lane < 16):
        map_[lane] = First.words()[lane]
    ptx.bar.warp.sync(0xFFFFFFFF)
    with pt.if_(lane == 0):
        full.init()
        pt.fence_mbarrier_init()
        tile.apply(REPLACE, map_, pt.address(All[which]))
    ptx.bar.warp.sync(0xFFFFFFFF)
    tile.apply(RELEASE, Maps[which], map_, scope="warp")
    ACQUIRE(Maps[which], 128)
    with pt.if_(lane == 0):
        full[0].arrive_expect_tx(First.box_bytes)
        tile.apply(LOAD, box, First.at(Maps[which])[0, 0], full[0])
    full[0].wait(0)
    for row in range(ROWS):
        Out[which, row, lane] = box[row, lane] + 1


def main() -> None:
    every = np.arange(COUNT * ROWS * COLUMNS, dtype=np.float32).reshape(COUNT, ROWS, COLUMNS)
    out = np.zeros_like(every)
    changed_map(every[0].copy(), every, np.zeros((COUNT, 16), np.uint64), out)
    np.testing.assert_array_equal(out, every + 1)
    print(out[2, 0, :4], " on:", pt.default_device())


if __name__ == "__main__":
    main()
