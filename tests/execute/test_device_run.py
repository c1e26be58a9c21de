"""The same call on a real GPU: skipped, with the reason, where there is none."""

from __future__ import annotations

import time

import numpy as np
import pytest
from test_emulated import SAXPY

from ptxtile import driver, execute
from ptxtile.errors import DriverError, OperandError
from ptxtile.execute import Entry, geometry, launch


def _why_not() -> str:
    try:
        driver.device_count()
    except DriverError as error:
        return str(error).splitlines()[0]
    return ""


pytestmark = pytest.mark.skipif(bool(_why_not()), reason=_why_not() or "there is a GPU")


def expected(x: np.ndarray, y: np.ndarray, a: float) -> np.ndarray:
    return (np.float64(a) * x + y).astype(np.float32)


@pytest.mark.parametrize("n", [1, 31, 33, 100_003])
def test_host_arrays(n: int) -> None:
    rng = np.random.default_rng(n)
    x, y = (rng.standard_normal(n).astype(np.float32) for _ in range(2))
    due = expected(x, y, 2.0)
    execute.run(SAXPY, "saxpy", (x, y, 2.0, n), grid=(n + 127) // 128, block=128, device=0)
    assert np.abs(y - due).max() <= np.spacing(np.abs(due).max())


def test_both_machines_give_the_same_bits() -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(300).astype(np.float32) for _ in range(2))
    found = []
    for device in (0, "emulator"):
        z = y.copy()
        execute.run(SAXPY, "saxpy", (x, z, 0.1, 300), grid=3, block=128, device=device)
        found.append(z.tobytes())
    assert found[0] == found[1]


def test_device_arrays_and_streams() -> None:
    stream = driver.Stream()
    x = execute.asarray(np.arange(256, dtype=np.float32), device=0)
    y = execute.zeros(256, "float32", device=0)
    for _ in range(3):
        execute.run(SAXPY, "saxpy", (x, y, 1.0, 256), grid=2, block=128, stream=stream)
    stream.synchronize()
    assert y.numpy().tolist() == [3.0 * i for i in range(256)]
    stream.close()


def test_aliases_and_arrays_that_are_not_writable() -> None:
    base = np.arange(9, dtype=np.float32)
    execute.run(SAXPY, "saxpy", (base[1:], base[1:], 1.0, 8), grid=1, block=32, device=0)
    assert base.tolist() == [0, 2, 4, 6, 8, 10, 12, 14, 16]
    frozen = np.zeros(4, np.float32)
    frozen.flags.writeable = False
    execute.run(SAXPY, "saxpy", (frozen, base, 1.0, 4), grid=1, block=32, device=0)
    with pytest.raises(OperandError, match="an array that is not writable"):
        execute.run(SAXPY, "saxpy", (base, frozen, 1.0, 4), grid=1, block=32, device=0)


def test_arrays_of_pytorch() -> None:
    torch = pytest.importorskip("torch", exc_type=ImportError)
    x = torch.arange(64, dtype=torch.float32, device="cuda")
    y = torch.ones(64, dtype=torch.float32, device="cuda")
    execute.run(SAXPY, "saxpy", (x, y, 2.0, 64), grid=2, block=32)
    assert y.tolist() == [2.0 * i + 1 for i in range(64)]
    ours = execute.asarray(np.arange(4, dtype=np.float32), device=0)
    assert torch.from_dlpack(ours).tolist() == [0, 1, 2, 3]
    assert torch.as_tensor(ours, device="cuda").tolist() == [0, 1, 2, 3]
    host = torch.ones(64)
    execute.run(SAXPY, "saxpy", (torch.arange(64.0), host, 2.0, 64), grid=2, block=32, device=0)
    assert host.tolist() == [2.0 * i + 1 for i in range(64)]


def test_cost_of_a_launch() -> None:
    x, y = execute.zeros(32, "float32", device=0), execute.zeros(32, "float32", device=0)
    entry = Entry(SAXPY, "saxpy")
    shape = geometry(entry.function, 1, 32)
    with driver.activate(0):
        best = 1.0
        for _ in range(20):
            begin = time.perf_counter()
            for _ in range(50):
                launch(entry, (x, y, 1.0, 32), shape, device=0)
            best = min(best, (time.perf_counter() - begin) / 50)
            driver.synchronize()
    print(f"one launch of saxpy with device arrays: {best * 1e6:.2f} µs")
