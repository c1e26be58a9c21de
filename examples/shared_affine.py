"""2x + 1 through shared memory: each thread writes its row and reads the next thread's, so the result is rolled.

Two CTA barriers: one between the writes and the reads, one before the memory could be used again.
"""

from __future__ import annotations

import numpy as np

import ptxtile as pt
from ptxtile import S, TileLayout, laneid, ptx, tile, warpid

reg_layout = TileLayout(S[(2, 32, 4) : (1 @ warpid, 1 @ laneid, 1)])


@pt.function
def affine(x: pt.float32) -> pt.float32:
    return x * pt.float32(2) + pt.float32(1)


@pt.kernel(grid=1, block=64)
def shared_affine(A: pt.Tensor((64, 4), pt.float32), Out: pt.Tensor((64, 4), pt.float32)):
    staged = pt.alloc_shared((64, 4), pt.float32)
    r = pt.alloc_local((2, 32, 4), pt.float32, layout=reg_layout)
    tile.apply(ptx["ld.global.v4.f32"], r, A.view(2, 32, 4), scope="cta")
    tile.ewise(affine, r, r, scope="cta")
    tile.apply(ptx["st.shared.v4.f32"], staged.view(2, 32, 4), r, scope="cta")
    pt.cta_sync()
    row = (pt.thread_idx("x") + 1) % 64
    moved = pt.alloc_local((4,), pt.float32)
    tile.apply(ptx["ld.shared.v4.f32"], moved, staged[row])
    pt.cta_sync()
    tile.apply(ptx["st.global.v4.f32"], Out[pt.thread_idx("x")], moved)


def main() -> None:
    a = np.arange(256, dtype=np.float32).reshape(64, 4)
    out = np.zeros_like(a)
    shared_affine(a, out)
    np.testing.assert_array_equal(out, np.roll(2 * a + 1, -1, axis=0))
    print(shared_affine.ptx())
    print(out[:2], " on:", pt.default_device())


if __name__ == "__main__":
    main()
