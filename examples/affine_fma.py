"""2 * A + 1 by one thread: four scalars, each loaded, one fma with two literals, stored.

The rounding is part of the instruction, so `kernel(rounding)` gives four kernels.
"""

from __future__ import annotations

import numpy as np

import ptxtile as pt
from ptxtile import ptx, tile


@pt.kernel(grid=1, block=1)
def affine_fma(
    A: pt.Tensor((4, 1), pt.float32),
    Out: pt.Tensor((4, 1), pt.float32),
    *,
    rounding: str = "rn",
    scale: float = 2.0,
    bias: float = 1.0,
):
    r = pt.alloc_local((4, 1), pt.float32)
    tile.apply(ptx["ld.global.f32"], r, A)
    tile.apply(ptx[f"fma.{rounding}.f32"], r, r, scale, bias)
    tile.apply(ptx["st.global.f32"], Out, r)


def main() -> None:
    a = np.arange(4, dtype=np.float32).reshape(4, 1)
    out = np.zeros_like(a)
    affine_fma(a, out)
    np.testing.assert_array_equal(out, 2 * a + 1)
    print(affine_fma.ptx())
    print(a.ravel(), "->", out.ravel(), " on:", pt.default_device())


if __name__ == "__main__":
    main()
