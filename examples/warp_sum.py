"""A sum over the lanes of each warp: shfl by halves, and redux in one instruction (sm_80)."""

from __future__ import annotations

import numpy as np

import ptxtile as pt
from ptxtile import S, laneid, ptx, tile, warpid

SHAPE = (2, 32, 1)
LAYOUT = S[SHAPE : (1 @ warpid, 1 @ laneid, 1)]
ALL = pt.uint32(0xFFFFFFFF)


@pt.kernel(grid=1, block=64)
def warp_sum(
    A: pt.Tensor(SHAPE, pt.uint32), Halves: pt.Tensor(SHAPE, pt.uint32), Once: pt.Tensor(SHAPE, pt.uint32)
):
    value, other, total = (pt.alloc_local(SHAPE, pt.uint32, layout=LAYOUT) for _ in range(3))
    tile.apply(ptx["ld.global.u32"], value, A, scope="cta")
    tile.apply(ptx["redux.sync.add.u32"], total, value, ALL, scope="cta")
    for distance in (16, 8, 4, 2, 1):
        tile.apply(ptx["shfl.sync.bfly.b32"], other, value, distance, 31, ALL, scope="cta")
        tile.apply(ptx["add.u32"], value, value, other, scope="cta")
    tile.apply(ptx["st.global.u32"], Halves, value, scope="cta")
    tile.apply(ptx["st.global.u32"], Once, total, scope="cta")


def main() -> None:
    a = np.arange(64, dtype=np.uint32).reshape(SHAPE)
    halves, once = np.zeros_like(a), np.zeros_like(a)
    warp_sum(a, halves, once)
    due = np.broadcast_to(a.sum(axis=1, keepdims=True), SHAPE)
    np.testing.assert_array_equal(halves, due)
    np.testing.assert_array_equal(once, due)
    print(halves[:, 0].ravel(), " on:", pt.default_device())


if __name__ == "__main__":
    main()
