"""Addresses: one base computation, constants in the brackets, exact at any size."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tile.running import assembles, failure, lines, machines, message

import ptxtile as pt
from ptxtile import S, TraceError, ptx

PARAMS = {
    "A": pt.Tensor((64, 64), pt.float32),
    "M": pt.Tensor(("R", "C"), pt.float32),
    "P": pt.Pointer(pt.float32),
    "n": pt.uint32,
    "i": pt.int32,
    "w": pt.int64,
    "x": pt.float32,
}


def opcodes(body):
    return [line.split()[0] for line in lines(body, 64, params=PARAMS)]


def test_constant_indexes_stand_in_the_brackets():
    def body(k):
        k.A[3, 5] = k.x
        k.P[7] = k.x

    text = lines(body, params=PARAMS)
    assert [re.search(r"\[%rd\d+(.*?)\]", line)[1] for line in text] == [f"+{4 * (3 * 64 + 5)}", "+28"]
    assert len(text) == 2


def test_one_base_serves_every_constant_offset():
    def body(k):
        t = pt.thread_idx("x")
        for j in range(4):
            k.A[t, j] = k.A[t, j + 4]

    assert opcodes(body) == ["mad.wide.u32", *["ld.global.f32", "st.global.f32"] * 4]


def test_an_address_is_computed_again_after_its_block():
    def body(k):
        t = pt.thread_idx("x")
        with pt.if_(k.n < 3):
            k.A[t, 0] = k.x
            k.A[t, 1] = k.x
        k.A[t, 2] = k.x
        with pt.if_(k.n < 4):
            k.A[t, 3] = k.x

    assert opcodes(body).count("mad.wide.u32") == 2


def test_a_label_forgets_what_was_computed():
    """A branch may lead around the first access, so the second one has an address of its own."""

    def body(k):
        t = pt.thread_idx("x")
        ptx.bra("skip", pred=k.n < 3)
        k.A[t, 0] = k.x
        pt.label("skip")
        k.A[t, 1] = k.x

    assert opcodes(body).count("mad.wide.u32") == 2


@machines
def test_a_branch_around_an_access(device):
    @pt.kernel(grid=1, block=1)
    def around(A: pt.Tensor((4,), pt.float32), n: pt.uint32):
        sh = pt.alloc_shared((8, 4), pt.float32)
        ptx.bra("skip", pred=n == 3)
        sh[n, 0] = 1.0
        pt.label("skip")
        sh[n, 1] = 2.0
        A[n] = sh[n, 1]

    for n in (2, 3):
        a = np.zeros(4, np.float32)
        around.launch(a, n, device=device)
        assert a[n] == 2
    assembles(around)


def test_a_backward_branch_repeats_the_address():
    def body(k):
        t = pt.thread_idx("x")
        k.A[t, 0] = k.x
        pt.label("again")
        k.A[t, 1] = k.x
        ptx.bra("again", pred=k.n < 3)

    assert opcodes(body).count("mad.wide.u32") == 2


# --- widths ---------------------------------------------------------------------------------------------------------
@machines
def test_places_beyond_two_to_the_31_elements(device):
    """The index arithmetic is exact: element i * 2**32 of the array, brought back by a start that is as far away."""

    @pt.kernel(grid=1, block=1)
    def far(P: pt.Pointer(pt.uint32), i: pt.int64, j: pt.uint32, Out: pt.Tensor((3,), pt.uint32)):
        back = P.tensor((4, 1 << 33), layout=S[(4, 1 << 33) : (-(1 << 33), 1)] + 3 * (1 << 33))
        Out[0] = P[i - ((1 << 33) - 5)]
        Out[1] = P[i * 4 - (1 << 35) + 2]
        Out[2] = back[j, i - (1 << 33) + 7]

    a, out = np.arange(16, dtype=np.uint32), np.zeros(3, np.uint32)
    far.launch(a, 1 << 33, 3, out, device=device)
    np.testing.assert_array_equal(out, [5, 2, 7])
    assembles(far)


@pytest.mark.parametrize(("factor", "spelling"), [(1 << 20, "mad.wide.u32"), ((1 << 32) - 1, "mad.lo.s64")])
def test_wide_products_are_exact(factor, spelling):
    def body(k):
        k.P.tensor((1 << 32, factor))[k.n, 0] = k.x

    assert opcodes(body)[-2:] == [spelling, "st.global.f32"]


def test_a_sum_that_leaves_32_bits_is_made_in_64():
    def body(k):
        k.P.tensor((1 << 32, 3, 1 << 32))[k.n, 1, k.n] = k.x

    text = opcodes(body)
    assert "mad.lo.s64" in text and "mad.wide.u32" not in text


@machines
def test_quotients_of_wide_numbers_are_wide(device):
    """A remainder fits 32 bits although its dividend does not: 10**10 + 7 modulo 12 and (10**10 + 7) // 3 modulo 8."""

    @pt.kernel(grid=1, block=1)
    def digits(w: pt.uint64, n: pt.uint32, Out: pt.Tensor((3,), pt.uint32)):
        table = pt.alloc_shared((16,), pt.uint32)
        for i in range(16):
            table[i] = i
        Out[0] = table[w % 12]
        Out[1] = table[w // 3 % 8]
        # Layout digits: the index has no dtype, so it may pass 2**32 where a product of uint32 would wrap.
        odd = pt.Tensor.bind((1 << 40,), pt.uint32, table.bound, S[(1 << 37, 8) : (0, 1)])
        Out[2] = odd[w // 3]

    out, w = np.zeros(3, np.uint32), 10**10 + 7
    digits.launch(w, 5, out, device=device)
    np.testing.assert_array_equal(out, [w % 12, w // 3 % 8, w // 3 % 8])
    assembles(digits)


@machines
def test_signed_indexes(device):
    @pt.kernel(grid=1, block=8)
    def mirror(A: pt.Tensor((8,), pt.float32), Out: pt.Tensor((8,), pt.float32)):
        t = pt.cast(pt.thread_idx("x"), pt.int32)
        sh = pt.alloc_shared((8,), pt.float32)
        back = sh.view(8, layout=S[(8,) : (-1,)] + 7)
        back[t] = A[t]
        pt.cta_sync()
        Out[t] = sh[7 - t - 7 + t + t]

    a, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    mirror.launch(a, out, device=device)
    np.testing.assert_array_equal(out, a[::-1])
    assembles(mirror)


def test_a_negative_dividend_is_refused():
    def body(k):
        k.A.view(64, 64, layout=S[(64, 8, 8) : (1, 64, 512)])[0, k.i] = k.x

    assert message(failure(body, params=PARAMS), __file__) == (
        "the index 1*int32 + 0 may be negative, and its quotient by 8 is needed for an address; state that it is not with "
        "pt.assume(index >= 0)"
    )
    assert isinstance(failure(body, params=PARAMS), TraceError)


def test_an_assumption_or_a_guard_allows_it():
    def assumed(k):
        pt.assume(k.i >= 0)
        k.A.view(64, 64, layout=S[(64, 8, 8) : (1, 64, 512)])[0, k.i] = k.x

    def guarded(k):
        with pt.if_((k.i >= 0) & (k.i < 64)):
            k.A.view(64, 64, layout=S[(64, 8, 8) : (1, 64, 512)])[0, k.i] = k.x

    assert "shr.u64" in opcodes(assumed)
    assert "shr.u64" in opcodes(guarded)


def test_run_time_strides_are_multiplied_once():
    def body(k):
        r = pt.thread_idx("x")
        k.M[r, 0] = k.M[r, 1]

    assert opcodes(body) == [
        "cvt.u64.u32",
        "cvt.u64.u32",
        "mul.lo.s64",
        "mad.lo.s64",
        "ld.global.f32",
        "st.global.f32",
    ]


@machines
def test_run_time_sizes(device):
    @pt.kernel(grid=lambda R: R, block=lambda: 32)
    def transpose(A: pt.Tensor(("R", "C"), pt.float32), Out: pt.Tensor(("C", "R"), pt.float32)):
        r = pt.block_idx("x")
        with pt.for_range(pt.thread_idx("x"), A.shape[1], 32) as c:
            Out[c, r] = A[r, c]

    a = np.arange(5 * 70, dtype=np.float32).reshape(5, 70)
    out = np.zeros((70, 5), np.float32)
    transpose.launch(a, out, device=device)
    np.testing.assert_array_equal(out, a.T)
    assembles(transpose)


@machines
def test_variables_as_indexes_are_read_when_they_are_used(device):
    """A region keeps the value that its start had; an element is read at once."""

    @pt.kernel(grid=1, block=1)
    def steps(A: pt.Tensor((8, 2), pt.float32), Out: pt.Tensor((4,), pt.float32)):
        i = pt.reg(pt.uint32, 1)
        row = A[i]
        i += 1
        Out[0] = row[1]
        Out[1] = A[i, 1]
        i.set(7)
        Out[2] = A[i, 0]
        Out[3] = row[0]

    a, out = np.arange(16, dtype=np.float32).reshape(8, 2), np.zeros(4, np.float32)
    steps.launch(a, out, device=device)
    np.testing.assert_array_equal(out, [3, 5, 14, 2])
    assembles(steps)
