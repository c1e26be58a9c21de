"""tensormap.replace and cp_fenceproxy: text, the assembler, a map that a kernel makes, on each machine; bad input."""

from __future__ import annotations

import re

import numpy as np
import pytest

import ptxtile as pt
from ptxtile import ptx, tile
from tile.running import failure, lines, machines, message

ADDRESS = "tensormap.replace.tile.global_address.shared::cta.b1024.b64"
EXTENT = "tensormap.replace.tile.global_dim.shared::cta.b1024.b32"
STRIDE = "tensormap.replace.tile.global_stride.shared::cta.b1024.b64"
COPY = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"
ACQUIRE = ptx["fence.proxy.tensormap::generic.acquire.gpu"]
LOAD = ptx["cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"]
ROWS, COLUMNS = 8, 16


@pt.kernel(grid=1, block=32)
def other_tensor(
    A: pt.TensorMap((64, 64), pt.float32, box=(ROWS, COLUMNS)), B: pt.Pointer(pt.float32), n: pt.uint32, Maps: pt.Tensor((16,), pt.uint64, align=128), Out: pt.Tensor((ROWS, COLUMNS), pt.float32),
):  # fmt: skip
    """Reads a box of B, a matrix of n columns, through the map of A after its address, width and stride were replaced."""
    map_ = pt.alloc_shared((16,), pt.uint64, align=128)
    box, full, lane = pt.alloc_shared((ROWS, COLUMNS), pt.float32, align=128), pt.mbarrier(1), pt.lane_id()
    with pt.if_(lane < 16):
        map_[lane] = A.words()[lane]
    with pt.if_(lane == 0):
        full.init()
        pt.fence_mbarrier_init()
    ptx.bar.warp.sync(0xFFFFFFFF)
    with pt.if_(lane == 0):
        tile.apply(ADDRESS, map_, pt.address(B))
        tile.apply(EXTENT, map_, 0, n)
        tile.apply(STRIDE, map_, 0, pt.cast(n, pt.uint64) * 4)
    ptx.bar.warp.sync(0xFFFFFFFF)
    tile.apply(COPY, Maps, map_, scope="warp")
    ACQUIRE(Maps, 128)
    with pt.if_(lane == 0):
        full[0].arrive_expect_tx(A.box_bytes)
        tile.apply(LOAD, box, A.at(Maps)[2, 4], full[0])
    full[0].wait(0)
    for row in range(ROWS):
        with pt.if_(lane < COLUMNS):
            Out[row, lane] = box[row, lane]


@machines
def test_a_map_that_the_kernel_changed(device):
    a, n = np.zeros((64, 64), np.float32), 32
    b = np.arange(64 * n, dtype=np.float32).reshape(64, n)
    out = np.zeros((ROWS, COLUMNS), np.float32)
    other_tensor.launch(a, b, n, np.zeros(16, np.uint64), out, device=device)
    np.testing.assert_array_equal(out, b[2 : 2 + ROWS, 4 : 4 + COLUMNS])


# The assembler keeps 8 bytes of stack for one target, where a kernel reads the map among its own parameters.
@pytest.mark.filterwarnings("ignore:other_tensor. 8 bytes of stack")
def test_nvidias_assembler_takes_it():
    pytest.importorskip("nvidia", reason="nvidia-nvjitlink is not installed")
    for target in ("sm_90a", "sm_100a", "sm_120a"):
        assert other_tensor.cubin(target)[:4] == b"\x7fELF"


FIELDS = {
    "global_address": ("b64", (pt.uint64(64),)), "rank": ("b32", (2,)), "box_dim": ("b32", (1, 8)), "global_dim": ("b32", (4, 64)),
    "global_stride": ("b64", (0, pt.uint64(256))), "element_stride": ("b32", (0, 1)), "elemtype": ("b32", (7,)),
    "interleave_layout": ("b32", (0,)), "swizzle_mode": ("b32", (3,)), "fill_mode": ("b32", (1,)),
}  # fmt: skip


@pytest.mark.parametrize("field", FIELDS)
def test_every_field(field):
    width, rest = FIELDS[field]

    def body(k):
        maps = pt.alloc_shared((2, 16), pt.uint64, align=128)
        tile.apply(f"tensormap.replace.tile.{field}.shared::cta.b1024.{width}", maps, *rest)
        tile.apply(f"tensormap.replace.tile.{field}.global.b1024.{width}", k.G, *rest)

    builder = pt.ModuleBuilder("sm_90a")
    with builder.entry("k", {"G": pt.Tensor((3, 128), pt.uint8, align=64)}, block=1) as k:
        body(k)
    found = re.findall(r"tensormap\.replace\S+ \[(\S+)\], (.*);", str(builder))
    assert [place.partition("+")[2] for place, _ in found] == ["", "128", "", "128", "256"]
    pytest.importorskip("nvidia", reason="nvidia-nvjitlink is not installed")
    assert pt.assemble(str(builder), "sm_90a")[:4] == b"\x7fELF"


def test_a_value_of_each_repeat():
    def body(k):
        maps = pt.alloc_shared((2, 16), pt.uint64, align=128)
        tile.apply(ADDRESS, maps, pt.alloc_local((2, 1), pt.uint64))

    found = [line for line in lines(body, 1, params={}) if line.startswith("tensormap")]
    assert found == [f"{ADDRESS} [k$shared_0], %rd0", f"{ADDRESS} [k$shared_0+128], %rd1"]


# --- bad input --------------------------------------------------------------------------------------------------------
PARAMS = {
    "A": pt.TensorMap((64, 64), pt.float32, box=(8, 16)),
    "G": pt.Tensor((16,), pt.uint64),
    "F": pt.Tensor((16,), pt.uint64, align=128),
}


def shared(align=128, count=16):
    return pt.alloc_shared((count,), pt.uint64, align=align)


BAD = [
    (lambda k: tile.apply(ADDRESS, shared()), f"{ADDRESS} takes 2 operands (addr, new_val); 1 was given"),
    (lambda k: tile.apply(EXTENT, shared(), 64), f"{EXTENT} takes 3 operands (addr, ord, new_val); 2 were given"),
    (lambda k: tile.apply(ADDRESS, shared(8), pt.uint64(0)),
     f"{ADDRESS}: operand addr: an atom of 128 bytes needs a base aligned to 64 bytes, and this tensor's is aligned to 8 (align=)"),
    (lambda k: tile.apply(ADDRESS, shared(count=8), pt.uint64(0)),
     f"{ADDRESS}: operand addr has shape (8,); its trailing axes are the instruction's registers, (16,)"),
    (lambda k: tile.apply(ADDRESS, k.F, pt.uint64(0)), f"{ADDRESS}: operand addr is .shared::cta memory and the tensor is in global memory"),
    (lambda k: tile.apply(COPY, k.F, shared()), f'{COPY} is done by a whole warp: scope="warp", "warpgroup", "cta" or "cluster"'),
    (lambda k: tile.apply(COPY, k.G, shared(), scope="warp"),
     f"{COPY}: operand dst: an atom of 128 bytes needs a base aligned to 128 bytes, and this tensor's is aligned to 16 (align=)"),
    (lambda k: k.A.at(shared()), "pt.TensorMap((64, 64), pt.float32, box=(8, 16), swizzle=0).at takes a tensor of 128 bytes in global memory, not a tensor in shared"),
    (lambda k: k.A.at(k.G), ("pt.TensorMap((64, 64), pt.float32, box=(8, 16), swizzle=0).at: a tensor map is 128 bytes that start at a multiple of 64; this "
     "is (16,) of uint64, aligned to 16 (align=)")),
    (lambda k: pt.address(1.5), "pt.address takes a thing in memory, not 1.5"),
    (lambda k: pt.address(k.G, "const"), 'pt.address: space is "generic", "global", "shared" or "local", not \'const\''),
    (lambda k: pt.address(k.A[0, 0]), "pt.address takes a tensor map itself, not a box of it"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "text"), BAD)
def test_bad_input(body, text):
    assert message(failure(body, 32, params=PARAMS), __file__) == text


def test_addresses_as_values():
    def body(k):
        ptx.mov.b64(pt.reg(pt.uint64), pt.address(k.F[3:]))
        ptx.mov.b64(pt.reg(pt.uint64), pt.address(shared()))
        ptx.mov.b32(pt.reg(pt.uint32), pt.address(shared()[2:], "shared"))

    found = [line for line in lines(body, 1, params=PARAMS) if not line.startswith("cvta.param")]
    assert [re.sub(r"%rd?\d+", "%", line) for line in found] == [
        "mov.u64 %, A", "add.s64 %, %, 24", "mov.b64 %, %", "mov.u32 %, k$shared_0", "cvt.u64.u32 %, %", "cvta.shared.u64 %, %",
        "mov.b64 %, %", "mov.u32 %, k$shared_1+16", "mov.b32 %, %",
    ]  # fmt: skip
