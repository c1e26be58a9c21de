"""SiLU(x) * 2 + 1 over a (2, 32, 4) tensor: two warps, one vector load and one vector store a thread.

    python examples/activation.py

runs on the GPU if there is one, else on the emulator, and prints the result, the PTX, and where it ran.
"""

from __future__ import annotations

import numpy as np

import ptxtile as pt
from ptxtile import S, TileLayout, laneid, ptx, tile, warpid

# Element (w, l, i) is register i of lane l of warp w.
reg_layout = TileLayout(S[(2, 32, 4) : (1 @ warpid, 1 @ laneid, 1)])


@pt.function
def silu_affine(x: pt.float32, scale: pt.float32, bias: pt.float32) -> pt.float32:
    """SiLU, scaled and shifted; multiply and add stay two roundings."""
    y = x / (pt.float32(1) + pt.exp(-x))
    return y * scale + bias


@pt.kernel(grid=1, block=64)
def activation(A: pt.Tensor((2, 32, 4), pt.float32), Out: pt.Tensor((2, 32, 4), pt.float32)):
    r = pt.alloc_local((2, 32, 4), pt.float32, layout=reg_layout)
    tile.apply(ptx["ld.global.v4.b32"], r, A, scope="cta")
    tile.ewise(silu_affine, r, r, pt.float32(2), pt.float32(1), scope="cta")
    tile.apply(ptx["st.global.v4.b32"], Out, r, scope="cta")


def reference(x: np.ndarray) -> np.ndarray:
    wide = x.astype(np.float64)
    return wide / (1 + np.exp(-wide)) * 2 + 1


def main() -> None:
    x = np.linspace(-2, 2, 256, dtype=np.float32).reshape(2, 32, 4)
    out = np.zeros_like(x)
    activation(x, out)
    np.testing.assert_allclose(out, reference(x), rtol=2e-6, atol=2e-6)
    print(activation.ptx())
    print("first four:", out[0, 0], " expected:", reference(x)[0, 0].astype(np.float32))
    print("ran on:", pt.default_device())


if __name__ == "__main__":
    main()
