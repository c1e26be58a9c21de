"""The kernel object: specialisations, arguments, sizes, signatures, threads, equal bytes for equal input."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import ptxtile as pt
from ptxtile import EmulatorError, LayoutError, OperandError, TargetError, TraceError, ptx, tracing

DEVICE = "emulator"
WIDTH = 32


@pt.kernel(grid=1, block=WIDTH)
def scale(A: pt.Tensor((WIDTH,), pt.float32), *, factor: object = 2.0, twice: bool = False):
    t = pt.thread_idx("x")
    A[t] = A[t] * factor
    if twice:
        A[t] = A[t] * factor


@pt.kernel(grid=lambda N: -(-N // 64), block=64)
def add(
    X: pt.Tensor(("N",), pt.float32),
    Y: pt.Tensor(("N",), pt.float32),
    a: pt.float32,
    out: pt.Tensor(("N",), pt.float32),
):
    i = pt.block_idx("x") * 64 + pt.thread_idx("x")
    with pt.if_(i < X.shape[0]):
        out[i] = X[i] * a + Y[i]


def run(kernel: pt.Kernel, *args: object, **options: object) -> None:
    kernel.launch(*args, device=DEVICE, **options)


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


# --- specialisation -------------------------------------------------------------------------------------------------
def test_each_static_value_is_a_kernel_of_its_own():
    a = ones(WIDTH)
    run(scale, a)
    run(scale, a, factor=3.0, twice=True)
    assert (a == 18).all()
    assert scale.ptx() is scale.ptx()
    assert scale.ptx(twice=True) != scale.ptx() == scale.ptx(twice=False)


def test_equal_numbers_of_different_kinds_are_different_values():
    zero, minus = scale.ptx(factor=0.0), scale.ptx(factor=-0.0)
    assert "0f00000000" in zero and "0f80000000" in minus

    @pt.kernel(grid=1, block=1)
    def kinds(A: pt.Tensor((1,), pt.int32), *, values: tuple[object, ...]):
        A[0] = sum(10**i for i, value in enumerate(values) if type(value) is int)

    texts = {kinds.ptx(values=values) for values in ((1, 0), (True, 0), (1.0, 0), (1, False), (1, 0.0))}
    assert len(texts) == 3  # 11, 10 and 1: by kind, not by equality


def test_block_and_grid_may_be_set_at_the_launch():
    @pt.kernel(grid=1, block=4)
    def dims(Out: pt.Tensor((3,), pt.uint32)):
        Out[0] = pt.block_dim("x")
        Out[1] = pt.block_dim("y")
        Out[2] = pt.grid_dim("x")

    out = np.zeros(3, np.uint32)
    run(dims, out)
    np.testing.assert_array_equal(out, [4, 1, 1])
    run(dims, out, block=(8, 2), grid=1)
    np.testing.assert_array_equal(out, [8, 2, 1])
    assert ".reqntid 4, 1, 1" in dims.ptx()


def test_the_block_may_depend_on_static_values():
    @pt.kernel(grid=1, block=lambda n: n)
    def sized(Out: pt.Tensor((1,), pt.uint32), *, n: int = 16):
        Out[0] = pt.block_dim("x")

    out = np.zeros(1, np.uint32)
    for n in (16, 48):
        run(sized, out, n=n)
        assert out[0] == n


def test_targets():
    assert scale.module().target == "sm_75"
    assert scale.module("sm_90a").target == "sm_90a"
    assert ".target sm_100a" in scale.ptx("sm_100a")

    @pt.kernel(grid=1, block=1, target="sm_80")
    def pinned(A: pt.Tensor((1,), pt.float32)):
        ptx.add.rn.f32x2(pt.reg(pt.uint64), pt.reg(pt.uint64), pt.reg(pt.uint64))

    with pytest.raises((TargetError, pt.FormError)) as caught:
        pinned.ptx()
    assert "sm_80" in str(caught.value) and "add.rn.f32x2" in str(caught.value)
    with pytest.raises(TargetError):
        scale.ptx("sm_31415")


# --- run-time sizes -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 200])
def test_one_kernel_serves_every_size(n):
    x, y, out = np.arange(n, dtype=np.float32), ones(n), np.zeros(n, np.float32)
    run(add, x, y, 3.0, out)
    np.testing.assert_array_equal(out, 3 * x + 1)


def test_sizes_and_scalars_reach_the_grid():
    @pt.kernel(grid=lambda N, rows, half: (N // half, rows), block=1)
    def count(A: pt.Tensor(("N",), pt.uint32), rows: pt.uint32, *, half: int = 2):
        A[pt.block_idx("y") * 2 + pt.block_idx("x")] = pt.grid_dim("x") * 10 + pt.grid_dim("y") + rows

    a = np.zeros(4, np.uint32)
    run(count, a, 2)
    np.testing.assert_array_equal(a, [24] * 4)


def test_one_array_for_several_arguments():
    a = np.arange(64, dtype=np.float32)
    run(add, a, a, 1.0, a)
    np.testing.assert_array_equal(a, 2 * np.arange(64, dtype=np.float32))


def test_an_array_with_gaps_is_refused():
    wide = np.zeros((64, 2), np.float32)
    with pytest.raises(OperandError) as caught:
        run(add, ones(64), ones(64), 1.0, wide[:, 1])
    assert str(caught.value) == (
        "argument 4 ('out', .u64) cannot be an array of shape (64,) with strides (8,) bytes: it is not contiguous in "
        "row-major order; pass numpy.ascontiguousarray(…) and copy back what the kernel writes"
    )


def test_overlapping_arrays_share_memory():
    """So a thread overwrites what another still reads, and the sanitizer says so."""
    b = np.arange(96, dtype=np.float32)
    with pytest.raises(EmulatorError) as caught:
        run(add, b[32:], b[32:], 1.0, b[:64])
    assert caught.value.kind == "race"


def test_an_array_that_is_only_read_need_not_be_writable():
    x, out = ones(64), np.zeros(64, np.float32)
    x.flags.writeable = False
    run(add, x, x, 1.0, out)
    assert (out == 2).all()


ARGUMENTS = [
    ((ones(8), ones(8), 1.0), "add takes 4 arguments (X, Y, a, out); 3 were given"),
    ((ones(8).astype(np.float64), ones(8), 1.0, ones(8)), "add: argument 'X' is float64 and must be float32"),
    ((ones(8), ones(9), 1.0, ones(8)), "add: argument 'Y': the size N is 9 here and 8 in 'X'"),
    ((ones(8), ones(2, 4), 1.0, ones(8)), "add: argument 'Y' has shape (2, 4) and must have (N)"),
]


@pytest.mark.parametrize(("args", "expected"), ARGUMENTS)
def test_arguments_are_checked(args, expected):
    with pytest.raises(OperandError) as caught:
        run(add, *args)
    assert str(caught.value) == expected


def test_an_array_that_may_not_be_written_is_not():
    locked = ones(WIDTH)
    locked.flags.writeable = False
    with pytest.raises(OperandError) as caught:
        run(scale, locked)
    assert str(caught.value) == (
        "the kernel wrote to argument 1 ('A', .u64), an array that is not writable; the array was left as it was"
    )
    assert (locked == 1).all()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            1.5,
            "argument 2 ('n', .s32) cannot be float 1.5: a float never becomes an integer here; pass int(…) if that is meant",
        ),
        (1 << 40, "argument 2 ('n', .s32) cannot be int 1099511627776: it holds -2147483648 to 2147483647"),
        ("x", "argument 2 ('n', .s32) cannot be str 'x': a number is due"),
    ],
)
def test_scalars_are_checked(value, expected):
    @pt.kernel(grid=1, block=1)
    def keep(A: pt.Tensor((1,), pt.int32), n: pt.int32):
        A[0] = n

    a = np.zeros(1, np.int32)
    run(keep, a, np.int64(-3))
    assert a[0] == -3
    with pytest.raises(OperandError) as caught:
        run(keep, a, value)
    assert str(caught.value) == expected


def test_fixed_and_multiple_sizes_are_checked():
    @pt.kernel(grid=1, block=1)
    def fixed(
        A: pt.Tensor((pt.dim("M", multiple_of=4), 3), pt.float32),
        B: pt.Tensor((pt.dim("M", multiple_of=6),), pt.float32),
    ):
        pass

    for args, expected in [
        ((ones(12, 4), ones(12)), "fixed: argument 'A' has shape (12, 4) and must have (M, 3)"),
        ((ones(8, 3), ones(8)), "fixed: argument 'A': the size M is 8 and must be a multiple of 12"),
    ]:
        with pytest.raises(OperandError) as caught:
            run(fixed, *args)
        assert str(caught.value) == expected
    run(fixed, ones(12, 3), ones(12))


def test_a_size_has_31_bits():
    huge = np.broadcast_to(np.float32(0), (1 << 31,))
    with pytest.raises(OperandError) as caught:
        run(add, huge, huge, 1.0, huge)
    assert (
        str(caught.value)
        == "add: argument 'X': the size N is 2147483648; a run-time size is at most 2**31 - 1"
    )


def test_keywords():
    for options, expected in [
        ({"speed": 1}, "scale: unknown keyword 'speed'; its static parameters are factor, twice"),
        ({"factor": [1]}, "scale: the static parameter 'factor' must be hashable, not [1]"),
    ]:
        with pytest.raises(OperandError) as caught:
            run(scale, ones(WIDTH), **options)
        assert str(caught.value) == expected
    with pytest.raises(OperandError) as caught:
        run(add, speed=1)
    assert str(caught.value) == "add: unknown keyword 'speed'; it has no static parameters"

    @pt.kernel(grid=1, block=1)
    def needs(A: pt.Tensor((1,), pt.float32), *, n: int):
        A[0] = float(n)

    with pytest.raises(OperandError) as caught:
        needs.ptx()
    assert str(caught.value) == "needs: the static parameter 'n' needs a value"
    assert "0f40400000" in needs.ptx(n=3)


def make(function: object, grid: object = 1, block: object = 1) -> pt.Kernel:
    return pt.kernel(grid=grid, block=block)(function)  # type: ignore[arg-type]


def _nothing():
    pass


# --- tracing --------------------------------------------------------------------------------------------------------
def test_a_kernel_calls_no_kernel():
    scale.ptx()

    @pt.kernel(grid=1, block=1)
    def outer(A: pt.Tensor((1,), pt.float32)):
        scale(A)

    with pytest.raises(TraceError) as caught:
        outer.ptx()
    assert (
        str(caught.value)
        == "scale was launched inside a trace: a kernel calls no kernel; inline a @pt.function instead"
    )

    @pt.kernel(grid=1, block=1)
    def nested(A: pt.Tensor((1,), pt.float32)):
        make(_nothing).ptx()

    with pytest.raises(TraceError) as caught:
        nested.ptx()
    assert str(caught.value) == "a kernel cannot be traced while another is being traced in the same thread"
    assert tracing.active() is None


def test_an_error_leaves_no_trace_behind():
    @pt.kernel(grid=1, block=1)
    def fails(A: pt.Tensor((1,), pt.float32)):
        raise ZeroDivisionError("the user's own")

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            fails.ptx()
    scale.ptx(factor=17.0)


def test_two_threads_trace_at_once():
    barrier = threading.Barrier(2, timeout=30)
    texts: dict[int, str] = {}

    def work(number: int) -> None:
        @pt.kernel(grid=1, block=1)
        def mine(A: pt.Tensor((4,), pt.float32)):
            for i in range(4):
                barrier.wait()
                A[i] = float(number)

        texts[number] = mine.ptx()

    threads = [threading.Thread(target=work, args=(number,)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts[1].count("0f3F800000") == 4 and texts[2].count("0f40000000") == 4
    assert texts[1].replace("0f3F800000", "0f40000000") == texts[2]


def test_equal_input_gives_equal_bytes():
    def build() -> pt.Kernel:
        @pt.kernel(grid=1, block=64)
        def same(A: pt.Tensor(("M", 64), pt.float32), n: pt.uint32):
            t = pt.thread_idx("x")
            sh = pt.alloc_shared((64,), pt.float32)
            with pt.if_(n < A.shape[0]):
                sh[t] = A[n, t]
                pt.cta_sync()
                A[n, t] = sh[63 - t] + pt.exp(sh[t])

        return same

    assert build().ptx() == build().ptx()


def test_every_process_gives_the_same_bytes():
    root = Path(__file__).resolve().parents[1]
    code = "import sys; sys.path.insert(0, 'examples'); import activation; sys.stdout.write(activation.activation.ptx())"
    texts = []
    for seed in ("0", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)}
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=root,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        texts.append(done.stdout)
    assert texts[0] == texts[1]
    assert texts[0].startswith(".version")


def test_descriptions_outside_a_trace():
    with pytest.raises(TraceError) as caught:
        pt.Tensor((4,), pt.float32)[0]
    assert str(caught.value) == (
        "pt.Tensor((4,), pt.float32) describes an argument; it has elements only inside a kernel's trace"
    )
    with pytest.raises(LayoutError) as caught_layout:
        pt.Tensor(("M",), pt.float32, pt.S[4])
    assert (
        str(caught_layout.value)
        == "a tensor with run-time sizes is row-major: (pt.dim('M'),) cannot take a layout"
    )
    with pytest.raises(LayoutError) as caught_size:
        pt.dim("2M")
    assert str(caught_size.value) == "a run-time size is named by an identifier, not '2M'"
    with pytest.raises(TraceError) as caught_pointer:
        pt.Pointer(pt.float32)[0]
    assert (
        str(caught_pointer.value)
        == "pt.Pointer(pt.float32) describes an argument; it has an address only inside a kernel's trace"
    )
