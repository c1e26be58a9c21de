"""A scalar, or a zero-stride view, on the left of `sub`: 10 - A and B[0] - A."""

from __future__ import annotations

import numpy as np

import ptxtile as pt
from ptxtile import S, ptx, tile


@pt.kernel(grid=1, block=1)
def sub_left(
    A: pt.Tensor((4, 1), pt.float32),
    B: pt.Tensor((1,), pt.float32),
    FromScalar: pt.Tensor((4, 1), pt.float32),
    FromView: pt.Tensor((4, 1), pt.float32),
):
    a = pt.alloc_local((4, 1), pt.float32)
    b = pt.alloc_local((1,), pt.float32)
    d = pt.alloc_local((4, 1), pt.float32)
    tile.apply(ptx["ld.global.f32"], a, A)
    tile.apply(ptx["ld.global.f32"], b, B)
    tile.apply(ptx["sub.rn.f32"], d, 10.0, a)
    tile.apply(ptx["st.global.f32"], FromScalar, d)
    tile.apply(ptx["sub.rn.f32"], d, b.view(4, 1, layout=S[(4, 1) : (0, 1)]), a)
    tile.apply(ptx["st.global.f32"], FromView, d)


def main() -> None:
    a = np.arange(4, dtype=np.float32).reshape(4, 1)
    b = np.array([0.5], dtype=np.float32)
    left, view = np.zeros_like(a), np.zeros_like(a)
    sub_left(a, b, left, view)
    np.testing.assert_array_equal(left, 10 - a)
    np.testing.assert_array_equal(view, b[0] - a)
    print(left.ravel(), view.ravel(), " on:", pt.default_device())


if __name__ == "__main__":
    main()
