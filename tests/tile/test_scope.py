"""Scopes: which threads the group axes are, under guards of every kind, and at which addresses."""

from __future__ import annotations

import numpy as np
import pytest

import ptxtile as pt
from ptxtile import S, TileError, TileLayout, cbx, laneid, tid_in_wg, tile, tx, warpid, wgid, wid_in_wg
from tile.running import PARAMS, assembles, failure, machines, message, module


def fill(out: pt.Tensor, shape: tuple[int, ...], layout: object, value: float, scope: str = "cta") -> None:
    """The kernel body's part: each thread active here stores `value` through a tensor of this layout."""
    r = pt.alloc_local(shape, pt.float32, layout=layout)
    tile.apply("mov.f32", r, value, scope=scope)
    tile.apply("st.global.f32", out, r, scope=scope)


def owned(
    warps: int, lanes: int, first: int = 0, step: int = 1, lane: int = 0, lane_step: int = 1
) -> TileLayout:
    return (
        TileLayout(S[(warps, lanes, 1) : (step @ warpid, lane_step @ laneid, 1)])
        + first @ warpid
        + lane @ laneid
    )


# Name, guard, layout of the register tensor, threads that are active of 128.
GUARDS = {
    "warp": (lambda: pt.warp_id() == 1, owned(1, 32, 1), range(32, 64)),
    "last warps": (lambda: pt.warp_id() >= 2, owned(2, 32, 2), range(64, 128)),
    "range of warps": (lambda: (pt.warp_id() >= 1) & (pt.warp_id() < 3), owned(2, 32, 1), range(32, 96)),
    "odd warps": (lambda: pt.warp_id() % 2 == 1, owned(2, 32, 1, 2), [*range(32, 64), *range(96, 128)]),
    "first warp by threads": (lambda: pt.thread_idx("x") < 32, owned(1, 32), range(32)),
    "low lanes": (lambda: pt.lane_id() < 8, owned(4, 8), [32 * w + i for w in range(4) for i in range(8)]),
    "high lanes": (lambda: pt.lane_id() >= 24, owned(4, 8, lane=24), [32 * w + 24 + i for w in range(4) for i in range(8)]),
    "even lanes": (lambda: pt.lane_id() % 2 == 0, owned(4, 16, lane_step=2), range(0, 128, 2)),
    "one thread": (lambda: pt.thread_idx("x") == 37, owned(1, 1, 1, lane=5), [37]),
    "lanes of a warp": (lambda: (pt.warp_id() == 3) & (pt.lane_id() < 4), owned(1, 4, 3), range(96, 100)),
    "not a warp": (lambda: ~(pt.warp_id() >= 1), owned(1, 32), range(32)),
}  # fmt: skip


@machines
@pytest.mark.parametrize("name", GUARDS)
def test_guards_narrow_the_active_threads(name, device):
    guard, layout, threads = GUARDS[name]
    shape = layout.extents
    count = len(threads)

    @pt.kernel(grid=1, block=128)
    def guarded(Out: pt.Tensor((count,), pt.float32), Who: pt.Tensor((128,), pt.float32)):
        with pt.if_(guard()):
            fill(Out.view(*shape), shape, layout, 7.0)
            Who[pt.thread_idx("x")] = 1.0

    out, who = np.zeros(count, np.float32), np.zeros(128, np.float32)
    guarded.launch(out, who, device=device)
    assert (out == 7).all()
    assert np.flatnonzero(who).tolist() == list(threads)
    assembles(guarded, ("sm_90a",))


@machines
def test_a_partial_warp_with_its_own_guard(device):
    @pt.kernel(grid=1, block=48)
    def split(Out: pt.Tensor((48,), pt.float32)):
        with pt.if_(pt.warp_id() == 1):
            fill(Out[32:48].view(1, 16, 1), (1, 16, 1), owned(1, 16, 1), 7.0)
        with pt.else_():
            fill(Out[0:32].view(1, 32, 1), (1, 32, 1), owned(1, 32), 5.0)

    out = np.zeros(48, np.float32)
    split.launch(out, device=device)
    np.testing.assert_array_equal(out, [5] * 32 + [7] * 16)
    assembles(split)


@machines
@pytest.mark.parametrize(
    "layout",
    [
        S[(2, 4, 32, 1) : (1 @ wgid, 1 @ wid_in_wg, 1 @ laneid, 1)],
        S[(2, 4, 32, 1) : (1 @ wgid, 32 @ tid_in_wg, 1 @ tid_in_wg, 1)],
        S[(8, 32, 1) : (32 @ tx, 1 @ tx, 1)],
        S[(8, 32, 1) : (1 @ warpid, 1 @ laneid, 1)],
    ],
    ids=["wgid wid_in_wg laneid", "wgid tid_in_wg", "tx", "warpid laneid"],
)
def test_every_way_to_name_the_owner(layout, device):
    @pt.kernel(grid=1, block=256)
    def thrice(A: pt.Tensor((8, 32, 1), pt.float32), Out: pt.Tensor((8, 32, 1), pt.float32)):
        r = pt.alloc_local((8, 32, 1), pt.float32, layout=layout)
        tile.apply("ld.global.f32", r, A, scope="cta")
        tile.apply("mul.f32", r, r, 3.0, scope="cta")
        tile.apply("st.global.f32", Out, r, scope="cta")

    a = np.arange(256, dtype=np.float32).reshape(8, 32, 1)
    out = np.zeros_like(a)
    thrice.launch(a, out, device=device)
    np.testing.assert_array_equal(out, 3 * a)


@machines
def test_warp_and_warpgroup_scope(device):
    @pt.kernel(grid=1, block=256)
    def scopes(A: pt.Tensor((8, 32), pt.float32), B: pt.Tensor((2, 4, 32, 1), pt.float32)):
        w = pt.warp_id()
        fill(A[w].view(32, 1), (32, 1), S[(32, 1) : (1 @ laneid, 1)], 1.0, "warp")
        fill(B[w // 4], (4, 32, 1), S[(4, 32, 1) : (1 @ wid_in_wg, 1 @ laneid, 1)], 2.0, "warpgroup")

    a, b = np.zeros((8, 32), np.float32), np.zeros((2, 4, 32, 1), np.float32)
    scopes.launch(a, b, device=device)
    assert (a == 1).all() and (b == 2).all()
    assembles(scopes)


@machines
def test_cluster_scope(device):
    @pt.kernel(grid=2, block=32, cluster=2)
    def ranks(Out: pt.Tensor((2, 1, 32, 1), pt.float32)):
        layout = TileLayout(S[(2, 1, 32, 1) : (1 @ cbx, 1 @ warpid, 1 @ laneid, 1)])
        fill(Out, (2, 1, 32, 1), layout, 3.0, "cluster")

    out = np.zeros((2, 1, 32, 1), np.float32)
    ranks.launch(out, device=device)
    assert (out == 3).all()
    assembles(ranks, ("sm_90a", "sm_100a"))


def test_a_condition_on_data_narrows_nothing():
    """Threads that a run-time number rules out do not execute; the group axes are still all of them."""

    def body(k):
        with pt.if_(k.n < 3):
            tile.apply(
                "mov.f32", pt.alloc_local((2, 32, 1), pt.float32, layout=owned(2, 32)), 1.0, scope="cta"
            )

    assert "mov.f32" in str(module(body, 64, params=PARAMS))


def test_uneven_threads_are_refused():
    def body(k):
        with pt.if_(pt.thread_idx("x") % 3 == 0):
            tile.apply("mov.f32", pt.alloc_local((32, 1), pt.float32), 1.0, scope="warp")

    assert message(failure(body, 128), __file__) == (
        "mov.f32: at warp scope every active warp needs the same lanes, and warp 0 has 11 of them; guard the partial warp "
        "by itself (pt.if_ on pt.warp_id()), use a block that is a multiple of 32, or thread scope"
    )


def test_unevenly_spaced_threads_are_refused():
    def body(k):
        lane = pt.lane_id()
        with pt.if_((lane < 5) & (lane * lane % 3 == 1)):
            tile.apply("mov.f32", pt.alloc_local((3, 1), pt.float32), 1.0, scope="warp")

    assert message(failure(body, 32), __file__) == (
        "mov.f32: the active lanes [1, 2, 4] are not evenly spaced, so they form no group axis"
    )


def test_warpgroup_scope_needs_whole_warpgroups():
    def body(k):
        with pt.if_((pt.warp_id() >= 2) & (pt.warp_id() < 6)):
            tile.apply("mov.f32", pt.alloc_local((4, 32, 1), pt.float32), 1.0, scope="warpgroup")

    error = failure(body, 256)
    assert isinstance(error, TileError)
    assert message(error, __file__) == (
        "mov.f32: warpgroup scope needs whole warpgroups (warps 4i to 4i+3), or warps of one; active here are 4 warps from 2"
    )


def test_warp_scope_does_not_tell_the_warp():
    def body(k):
        r = pt.alloc_local((32, 1), pt.float32, layout=S[(32, 1) : (1 @ laneid, 1)] + 1 @ warpid)
        tile.apply("mov.f32", r, 1.0, scope="warp")

    assert message(failure(body, 64), __file__) == (
        "mov.f32: operand d: owner axis warpid does not fit: warp scope does not tell the executing thread's"
    )


def test_group_scopes_need_a_known_block():
    def body(k):
        tile.apply("mov.f32", pt.alloc_local((32, 1), pt.float32), 1.0, scope="warp")

    assert (
        message(failure(body, None), __file__)
        == "mov.f32: warp scope needs a block whose shape is known while tracing"
    )
