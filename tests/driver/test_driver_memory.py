"""Device memory on the stand-in."""

from __future__ import annotations

import ctypes

import pytest
from standin import CUresult, Standin

from ptxtile import driver
from ptxtile.driver import memory
from ptxtile.errors import DriverError, OperandError


def test_copies_and_fill(standin: Standin) -> None:
    a, b = driver.DeviceBuffer(16), driver.DeviceBuffer(16)
    host = ctypes.create_string_buffer(b"0123456789abcdef", 16)
    driver.copy_to_device(a.address, ctypes.addressof(host), 16, ordinal=0)
    driver.copy_on_device(b.address, a.address, 16, ordinal=0)
    driver.fill(b.address, ord("x"), 4, ordinal=0)
    back = ctypes.create_string_buffer(16)
    driver.copy_from_device(ctypes.addressof(back), b.address, 16, ordinal=0, stream=5)
    assert back.raw == b"xxxx456789abcdef"
    assert int(standin.named("cuMemcpyDtoHAsync")[0][3]) == 5


def test_nothing_is_copied_for_no_bytes(standin: Standin) -> None:
    driver.copy_to_device(0, 0, 0, ordinal=0)
    driver.copy_from_device(0, 0, 0, ordinal=0)
    driver.copy_on_device(0, 0, 0, ordinal=0)
    driver.fill(0, 0, 0, ordinal=0)
    assert not [name for name, _ in standin.calls if name.startswith("cuMem")]


def test_a_copy_outside_an_allocation_is_an_error(standin: Standin) -> None:
    a = driver.DeviceBuffer(16)
    with pytest.raises(DriverError) as caught:
        driver.copy_from_device(0, a.address, 17, ordinal=0)
    assert str(caught.value) == (
        "could not copy 17 bytes from device 0: CUDA_ERROR_INVALID_VALUE (1), invalid value"
    )


def test_free(standin: Standin) -> None:
    a = driver.DeviceBuffer(16)
    a.free()
    a.free()
    assert standin.memory == {}
    with pytest.raises(DriverError, match="^the device buffer was freed: its address is gone$"):
        _ = a.address
    b = driver.DeviceBuffer(0)
    assert b.address
    del b
    assert standin.memory == {}


def test_a_finaliser_is_quiet(standin: Standin) -> None:
    a = driver.DeviceBuffer(16)
    standin.fail_next("cuMemFree", CUresult.CUDA_ERROR_ILLEGAL_ADDRESS)
    del a
    with driver.use(Standin()) as other:
        b = driver.DeviceBuffer(4)
    assert other is not None
    del b  # its driver is gone: nothing to call


def test_wrong_sizes(standin: Standin) -> None:
    with pytest.raises(OperandError, match="^a buffer cannot have -1 bytes$"):
        driver.DeviceBuffer(-1)
    with pytest.raises(OperandError, match="^a byte is 0 to 255, not 256$"):
        driver.fill(0, 256, 1, ordinal=0)


def test_scratch_reuses_idle_blocks(standin: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = driver.scratch(0)
    assert driver.scratch(0) is pool
    first = pool.take(1000)
    assert first.nbytes == 1024
    address = first.address
    pool.give(first)
    again = pool.take(1024)
    assert again.address == address
    monkeypatch.setattr(memory, "KEPT_BYTES", 1024)
    large = pool.take(5000)
    assert large.nbytes == 5000
    pool.give(again)
    pool.give(large)
    assert len(standin.memory) == 1
    pool.clear()
    assert standin.memory == {}
    assert pool.take(0).nbytes == 512
