"""cvt of two float32 to a pair of float16: the first source is the high half."""

from __future__ import annotations

import numpy as np

import ptxtile as pt
from ptxtile import ptx, tile


@pt.kernel(grid=1, block=1)
def narrow_pairs(A: pt.Tensor((4, 2), pt.float32), Out: pt.Tensor((8,), pt.float16)):
    wide = pt.alloc_local((4, 2), pt.float32)
    pairs = pt.alloc_local((4, 1), pt.uint32)
    tile.apply(ptx["ld.global.v2.f32"], wide, A)
    tile.apply(ptx["cvt.rn.f16x2.f32"], pairs, wide[:, 1:2], wide[:, 0:1])
    tile.apply(ptx["st.global.b32"], Out.view(pt.uint32).view(4, 1), pairs)


def main() -> None:
    a = np.linspace(-2, 2, 8, dtype=np.float32).reshape(4, 2)
    out = np.zeros(8, np.float16)
    narrow_pairs(a, out)
    np.testing.assert_array_equal(out, a.astype(np.float16).ravel())
    print(out, " on:", pt.default_device())


if __name__ == "__main__":
    main()
