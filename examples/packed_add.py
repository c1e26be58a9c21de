"""Sixteen float16 values as eight `add.rn.f16x2` on uint32 carriers: nothing is unpacked, nothing converted."""

from __future__ import annotations

import numpy as np

import ptxtile as pt
from ptxtile import ptx, tile


@pt.kernel(grid=1, block=1)
def packed_add(A: pt.Tensor((16,), pt.float16), Out: pt.Tensor((16,), pt.float16)):
    r = pt.alloc_local((8, 1), pt.uint32)
    tile.apply(ptx["ld.global.b32"], r, A.view(pt.uint32).view(8, 1))
    tile.apply(ptx["add.rn.f16x2"], r, r, pt.pack(2.0, 2.0, dtype=pt.float16))
    tile.apply(ptx["st.global.b32"], Out.view(pt.uint32).view(8, 1), r)


def main() -> None:
    a = np.arange(16, dtype=np.float16)
    out = np.zeros_like(a)
    packed_add(a, out)
    np.testing.assert_array_equal(out, a + np.float16(2))
    print(packed_add.ptx())
    print(out, " on:", pt.default_device())


if __name__ == "__main__":
    main()
