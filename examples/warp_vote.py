"""vote, match and shfl: lanes with equal keys find each other, and the lowest of them adds up their values."""

from __future__ import annotations

import numpy as np

import ptxtile as pt
from ptxtile import S, laneid, ptx, tile

ALL = pt.uint32(0xFFFFFFFF)
LAYOUT = S[(32, 1) : (1 @ laneid, 1)]


@pt.kernel(grid=1, block=32)
def warp_vote(
    Keys: pt.Tensor((32, 1), pt.uint32), Values: pt.Tensor((32, 1), pt.uint32), Sums: pt.Tensor((32, 1), pt.uint32)
):  # fmt: skip
    key, value, peers, total, other = (pt.alloc_local((32, 1), pt.uint32, layout=LAYOUT) for _ in range(5))
    tile.apply(ptx["ld.global.u32"], key, Keys, scope="warp")
    tile.apply(ptx["ld.global.u32"], value, Values, scope="warp")
    tile.apply(ptx["match.any.sync.b32"], peers, key, ALL, scope="warp")
    tile.apply(ptx["mov.u32"], total, 0, scope="warp")
    member = pt.alloc_local((32, 1), pt.bool_, layout=LAYOUT)
    bit = pt.alloc_local((32, 1), pt.uint32, layout=LAYOUT)
    for lane in range(32):
        tile.apply(ptx["shfl.sync.idx.b32"], other, value, lane, 31, ALL, scope="warp")
        tile.apply(ptx["and.b32"], bit, peers, pt.uint32(1 << lane), scope="warp")
        tile.apply(ptx["setp.ne.u32"], member, bit, 0, scope="warp")
        tile.apply(ptx["add.u32"], total, total, other, scope="warp", pred=member, preserve_dst=True)
    tile.apply(ptx["st.global.u32"], Sums, total, scope="warp")


def main() -> None:
    rng = np.random.default_rng(0)
    keys, values = (
        rng.integers(0, 5, (32, 1)).astype(np.uint32),
        rng.integers(0, 9, (32, 1)).astype(np.uint32),
    )
    sums = np.zeros_like(values)
    warp_vote(keys, values, sums)
    np.testing.assert_array_equal(sums, (keys == keys.T) @ values)
    print(sums[:4].ravel(), " on:", pt.default_device())


if __name__ == "__main__":
    main()
