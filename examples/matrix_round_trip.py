"""ldmatrix and stmatrix: rows interleaved in shared memory go through gapped registers and back."""

from __future__ import annotations

import numpy as np

import ptxtile as pt
from ptxtile import S, laneid, ptx, tile


@pt.kernel(grid=1, block=32)
def matrix_round_trip(A: pt.Tensor((2, 2, 8, 8), pt.float16), Out: pt.Tensor((2, 2, 8, 8), pt.float16)):
    # (repeat, matrix, row, column): the rows of the two matrices of a repeat take turns.
    rows = pt.alloc_shared((2, 8, 2, 8), pt.float16).permute(0, 2, 1, 3)
    back = pt.alloc_shared((2, 2, 8, 8), pt.float16)
    held = pt.alloc_local((32, 1, 8), pt.float16, layout=S[(32, 1, 8) : (1 @ laneid, 1, 1)])
    tile.apply(ptx["ld.global.v4.b16"], held.view(32, 2, 4), _lanes(A), scope="warp")
    tile.apply(ptx["st.shared.v4.b16"], _lanes(rows), held.view(32, 2, 4), scope="warp")
    ptx.bar.warp.sync(pt.uint32(0xFFFFFFFF))
    # A lane's words of the two matrices are registers 0 and 2, of the second repeat 8 and 10.
    words = pt.alloc_local((2, 2, 8, 4), pt.uint32, layout=S[(2, 2, 8, 4) : (8, 2, 4 @ laneid, 1 @ laneid)])
    tile.apply(ptx["ldmatrix.sync.aligned.m8n8.x2.shared.b16"], words, rows, scope="warp")
    tile.apply(ptx["stmatrix.sync.aligned.m8n8.x2.shared.b16"], back, words, scope="warp")
    ptx.bar.warp.sync(pt.uint32(0xFFFFFFFF))
    tile.apply(ptx["ld.shared.v4.b16"], held.view(32, 2, 4), _lanes(back), scope="warp")
    tile.apply(ptx["st.global.v4.b16"], _lanes(Out), held.view(32, 2, 4), scope="warp")


def _lanes(matrices: pt.Tensor) -> pt.Tensor:
    """One row a lane, in two atoms of four elements."""
    return matrices.rearrange("n m r (c e) -> (n m r) c e", e=4)


def main() -> None:
    a = np.arange(256, dtype=np.float16).reshape(2, 2, 8, 8)
    out = np.zeros_like(a)
    matrix_round_trip(a, out)
    np.testing.assert_array_equal(out, a)
    print(out[0, 0, 0], " on:", pt.default_device())


if __name__ == "__main__":
    main()
