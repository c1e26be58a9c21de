"""wmma: C = A @ B from fragments whose layout the hardware keeps to itself (sm_70 and later)."""

from __future__ import annotations

import numpy as np

import ptxtile as pt
from ptxtile import S, laneid, ptx, tile

K = 64
SHAPE = "m16n16k16"


@pt.kernel(grid=1, block=32)
def wmma_product(
    A: pt.Tensor((16, K), pt.float16, align=32),
    B: pt.Tensor((K, 16), pt.float16, align=32),
    C: pt.Tensor((16, 16), pt.float32, align=32),
):
    steps = K // 16
    shape = (32, steps, 8)  # lanes, repeats, registers
    a, b = (pt.alloc_local(shape, pt.uint32, layout=S[shape : (1 @ laneid, 8, 1)]) for _ in range(2))
    c = pt.alloc_local((32, 8), pt.float32, layout=S[(32, 8) : (1 @ laneid, 1)])
    left, right = A.rearrange("m (s k) -> s m k", s=steps), B.rearrange("(s k) n -> s k n", s=steps)
    tile.apply(ptx[f"wmma.load.a.sync.aligned.row.{SHAPE}.global.f16"], a, left, scope="warp")
    tile.apply(ptx[f"wmma.load.b.sync.aligned.row.{SHAPE}.global.f16"], b, right, scope="warp")
    tile.apply(ptx["mov.f32"], c.view(32, 8, 1), 0.0, scope="warp")
    for step in range(steps):
        tile.apply(
            ptx[f"wmma.mma.sync.aligned.row.row.{SHAPE}.f32.f32"], c, a[:, step], b[:, step], c, scope="warp"
        )
    tile.apply(ptx[f"wmma.store.d.sync.aligned.row.{SHAPE}.global.f32"], C, c, scope="warp")


def main() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((16, K), (K, 16)))
    c = np.zeros((16, 16), np.float32)
    wmma_product(a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    print(c[0, :4], " on:", pt.default_device())


if __name__ == "__main__":
    main()
