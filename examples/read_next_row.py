"""Threads exchange rows through shared memory: each reads the row after its own."""

from __future__ import annotations

import numpy as np

import ptxtile as pt
from ptxtile import ptx, tile


@pt.kernel(grid=1, block=64)
def read_next_row(A: pt.Tensor((64, 4), pt.float32), Out: pt.Tensor((64, 4), pt.float32)):
    rows = pt.alloc_shared((64, 4), pt.float32)
    thread = pt.thread_idx("x")
    r = pt.alloc_local((4,), pt.float32)
    tile.apply(ptx["ld.global.v4.f32"], r, A[thread, :])
    tile.apply(ptx["st.shared.v4.f32"], rows[thread, :], r)
    pt.cta_sync()
    tile.apply(ptx["ld.shared.v4.f32"], r, rows[(thread + 1) % 64, :])
    tile.apply(ptx["st.global.v4.f32"], Out[thread, :], r)


def main() -> None:
    a = np.random.default_rng(4).standard_normal((64, 4), dtype=np.float32)
    out = np.zeros_like(a)
    read_next_row(a, out)
    np.testing.assert_array_equal(out, np.roll(a, -1, axis=0))
    print(out[0], " on:", pt.default_device())


if __name__ == "__main__":
    main()
