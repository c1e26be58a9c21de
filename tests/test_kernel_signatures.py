"""What `@pt.kernel` makes of a signature: annotations of every kind, names, launch shapes, and what it refuses."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import pytest

import ptxtile as pt
from ptxtile import TraceError

WIDTH = 32


def run(kernel: pt.Kernel, *args: object, **options: object) -> None:
    kernel.launch(*args, device="emulator", **options)


def make(function: object, grid: object = 1, block: object = 1, **options: object) -> pt.Kernel:
    return pt.kernel(grid=grid, block=block, **options)(function)  # type: ignore[arg-type]


def test_annotations_of_every_kind():
    size = 4  # a name of this function, in an annotation that is text (this module postpones them)

    @pt.kernel(grid=1, block=1)
    def forms(
        A: Annotated[pt.Tensor, pt.Tensor((size,), pt.float32)],
        B: pt.Tensor((size,), "float32"),
        P: Annotated[pt.Pointer, pt.Pointer(np.float32)],
        n: pt.int32,
        flag: pt.bool_,
    ):
        with pt.if_(flag):
            B[n] = A[n] + P[size - 1]

    a, b = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    run(forms, a, b, a, 2, True)
    run(forms, a, b, a, 1, False)
    np.testing.assert_array_equal(b, [0, 0, 5, 0])


def test_closures_and_globals_are_seen():
    factors = [pt.float32(3), WIDTH]

    @pt.kernel(grid=1, block=WIDTH)
    def closed(A: pt.Tensor((WIDTH,), pt.float32)):
        t = pt.thread_idx("x")
        A[t] = A[t] * factors[0] + float(factors[1])

    a = np.ones(WIDTH, np.float32)
    run(closed, a)
    assert (a == 35).all()


def _positional(A: pt.float32, /):
    pass


def _starred(*A: pt.float32):
    pass


def _dictionary(**A: pt.float32):
    pass


def _bare(A):
    pass


def _defaulted(a: pt.float32 = 1.0):
    pass


def _python(a: int):
    pass


def _undefined(a: Undefined):  # noqa: F821
    pass


def _two(a: Annotated[pt.Tensor, 1, 2]):
    pass


def _size_name(N: pt.uint32, A: pt.Tensor(("N",), pt.float32)):
    pass


def _size_in_ptx(size_N: pt.uint32, A: pt.Tensor(("N",), pt.float32)):
    pass


NAMED = "a kernel's parameters are named one by one, static ones after a *"
SIGNATURES = [
    (_positional, f"_positional: parameter 'A' is positional-only; {NAMED}"),
    (_starred, f"_starred: parameter 'A' is variadic positional; {NAMED}"),
    (_dictionary, f"_dictionary: parameter 'A' is variadic keyword; {NAMED}"),
    (_bare, "_bare: parameter 'A' has no annotation; write A: pt.Tensor(shape, dtype), a dtype or pt.Pointer(dtype), or make it keyword-only if it is a static Python value"),
    (_defaulted, "_defaulted: parameter 'a' has a default, which only static (keyword-only) parameters may have: arguments of a launch are all given"),
    (_python, "parameter 'a' is annotated <class 'int'>: a parameter is a pt.Tensor(shape, dtype), a dtype, a pt.Pointer(dtype), or keyword-only if it is a static Python value"),
    (_undefined, "_undefined: the annotation of 'a', 'Undefined', fails: name 'Undefined' is not defined"),
    (_two, "_two: Annotated parameter 'a' needs one pt.Tensor(…) or pt.Pointer(…)"),
    (_size_name, "the run-time size 'N' and a parameter share a name"),
    (_size_in_ptx, "the parameter 'size_N' has the name that the run-time size 'N' takes in PTX"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "expected"), SIGNATURES)
def test_signatures_are_checked(function, expected):
    with pytest.raises(TraceError) as caught:
        make(function)
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"block": 1025}, "block=1025 has 1025 threads; a CTA has at most 1024"),
        ({"block": (32, 33)}, "block=(32, 33) has 1056 threads; a CTA has at most 1024"),
        ({"block": 0}, "block=0: 0 is less than 1"),
        ({"block": 1.5}, "block=1.5: one to three integers are due"),
        ({"block": (1, 1, 1, 1)}, "block=(1, 1, 1, 1): one to three integers are due"),
        ({"grid": True}, "grid=True: one to three integers are due"),
        ({"grid": ()}, "grid=(): one to three integers are due"),
        ({"cluster": -1}, "cluster=-1: -1 is less than 1"),
    ],
)
def test_launch_shapes_are_checked(options, expected):
    with pytest.raises(TraceError) as caught:
        make(_nothing, **options)
    assert str(caught.value) == expected


def _nothing():
    pass


def test_names():
    def größe():
        pass

    for function, expected in [
        (
            größe,
            "'größe' cannot name an entry in PTX: letters, digits and _ (not _ alone, not WARP_SZ) are allowed",
        ),
        (
            lambda: None,
            "'<lambda>' cannot name an entry in PTX: letters, digits and _ (not _ alone, not WARP_SZ) are allowed",
        ),
    ]:
        with pytest.raises(TraceError) as caught:
            make(function)
        assert str(caught.value) == expected
    with pytest.raises(TraceError) as caught:
        make(print)
    assert str(caught.value) == "@pt.kernel decorates a Python function, not <built-in function print>"


def test_what_the_grid_may_ask_for():
    with pytest.raises(TraceError) as caught:
        run(make(_nothing, grid=lambda M: M))
    assert str(caught.value) == "_nothing: grid= asks for 'M'; it may ask for nothing"
