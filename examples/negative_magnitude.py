"""abs, then neg: sign bits alone change."""

from __future__ import annotations

import numpy as np

import ptxtile as pt
from ptxtile import ptx, tile


@pt.kernel(grid=1, block=1)
def negative_magnitude(A: pt.Tensor((4, 1), pt.float32), Out: pt.Tensor((4, 1), pt.float32)):
    r = pt.alloc_local((4, 1), pt.float32)
    tile.apply(ptx["ld.global.f32"], r, A)
    tile.apply(ptx["abs.f32"], r, r)
    tile.apply(ptx["neg.f32"], r, r)
    tile.apply(ptx["st.global.f32"], Out, r)


def main() -> None:
    a = np.array([[1.5], [-2.0], [0.0], [-0.0]], np.float32)
    out = np.zeros_like(a)
    negative_magnitude(a, out)
    np.testing.assert_array_equal(out.view(np.uint32), (-np.abs(a)).view(np.uint32))
    print(out.ravel(), " on:", pt.default_device())


if __name__ == "__main__":
    main()
