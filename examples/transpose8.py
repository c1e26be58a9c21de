"""movmatrix: an 8 x 8 matrix of 16-bit elements, a word a lane, transposed in registers."""

from __future__ import annotations

import numpy as np

import ptxtile as pt
from ptxtile import S, laneid, ptx, tile


@pt.kernel(grid=1, block=32)
def transpose8(A: pt.Tensor((8, 8), pt.uint16), Out: pt.Tensor((8, 8), pt.uint16)):
    # Lane 4 r + w holds word w of row r.
    words = pt.alloc_local((8, 4), pt.uint32, layout=S[(8, 4) : (4 @ laneid, 1 @ laneid)])
    by_lane = words.view(32, 1)
    tile.apply(ptx["ld.global.b32"], by_lane, A.view(pt.uint32).view(32, 1), scope="warp")
    tile.apply(ptx["movmatrix.sync.aligned.m8n8.trans.b16"], words, words, scope="warp")
    tile.apply(ptx["st.global.b32"], Out.view(pt.uint32).view(32, 1), by_lane, scope="warp")


def main() -> None:
    a = np.arange(64, dtype=np.uint16).reshape(8, 8)
    out = np.zeros_like(a)
    transpose8(a, out)
    np.testing.assert_array_equal(out, a.T)
    print(out[0], " on:", pt.default_device())


if __name__ == "__main__":
    main()
