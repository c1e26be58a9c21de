"""cp.async: four copies of 16 bytes a thread, from global to shared memory and back by plain stores."""

from __future__ import annotations

import numpy as np

import ptxtile as pt
from ptxtile import S, laneid, ptx, tile, warpid

# (warp, lane, repeat, elements): a row of 64 bytes a thread
SHAPE = (4, 32, 4, 8)


@pt.kernel(grid=1, block=128)
def async_copy(A: pt.Tensor((128, 32), pt.float16), Out: pt.Tensor((128, 32), pt.float16)):
    staged = pt.alloc_shared((128, 32), pt.float16)
    tile.apply(
        ptx["cp.async.cg.shared.global"], staged.view(*SHAPE), A.view(*SHAPE), scope="cta", chunk_bytes=16
    )
    ptx.cp.async_.commit_group()
    ptx.cp.async_.wait_group(0)
    pt.cta_sync()
    r = pt.alloc_local((4, 32, 4, 4), pt.uint32, layout=S[(4, 32, 4, 4) : (1 @ warpid, 1 @ laneid, 4, 1)])
    words = (4, 32, 4, 4)
    tile.apply(ptx["ld.shared.v4.b32"], r, staged.view(pt.uint32).view(*words), scope="cta")
    tile.apply(ptx["st.global.v4.b32"], Out.view(pt.uint32).view(*words), r, scope="cta")


def main() -> None:
    a = np.arange(128 * 32, dtype=np.uint16).view(np.float16).reshape(128, 32)
    out = np.zeros_like(a)
    async_copy(a, out)
    np.testing.assert_array_equal(out.view(np.uint16), a.view(np.uint16))
    print(out[0, :4].view(np.uint16), " on:", pt.default_device())


if __name__ == "__main__":
    main()
