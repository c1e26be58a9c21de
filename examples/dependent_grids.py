"""Programmatic dependent launch: the second grid starts while the first one ends, and waits for its memory (sm_90)."""

from __future__ import annotations

import numpy as np

import ptxtile as pt

N = 1024


@pt.kernel(grid=N // 256, block=256)
def fill(A: pt.Tensor((N,), pt.float32), x: pt.float32):
    i = pt.block_idx() * 256 + pt.thread_idx()
    pt.launch_dependents()  # the next grid may start once all blocks of this one have got here
    A[i] = pt.cast(i, pt.float32) * x


@pt.kernel(grid=N // 256, block=256)
def dependent_grids(A: pt.Tensor((N,), pt.float32), Out: pt.Tensor((N,), pt.float32)):
    i = pt.block_idx() * 256 + pt.thread_idx()
    to = N - 1 - i  # whatever does not need the first grid's memory goes before the wait
    pt.wait_on_dependencies()
    Out[to] = A[i]


def main() -> None:
    a, out = pt.zeros((N,), pt.float32), pt.zeros((N,), pt.float32)
    fill(a, 2.0)
    dependent_grids.launch(a, out, programmatic=True)
    found = out.numpy()
    np.testing.assert_array_equal(found, 2 * np.arange(N, dtype=np.float32)[::-1])
    print(found[:4], " on:", pt.default_device())


if __name__ == "__main__":
    main()
