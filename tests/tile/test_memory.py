"""`tile.apply` of ld and st: every space, width and layout; one base an operand and constant offsets; bounds by proof."""

from __future__ import annotations

import re

import numpy as np
import pytest

import ptxtile as pt
from ptxtile import ComposeLayout, S, TileLayout, laneid, ptx, tile, warpid
from tile.running import PARAMS, assembles, failure, lines, machines, message, module


# --- addresses ------------------------------------------------------------------------------------------------------
def test_repeats_are_constant_offsets_from_one_base():
    def body(k):
        r = pt.alloc_local((3, 4), pt.float32)
        t = pt.thread_idx("x")
        tile.apply("ld.global.v4.b32", r, k.A[t].view(3, 4))
        tile.apply("st.global.v4.b32", k.A[t].view(3, 4), r)

    text = lines(body, 32, params={"A": pt.Tensor((32, 12), pt.float32)})
    assert [line.split()[0] for line in text] == ["mad.wide.u32"] + ["ld.global.v4.b32"] * 3 + [
        "st.global.v4.b32"
    ] * 3
    assert re.fullmatch(r"mad\.wide\.u32 %rd2, %r\d+, 48, %rd1", text[0])
    assert [re.search(r"\[(.*?)\]", line)[1] for line in text[1:4]] == ["%rd2", "%rd2+16", "%rd2+32"]


def test_static_places_need_no_arithmetic():
    def body(k):
        tile.apply("st.global.f32", k.A[2:4, 1:3].view(2, 2, 1), k.x)

    assert lines(body, params=PARAMS) == [f"st.global.f32 [%rd1+{o}], %f0" for o in (36, 40, 52, 56)]


def test_a_rearranged_tensor_is_stored_where_its_layout_says():
    def body(k):
        tile.apply("st.global.f32", k.A.permute(1, 0)[0:2, 0:2].view(2, 2, 1), k.x)

    assert [re.search(r"\[(.*?)\]", line)[1] for line in lines(body, params=PARAMS)] == [
        "%rd1",
        "%rd1+16",
        "%rd1+4",
        "%rd1+20",
    ]


@machines
@pytest.mark.parametrize("swizzle", [(2, 2, 3), (2, 3, 3), (0, 3, 3)])
def test_swizzled_shared_memory_reads_back_what_was_written(swizzle, device):
    """Rows written by one thread each, columns read by another: both ways through the same permutation."""
    per, length, atom = swizzle
    layout = ComposeLayout(per, length, atom, S[32, 32])
    width = 1 << min(per, 2)

    @pt.kernel(grid=1, block=32)
    def transpose(A: pt.Tensor((32, 32), pt.float32), Out: pt.Tensor((32, 32), pt.float32)):
        sh = pt.alloc_shared((32, 32), pt.float32, layout=layout, align=1024)
        t = pt.thread_idx("x")
        r, c = pt.alloc_local((32 // width, width), pt.float32), pt.alloc_local((32, 1), pt.float32)
        vector = f".v{width}" if width > 1 else ""
        tile.apply(f"ld.global{vector}.f32", r, A[t].view(32 // width, width))
        tile.apply(f"st.shared{vector}.f32", sh[t].view(32 // width, width), r)
        pt.cta_sync()
        for i in range(32):
            c[i, 0] = sh[i, t]
        tile.apply("st.global.f32", Out[t].view(32, 1), c)

    a = np.arange(1024, dtype=np.float32).reshape(32, 32)
    out = np.zeros_like(a)
    transpose.launch(a, out, device=device)
    np.testing.assert_array_equal(out, a.T)
    assembles(transpose)


# --- spaces, widths -------------------------------------------------------------------------------------------------
@machines
def test_narrow_loads_fill_wider_registers(device):
    @pt.kernel(grid=1, block=1)
    def widen(
        U: pt.Tensor((4, 1), pt.uint8), Signed: pt.Tensor((4, 1), pt.int8), A: pt.Tensor((4, 1), pt.uint32), B: pt.Tensor((4, 1), pt.int32)
    ):  # fmt: skip
        a, b = pt.alloc_local((4, 1), pt.uint32), pt.alloc_local((4, 1), pt.int32)
        tile.apply("ld.global.u8", a, U)
        tile.apply("ld.global.s8", b, Signed)
        tile.apply("st.global.u32", A, a)
        tile.apply("st.global.s32", B, b)

    u, i = np.array([[0], [1], [200], [255]], np.uint8), np.array([[0], [-1], [-128], [127]], np.int8)
    a, b = np.zeros((4, 1), np.uint32), np.zeros((4, 1), np.int32)
    widen.launch(u, i, a, b, device=device)
    np.testing.assert_array_equal(a, u)
    np.testing.assert_array_equal(b, i)
    assembles(widen)


@machines
def test_generic_loads_and_stores_reach_every_space(device):
    @pt.kernel(grid=1, block=32)
    def generic(A: pt.Tensor((32, 4), pt.float32), Out: pt.Tensor((32, 4), pt.float32)):
        sh = pt.alloc_shared((32, 4), pt.float32)
        r, t = pt.alloc_local((4,), pt.float32), pt.thread_idx("x")
        tile.apply("ld.v4.f32", r, A[t])
        tile.apply("st.v4.f32", sh[t], r)
        pt.cta_sync()
        tile.apply("ld.v4.f32", r, sh[31 - t])
        tile.apply("st.v4.f32", Out[t], r)

    a = np.arange(128, dtype=np.float32).reshape(32, 4)
    out = np.zeros_like(a)
    generic.launch(a, out, device=device)
    np.testing.assert_array_equal(out, a[::-1])
    assert generic.ptx().count("cvta.shared.u64") == 2  # two places, each made generic once
    assembles(generic)


@machines
def test_bytes_and_flags_in_memory(device):
    @pt.kernel(grid=1, block=32)
    def flags(A: pt.Tensor((32,), pt.bool_), Out: pt.Tensor((32,), pt.bool_), N: pt.Tensor((32,), pt.uint8)):
        t = pt.thread_idx("x")
        sh = pt.alloc_shared((32,), pt.bool_)
        sh[t] = True
        sh[t] = ~A[t]
        pt.cta_sync()
        Out[t] = sh[31 - t]
        with pt.if_(A[t]):
            N[t] = 255

    a = np.arange(32) % 3 == 0
    out, n = np.zeros(32, np.bool_), np.zeros(32, np.uint8)
    flags.launch(a, out, n, device=device)
    np.testing.assert_array_equal(out, ~a[::-1])
    np.testing.assert_array_equal(n, np.where(a, 255, 0))
    assembles(flags)


def test_a_scalar_is_stored_everywhere():
    def body(k):
        tile.apply("st.global.f32", k.A.view(64, 4, 1)[0:1], 2.5)

    assert lines(body, params=PARAMS) == [
        f"st.global.f32 [%rd1{o}], 0f40200000" for o in ("", "+4", "+8", "+12")
    ]


def test_a_cache_policy_goes_with_its_form_alone():
    def body(k):
        tile.apply(
            "ld.global.L2::cache_hint.f32", pt.alloc_local((1,), pt.float32), k.A[0, 0:1], cache_policy=k.w
        )

    assert re.fullmatch(
        r"ld\.global\.L2::cache_hint\.f32 %r\d+, \[%rd1\], %rd\d+", lines(body, params=PARAMS)[-1]
    )
    missing = failure(
        lambda k: tile.apply("ld.global.L2::cache_hint.f32", pt.alloc_local((1,), pt.float32), k.A[0, 0:1])
    )
    assert message(missing) == (
        "ld.global.L2::cache_hint.f32: .L2::cache_hint needs cache_policy=, a 64-bit value made by createpolicy"
    )
    spare = failure(
        lambda k: tile.apply("ld.global.f32", pt.alloc_local((1,), pt.float32), k.A[0, 0:1], cache_policy=k.w)
    )
    assert message(spare) == "ld.global.f32: cache_policy= is only for forms with .L2::cache_hint"


# --- bounds and alignment by proof ----------------------------------------------------------------------------------
def _load(k, index, length=4):
    tile.apply("ld.global.v4.f32", pt.alloc_local((4,), pt.float32), k.A.view(256)[index : index + length])


def _guarded(index, k, condition):
    with pt.if_(condition(index)):
        _load(k, index)


def _assumed(k, *conditions):
    for condition in conditions:
        pt.assume(condition)
    _load(k, k.n)


def _looped(k):
    with pt.for_range(pt.thread_idx("x") * 4, 256, 32) as i:
        _load(k, i)


PROVEN = {
    "thread index": (lambda k: _load(k, pt.thread_idx("x") * 4), 64),
    "guard": (lambda k: _guarded(pt.thread_idx("x") * 4, k, lambda i: i < 256), 128),
    "guard of a wider number": (lambda k: _guarded(k.n * 4, k, lambda i: i < 253), 1),
    "guard of lanes": (lambda k: _guarded(pt.lane_id() * 16, k, lambda i: pt.lane_id() < 16), 128),
    "assume": (lambda k: _assumed(k, k.n % 4 == 0, k.n <= 252), 1),
    "assume a sum": (lambda k: _assumed(k, (k.n + 4) % 4 == 0, k.n < 253), 1),
    "mask": (lambda k: _load(k, k.n & 252), 1),
    "remainder": (lambda k: _load(k, k.n % 64 * 4), 1),
    "quotient": (lambda k: _load(k, pt.thread_idx("x") // 2 * 4), 128),
    "loop": (_looped, 8),
}


@pytest.mark.parametrize("name", PROVEN)
def test_bounds_and_alignment_are_proven(name):
    body, block = PROVEN[name]
    module(body, block)


def _in_else(k):
    i = pt.thread_idx("x") * 4
    with pt.if_(i < 256):
        pass
    with pt.else_():
        _load(k, i)


def _after(k):
    i = pt.thread_idx("x") * 4
    with pt.if_(i < 256):
        pass
    _load(k, i)


UNPROVEN = {
    "too many threads": (lambda k: _load(k, pt.thread_idx("x") * 4), 65),
    "weak guard": (lambda k: _guarded(pt.thread_idx("x") * 4, k, lambda i: i < 257), 128),
    "no alignment": (lambda k: _assumed(k, k.n <= 252), 1),
    "wrong alignment": (lambda k: _assumed(k, k.n % 6 == 0, k.n <= 252), 1),
    "a sum that may wrap": (lambda k: _guarded(k.n * 4, k, lambda i: i + 4 <= 256), 1),
    "a signed index": (lambda k: _guarded(k.i * 4, k, lambda i: i < 253), 1),
    "else": (_in_else, 128),
    "after the guard": (_after, 128),
}


@pytest.mark.parametrize("name", UNPROVEN)
def test_what_does_not_follow_is_refused(name):
    body, block = UNPROVEN[name]
    assert "prove" in message(failure(body, block), __file__)


@machines
def test_run_time_rows(device):
    """Row sums of a matrix of run-time size: vector loads proven from multiple_of, the loop and the guard."""

    @pt.kernel(grid=lambda M: M, block=32)
    def row_sums(
        A: pt.Tensor(("M", pt.dim("K", multiple_of=128)), pt.float32), Out: pt.Tensor(("M",), pt.float32)
    ):
        total, m, t = pt.reg(pt.float32, 0.0), pt.block_idx("x"), pt.thread_idx("x")
        sh = pt.alloc_shared((32,), pt.float32)
        with pt.if_(m < A.shape[0]):
            with pt.for_range(0, A.shape[1], 128) as k:
                r = pt.alloc_local((4,), pt.float32)
                tile.apply(ptx["ld.global.v4.f32"], r, A[m, k + t * 4 : k + t * 4 + 4])
                for j in range(4):
                    total += r[j]
            sh[t] = total
            pt.cta_sync()
            with pt.if_(t == 0):
                row = pt.reg(pt.float32, 0.0)
                with pt.for_range(0, 32) as i:
                    row += sh[i]
                Out[m] = row

    a = np.random.default_rng(0).integers(-8, 8, (5, 256)).astype(np.float32)
    out = np.zeros(5, np.float32)
    row_sums.launch(a, out, device=device)
    np.testing.assert_array_equal(out, a.sum(1))
    assembles(row_sums)


@machines
def test_vectorised_tail_of_a_run_time_size(device):
    """Four elements a thread, the product block * 128 + thread * 4 unbounded: its multiple survives the wrapping."""

    @pt.kernel(grid=lambda N: -(-N // 128), block=32)
    def scale(A: pt.Tensor((pt.dim("N", multiple_of=4),), pt.float32)):
        i = (pt.block_idx("x") * 32 + pt.thread_idx("x")) * 4
        r = pt.alloc_local((4, 1), pt.float32)
        with pt.if_(i < A.shape[0]):
            tile.apply("ld.global.v4.f32", r.view(4), A[i : i + 4])
            tile.apply("mul.f32", r, r, 2.0)
            tile.apply("st.global.v4.f32", A[i : i + 4], r.view(4))

    for n in (0, 4, 128, 300):
        a = np.arange(n, dtype=np.float32)
        scale.launch(a, device=device)
        np.testing.assert_array_equal(a, np.arange(n, dtype=np.float32) * 2)
    assembles(scale)


def test_a_sub_tile_of_a_run_time_matrix():
    def body(k, known):
        with pt.if_((k.A.shape[0] >= 2) & (k.A.shape[1] >= 4)):
            if known:
                pt.assume(k.A.shape[1] % 4 == 0)
            tile.apply("ld.global.v4.f32", pt.alloc_local((2, 4), pt.float32), k.A[0:2, 0:4])

    params = {"A": pt.Tensor(("M", "K"), pt.float32)}
    assert "ld.global.v4.f32" in str(module(lambda k: body(k, True), params=params))
    assert message(failure(lambda k: body(k, False), params=params), __file__) == (
        "ld.global.v4.f32: operand a: an atom of 16 bytes must start at a multiple of 16 bytes, which is not proven of every "
        "atom here: a row's length is not known to be a multiple of 4; say so with pt.dim(name, multiple_of=4)"
    )


@machines
def test_owner_layouts_over_shared_memory(device):
    """Two warps stage 3 repeats of a vector each through shared memory, and read the other warp's."""
    layout = TileLayout(S[(2, 32, 3, 4) : (1 @ warpid, 1 @ laneid, 4, 1)])

    @pt.kernel(grid=1, block=64)
    def swap(A: pt.Tensor((2, 32, 3, 4), pt.float32), Out: pt.Tensor((2, 32, 3, 4), pt.float32)):
        sh = pt.alloc_shared((2, 32, 3, 4), pt.float32)
        r = pt.alloc_local((2, 32, 3, 4), pt.float32, layout=layout)
        tile.apply("ld.global.v4.b32", r, A, scope="cta")
        tile.apply("st.shared.v4.b32", sh, r, scope="cta")
        pt.cta_sync()
        other = sh.view(2, 32, 3, 4, layout=S[(2, 32, 3, 4) : (-384, 12, 4, 1)] + 384)
        tile.apply("ld.shared.v4.b32", r, other, scope="cta")
        tile.apply("st.global.v4.b32", Out, r, scope="cta")

    a = np.arange(768, dtype=np.float32).reshape(2, 32, 3, 4)
    out = np.zeros_like(a)
    swap.launch(a, out, device=device)
    np.testing.assert_array_equal(out, a[::-1])
    assembles(swap)
