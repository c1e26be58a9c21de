"""Device arrays, on the stand-in driver and on the emulator."""

from __future__ import annotations

import gc

import ml_dtypes
import numpy as np
import pytest
from standin import Standin

from ptxtile import dtypes as pt, execute
from ptxtile.errors import DriverError, OperandError
from ptxtile.execute import dlpack
from ptxtile.execute.machine import Machine

MACHINES = [0, "emulator"]


@pytest.mark.parametrize("device", MACHINES)
@pytest.mark.parametrize("dtype", [pt.float32, "uint8", np.int64, ml_dtypes.bfloat16, pt.bool_])
def test_there_and_back(standin: Standin, device: Machine, dtype: object) -> None:
    x = np.arange(6).reshape(2, 3).astype(pt.dtype_of(dtype).numpy)
    made = execute.asarray(x, device=device)
    assert (made.shape, made.ndim, made.size, made.nbytes, len(made)) == ((2, 3), 2, 6, x.nbytes, 2)
    assert made.device == device
    y = made.numpy()
    assert y.dtype == x.dtype and (y == x).all() and not np.shares_memory(x, y)
    assert (np.asarray(made) == x).all()


@pytest.mark.parametrize("device", MACHINES)
def test_zeros_and_copy(standin: Standin, device: Machine) -> None:
    made = execute.zeros(5, "int16", device=device)
    assert made.numpy().tolist() == [0] * 5
    made.copy_from(np.arange(5, dtype=np.int16))
    other = execute.empty(5, pt.int16, device=device)
    other.copy_from(made)
    assert other.numpy().tolist() == [0, 1, 2, 3, 4]
    assert execute.zeros((), "float32", device=device).numpy() == 0
    assert execute.zeros((0, 3), "float32", device=device).numpy().shape == (0, 3)


def test_converting(standin: Standin) -> None:
    assert execute.asarray([1, 2], "float16").numpy().dtype == np.float16
    assert execute.asarray([[1.5]]).dtype is pt.float64
    source = execute.asarray([1, 2], "int32", device="emulator")
    assert execute.asarray(source, device=0).numpy().tolist() == [1, 2]


@pytest.mark.parametrize("device", MACHINES)
def test_copy_of_another_shape(standin: Standin, device: Machine) -> None:
    made = execute.zeros((2, 2), "int16", device=device)
    with pytest.raises(OperandError) as caught:
        made.copy_from(np.zeros(4, np.int32))
    assert str(caught.value) == (
        "an array of shape (4,) and dtype int32 cannot be copied into one of shape (2, 2) and dtype int16"
    )


@pytest.mark.parametrize(
    ("shape", "dtype", "message"),
    [
        (2.5, "int8", "a shape is one or several integers, not 2.5"),
        ((2, -1), "int8", "a shape has no negative extents: (2, -1)"),
        ("ab", "int8", "a shape is one or several integers, not 'ab'"),
    ],
)
def test_wrong_shapes(shape: object, dtype: object, message: str) -> None:
    with pytest.raises(OperandError) as caught:
        execute.empty(shape, dtype, device="emulator")  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_wrong_dtype() -> None:
    with pytest.raises(OperandError, match=r"^ptxtile has no dtype 'complex64'; it has float16, "):
        execute.empty(3, np.complex64, device="emulator")


def test_exports(standin: Standin) -> None:
    made = execute.zeros((2, 3), pt.float32, device=0)
    assert made.__cuda_array_interface__ == {
        "shape": (2, 3),
        "typestr": "<f4",
        "data": (made.address, False),
        "strides": None,
        "version": 3,
        "stream": None,
    }
    assert made.__dlpack_device__() == (2, 0)
    assert dlpack.look(made, 0) == dlpack.View(made.address, (2, 3), None)
    with pytest.raises(
        BufferError, match=r"^DLPack has no type for float8_e4m3fn: exchange a view of it as uint8$"
    ):
        execute.zeros(3, pt.float8_e4m3fn, device=0).__dlpack__()
    assert repr(made) == "DeviceArray(shape=(2, 3), dtype=float32, device=0)"
    with pytest.raises(
        OperandError, match=r"^the array is on device 0: use .numpy\(\) for a copy in host memory$"
    ):
        _ = made.host


def test_a_capsule_keeps_the_memory(standin: Standin) -> None:
    made = execute.zeros(4, pt.int32, device=0)
    capsule = made.__dlpack__()
    del made
    gc.collect()
    assert len(standin.memory) == 1
    del capsule
    gc.collect()
    assert standin.memory == {}


def test_emulated_exports() -> None:
    made = execute.asarray(np.arange(3.0), device="emulator")
    assert not hasattr(made, "__cuda_array_interface__")
    assert np.shares_memory(np.from_dlpack(made), made.host)
    with pytest.raises(TypeError, match=r"^an array without axes has no len\(\)$"):
        len(execute.zeros((), "int8", device="emulator"))


def test_choice_of_machine(standin: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    assert execute.choose(None) == 0
    assert execute.choose("emulator") == "emulator"
    monkeypatch.setenv("PTXTILE_DEVICE", "emulator")
    assert execute.choose(None, 0) == "emulator"
    assert execute.choose(0) == 0
    monkeypatch.setenv("PTXTILE_DEVICE", "1")
    with pytest.raises(
        DriverError, match=r"^there is no device 1: this machine has 1, so an ordinal from 0 to 0$"
    ):
        execute.choose(None)
    monkeypatch.setenv("PTXTILE_DEVICE", "gpu")
    with pytest.raises(DriverError) as caught:
        execute.choose(None)
    assert (
        str(caught.value) == "PTXTILE_DEVICE is 'gpu': a device is a CUDA ordinal such as 0, or \"emulator\""
    )
    with pytest.raises(DriverError, match="^device is 'cuda': a device is a CUDA ordinal"):
        execute.choose("cuda")  # type: ignore[arg-type]
