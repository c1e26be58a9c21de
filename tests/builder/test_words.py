"""Small words that a newcomer writes: @pt.kernel bare, for_range(n), thread_idx(); kernels and modules in a pickle."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import ptxtile as pt
from ptxtile.errors import OperandError, TraceError


@pt.kernel(grid=1, block=32)
def double(A: pt.Tensor((32,), pt.float32)):
    i = pt.thread_idx()
    A[i] = A[i] + A[i]


# --- bare spellings ---------------------------------------------------------------------------------------------------
def test_a_kernel_needs_its_launch():
    with pytest.raises(TraceError) as caught:

        @pt.kernel
        def bare(A: pt.Tensor((32,), pt.float32)):
            pass

    assert str(caught.value).split("\n")[0] == (
        "pt.kernel needs grid= and block=: write @pt.kernel(grid=…, block=…) above the function, blocks of the grid and threads of a "
        "block"
    )
    assert "test_words.py" in str(caught.value)


@pytest.mark.parametrize(
    ("given", "lacks"),
    [({"grid": 1}, "needs block="), ({"block": 32}, "needs grid="), ({}, "needs grid= and block=")],
)
def test_both_are_due(given, lacks):
    with pytest.raises(TraceError) as caught:
        pt.kernel(**given)
    assert str(caught.value).startswith(f"pt.kernel {lacks}: write @pt.kernel(grid=…, block=…)")


def test_no_function_beside_the_launch():
    with pytest.raises(TraceError) as caught:
        pt.kernel(double, grid=1, block=32)
    assert str(caught.value).startswith("pt.kernel takes no function: write @pt.kernel(grid=…, block=…)")


def test_indices_are_of_x():
    builder = pt.ModuleBuilder()
    with builder.entry("k", {}, cluster=None):
        found = [pt.thread_idx(), pt.block_idx(), pt.block_dim(), pt.grid_dim(), pt.cluster_idx()]
    assert len(found) == 5
    for name in ("%tid.x", "%ctaid.x", "%ntid.x", "%nctaid.x", "%cluster_ctaid.x"):
        assert f", {name};" in str(builder)


def test_a_loop_from_zero():
    def text(*ends):
        builder = pt.ModuleBuilder()
        with builder.entry("k", {"n": pt.uint32, "A": pt.Tensor((64,), pt.uint32)}, block=1) as k:
            loop = pt.for_range(*(k.n if end == "n" else end for end in ends))
            with loop as i:
                k.A[i % 64] = k.n
        return str(builder)

    assert text("n") == text(0, "n")
    assert text(5) == text(0, 5)


# --- pickles ----------------------------------------------------------------------------------------------------------
def test_a_module_is_its_text():
    module = double.module()
    assert pickle.loads(pickle.dumps(module)) == module
    assert copy.deepcopy(module) is module


def test_a_kernel_is_its_name():
    assert pickle.loads(pickle.dumps(double)) is double
    assert copy.deepcopy(double) is double


def test_a_local_kernel_has_no_name():
    @pt.kernel(grid=1, block=32)
    def local(A: pt.Tensor((32,), pt.float32)):
        pass

    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(local)


def run(kernel: pt.Kernel, values: list[float]) -> list[float]:
    array = np.array(values, np.float32)
    kernel.launch(array, device="emulator")
    return array.tolist()


def test_another_process_runs_it():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(run, double, list(range(32))).result() == [2.0 * value for value in range(32)]


# --- programmatic launches --------------------------------------------------------------------------------------------
def test_a_programmatic_launch_runs_on_the_emulator():
    a = np.arange(32, dtype=np.float32)
    double.launch(a, device="emulator", programmatic=True)
    np.testing.assert_array_equal(a, 2 * np.arange(32, dtype=np.float32))


def test_programmatic_is_a_truth():
    with pytest.raises(OperandError) as caught:
        double.launch(np.zeros(32, np.float32), device="emulator", programmatic=1)
    assert str(caught.value) == "programmatic is True or False, not 1"
