"""multimem: one address stands for the same place in several GPUs' memory; here it is one GPU's alone (sm_90).

On hardware the pointer is a multicast address that the driver maps (cuMulticastCreate). On the emulator any address
stands for itself, so that the sum has one term.
"""

from __future__ import annotations

import numpy as np

import ptxtile as pt
from ptxtile import S, laneid, ptx, tile

LAYOUT = S[(32, 4) : (1 @ laneid, 1)]


@pt.kernel(grid=1, block=32)
def multimem_sum(A: pt.Tensor((32, 4), pt.float32), Out: pt.Tensor((32, 4), pt.float32)):
    r = pt.alloc_local((32, 4), pt.float32, layout=LAYOUT)
    tile.apply(ptx["multimem.ld_reduce.relaxed.sys.global.add.v4.f32"], r, A, scope="warp")
    tile.apply(ptx["multimem.st.relaxed.sys.global.v4.f32"], Out, r, scope="warp")
    tile.apply(ptx["multimem.red.relaxed.sys.global.add.v4.f32"], Out, r, scope="warp")


def main() -> None:
    a = np.arange(128, dtype=np.float32).reshape(32, 4)
    out = np.zeros_like(a)
    multimem_sum.launch(a, out, device="emulator")
    np.testing.assert_array_equal(out, a + a)
    print(out[1], " on: the emulator")


if __name__ == "__main__":
    main()
