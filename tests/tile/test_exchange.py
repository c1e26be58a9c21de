"""shfl, vote, match, redux, elect and activemask over tiles."""

from __future__ import annotations

import numpy as np
import pytest

import ptxtile as pt
from ptxtile import S, laneid, tile
from tile.running import failure, lines, machines, message, module

ALL = pt.uint32(0xFFFFFFFF)


def held(dtype=pt.uint32, lanes=32):
    return pt.alloc_local((lanes, 2, 1), dtype, layout=S[(lanes, 2, 1) : (1 @ laneid, 1, 1)])


def each(_):
    d, a, p = held(), held(), held(pt.bool_)
    tile.apply("shfl.sync.idx.b32", d, a, 3, 31, ALL, scope="warp")
    tile.apply("shfl.sync.up.b32", (d, p), a, 1, 0, ALL, scope="warp")
    tile.apply("vote.sync.all.pred", p, p, ALL, scope="warp")
    tile.apply("vote.sync.ballot.b32", d, p, ALL, scope="warp")
    tile.apply("match.any.sync.b32", d, a, ALL, scope="warp")
    tile.apply("match.all.sync.b32", (d, p), a, ALL, scope="warp")
    tile.apply("activemask.b32", d, scope="warp")


def test_pairs_and_sinks():
    found = [line for line in lines(each, 32, params={}) if line.startswith("shfl.sync.up")]
    assert found == [
        "shfl.sync.up.b32 %r0|%p0, %r2, 1, 0, 4294967295",
        "shfl.sync.up.b32 %r1|%p1, %r3, 1, 0, 4294967295",
    ]


@pytest.mark.parametrize("target", ["sm_75", "sm_90a", "sm_100a", "sm_120a"])
def test_nvidias_assembler_takes_them(target):
    pytest.importorskip("nvidia", reason="nvidia-nvjitlink is not installed")

    def body(k):
        each(k)
        if target != "sm_75":
            tile.apply("redux.sync.add.s32", held(pt.int32), held(pt.int32), ALL, scope="warp")
        if target not in ("sm_75",):
            tile.apply("redux.sync.xor.b32", held(), held(), ALL, scope="warp")
        if target in ("sm_90a", "sm_100a"):
            tile.apply("elect.sync", (None, held(pt.bool_)), ALL, scope="warp")
        if target == "sm_100a":
            tile.apply("redux.sync.min.NaN.f32", held(pt.float32), held(pt.float32), ALL, scope="warp")

    assert pt.assemble(str(module(body, 32)), target)[:4] == b"\x7fELF"


@machines
def test_values(device):
    shape = (32, 2, 1)

    @pt.kernel(grid=1, block=32)
    def exchange(A: pt.Tensor(shape, pt.uint32), Out: pt.Tensor((3, *shape), pt.uint32)):
        a, d = held(), held()
        tile.apply("ld.global.u32", a, A, scope="warp")
        for number, (name, step) in enumerate((("bfly", 5), ("down", 2), ("idx", 7))):
            tile.apply(f"shfl.sync.{name}.b32", d, a, step, 31, ALL, scope="warp")
            tile.apply("st.global.u32", Out[number], d, scope="warp")

    a = np.random.default_rng(1).integers(0, 2**32, shape, dtype=np.uint32)
    out = np.zeros((3, *shape), np.uint32)
    exchange.launch(a, out, device=device)
    lane = np.arange(32)
    np.testing.assert_array_equal(out[0], a[lane ^ 5])
    np.testing.assert_array_equal(out[1], a[np.where(lane + 2 < 32, lane + 2, lane)])
    np.testing.assert_array_equal(out[2], np.broadcast_to(a[7], shape))


# --- lanes ----------------------------------------------------------------------------------------------------------
def wrong(body, block):
    return message(failure(body, block, params={}), __file__)


def test_a_partial_warp_is_refused_at_every_scope():
    def body(_):
        tile.apply("redux.sync.add.u32", held(lanes=16), held(lanes=16), ALL, scope="warp")

    def thread(_):
        tile.apply(
            "redux.sync.add.u32", pt.alloc_local((1,), pt.uint32), pt.alloc_local((1,), pt.uint32), ALL
        )

    due = (
        "redux.sync.add.u32 requires all 32 lanes of a warp to be active; active here are 16 from lane 0: they alone take "
        "part if membermask is the constant 0xffff"
    )
    assert wrong(body, 16) == due
    assert wrong(thread, 16) == due


def test_a_constant_mask_of_those_that_are_active():
    def body(_):
        with pt.if_(pt.lane_id() < 16):
            tile.apply("redux.sync.add.u32", held(lanes=16), held(lanes=16), pt.uint32(0xFFFF), scope="warp")

    assert sum(line.startswith("redux") for line in lines(body, 32, params={})) == 2


def test_half_a_warp_behind_a_guard():
    def body(_):
        with pt.if_(pt.lane_id() >= 16):
            tile.apply("vote.sync.any.pred", held(pt.bool_, 16), held(pt.bool_, 16), ALL, scope="warp")

    assert wrong(body, 32) == (
        "vote.sync.any.pred requires all 32 lanes of a warp to be active; active here are 16 from lane 16: they alone take "
        "part if membermask is the constant 0xffff0000"
    )


def test_a_lane_that_is_no_integer():
    def body(_):
        tile.apply("redux.sync.add.u32", held(), 3.5, ALL, scope="warp")

    assert wrong(body, 32) == "redux.sync.add.u32: operand src takes .u32, not 3.5: 3.5 is no integer"
