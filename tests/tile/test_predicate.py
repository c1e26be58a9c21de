"""`pred=` as a scalar and as a tensor, and `preserve_dst=`, for destinations of every carrier width."""

from __future__ import annotations

import numpy as np
import pytest

import ptxtile as pt
from ptxtile import S, TileLayout, laneid, ptx, tile, warpid
from tile.running import assembles, lines, machines

KEEP = {
    pt.uint8: ("ld.global.u8", "st.global.u8", "xor.b16"),
    pt.uint16: ("ld.global.u16", "st.global.u16", "xor.b16"),
    pt.int32: ("ld.global.s32", "st.global.s32", "xor.b32"),
    pt.uint64: ("ld.global.u64", "st.global.u64", "xor.b64"),
}


@machines
@pytest.mark.parametrize("dtype", KEEP)
def test_the_old_value_stays_for_every_carrier(dtype, device):
    load, store, form = KEEP[dtype]

    @pt.kernel(grid=1, block=32)
    def flip(A: pt.Tensor((32, 4, 1), dtype), Out: pt.Tensor((32, 4, 1), dtype)):
        t = pt.thread_idx("x")
        r, p, n = (
            pt.alloc_local((4, 1), dtype),
            pt.alloc_local((4, 1), pt.bool_),
            pt.alloc_local((4, 1), pt.uint32),
        )
        tile.apply(load, r, A[t])
        for i in range(4):
            n[i, 0] = t % 4
            tile.apply("setp.eq.u32", p[i : i + 1], n[i : i + 1], i)
        wide = r if dtype.bits > 8 else r.view(pt.uint8)
        tile.apply(load, r, A[t], pred=t < 40, preserve_dst=True)
        tile.apply(
            form, wide.view(pt.uint16) if dtype is pt.uint16 else wide, wide, 85, pred=p, preserve_dst=True
        )
        tile.apply(store, Out[t], r)

    a = np.arange(128, dtype=dtype.numpy).reshape(32, 4, 1)
    out = np.zeros_like(a)
    flip.launch(a, out, device=device)
    chosen = (np.arange(32)[:, None] % 4 == np.arange(4))[..., None]
    np.testing.assert_array_equal(out, np.where(chosen, a ^ dtype.numpy.type(85), a))


@machines
def test_a_scalar_and_a_tensor_of_predicates(device):
    @pt.kernel(grid=1, block=32)
    def fold(A: pt.Tensor((32, 4), pt.float32), Out: pt.Tensor((32, 4), pt.float32)):
        r, t, p = pt.alloc_local((4, 1), pt.float32), pt.thread_idx("x"), pt.alloc_local((4, 1), pt.bool_)
        tile.apply(ptx["ld.global.v4.f32"], r.view(4), A[t])
        tile.apply(ptx["setp.gt.f32"], p, r, 0.0)
        tile.apply(ptx["neg.f32"], r, r, pred=p, preserve_dst=True)
        tile.apply(ptx["add.f32"], r, r, 100.0, pred=t < 16, preserve_dst=True)
        tile.apply(ptx["st.global.v4.f32"], Out[t], r.view(4))

    a = np.linspace(-4, 4, 128, dtype=np.float32).reshape(32, 4)
    out = np.zeros_like(a)
    fold.launch(a, out, device=device)
    due = np.where(a > 0, -a, a)
    due[:16] += np.float32(100)
    np.testing.assert_array_equal(out, due)
    assembles(fold)


def test_each_repeat_has_the_guard_of_its_own():
    def body(k):
        r, p = pt.alloc_local((2, 3, 1), pt.float32), pt.alloc_local((2, 3), pt.bool_)
        tile.apply("neg.f32", r, r, pred=p)

    assert lines(body) == [f"@%p{i} neg.f32 %r{i}, %r{i}" for i in range(6)]


@machines
def test_predicated_ewise_at_warp_scope(device):
    layout = TileLayout(S[(32, 2) : (1 @ laneid, 1)])

    @pt.function
    def double(x: pt.float32) -> pt.float32:
        return x + x

    @pt.kernel(grid=1, block=32)
    def masked(A: pt.Tensor((32, 2), pt.float32), Out: pt.Tensor((32, 2), pt.float32)):
        r = pt.alloc_local((32, 2), pt.float32, layout=layout)
        p = pt.alloc_local((32, 2), pt.bool_, layout=layout)
        tile.apply("ld.global.v2.f32", r, A, scope="warp")
        tile.apply("setp.lt.f32", p.view(32, 2, 1), r.view(32, 2, 1), 10.0, scope="warp")
        tile.ewise(double, r, r, scope="warp", pred=p)
        tile.apply("st.global.v2.f32", Out, r, scope="warp")

    a = np.arange(64, dtype=np.float32).reshape(32, 2)
    out = np.zeros_like(a)
    masked.launch(a, out, device=device)
    np.testing.assert_array_equal(out, np.where(a < 10, 2 * a, a))
    assembles(masked)


@machines
def test_a_predicated_tail_proves_its_bounds(device):
    """The guard is a fact for the access that it guards, and for nothing else."""

    @pt.kernel(grid=2, block=32)
    def tail(A: pt.Tensor((45,), pt.float32), Out: pt.Tensor((45,), pt.float32)):
        i = pt.block_idx("x") * 32 + pt.thread_idx("x")
        r = pt.alloc_local((1,), pt.float32)
        inside = i < 45
        tile.apply("ld.global.f32", r, A[i : i + 1], pred=inside)
        tile.apply("st.global.f32", Out[i : i + 1], r, pred=inside)

    a = np.arange(45, dtype=np.float32)
    out = np.zeros_like(a)
    tail.launch(a, out, device=device)
    np.testing.assert_array_equal(out, a)


def test_a_guard_on_warp_and_register_tensors_at_cta_scope():
    layout = TileLayout(S[(2, 32, 2, 1) : (1 @ warpid, 1 @ laneid, 1, 1)])

    def body(k):
        r = pt.alloc_local((2, 32, 2, 1), pt.float32, layout=layout)
        p = pt.alloc_local((2, 32, 2), pt.bool_, layout=S[(2, 32, 2) : (1 @ warpid, 1 @ laneid, 1)])
        tile.apply("mov.f32", r, 0.0, pred=p, scope="cta")

    assert lines(body, 64) == ["@%p0 mov.f32 %r0, 0f00000000", "@%p1 mov.f32 %r1, 0f00000000"]
