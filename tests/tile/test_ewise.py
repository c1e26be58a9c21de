"""`tile.ewise`: functions with control flow at every coordinate, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import ptxtile as pt
from ptxtile import OperandError, S, TileError, TraceError, laneid, tile, warpid
from tile.running import assembles, failure, lines, machines, message

WARP = S[(32, 4) : (1 @ laneid, 1)]


@pt.function
def bent(x: pt.float32) -> pt.float32:
    if x > 0.0:
        return x * 2
    elif x < -1.0:
        return x - 1
    else:
        return pt.float32(0)


@pt.function
def blend(x: pt.float32, y: pt.float32) -> pt.float32:
    return x * y + x


@pt.function
def positive(x: pt.float32) -> pt.bool_:
    return x > 0.0


@pt.function
def always(x: pt.float32) -> pt.bool_:
    return pt.bool_(True)


@machines
def test_branches_in_place(device):
    @pt.kernel(grid=1, block=32)
    def bend(A: pt.Tensor((32, 4), pt.float32), Out: pt.Tensor((32, 4), pt.float32)):
        r = pt.alloc_local((32, 4), pt.float32, layout=WARP)
        tile.apply("ld.global.v4.f32", r, A, scope="warp")
        tile.ewise(bent, r, r, scope="warp")
        tile.apply("st.global.v4.f32", Out, r, scope="warp")

    a = np.linspace(-4, 4, 128, dtype=np.float32).reshape(32, 4)
    out = np.zeros_like(a)
    bend.launch(a, out, device=device)
    np.testing.assert_array_equal(out, np.where(a > 0, a * 2, np.where(a < -1, a - 1, 0)))
    assembles(bend)


@machines
def test_scalars_constants_and_other_layouts(device):
    """Inputs of another layout of the same threads, run-time scalars, numbers of Python's and NumPy's."""

    @pt.kernel(grid=1, block=64)
    def mix(A: pt.Tensor((2, 32, 4), pt.float32), s: pt.float32, Out: pt.Tensor((2, 32, 4), pt.float32)):
        r = pt.alloc_local((2, 32, 4), pt.float32, layout=S[(2, 32, 4) : (1 @ warpid, 1 @ laneid, 1)])
        o = pt.alloc_local((2, 32, 4), pt.float32, layout=S[(2, 32, 4) : (1 @ warpid, 1 @ laneid, 2)])
        tile.apply("ld.global.v4.f32", r, A, scope="cta")
        tile.ewise(blend, o, r, s, scope="cta")
        tile.ewise(blend, o, o, 2, scope="cta")
        tile.ewise(blend, r, o, np.float32(0.5), scope="cta")
        tile.apply("st.global.v4.f32", Out, r, scope="cta")

    a = np.arange(256, dtype=np.float32).reshape(2, 32, 4)
    out = np.zeros_like(a)
    mix.launch(a, 3.0, out, device=device)
    np.testing.assert_array_equal(out, a * 4 * 3 * 1.5)
    assembles(mix)


@machines
def test_predicates_out_of_functions(device):
    @pt.kernel(grid=1, block=32)
    def signs(A: pt.Tensor((32, 4), pt.float32), Out: pt.Tensor((32, 4), pt.float32)):
        t = pt.thread_idx("x")
        r, p, q = (
            pt.alloc_local((4,), pt.float32),
            pt.alloc_local((4,), pt.bool_),
            pt.alloc_local((4,), pt.bool_),
        )
        tile.apply("ld.global.v4.f32", r, A[t])
        tile.ewise(positive, p, r)
        tile.ewise(always, q, r)
        tile.apply("selp.f32", r.view(4, 1), 1.0, -1.0, p.view(4, 1))
        tile.apply("selp.f32", r.view(4, 1), r.view(4, 1), 0.0, q.view(4, 1))
        tile.apply("st.global.v4.f32", Out[t], r)

    a = np.linspace(-4, 4, 128, dtype=np.float32).reshape(32, 4)
    out = np.zeros_like(a)
    signs.launch(a, out, device=device)
    np.testing.assert_array_equal(out, np.where(a > 0, 1, -1))
    assembles(signs)


def test_nothing_is_contracted_or_folded():
    def body(k):
        r = pt.alloc_local((1,), pt.float32)
        tile.ewise(blend, r, r, k.x)

    assert [line.split()[0] for line in lines(body)] == ["mul.rn.f32", "add.rn.f32", "mov.b32"]


def test_zero_stride_inputs_broadcast():
    def body(k):
        r, one = pt.alloc_local((2,), pt.float32), pt.alloc_local((1,), pt.float32)
        tile.ewise(blend, r, r, one.view(2, layout=S[(2,) : (0,)]))

    assert [line for line in lines(body) if line.startswith("mul")] == [
        "mul.rn.f32 %f1, %r0, %r2",
        "mul.rn.f32 %f3, %r1, %r2",
    ]


def regs(*shape: int, dtype: pt.DType = pt.float32) -> pt.Tensor:
    return pt.alloc_local(shape, dtype)


def _shifted(k):
    r = regs(5)
    tile.ewise(bent, r[1:5], r[0:4])


def _own_scalar(k):
    r = regs(4)
    tile.ewise(blend, r, r, r[0])


def _dead(k):
    with pt.if_(k.x < 1.0):
        y = k.x + 1
    tile.ewise(blend, regs(4), y, y)


AGAIN = "which repeat 0 has already overwritten; in place is fine only element by element: copy first, or go the other way"
REFUSED = [
    (lambda k: tile.ewise(bent, regs(4), regs(4), regs(4)), OperandError, "ewise(bent) takes 1 inputs; 2 were given"),
    (lambda k: tile.ewise(max, regs(4), regs(4)), OperandError, "tile.ewise takes a @pt.function, not <built-in function max>"),
    (lambda k: tile.ewise(bent, regs(4, dtype=pt.int32), regs(4)), OperandError, "ewise(bent): dst is int32 and the function returns float32"),
    (lambda k: tile.ewise(bent, regs(4), regs(4, dtype=pt.float16)), OperandError, "ewise(bent): input x is float16 and must be float32"),
    (lambda k: tile.ewise(bent, regs(4), regs(5)), TileError, "ewise(bent): input x has repeats (5,), and dst has (4,)"),
    (lambda k: tile.ewise(bent, regs(4), pt.float16(1)), OperandError, "ewise(bent): input x must be float32, not pt.float16(1.0)"),
    (lambda k: tile.ewise(bent, regs(4), True), OperandError, "ewise(bent): input x must be float32, not True"),
    (lambda k: tile.ewise(bent, regs(4), "one"), OperandError, "ewise(bent): input x: 'one' is no number"),
    (lambda k: tile.ewise(bent, pt.alloc_shared((4,), pt.float32), regs(4)), OperandError, "ewise(bent): dst must be a register tensor, and is in shared memory"),
    (lambda k: tile.ewise(bent, k.x, regs(4)), OperandError, "ewise(bent): dst must be a register tensor, and is a run-time float32"),
    (_shifted, TileError, f"ewise(bent): repeat 1 reads x from %r1, {AGAIN}"),
    (_own_scalar, TileError, f"ewise(blend): repeat 1 reads y from %r0, {AGAIN}"),
    (_dead, TraceError, "ewise(blend): input x: this float32 was made inside a pt.if_ block that has ended, so it may never have been computed; declare a variable with pt.reg(pt.float32) before the block and write it inside with .set(…)"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "kind", "expected"), REFUSED)
def test_refused(body, kind, expected):
    error = failure(body, params={"x": pt.float32})
    assert message(error, __file__) == expected
    assert type(error) is kind
