"""tcgen05.cp of every shape, tcgen05.shift and tcgen05.commit: text, the assembler, values on the emulator, bad input."""

from __future__ import annotations

import re

import numpy as np
import pytest

import ptxtile as pt
from ptxtile import S, TCol, TLane, laneid, tile, warpid
from ptxtile.layout.mma_fragment import stacked
from ptxtile.layout.tensor_memory import tensor_memory_fragment
from tile.running import failure, lines, message

CP = "tcgen05.cp.cta_group::1."
COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64"
MULTICAST = "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64"
SHIFT = "tcgen05.shift.cta_group::1.down"
LANES = {
    "128x256b": S[(128, 8) : (1 @ TLane, 1 @ TCol)],
    "4x256b": S[(4, 8) : (32 @ TLane, 1 @ TCol)],
    "128x128b": S[(128, 4) : (1 @ TLane, 1 @ TCol)],
    "64x128b.warpx2::02_13": S[(64, 4) : (1 @ TLane, 1 @ TCol)],
    "64x128b.warpx2::01_23": S[(2, 32, 4) : (64 @ TLane, 1 @ TLane, 1 @ TCol)],
    "32x128b.warpx4": S[(32, 4) : (1 @ TLane, 1 @ TCol)],
}
SHAPES = {name: (int(name.split("x")[0]), 8 if "256b" in name else 4) for name in LANES}


def memory(columns=64):
    made = pt.tensor_memory(columns)
    pt.cta_sync()
    return made


def assembles(body, *targets):
    pytest.importorskip("nvidia", reason="nvidia-nvjitlink is not installed")
    for target in targets:
        builder = pt.ModuleBuilder(target)
        with builder.entry("k", {}, block=1) as k:
            body(k)
        assert pt.assemble(str(builder), target)[:4] == b"\x7fELF"


def source(rows, columns, swizzle=0):
    shape = (max(rows, 8), max(columns, swizzle // 4))
    layout = pt.shared_layout(shape, pt.uint32, swizzle)
    return pt.alloc_shared(shape, pt.uint32, layout=layout, align=1024)[0:rows, 0:columns]


# --- copies -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", LANES)
@pytest.mark.parametrize("narrow", ["", ".b8x16.b6x16_p32", ".b8x16.b4x16_p64"])
@pytest.mark.parametrize("swizzle", [0, 32, 128])
def test_nvidias_assembler_takes_every_copy(name, narrow, swizzle):
    for ctas in (1, 2):

        def body(_, ctas=ctas):
            held = pt.tensor_memory(64, ctas)
            pt.cta_sync()
            place = held.tensor(SHAPES[name], pt.uint32, layout=LANES[name])
            tile.apply(f"tcgen05.cp.cta_group::{ctas}.{name}{narrow}", place, source(*SHAPES[name], swizzle))

        assembles(body, "sm_100a" if ctas == 1 else "sm_110a")


def moved(name, narrow="", swizzle=0):
    """What a copy of 0, 1, 2, … leaves in all 128 lanes of 8 columns that were 2**32 - 1; where nothing was written."""
    rows, columns = SHAPES[name]
    fragment = tensor_memory_fragment("32x32b", 8)

    @pt.kernel(grid=1, block=128)
    def copy(A: pt.Tensor((rows, columns), pt.uint32), Out: pt.Tensor((128, 8), pt.uint32)):
        held, full, t = pt.tensor_memory(32), pt.mbarrier(1), pt.thread_idx()
        a = source(rows, columns, swizzle)
        with pt.if_(pt.warp_id() == 0):
            held.alloc()
        with pt.if_(t == 0):
            full.init()
            pt.fence_mbarrier_init()
        with pt.if_(t < rows):
            for j in range(columns):
                a[t, j] = A[t, j]
        pt.fence_async()
        pt.cta_sync()
        every = held.tensor((4, 32, 8), pt.uint32, layout=S[(4, 32, 8) : (32 @ TLane, 1 @ TLane, 1 @ TCol)])
        r = pt.alloc_local((4, 32, 8), pt.uint32, layout=stacked(fragment, warps=4))
        tile.apply("mov.b32", r.view(4, 32, 8, 1), pt.uint32(0xFFFFFFFF), scope="cta")
        tile.apply("tcgen05.st.sync.aligned.32x32b.x8.b32", every, r, scope="cta")
        pt.ptx["tcgen05.wait::st.sync.aligned"]()
        pt.ptx["tcgen05.fence::before_thread_sync"]()
        pt.cta_sync()
        pt.ptx["tcgen05.fence::after_thread_sync"]()
        with pt.if_(t == 0):
            place = held.tensor((rows, columns), pt.uint32, layout=LANES[name])
            tile.apply(f"{CP}{name}{narrow}", place, a)
            tile.apply(COMMIT, full[0])
        full[0].wait(0)
        pt.ptx["tcgen05.fence::after_thread_sync"]()
        tile.apply("tcgen05.ld.sync.aligned.32x32b.x8.b32", r, every, scope="cta")
        pt.ptx["tcgen05.wait::ld.sync.aligned"]()
        out = r.view(4, 32, 2, 4, layout=S[(4, 32, 2, 4) : (1 @ warpid, 1 @ laneid, 4, 1)])
        tile.apply("st.global.v4.b32", Out.view(4, 32, 2, 4), out, scope="cta")
        pt.cta_sync()
        with pt.if_(pt.warp_id() == 0):
            held.dealloc()

    out = np.zeros((128, 8), np.uint32)
    return copy, out


def run(name, data, narrow="", swizzle=0):
    kernel, out = moved(name, narrow, swizzle)
    kernel.launch(data, out, device="emulator")
    return out


@pytest.mark.parametrize("name", LANES)
@pytest.mark.parametrize("swizzle", [0, 32, 128])
def test_rows_go_to_their_lanes(name, swizzle):
    rows, columns = SHAPES[name]
    data = np.arange(rows * columns, dtype=np.uint32).reshape(rows, columns)
    out = run(name, data, swizzle=swizzle)
    due = np.full((128, 8), 0xFFFFFFFF, np.uint32)
    copies = {"02_13": 2, "01_23": 2, "warpx4": 4}.get(re.split(r"[.:]+", name)[-1], 1)
    step = {"64x128b.warpx2::01_23": 32}.get(name, 128 // copies)
    for row in range(rows):
        at = LANES[name].apply(row, 0, shape=(rows, columns))["TLane"]
        for copy in range(copies):
            due[at + copy * step, :columns] = data[row]
    np.testing.assert_array_equal(out, due)


def test_four_bits_become_bytes():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 16, (4, 32)).astype(np.uint8)
    packed = np.zeros((4, 32), np.uint8)
    for half in range(2):
        packed[:, half * 16 : half * 16 + 8] = (
            codes[:, half * 16 : half * 16 + 16 : 2] | codes[:, half * 16 + 1 : half * 16 + 16 : 2] << 4
        )
    out = run("4x256b", packed.view(np.uint32), ".b8x16.b4x16_p64")
    found = np.ascontiguousarray(out[::32]).view(np.uint8)
    assert (found == codes).all() or (found == codes << 2).all()


# --- shifts, commits --------------------------------------------------------------------------------------------------
def test_a_shift_for_each_eight_words():
    def body(_):
        place = memory().tensor(
            (2, 32, 8), pt.uint32, layout=S[(2, 32, 8) : (8 @ TCol, 1 @ TLane, 1 @ TCol)] + 64 @ TLane
        )
        tile.apply(SHIFT, place)

    found = [line for line in lines(body, 1, params={}) if line.startswith("tcgen05.shift")]
    assert [int(re.search(r"\+(\d+)\]", line)[1]) for line in found] == [64 << 16, (64 << 16) + 8]
    assembles(body, "sm_100a", "sm_103a", "sm_110a")


def test_commits():
    def body(_):
        full = pt.mbarrier(1, 2)
        tile.apply(COMMIT, full[1])
        tile.apply(MULTICAST, full[0], pt.uint16(3))

    found = [line for line in lines(body, 1, params={}) if line.startswith(("tcgen05.commit", "mov"))]
    assert found == [f"{COMMIT} [k$shared_0+8]", "mov.b16 %rs0, 3", f"{MULTICAST} [k$shared_0], %rs0"]
    assembles(lambda _: tile.apply(COMMIT, pt.mbarrier(1)[0]), "sm_100a", "sm_103a", "sm_110a")
    assembles(
        lambda _: tile.apply(MULTICAST, pt.mbarrier(1)[0], pt.uint16(3)), "sm_100a", "sm_103a", "sm_110a"
    )


# --- bad input --------------------------------------------------------------------------------------------------------
def wrong(body, block=32):
    return message(failure(body, block, params={}), __file__)


def place(shape, layout):
    return memory().tensor(shape, pt.uint32, layout=layout)


BAD = [
    (lambda: tile.apply(COMMIT, pt.mbarrier(1)[0], scope="warp"), f'{COMMIT} is issued by one thread: scope="thread", as in pt.if_(pt.elect())'),
    (lambda: tile.apply(COMMIT), f"{COMMIT} takes 1 operands (mbar); 0 were given"),
    (lambda: tile.apply(MULTICAST, pt.mbarrier(1)[0]), f"{MULTICAST} takes 2 operands (mbar, cta_mask); 1 was given"),
    (lambda: tile.apply(COMMIT, pt.alloc_shared((1,), pt.uint64)), f"{COMMIT}: operand mbar takes an mbarrier, such as pt.mbarrier(1)[0], not a tensor"),
    (lambda: tile.apply(SHIFT, place((32, 8), S[(32, 8) : (1 @ TLane, 1 @ TCol)] + 16 @ TLane)),
     f"{SHIFT}: operand taddr: rows are shifted from a lane that is a multiple of 32, not 16"),
    (lambda: tile.apply(SHIFT, place((32, 4), S[(32, 4) : (1 @ TLane, 1 @ TCol)])),
     f"{SHIFT}: operand taddr has shape (32, 4); its trailing axes are the instruction's registers, (32, 8)"),
    (lambda: tile.apply(SHIFT, pt.alloc_shared((32, 8), pt.uint32)),
     f"{SHIFT}: operand taddr takes a tensor in tensor memory, pt.tensor_memory(…).tensor(…), not a tensor in shared"),
    (lambda: tile.apply(f"{CP}4x256b", place((4, 8), S[(4, 8) : (1 @ TLane, 1 @ TCol)]), source(4, 8)),
     (f"{CP}4x256b: operand taddr: element (1, 0) of the atom must lie 32 lanes and 0 columns from the first, and the layout puts it 1 "
      "and 0 away")),
    (lambda: tile.apply(f"{CP}128x128b", place((128, 4), LANES["128x128b"]), pt.alloc_shared((128, 4), pt.uint32, align=4)),
     f"{CP}128x128b: operand s_desc: the matrix is K-major, and its memory aligned to 16 bytes (align=)"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "text"), BAD)
def test_bad_input(body, text):
    assert wrong(lambda _: body()) == text
