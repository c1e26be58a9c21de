"""pt.printf: what a thread holds, as C's printf writes it, from the GPU or from the emulator."""

from __future__ import annotations

import numpy as np

import ptxtile as pt


@pt.kernel(grid=2, block=32)
def print_values(A: pt.Tensor((64,), pt.float32), Out: pt.Tensor((64,), pt.float32)):
    i = pt.block_idx() * 32 + pt.thread_idx()
    x = A[i]
    root = pt.sqrt(x)
    with pt.if_(x < 0):
        pt.printf("element %u of block %u: the root of %g is %f\n", i, pt.block_idx(), x, root)
    Out[i] = root


def main() -> None:
    a = np.arange(64, dtype=np.float32)
    a[[3, 40]] = -1
    out = np.zeros_like(a)
    print_values(a, out)
    np.testing.assert_array_equal(out, np.sqrt(np.where(a < 0, np.nan, a)))
    print(out[:3], " on:", pt.default_device())


if __name__ == "__main__":
    main()
