"""mul.lo, mul.hi and mul.wide: the destination's width is the instruction's, and a wrong one is an OperandError."""

from __future__ import annotations

import numpy as np

import ptxtile as pt
from ptxtile import ptx, tile


@pt.kernel(grid=1, block=1)
def mul_forms(
    A: pt.Tensor((4, 1), pt.int32),
    B: pt.Tensor((4, 1), pt.int32),
    Lo: pt.Tensor((4, 1), pt.int32),
    Hi: pt.Tensor((4, 1), pt.int32),
    Wide: pt.Tensor((4, 1), pt.int64),
):
    a, b, narrow = (pt.alloc_local((4, 1), pt.int32) for _ in range(3))
    wide = pt.alloc_local((4, 1), pt.int64)
    tile.apply(ptx["ld.global.s32"], a, A)
    tile.apply(ptx["ld.global.s32"], b, B)
    tile.apply(ptx["mul.lo.s32"], narrow, a, b)
    tile.apply(ptx["st.global.s32"], Lo, narrow)
    tile.apply(ptx["mul.hi.s32"], narrow, a, b)
    tile.apply(ptx["st.global.s32"], Hi, narrow)
    tile.apply(ptx["mul.wide.s32"], wide, a, b)
    tile.apply(ptx["st.global.s64"], Wide, wide)


def main() -> None:
    a = np.array([[3], [-7], [2**31 - 1], [-(2**31)]], dtype=np.int32)
    b = np.array([[5], [11], [2**31 - 1], [-(2**31)]], dtype=np.int32)
    lo, hi, wide = np.zeros_like(a), np.zeros_like(a), np.zeros((4, 1), np.int64)
    mul_forms(a, b, lo, hi, wide)
    product = a.astype(np.int64) * b
    np.testing.assert_array_equal(wide, product)
    np.testing.assert_array_equal(lo, product.astype(np.int32))
    np.testing.assert_array_equal(hi, (product >> 32).astype(np.int32))
    print(wide.ravel(), " on:", pt.default_device())


if __name__ == "__main__":
    main()
