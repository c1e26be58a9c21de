"""div.rn by a scalar, then sqrt.rn, in place."""

from __future__ import annotations

import numpy as np

import ptxtile as pt
from ptxtile import ptx, tile


@pt.kernel(grid=1, block=1)
def root_ratio(A: pt.Tensor((4, 1), pt.float32), Out: pt.Tensor((4, 1), pt.float32)):
    r = pt.alloc_local((4, 1), pt.float32)
    tile.apply(ptx["ld.global.f32"], r, A)
    tile.apply(ptx["div.rn.f32"], r, r, 4.0)
    tile.apply(ptx["sqrt.rn.f32"], r, r)
    tile.apply(ptx["st.global.f32"], Out, r)


def main() -> None:
    a = np.array([[4], [16], [36], [64]], np.float32)
    out = np.zeros_like(a)
    root_ratio(a, out)
    np.testing.assert_array_equal(out.ravel(), [1, 2, 3, 4])
    print(out.ravel(), " on:", pt.default_device())


if __name__ == "__main__":
    main()
