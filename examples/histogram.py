"""red and atom: a histogram in shared memory, then added to one in global memory."""

from __future__ import annotations

import numpy as np

import ptxtile as pt
from ptxtile import ptx, tile

BINS = 64


@pt.kernel(grid=1, block=64)
def histogram(
    A: pt.Tensor((64, 4), pt.uint32),
    Bins: pt.Tensor((BINS,), pt.uint32),
    Before: pt.Tensor((BINS,), pt.uint32),
):
    counts = pt.alloc_shared((BINS,), pt.uint32)
    thread = pt.thread_idx("x")
    counts[thread] = pt.uint32(0)
    pt.cta_sync()
    values = pt.alloc_local((4,), pt.uint32)
    tile.apply(ptx["ld.global.v4.u32"], values, A[thread])
    for i in range(4):
        bin_ = values[i] + 0  # a value: the register may change
        pt.assume(bin_ < BINS)
        tile.apply(ptx["red.shared.add.u32"], counts[bin_ : bin_ + 1], 1)
    pt.cta_sync()
    own = slice(thread, thread + 1)
    count, old = (pt.alloc_local((1,), pt.uint32) for _ in range(2))
    tile.apply(ptx["ld.shared.u32"], count, counts[own])
    tile.apply(ptx["atom.global.add.u32"], old, Bins[own], count)
    tile.apply(ptx["st.global.u32"], Before[own], old)


def main() -> None:
    a = np.random.default_rng(5).integers(0, BINS, (64, 4)).astype(np.uint32)
    bins, before = np.full(BINS, 7, np.uint32), np.zeros(BINS, np.uint32)
    histogram(a, bins, before)
    np.testing.assert_array_equal(bins, 7 + np.bincount(a.ravel(), minlength=BINS))
    np.testing.assert_array_equal(before, 7)
    print(bins[:8], " on:", pt.default_device())


if __name__ == "__main__":
    main()
