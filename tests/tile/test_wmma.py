"""wmma over tiles: every shape and type on each machine and through NVIDIA's assembler; strides, alignment, bad input."""

from __future__ import annotations

import re

import numpy as np
import pytest

import ptxtile as pt
from ptxtile import S, laneid, tile
from tile.running import assembles, failure, lines, machines, message

LOAD = "wmma.load.a.sync.aligned.row.m16n16k16.global.f16"
MMA = "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32"


def registers(count, dtype=pt.uint32, *repeats):
    step, strides = count, []
    for extent in reversed(repeats):
        strides.insert(0, step)
        step *= extent
    shape = (32, *repeats, count)
    return pt.alloc_local(shape, dtype, layout=S[shape : (1 @ laneid, *strides, 1)])


CASES = [  # (shape, a and b type, sum type, registers of a, b, c, dtype of a, of c, layouts)
    ((16, 16, 16), "f16", "f32", (8, 8, 8), pt.float16, pt.float32),
    ((32, 8, 16), "f16", "f32", (8, 8, 8), pt.float16, pt.float32),
    ((8, 32, 16), "f16", "f16", (8, 8, 4), pt.float16, pt.float16),
    ((16, 16, 16), "bf16", "f32", (4, 4, 8), pt.bfloat16, pt.float32),
    ((16, 16, 8), "tf32", "f32", (4, 4, 8), pt.float32, pt.float32),
    ((8, 8, 4), "f64", "f64", (1, 1, 2), pt.float64, pt.float64),
    ((16, 16, 16), "s8", "s32", (2, 2, 8), pt.int8, pt.int32),
    ((32, 8, 16), "u8", "s32", (4, 1, 8), pt.uint8, pt.int32),
]


def view(tensor, order):
    """(rows, columns) of a tensor that keeps it as `order` says."""
    return tensor if order == "row" else tensor.permute(1, 0)


def kernel_of(shape, kind, total, counts, dtype, sums, orders=("row", "col"), stored="row"):
    """D = A @ B + C with two steps of K."""
    (m, n, k), (one, two) = shape, orders
    name, held = f"m{m}n{n}k{k}", {"f32": pt.float32, "f64": pt.float64}.get(total, pt.uint32)
    types = f"{total}.{total}" if kind == "f16" else f"{total}.{kind}.{kind}.{total}"
    product_form = f"wmma.mma.sync.aligned.{one}.{two}.{name}.{'rn.' if kind == 'f64' else ''}{types}"
    word = pt.float64 if kind == "f64" else pt.uint32

    @pt.kernel(grid=1, block=32)
    def product(
        A: pt.Tensor((m, 2 * k) if one == "row" else (2 * k, m), dtype, align=32),
        B: pt.Tensor((2 * k, n) if two == "row" else (n, 2 * k), dtype, align=32),
        C: pt.Tensor((m, n), sums, align=32),
        D: pt.Tensor((m, n) if stored == "row" else (n, m), sums, align=32),
    ):
        a, b = registers(counts[0], word, 2), registers(counts[1], word, 2)
        c = registers(counts[2], held)
        left = view(A, one).rearrange("m (s k) -> s m k", s=2)
        right = view(B, two).rearrange("(s k) n -> s k n", s=2)
        tile.apply(f"wmma.load.a.sync.aligned.{one}.{name}.global.{kind}", a, left, scope="warp")
        tile.apply(f"wmma.load.b.sync.aligned.{two}.{name}.global.{kind}", b, right, scope="warp")
        tile.apply(f"wmma.load.c.sync.aligned.row.{name}.global.{total}", c, C, scope="warp")
        for step in range(2):
            tile.apply(product_form, c, a[:, step], b[:, step], c, scope="warp")
        store = f"wmma.store.d.sync.aligned.{stored}.{name}.global.{total}"
        tile.apply(store, view(D, stored), c, scope="warp")

    return product


def data(shape, kind, dtype, sums):
    rng = np.random.default_rng(1)
    m, n, k = shape
    low = 0 if kind == "u8" else -4
    a, b, c = (rng.integers(low, 5, extents) for extents in ((m, 2 * k), (2 * k, n), (m, n)))
    return [each.astype(of.numpy) for each, of in ((a, dtype), (b, dtype), (c, sums))]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}-{case[2]}")
@pytest.mark.parametrize("orders", [("row", "col"), ("col", "row")])
@machines
def test_products(case, orders, device):
    shape, kind, _total, _counts, dtype, sums = case
    a, b, c = data(shape, kind, dtype, sums)
    due = a.astype(np.float64) @ b.astype(np.float64) + c.astype(np.float64)
    given = [np.ascontiguousarray(each if order == "row" else each.T) for each, order in zip((a, b), orders)]
    for stored in ("row", "col"):
        d = np.zeros(c.shape if stored == "row" else c.shape[::-1], c.dtype)
        kernel_of(*case, orders, stored).launch(*given, c, d, device=device)
        np.testing.assert_array_equal((d if stored == "row" else d.T).astype(np.float64), due)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}-{case[2]}")
def test_nvidias_assembler_takes_it(case):
    assembles(kernel_of(*case), ("sm_80", "sm_90a", "sm_120a"))


@pytest.mark.parametrize(("kind", "k", "words"), [("s4", 32, 4), ("u4", 32, 4), ("b1", 128, 4)])
def test_narrow_elements_are_words_along_k(kind, k, words):
    shape = f"m8n8k{k}"
    op = "wmma.mma.xor.popc.sync" if kind == "b1" else "wmma.mma.sync"

    @pt.kernel(grid=1, block=32)
    def product(
        A: pt.Tensor((8, 2 * words), pt.uint32, align=32),
        B: pt.Tensor((8, words), pt.uint32, align=32),
        D: pt.Tensor((8, 8), pt.int32, align=32),
    ):
        a, b, c = registers(1), registers(1), registers(2)
        tile.apply(f"wmma.load.a.sync.aligned.row.{shape}.global.{kind}", a, A[:, 0:words], scope="warp")
        tile.apply(f"wmma.load.b.sync.aligned.col.{shape}.global.{kind}", b, B.permute(1, 0), scope="warp")
        tile.apply("mov.b32", c.view(32, 2, 1), 0, scope="warp")
        tile.apply(f"{op}.aligned.row.col.{shape}.s32.{kind}.{kind}.s32", c, a, b, c, scope="warp")
        tile.apply(f"wmma.store.d.sync.aligned.row.{shape}.global.s32", D, c, scope="warp")

    assembles(product, ("sm_75", "sm_90a"))
    strides = [line.rpartition(", ")[2] for line in product.ptx().splitlines() if "wmma.load" in line]
    assert strides == [f"{2 * k};", f"{k};"]


def test_a_run_time_stride_and_warps():
    """Each of four warps has a tile of its own, in rows whose length is known at launch."""

    @pt.kernel(grid=1, block=128)
    def copy(
        A: pt.Tensor((64, pt.dim("N", multiple_of=16)), pt.float16, align=32),
        D: pt.Tensor((64, 16), pt.float16, align=32),
    ):
        r = pt.alloc_local((32, 4), pt.uint32, layout=S[(32, 4) : (1 @ laneid, 1)])
        first = pt.warp_id() * 16
        pt.assume(A.shape[1] >= 32)
        source, to = A[first : first + 16, 16:32], D[first : first + 16]
        tile.apply("wmma.load.c.sync.aligned.row.m16n16k16.global.f16", r, source, scope="warp")
        tile.apply("wmma.store.d.sync.aligned.row.m16n16k16.global.f16", to, r, scope="warp")

    a = np.arange(64 * 48, dtype=np.float16).reshape(64, 48)
    d = np.zeros((64, 16), np.float16)
    copy.launch(a, d, device="emulator")
    np.testing.assert_array_equal(d, a[:, 16:32])
    assembles(copy)


def test_one_base_and_constant_offsets():
    def body(k):
        tile.apply(LOAD, registers(8, pt.uint32, 4), k.X.view(16, 4, 16).permute(1, 0, 2), scope="warp")

    found = [
        line
        for line in lines(body, 32, params={"X": pt.Tensor((16, 64), pt.float16, align=32)})
        if "wmma" in line
    ]
    assert [re.search(r"\[%rd\d+(\+\d+)?\], 64$", line)[1] for line in found] == [None, "+32", "+64", "+96"]


# --- bad input --------------------------------------------------------------------------------------------------------
def wrong(body, block=32, **params):
    given = {
        "X": pt.Tensor((16, 64), pt.float16, align=32),
        "Y": pt.Tensor((16, 20), pt.float16, align=32),
        "Z": pt.Tensor((16, pt.dim("N", multiple_of=8)), pt.float16, align=32),
        "F": pt.Tensor((16, 16), pt.float32),
    }
    return message(failure(body, block, params=given | params), __file__)


BAD = [
    (lambda k: tile.apply(LOAD, registers(8), k.X[:, 0:16]), f'{LOAD} is done by a whole warp: scope="warp", "warpgroup", "cta" or "cluster"'),
    (lambda k: tile.apply(LOAD, registers(8), scope="warp"), f"{LOAD} takes 2 operands (registers, memory); 1 was given"),
    (lambda k: tile.apply(LOAD, registers(4), k.X[:, 0:16], scope="warp"),
     f"{LOAD}: operand r has shape (32, 4); its trailing axes are the instruction's registers, (8,)"),
    (lambda k: tile.apply(LOAD, registers(8), k.X[:, 0:8], scope="warp"),
     f"{LOAD}: operand p has shape (16, 8); its trailing axes are the instruction's registers, (16, 16)"),
    (lambda k: tile.apply(LOAD, registers(8), k.F, scope="warp"),
     f"{LOAD}: operand p: the form takes elements of 16 bits and the tensor's are float32; view(…) it as a dtype of 16 bits"),
    (lambda k: tile.apply(LOAD, registers(8), k.X[:, 0:16].permute(1, 0), scope="warp"),
     f"{LOAD}: operand p: the 16 elements of an atom must lie side by side in memory, and this layout puts them apart"),
    (lambda k: tile.apply(LOAD, registers(8), k.X[:, 8:24], scope="warp"),
     (f"{LOAD}: operand p: an atom of 32 bytes must start at a multiple of 32 bytes, which is not proven of every "
      "atom here: the region starts at element 8")),
    (lambda k: tile.apply(LOAD, registers(8), k.Y[:, 0:16], scope="warp"),
     (f"{LOAD}: operand p: an atom of 32 bytes must start at a multiple of 32 bytes, which is not proven of every atom here: the "
      "layout's strides are not multiples of the atom")),
    (lambda k: (pt.assume(k.Z.shape[1] >= 16), tile.apply(LOAD, registers(8), k.Z[0:16, 0:16], scope="warp")),
     (f"{LOAD}: operand p: an atom of 32 bytes must start at a multiple of 32 bytes, which is not proven of every atom here: a row's "
      "length is not known to be a multiple of 16; say so with pt.dim(name, multiple_of=16)")),
    (lambda k: tile.apply("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16", registers(8),
                          pt.alloc_shared((16, 64), pt.float16, layout=pt.shared_layout((16, 64), pt.float16), align=1024)[:, 0:16], scope="warp"),
     "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16: operand p: wmma reads lines at one distance, and this layout is swizzled"),
    (lambda k: tile.apply("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16", registers(8),
                          pt.alloc_shared((16, 16), pt.float16, layout=S[(2, 8, 16) : (256, 16, 1)], align=32), scope="warp"),
     "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16: operand p: wmma reads rows at one distance, and this layout puts them at several"),
    (lambda k: tile.apply(LOAD, registers(8), k.X[:, 0:16], scope="warp", stride=64), f"{LOAD} has no parameter 'stride'; it has none beside scope, pred, preserve_dst"),
    (lambda k: tile.apply(LOAD, registers(8, pt.uint32, 2), k.X[:, 0:16], scope="warp"), f"{LOAD}: operand r has repeats (2,), and p has (): both repeat alike"),
    (lambda k: tile.apply(MMA, registers(8, pt.float32), registers(8), registers(8), 0.0, scope="warp"),
     f"{MMA}: operand c takes a register tensor whose last axis is 8, not 0.0"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "text"), BAD)
def test_bad_input(body, text):
    assert wrong(body) == text


def test_half_a_warp():
    def body(k):
        with pt.if_(pt.lane_id() < 16):
            tile.apply(LOAD, registers(8), k.X[:, 0:16], scope="warp")

    assert (
        wrong(body) == f"{LOAD} requires all 32 lanes of a warp to be active; active here are 16 from lane 0"
    )
