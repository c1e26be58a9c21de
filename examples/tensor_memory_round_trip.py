"""tcgen05.st and tcgen05.ld (sm_100): a (64, 128) tile in datapath layout B, out of registers and back."""

from __future__ import annotations

import numpy as np

import ptxtile as pt
from ptxtile import S, laneid, ptx, tile, warpid
from ptxtile.layout.mma_fragment import stacked
from ptxtile.layout.tensor_memory import datapath, tensor_memory_fragment

COLUMNS = 64  # of a half: layout B folds the right half of the columns into lanes 64 to 127
WORDS = tensor_memory_fragment("32x32b", COLUMNS)


@pt.kernel(grid=1, block=128)
def tensor_memory_round_trip(A: pt.Tensor((64, 128), pt.float32), Out: pt.Tensor((64, 128), pt.float32)):
    memory = pt.tensor_memory(64)
    with pt.if_(pt.warp_id() == 0):
        memory.alloc()
    pt.cta_sync()
    held = memory.tensor((64, 128), pt.float32, layout=datapath("B", 128))
    # Warp w = 2 h + r holds rows 32 r to 32 r + 31 of half h; a lane is a row.
    by_warp = "(r i) (h c) -> (h r) i c"
    words = held.rearrange(by_warp, i=32, c=COLUMNS)
    out_of, into = (
        pt.alloc_local((4, 32, COLUMNS), pt.float32, layout=stacked(WORDS, warps=4)) for _ in range(2)
    )
    rows = S[(4, 32, COLUMNS // 4, 4) : (1 @ warpid, 1 @ laneid, 4, 1)]
    shape = (4, 32, COLUMNS // 4, 4)
    tile.apply(
        ptx["ld.global.v4.f32"], out_of.view(*shape, layout=rows), A.rearrange(by_warp, i=32, c=COLUMNS).view(*shape),
        scope="cta",
    )  # fmt: skip
    tile.apply(ptx["tcgen05.st.sync.aligned.32x32b.x64.b32"], words, out_of, scope="cta")
    ptx["tcgen05.wait::st.sync.aligned"]()
    tile.apply(ptx["tcgen05.ld.sync.aligned.32x32b.x64.b32"], into, words, scope="cta")
    ptx["tcgen05.wait::ld.sync.aligned"]()
    tile.apply(
        ptx["st.global.v4.f32"], Out.rearrange(by_warp, i=32, c=COLUMNS).view(*shape), into.view(*shape, layout=rows),
        scope="cta",
    )  # fmt: skip
    pt.cta_sync()
    with pt.if_(pt.warp_id() == 0):
        memory.dealloc()


def main() -> None:
    a = np.arange(64 * 128, dtype=np.float32).reshape(64, 128)
    out = np.zeros_like(a)
    tensor_memory_round_trip(a, out)
    np.testing.assert_array_equal(out, a)
    print(out[0, :4], " on:", pt.default_device())


if __name__ == "__main__":
    main()
