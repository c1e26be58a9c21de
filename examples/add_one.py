"""Group, repeat, atom: (2, 32, 3, 4) is two warps, 32 lanes, three vectors of four."""

from __future__ import annotations

import numpy as np

import ptxtile as pt
from ptxtile import S, laneid, ptx, tile, warpid

SHAPE = (2, 32, 3, 4)
LAYOUT = S[SHAPE : (1 @ warpid, 1 @ laneid, 4, 1)]


@pt.kernel(grid=1, block=64)
def add_one(A: pt.Tensor(SHAPE, pt.float32), Out: pt.Tensor(SHAPE, pt.float32)):
    r = pt.alloc_local(SHAPE, pt.float32, layout=LAYOUT)
    tile.apply(ptx["ld.global.v4.f32"], r, A, scope="cta")
    scalars = r.view(2, 32, 12, 1)  # add takes one register: the vector axis becomes repeats
    tile.apply(ptx["add.rn.f32"], scalars, scalars, 1.0, scope="cta")
    tile.apply(ptx["st.global.v4.f32"], Out, r, scope="cta")


def main() -> None:
    a = np.arange(768, dtype=np.float32).reshape(SHAPE)
    out = np.zeros_like(a)
    add_one(a, out)
    np.testing.assert_array_equal(out, a + 1)
    print(out[0, 0, 0], " on:", pt.default_device())


if __name__ == "__main__":
    main()
