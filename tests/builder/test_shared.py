"""Shared memory and registers of a kernel: static, dynamic, aligned, of every dtype; elements of both."""

from __future__ import annotations

import numpy as np
import pytest
from tile.running import assembles, failure, lines, machines, message, module

import ptxtile as pt
from ptxtile import ComposeLayout, LayoutError, OperandError, S, TraceError, laneid, tile


@machines
def test_more_than_48_kib_is_dynamic(device):
    """Two blocks, one of them aligned to 1024 bytes, of 64 KiB together: offsets into one external array."""

    @pt.kernel(grid=1, block=128)
    def big(A: pt.Tensor((128,), pt.uint32), Out: pt.Tensor((128,), pt.uint32)):
        t = pt.thread_idx("x")
        flag = pt.alloc_shared((3,), pt.uint8)
        one = pt.alloc_shared((64, 128), pt.uint32, align=1024)
        two = pt.alloc_shared((64, 128), pt.uint32)
        flag[0] = 1
        one[63, t] = A[t]
        two[0, t] = A[t] + 1
        pt.cta_sync()
        Out[t] = one[63, 127 - t] + two[0, t] - A[127 - t]

    a, out = np.arange(128, dtype=np.uint32), np.zeros(128, np.uint32)
    big.launch(a, out, device=device)
    np.testing.assert_array_equal(out, a + 1)
    text = big.ptx()
    assert ".extern .shared .align 1024 .b8 big$shared[];" in text
    assert "big$shared+1024" in text and "big$shared_" not in text
    assembles(big)


def test_the_dynamic_bytes_of_an_entry():
    builder = pt.ModuleBuilder()
    with builder.entry("small", {}, block=1):
        pt.alloc_shared((48 * 1024,), pt.uint8)
    with builder.entry("large", {}, block=1):
        pt.alloc_shared((1,), pt.uint8)
        pt.alloc_shared((48 * 1024,), pt.uint8)
    assert builder.dynamic_shared("small") == 0
    assert builder.dynamic_shared("large") == 48 * 1024 + 16
    with pytest.raises(TraceError) as caught:
        builder.dynamic_shared("middle")
    assert str(caught.value) == "this module has no entry 'middle'"
    text = str(builder)
    assert ".shared .align 16 .b8 small$shared_0[49152];" in text
    assert ".extern .shared .align 16 .b8 large$shared[];" in text
    assert pt.check_text(text) == []


def test_names_of_the_user_never_collide_with_shared_memory():
    builder = pt.ModuleBuilder()
    for name in ("k", "k_shared"):
        with builder.entry(name, {"k_shared_0": pt.Pointer(pt.uint8)}, block=1) as k:
            pt.alloc_shared((4,), pt.uint8)[0] = 1
            pt.alloc_shared((1 << 16,), pt.uint8)[5] = k["k_shared_0"][0]
    assert pt.check_text(str(builder)) == []
    pytest.importorskip("nvidia", reason="nvidia-nvjitlink is not installed")
    assert pt.assemble(str(builder), "sm_90a")[:4] == b"\x7fELF"


def test_alignment_is_at_least_the_element():
    def body(k):
        pt.alloc_shared((4,), pt.float32, align=4)
        pt.alloc_shared((4,), pt.float32)
        pt.alloc_shared((4,), pt.float32, align=256)

    text = str(module(body))
    assert [f".align {n} .b8 k$shared_{i}[16]" in text for i, n in enumerate((4, 16, 256))] == [True] * 3


REFUSED = [
    (lambda k: pt.alloc_shared((4,), pt.float32, align=2), LayoutError, "align= must be a power of two of at least 4 bytes, not 2"),
    (lambda k: pt.alloc_shared((4,), pt.float32, align=12), LayoutError, "align= must be a power of two of at least 4 bytes, not 12"),
    (
        lambda k: pt.alloc_shared((32,), pt.float32, layout=S[(32,) : (1 @ laneid,)]), LayoutError,
        "shared memory belongs to the whole CTA: TileLayout(S[32 : 1 @ laneid]) names owners",
    ),
    (lambda k: pt.alloc_shared((4,), pt.float32, layout="rows"), LayoutError, "layout= is a layout or \"default\" (row-major), not 'rows'"),
    (lambda k: pt.alloc_local((4,), pt.float32, layout=S[5]), LayoutError, "the layout has 5 elements and the shape (4,) has 4"),
    (lambda k: pt.alloc_local((0,), pt.float32), LayoutError, "a shape holds positive integers, names and pt.dim(…), not 0"),
    (
        lambda k: pt.alloc_local(("M",), pt.float32), LayoutError,
        "this needs a shape known while tracing, and pt.Tensor(('M',), pt.float32) has a run-time size",
    ),
    (
        lambda k: pt.alloc_local((4,), pt.float32)[k.n], TraceError,
        ("registers have no addresses: an index of pt.Tensor((4,), pt.float32, TileLayout(S[4])) is known at run time only; unroll "
        "with a Python loop, or keep the data in shared or local memory"),
    ),
    (
        lambda k: pt.alloc_local((4,), pt.float32)[k.n : k.n + 2], LayoutError,
        "pt.Tensor((4,), pt.float32, TileLayout(S[4])) is divided among threads or registers: its regions start where tracing knows",
    ),
    (
        lambda k: k.A.__setitem__(0, 2.5), OperandError,
        "storing into pt.Tensor((4,), pt.int32, TileLayout(S[4])): 2.5 is no int32",
    ),
    (
        lambda k: k.A.__setitem__(0, 1 << 31), OperandError,
        "storing into pt.Tensor((4,), pt.int32, TileLayout(S[4])): 2147483648 does not fit pt.int32, which holds -2147483648 to 2147483647",
    ),
    (
        lambda k: k.A.__setitem__(0, k.n), OperandError,
        ("storing into pt.Tensor((4,), pt.int32, TileLayout(S[4])): the value is uint32 and must be int32; convert it with "
        "pt.cast(value, pt.int32)"),
    ),
    (lambda k: k.A.__setitem__(0, "one"), OperandError, "storing into pt.Tensor((4,), pt.int32, TileLayout(S[4])): 'one' is no int32"),
    (
        lambda k: k.A.__setitem__(slice(0, 2), 1), TraceError,
        "a region cannot be assigned: copy it with tile.apply of a ld, st or mov form",
    ),
    (
        lambda k: pt.alloc_local((4,), pt.float32).view(pt.float64), LayoutError,
        ("registers of float32 cannot be read as float64: each holds 32 bits; nothing is repacked silently (mov.b32 and its kin pack "
        "and unpack)"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("body", "kind", "expected"), REFUSED)
def test_refused(body, kind, expected):
    error = failure(body, params={"A": pt.Tensor((4,), pt.int32), "n": pt.uint32})
    assert message(error) == expected
    assert type(error) is kind


def test_a_tensor_is_no_sequence():
    with pytest.raises(TypeError, match="is not iterated over: index it, or use pt"):
        module(lambda k: list(k.A), params={"A": pt.Tensor((4,), pt.int32)})


def test_every_dtype_goes_to_memory_and_back():
    dtypes = [dtype for dtype in pt.dtypes.ALL if dtype.name != "float8_e8m0fnu"]
    params = {dtype.name: pt.Tensor((32,), dtype) for dtype in dtypes}
    builder = pt.ModuleBuilder()
    with builder.entry("k", params, block=32, grid=1) as k:
        t = pt.thread_idx("x")
        for dtype in dtypes:
            a, sh = k[dtype.name], pt.alloc_shared((32,), dtype)
            sh[t] = a[t]
            pt.cta_sync()
            a[t] = sh[31 - t]
    rng = np.random.default_rng(3)
    arrays = [
        (rng.integers(0, 2, 32) if d.kind == "bool" else rng.integers(0, 100, 32)).astype(d.numpy)
        for d in dtypes
    ]
    before = [array.copy() for array in arrays]
    pt.emulator.launch(builder.module(), "k", 1, 32, arrays)
    for array, old in zip(arrays, before):
        np.testing.assert_array_equal(array, old[::-1])
    pytest.importorskip("nvidia", reason="nvidia-nvjitlink is not installed")
    assert pt.assemble(str(builder), "sm_90a")[:4] == b"\x7fELF"


@machines
def test_constants_are_stored_as_they_are(device):
    @pt.kernel(grid=1, block=1)
    def constants(
        H: pt.Tensor((2,), pt.float16), B: pt.Tensor((2,), pt.bfloat16), F: pt.Tensor((2,), pt.float64), N: pt.Tensor((2,), pt.int8),
        P: pt.Tensor((2,), pt.bool_),
    ):  # fmt: skip
        for array, value in ((H, 1.5), (B, -2.0), (F, 0.1), (N, -128), (P, True)):
            array[0] = value
            array[1] = array.dtype(value)

    arrays = [np.zeros(2, d.numpy) for d in (pt.float16, pt.bfloat16, pt.float64, pt.int8, pt.bool_)]
    constants.launch(*arrays, device=device)
    for array, value in zip(arrays, (1.5, -2.0, 0.1, -128, True)):
        assert (array == np.asarray(value).astype(array.dtype)).all()
    assembles(constants)


def test_register_elements_are_the_registers():
    """`r[i]` is a variable: reading makes no instruction, writing is one mov."""

    def body(k):
        r = pt.alloc_local((2, 2), pt.float32)
        r[0, 0] = 1.0
        r[0, 1] = r[0, 0] + k.x
        r[1, 0] += r[0, 1]
        p = pt.alloc_local((2,), pt.bool_)
        p[0] = r[0, 0] < 3.0
        p[1] = True

    assert lines(body) == [
        "mov.f32 %r0, 0f3F800000",
        "add.rn.f32 %f1, %r0, %f0",
        "mov.f32 %r1, %f1",
        "add.rn.f32 %r2, %r2, %r1",
        "setp.lt.f32 %p2, %r0, 0f40400000",
        "mov.pred %p0, %p2",
        "setp.eq.b32 %p1, 1, 1",
    ]


@machines
@pytest.mark.parametrize(
    "layout", [ComposeLayout(0, 2, 2, S[8, 8]), ComposeLayout(2, 1, 2, S[8, 8]), S[(8, 8) : (9, 1)]]
)
def test_shared_elements_at_run_time_indexes(layout, device):
    @pt.kernel(grid=1, block=(8, 8))
    def transpose(A: pt.Tensor((8, 8), pt.float32), Out: pt.Tensor((8, 8), pt.float32)):
        sh = pt.alloc_shared((8, 8), pt.float32, layout=layout)
        i, j = pt.thread_idx("y"), pt.thread_idx("x")
        sh[i, j] = A[i, j]
        pt.cta_sync()
        Out[i, j] = sh[j, i]

    a = np.arange(64, dtype=np.float32).reshape(8, 8)
    out = np.zeros_like(a)
    transpose.launch(a, out, device=device)
    np.testing.assert_array_equal(out, a.T)
    assembles(transpose)


def test_a_float8_register_tensor():
    def body(k):
        r = pt.alloc_local((2, 1), pt.float8_e4m3fn)
        tile.apply("ld.global.b8", r, k.A)

    assert [line.split()[0] for line in lines(body, params={"A": pt.Tensor((2, 1), pt.float8_e4m3fn)})] == [
        "ld.global.b8"
    ] * 2


def test_a_constant_flag_is_one_store():
    def body(k):
        k.A[1] = True

    assert lines(body, params={"A": pt.Tensor((4,), pt.bool_)}) == ["st.global.u8 [%rd1+1], 1"]
