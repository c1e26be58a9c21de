"""y = a * x + y for any n: the size is a run-time value, the tail is guarded with `if_`, the grid follows from n."""

from __future__ import annotations

import numpy as np

import ptxtile as pt
from ptxtile import ptx

BLOCK = 256


@pt.kernel(grid=lambda n: -(-n // BLOCK), block=BLOCK)
def saxpy(a: pt.float32, X: pt.Tensor("n", pt.float32), Y: pt.Tensor("n", pt.float32)):
    i = pt.block_idx("x") * BLOCK + pt.thread_idx("x")
    with pt.if_(i < X.shape[0]):
        Y[i] = ptx.fma.rn.f32(a, X[i], Y[i])


def main() -> None:
    n = 1_000_003
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(n, dtype=np.float32) for _ in range(2))
    due = (2.5 * x.astype(np.float64) + y).astype(np.float32)  # exact in float64, so rounded once
    saxpy(2.5, x, y)
    np.testing.assert_array_equal(y, due)
    print(saxpy.ptx())
    print(y[:4], " on:", pt.default_device())


if __name__ == "__main__":
    main()
