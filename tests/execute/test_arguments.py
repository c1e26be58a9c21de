"""What may be passed for an address."""

from __future__ import annotations

import numpy as np
import pytest
from standin import Standin

from ptxtile import dtypes as pt
from ptxtile.errors import OperandError
from ptxtile.execute import array_facts, dlpack, zeros
from ptxtile.execute.arguments import (
    ArrayFacts,
    DeviceArgument,
    HostArgument,
    PlainArgument,
    classify,
    classify_all,
)
from ptxtile.execute.parameters import Place, places
from ptxtile.ir.module import Function, Parameter

A, N = places(Function("k", True, (Parameter("A", "u64"), Parameter("n", "u32"))))


def fails(place: Place, given: object, message: str) -> None:
    with pytest.raises(OperandError) as caught:
        classify(place, given)
    assert str(caught.value) == message


def test_host_arrays() -> None:
    x = np.zeros((2, 3), np.float32)
    assert classify(A, x) == HostArgument(A, x, True)
    x.flags.writeable = False
    found = classify(A, x)
    assert isinstance(found, HostArgument) and not found.writable


def test_host_arrays_that_are_refused() -> None:
    fails(
        A,
        np.zeros((4, 4), np.float32)[:, ::2],
        "argument 1 ('A', .u64) cannot be an array of shape (4, 2) with strides (16, 8) bytes: it is not contiguous "
        "in row-major order; pass numpy.ascontiguousarray(…) and copy back what the kernel writes",
    )
    fails(
        A,
        np.zeros(4, ">f4"),
        "argument 1 ('A', .u64) cannot be an array of foreign byte order (>f4): pass a native copy",
    )
    fails(A, np.array([None]), "argument 1 ('A', .u64) cannot be an array of Python objects")
    fails(
        N,
        np.zeros(4, np.uint32),
        "argument 2 ('n', .u32) cannot be an array: an array is passed as an address, for which .u64 is due",
    )


def test_numbers() -> None:
    assert classify(A, 4096) == PlainArgument(A, 4096)
    assert classify(N, np.uint32(5)) == PlainArgument(N, 5)
    assert classify(N, np.array(5)) == PlainArgument(N, 5)


def test_wrong_count() -> None:
    with pytest.raises(OperandError) as caught:
        classify_all("k", (A, N), (1,))
    assert str(caught.value) == "k takes 2 arguments (A: .u64, n: .u32), not 1"
    with pytest.raises(OperandError) as caught:
        classify_all("k", (A,), ())
    assert str(caught.value) == "k takes 1 argument (A: .u64), not 0"


class Foreign:
    """A device array of another library."""

    def __init__(self, **changes: object) -> None:
        base = {"shape": (2, 3), "typestr": "<f4", "data": (8192, False), "strides": None, "version": 3}
        self.__cuda_array_interface__ = base | changes


def test_cuda_array_interface() -> None:
    assert classify(A, Foreign()) == DeviceArgument(A, 8192, None, None)
    assert classify(A, Foreign(strides=(12, 4), stream=7)) == DeviceArgument(A, 8192, None, 7)
    assert classify(A, Foreign(shape=(1, 3), strides=(99, 4))) == DeviceArgument(A, 8192, None, None)
    assert classify(A, Foreign(shape=(0, 3), strides=(1, 1))) == DeviceArgument(A, 8192, None, None)
    fails(
        A,
        Foreign(strides=(4, 8)),
        "argument 1 ('A', .u64) cannot be a device array of shape (2, 3) with strides (4, 8) bytes: it is not "
        "contiguous in row-major order",
    )


def test_own_arrays(standin: Standin) -> None:
    made = zeros((2, 3), "float32", device=0)
    assert classify(A, made) == DeviceArgument(A, made.address, 0)
    emulated = zeros((2, 3), "float32", device="emulator")
    found = classify(A, emulated)
    assert isinstance(found, HostArgument) and found.array is emulated.host


class Exchanged:
    """A DLPack object that wraps one of ours, on whatever device it claims."""

    def __init__(self, inner: object, device: tuple[int, int]) -> None:
        self.inner, self.device = inner, device
        self.streams: list[object] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, *, stream: object = None, **options: object) -> object:
        self.streams.append(stream)
        return self.inner.__dlpack__(stream=stream)  # type: ignore[attr-defined]


def test_dlpack(standin: Standin) -> None:
    made = zeros((2, 3), "float32", device=0)
    wrapped = Exchanged(made, (2, 0))
    assert classify(A, wrapped) == DeviceArgument(A, made.address, 0)
    assert classify(A, wrapped, 77) == DeviceArgument(A, made.address, 0)
    assert wrapped.streams == [1, 77]
    assert not dlpack._exported  # a capsule that nobody took frees itself


def test_dlpack_on_the_host() -> None:
    class Host:
        def __init__(self, array: np.ndarray) -> None:
            self.array = array

        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

        def __dlpack__(self, **options: object) -> object:
            return self.array.__dlpack__()

    x = np.arange(6.0)
    found = classify(A, Host(x))
    assert isinstance(found, HostArgument) and np.shares_memory(found.array, x)


class Half:
    """A tensor on the host whose capsule cannot say that it is writable, while `__array__` knows."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **options: object) -> object:
        options.pop("max_version", None)
        return self.array.__dlpack__(**options)

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        return self.array


def test_a_host_tensor_is_writable_if_its_array_is() -> None:
    x = np.arange(6.0)
    found = classify(A, Half(x))
    assert isinstance(found, HostArgument) and found.writable and np.shares_memory(found.array, x)


def test_dlpack_elsewhere(standin: Standin) -> None:
    made = Exchanged(zeros(1, "float32", device=0), (10, 0))
    with pytest.raises(OperandError, match=r"^argument 1 .* it is on a device of DLPack kind 10$"):
        classify(A, made)


def test_dlpack_capsule_that_was_used(standin: Standin) -> None:
    class Used(Exchanged):
        def __dlpack__(self, *, stream: object = None, **options: object) -> object:
            return object()

    with pytest.raises(OperandError, match=r"^Used.__dlpack__ gave no unused capsule named 'dltensor'$"):
        classify(A, Used(None, (2, 0)))


def test_array_facts(standin: Standin) -> None:
    made = zeros((2, 3), "float32", device=0)
    on_device = ArrayFacts(pt.float32, (2, 3), made.address)
    assert array_facts("k", made) == on_device
    assert array_facts("k", zeros((2, 3), "float32", device="emulator")) == ArrayFacts(
        pt.float32, (2, 3), None
    )
    assert array_facts("k", np.zeros(4, np.int8)) == ArrayFacts(pt.int8, (4,), None)
    assert array_facts("k", Foreign()) == ArrayFacts(pt.float32, (2, 3), 8192)

    class Tensor(Exchanged):
        dtype, shape = "float32", (2, 3)

    assert array_facts("k", Tensor(made, (2, 0))) == on_device


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            [1, 2],
            (
                "k: argument 'A' cannot be list [1, 2]: a NumPy array or a device array (ptxtile.asarray, DLPack, "
                "__cuda_array_interface__) is due"
            ),
        ),
        (
            np.zeros(2, "m8[s]"),
            "k: argument 'A': ptxtile has no dtype 'timedelta64[s]'; it has "
            + ", ".join(d.name for d in pt.ALL),
        ),
    ],
)
def test_array_facts_of_what_is_none(given: object, message: str) -> None:
    with pytest.raises(OperandError) as caught:
        array_facts("k: argument 'A'", given)
    assert str(caught.value) == message
