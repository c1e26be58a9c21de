"""The greatest of two tensors and zero in one instruction, which sm_100 has."""

from __future__ import annotations

import numpy as np

import ptxtile as pt
from ptxtile import ptx, tile


@pt.kernel(grid=1, block=1)
def maximum3(
    A: pt.Tensor((4, 1), pt.float32), B: pt.Tensor((4, 1), pt.float32), Out: pt.Tensor((4, 1), pt.float32)
):
    a, b = (pt.alloc_local((4, 1), pt.float32) for _ in range(2))
    tile.apply(ptx["ld.global.f32"], a, A)
    tile.apply(ptx["ld.global.f32"], b, B)
    tile.apply(ptx["max.f32"], a, a, b, 0.0)
    tile.apply(ptx["st.global.f32"], Out, a)


def main() -> None:
    a, b = (np.array(each, np.float32).reshape(4, 1) for each in ([-1, 2, -3, 4], [-2, -2, 5, 1]))
    out = np.zeros_like(a)
    maximum3(a, b, out)
    np.testing.assert_array_equal(out, np.maximum(np.maximum(a, b), 0))
    print(out.ravel(), " on:", pt.default_device())


if __name__ == "__main__":
    main()
