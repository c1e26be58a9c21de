"""One tensor, two atom shapes: loads of four, arithmetic of one, a conversion that takes pairs."""

from __future__ import annotations

import numpy as np

import ptxtile as pt
from ptxtile import S, laneid, ptx, tile, warpid

SHAPE = (2, 32, 4)


@pt.kernel(grid=1, block=64)
def affine_relu(
    A: pt.Tensor(SHAPE, pt.float32), Out: pt.Tensor(SHAPE, pt.float32), Half: pt.Tensor(SHAPE, pt.float16)
):
    r = pt.alloc_local(SHAPE, pt.float32, layout=S[SHAPE : (1 @ warpid, 1 @ laneid, 1)])
    tile.apply(ptx["ld.global.v4.f32"], r, A, scope="cta")
    one = r.view(2, 32, 4, 1)
    tile.apply(ptx["fma.rn.f32"], one, one, 2.0, 1.0, scope="cta")
    tile.apply(ptx["max.f32"], one, one, 0.0, scope="cta")
    tile.apply(ptx["st.global.v4.f32"], Out, r, scope="cta")
    pairs = r.view(2, 32, 2, 2)
    packed = pt.alloc_local(
        (2, 32, 2, 1), pt.uint32, layout=S[(2, 32, 2, 1) : (1 @ warpid, 1 @ laneid, 1, 1)]
    )
    tile.apply(ptx["cvt.rn.f16x2.f32"], packed, pairs[:, :, :, 1:2], pairs[:, :, :, 0:1], scope="cta")
    tile.apply(ptx["st.global.v2.b32"], Half.view(pt.uint32), packed.view(2, 32, 2), scope="cta")


def main() -> None:
    a = np.linspace(-2, 2, 256, dtype=np.float32).reshape(SHAPE)
    out, half = np.zeros_like(a), np.zeros(SHAPE, np.float16)
    affine_relu(a, out, half)
    due = np.maximum((2 * a.astype(np.float64) + 1).astype(np.float32), 0)
    np.testing.assert_array_equal(out, due)
    np.testing.assert_array_equal(half, due.astype(np.float16))
    print(out[1, 0], " on:", pt.default_device())


if __name__ == "__main__":
    main()
