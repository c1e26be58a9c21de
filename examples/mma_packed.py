"""mma.sync on words that the host packed: 16 x 8 from two steps of K, with a scalar C."""

from __future__ import annotations

import numpy as np

import ptxtile as pt
from ptxtile import S, laneid, ptx, tile
from ptxtile.layout.mma_fragment import mma_a, mma_b, mma_c, stacked

SHAPE, K = "m16n8k16", 2
A_WORDS, B_WORDS, SUMS = mma_a(SHAPE, 16), mma_b(SHAPE, 16), mma_c(SHAPE, 32)


@pt.kernel(grid=1, block=32)
def mma_packed(
    A: pt.Tensor((32, K, 4), pt.uint32),
    B: pt.Tensor((32, K, 2), pt.uint32),
    Out: pt.Tensor((32, 4), pt.float32),
):
    # Each lane's registers lie side by side in global memory.
    a = pt.alloc_local((1, K, 16, 8), pt.uint32, layout=stacked(A_WORDS, 1, K))
    b = pt.alloc_local((1, K, 8, 8), pt.uint32, layout=stacked(B_WORDS, 1, K))
    d = pt.alloc_local((1, 1, 16, 8), pt.float32, layout=stacked(SUMS, 1, 1))
    by_lane = S[(32, K, 4) : (1 @ laneid, 4, 1)], S[(32, K, 2) : (1 @ laneid, 2, 1)]
    tile.apply(ptx["ld.global.v4.b32"], a.view(32, K, 4, layout=by_lane[0]), A, scope="warp")
    tile.apply(ptx["ld.global.v2.b32"], b.view(32, K, 2, layout=by_lane[1]), B, scope="warp")
    tile.apply(ptx["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"], d, a, b, 1.0, scope="warp")
    tile.apply(ptx["st.global.v4.b32"], Out, d.view(32, 4, layout=S[(32, 4) : (1 @ laneid, 1)]), scope="warp")


def packed(fragment: object, matrix: np.ndarray) -> np.ndarray:
    """(lane, step, register): the words of each step of 16 columns, as the fragment's layout says."""
    rows, words = fragment.shape
    made = np.zeros((32, K, fragment.registers), np.uint32)
    for step in range(K):
        of_step = np.ascontiguousarray(matrix[:, 16 * step : 16 * step + 16]).view(np.uint32)
        for row in range(rows):
            for word in range(words):
                at = fragment.layout.apply(row, word, shape=fragment.shape)
                made[at["laneid"], step, at["m"]] = of_step[row, word]
    return made


def main() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 8, (rows, 16 * K)).astype(np.float16) for rows in (16, 8))
    held = np.zeros((32, 4), np.float32)
    mma_packed(packed(A_WORDS, a), packed(B_WORDS, b), held)
    out = np.zeros((16, 8), np.float32)
    for row, column in np.ndindex(16, 8):
        at = SUMS.layout.apply(row, column, shape=SUMS.shape)
        out[row, column] = held[at["laneid"], at["m"]]
    np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32).T + 1)
    print(out[0], " on:", pt.default_device())


if __name__ == "__main__":
    main()
