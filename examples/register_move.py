"""mov: fill registers with 17, then copy them to every other register."""

from __future__ import annotations

import numpy as np

import ptxtile as pt
from ptxtile import S, ptx, tile


@pt.kernel(grid=1, block=1)
def register_move(Out: pt.Tensor((4, 1), pt.uint32)):
    filled = pt.alloc_local((4, 1), pt.uint32)
    gapped = pt.alloc_local((4, 1), pt.uint32, layout=S[(4, 1) : (2, 1)])
    tile.apply(ptx["mov.b32"], filled, 17)
    tile.apply(ptx["mov.b32"], gapped, filled)
    tile.apply(ptx["st.global.b32"], Out, gapped)


def main() -> None:
    out = np.zeros((4, 1), np.uint32)
    register_move(out)
    np.testing.assert_array_equal(out, 17)
    print(out.ravel(), " on:", pt.default_device())


if __name__ == "__main__":
    main()
