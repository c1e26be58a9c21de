"""`tile.apply` of register forms: what runs, on every block and scope, with scalars, views and in place."""

from __future__ import annotations

import numpy as np
import pytest

import ptxtile as pt
from ptxtile import S, TileLayout, laneid, ptx, tile, warpid
from tile.running import assembles, lines, machines

CTA = TileLayout(S[(2, 32, 1) : (1 @ warpid, 1 @ laneid, 1)])


@pt.kernel(grid=1, block=64)
def one_register(A: pt.Tensor((2, 32, 1), pt.float32), Out: pt.Tensor((2, 32, 1), pt.float32)):
    r = pt.alloc_local((2, 32, 1), pt.float32, layout=CTA)
    tile.apply(ptx["ld.global.f32"], r, A, scope="cta")
    tile.apply(ptx["add.f32"], r, r, 1.0, scope="cta")
    tile.apply(ptx["st.global.f32"], Out, r, scope="cta")


@machines
def test_one_register_a_thread_at_cta_scope(device):
    a = np.arange(64, dtype=np.float32).reshape(2, 32, 1)
    out = np.zeros_like(a)
    one_register.launch(a, out, device=device)
    np.testing.assert_array_equal(out, a + 1)


def test_warp_and_lane_together_are_the_thread():
    """One multiply-add an operand: 32 * warp + lane is never taken apart."""
    text = one_register.ptx()
    assert text.count("mad.") == 2
    assert "div." not in text and "rem." not in text and "shr." not in text


@machines
@pytest.mark.parametrize("block", [1, 16, 33, 48])
def test_any_block_at_thread_scope(block, device):
    @pt.kernel(grid=1, block=block)
    def triple(A: pt.Tensor((block, 2), pt.float32), Out: pt.Tensor((block, 2), pt.float32)):
        r, t = pt.alloc_local((2, 1), pt.float32), pt.thread_idx("x")
        tile.apply(ptx["ld.global.v2.f32"], r.view(2), A[t])
        tile.apply(ptx["mul.f32"], r, r, 3.0)
        tile.apply(ptx["st.global.v2.f32"], Out[t], r.view(2))

    a = np.arange(block * 2, dtype=np.float32).reshape(block, 2)
    out = np.zeros_like(a)
    triple.launch(a, out, device=device)
    np.testing.assert_array_equal(out, a * 3)


@machines
@pytest.mark.parametrize("block", [(8, 4), (4, 4, 4), (32, 2), (16, 3)])
def test_blocks_of_several_dimensions(block, device):
    """The thread's rank, x first, is its index: 2-D and 3-D blocks at thread scope."""
    size = int(np.prod(block))

    @pt.kernel(grid=1, block=block)
    def ranks(Out: pt.Tensor((size, 1), pt.uint32)):
        r = pt.alloc_local((1,), pt.uint32)
        tile.apply(ptx["mov.b32"], r, pt.thread_rank())
        tile.apply(ptx["st.global.b32"], Out[pt.thread_rank()], r)

    out = np.zeros((size, 1), np.uint32)
    ranks.launch(out, device=device)
    np.testing.assert_array_equal(out[:, 0], np.arange(size))


@machines
def test_a_two_dimensional_block_at_cta_scope(device):
    @pt.kernel(grid=1, block=(8, 8))
    def add(A: pt.Tensor((2, 32, 1), pt.float32), Out: pt.Tensor((2, 32, 1), pt.float32)):
        r = pt.alloc_local((2, 32, 1), pt.float32, layout=CTA)
        tile.apply(ptx["ld.global.f32"], r, A, scope="cta")
        tile.apply(ptx["add.f32"], r, r, 1.0, scope="cta")
        tile.apply(ptx["st.global.f32"], Out, r, scope="cta")

    a = np.arange(64, dtype=np.float32).reshape(2, 32, 1)
    out = np.zeros_like(a)
    add.launch(a, out, device=device)
    np.testing.assert_array_equal(out, a + 1)


@machines
def test_float16_tensors_in_scalar_arithmetic(device):
    @pt.kernel(grid=1, block=1)
    def half(A: pt.Tensor((4, 1), pt.float16), Out: pt.Tensor((4, 1), pt.float16)):
        r = pt.alloc_local((4, 1), pt.float16)
        tile.apply(ptx["ld.global.b16"], r, A)
        tile.apply(ptx["add.f16"], r, r, pt.float16(1.5))
        tile.apply(ptx["add.f16"], r, r, 0.5)
        tile.apply(ptx["st.global.b16"], Out, r)

    a = np.arange(4, dtype=np.float16).reshape(4, 1)
    out = np.zeros_like(a)
    half.launch(a, out, device=device)
    np.testing.assert_array_equal(out, a + np.float16(2))
    assembles(half)


@machines
def test_bfloat16_tensors_in_scalar_arithmetic(device):
    @pt.kernel(grid=1, block=1)
    def brain(A: pt.Tensor((4, 1), pt.bfloat16), Out: pt.Tensor((4, 1), pt.bfloat16)):
        r = pt.alloc_local((4, 1), pt.bfloat16)
        tile.apply(ptx["ld.global.b16"], r, A)
        tile.apply(ptx["fma.rn.bf16"], r, r, 2.0, 1.0)
        tile.apply(ptx["st.global.b16"], Out, r)

    a = np.arange(4, dtype=pt.bfloat16.numpy).reshape(4, 1)
    out = np.zeros_like(a)
    brain.launch(a, out, device=device)
    np.testing.assert_array_equal(out.astype(np.float32), 2 * a.astype(np.float32) + 1)
    assembles(brain, ("sm_80", "sm_90a"))


def test_repeats_are_row_major_and_scalars_serve_all():
    def body(k):
        r = pt.alloc_local((2, 2, 1), pt.float32, layout=S[(2, 2, 1) : (1, 2, 1)])
        tile.apply("add.f32", r, r, k.x)

    assert lines(body) == [f"add.f32 %r{i}, %r{i}, %f0" for i in (0, 2, 1, 3)]


def test_a_zero_stride_view_broadcasts():
    def body(k):
        r, one = pt.alloc_local((3, 1), pt.float32), pt.alloc_local((1,), pt.float32)
        tile.apply("sub.f32", r, one.view(3, 1, layout=S[(3, 1) : (0, 1)]), r)

    assert lines(body) == [f"sub.f32 %r{i}, %r3, %r{i}" for i in range(3)]


def test_in_place_and_reversed_copies_are_fine():
    def body(k):
        r = pt.alloc_local((4, 1), pt.float32)
        tile.apply("fma.rn.f32", r, r, r, r)
        tile.apply("mov.b32", r[0:3], r[1:4])  # every repeat reads what a later one writes

    assert len(lines(body)) == 7


def test_the_same_tensor_may_stand_under_different_views():
    def body(k):
        r = pt.alloc_local((2, 2), pt.uint32)
        tile.apply("xor.b32", r.view(4, 1), r.view(2, 2, 1).view(4, 1), 1)
        tile.apply("mov.b64", pt.alloc_local((2, 1), pt.uint64), r)

    assert lines(body) == [
        *(f"xor.b32 %r{i}, %r{i}, 1" for i in range(4)),
        "mov.b64 %rd0, {%r0, %r1}",
        "mov.b64 %rd1, {%r2, %r3}",
    ]


def test_register_views_place_a_value_in_gapped_slots():
    """The peer's register_move: fill, then copy to places 0, 2, 4, 6 of a storage of eight."""

    def body(k):
        source, target = pt.alloc_local((4, 1), pt.float32), pt.alloc_local((8,), pt.float32)
        tile.apply("mov.f32", source, 17.0)
        tile.apply("mov.f32", target.view(4, 1, layout=S[(4, 1) : (2, 1)]), source)

    assert lines(body)[4:] == [f"mov.f32 %r{4 + 2 * i}, %r{i}" for i in range(4)]


@machines
def test_predicate_pairs(device):
    @pt.kernel(grid=1, block=32)
    def select(A: pt.Tensor((32, 1), pt.float32), Out: pt.Tensor((32, 2), pt.float32)):
        r, t = pt.alloc_local((1, 1), pt.float32), pt.thread_idx("x")
        p, q = (pt.alloc_local((1, 1), pt.bool_) for _ in range(2))
        o = pt.alloc_local((2, 1), pt.float32)
        tile.apply("ld.global.f32", r.view(1), A[t])
        tile.apply("setp.gt.f32", (p, q), r, 0.0)
        tile.apply("selp.f32", o[0:1], 1.0, 2.0, p)
        tile.apply("selp.f32", o[1:2], 1.0, 2.0, q)
        tile.apply("st.global.v2.f32", Out[t], o.view(2))

    a = np.linspace(-1, 1, 32, dtype=np.float32).reshape(32, 1)
    out = np.zeros((32, 2), np.float32)
    select.launch(a, out, device=device)
    np.testing.assert_array_equal(out, np.where(np.hstack([a > 0, ~(a > 0)]), 1, 2))
    assembles(select)


@machines
def test_packing_into_the_low_and_high_half(device):
    """The peer's narrow_pairs: cvt puts its first source into the high half."""

    @pt.kernel(grid=1, block=1)
    def narrow(A: pt.Tensor((4, 2), pt.float32), Out: pt.Tensor((8,), pt.float16)):
        r, h = pt.alloc_local((4, 2), pt.float32), pt.alloc_local((4, 1), pt.uint32)
        tile.apply("ld.global.v2.f32", r, A)
        tile.apply("cvt.rn.f16x2.f32", h, r[:, 1:2], r[:, 0:1])
        tile.apply("st.global.v4.b32", Out.view(pt.uint32), h.view(4))

    a = np.linspace(-2, 2, 8, dtype=np.float32).reshape(4, 2)
    out = np.zeros(8, np.float16)
    narrow.launch(a, out, device=device)
    np.testing.assert_array_equal(out, a.ravel().astype(np.float16))
    assembles(narrow, ("sm_80", "sm_90a", "sm_100a"))


def test_an_instruction_that_needs_registers_gets_its_constant_once():
    def body(k):
        r = pt.alloc_local((2, 1), pt.uint32)
        tile.apply("add.rn.f16x2", r, r, pt.uint32(0x3C003C00))

    assert lines(body) == [
        "mov.b32 %r2, 1006648320",
        "add.rn.f16x2 %r0, %r0, %r2",
        "add.rn.f16x2 %r1, %r1, %r2",
    ]
