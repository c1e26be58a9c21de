"""ex2.approx.ftz: powers of two."""

from __future__ import annotations

import numpy as np

import ptxtile as pt
from ptxtile import ptx, tile


@pt.kernel(grid=1, block=1)
def exp2_native(A: pt.Tensor((4, 1), pt.float32), Out: pt.Tensor((4, 1), pt.float32)):
    r = pt.alloc_local((4, 1), pt.float32)
    tile.apply(ptx["ld.global.f32"], r, A)
    tile.apply(ptx["ex2.approx.ftz.f32"], r, r)
    tile.apply(ptx["st.global.f32"], Out, r)


def main() -> None:
    a = np.array([[-1], [0], [1], [2]], np.float32)
    out = np.zeros_like(a)
    exp2_native(a, out)
    np.testing.assert_array_equal(out.ravel(), [0.5, 1, 2, 4])
    print(out.ravel(), " on:", pt.default_device())


if __name__ == "__main__":
    main()
