"""Out = A @ B.T by one warp: ldmatrix fetches the fragments, mma.sync multiplies, 16 x 8 in two steps of K."""

from __future__ import annotations

import numpy as np

import ptxtile as pt
from ptxtile import S, laneid, ptx, tile
from ptxtile.layout.mma_fragment import ldmatrix, mma_a, mma_b, mma_c, stacked

A_WORDS, B_WORDS, SUMS = mma_a("m16n8k16", 16), mma_b("m16n8k16", 16), mma_c("m16n8k16", 32)
K = 2  # steps of 16
BY_LANE = S[(32, 4) : (1 @ laneid, 1)]


@pt.kernel(grid=1, block=32)
def warp_matrix(
    A: pt.Tensor((16, 16 * K), pt.float16),
    B: pt.Tensor((8, 16 * K), pt.float16),
    Out: pt.Tensor((16, 8), pt.float32),
):
    # Global to shared memory, 16 bytes a lane and step: (lane, step, elements).
    a_rows = pt.alloc_shared((16, 16 * K), pt.float16)
    b_rows = pt.alloc_shared((8, 16 * K), pt.float16)
    for source, rows in ((A, a_rows), (B, b_rows)):
        steps = rows.shape[0] * rows.shape[1] // 256
        held = pt.alloc_local((32, steps, 4), pt.uint32, layout=S[(32, steps, 4) : (1 @ laneid, 4, 1)])
        words = [each.view(pt.uint32).view(32, steps, 4) for each in (source, rows)]
        tile.apply(ptx["ld.global.v4.b32"], held, words[0], scope="warp")
        tile.apply(ptx["st.shared.v4.b32"], words[1], held, scope="warp")
    ptx.bar.warp.sync(pt.uint32(0xFFFFFFFF))

    # Fragments: an x4 is the four 8 x 8 blocks of A's step of K, rows first; an x2 the two of B's.
    a = pt.alloc_local((1, K, *A_WORDS.shape), pt.uint32, layout=stacked(A_WORDS, 1, K))
    b = pt.alloc_local((1, K, *B_WORDS.shape), pt.uint32, layout=stacked(B_WORDS, 1, K))
    a_blocks = a_rows.rearrange("(r i) (k c j) -> k (c r) i j", i=8, c=2, j=8)
    b_blocks = b_rows.rearrange("i (k c j) -> k c i j", c=2, j=8)
    load = "ldmatrix.sync.aligned.m8n8.x{}.shared.b16"
    tile.apply(
        ptx[load.format(4)],
        a.view(K, 4, 8, 4, layout=stacked(ldmatrix("m8n8", 4), K)),
        a_blocks,
        scope="warp",
    )
    tile.apply(
        ptx[load.format(2)],
        b.view(K, 2, 8, 4, layout=stacked(ldmatrix("m8n8", 2), K)),
        b_blocks,
        scope="warp",
    )

    d = pt.alloc_local((1, 1, *SUMS.shape), pt.float32, layout=stacked(SUMS, 1, 1))
    tile.apply(ptx["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"], d, a, b, 0, scope="warp")

    # Registers 2 h and 2 h + 1 of a lane are columns 2 t and 2 t + 1 of row g + 8 h; lane = 4 g + t.
    pairs = d.view(32, 2, 2, layout=S[(32, 2, 2) : (1 @ laneid, 2, 1)])
    places = Out.rearrange("(h g) (t e) -> (g t) h e", g=8, e=2)
    tile.apply(ptx["st.global.v2.b32"], places, pairs, scope="warp")


def main() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 8, (rows, 16 * K)).astype(np.float16) for rows in (16, 8))
    out = np.zeros((16, 8), np.float32)
    warp_matrix(a, b, out)
    np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32).T)
    print(out[0], " on:", pt.default_device())


if __name__ == "__main__":
    main()
