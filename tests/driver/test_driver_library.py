"""Finding the driver, devices, contexts, and the words of a failure."""

from __future__ import annotations

import re
import subprocess
import sys
from types import ModuleType

import pytest
from standin import CUresult, Standin

from ptxtile import driver, resources
from ptxtile.driver import library, status
from ptxtile.errors import DriverError


def test_absent_driver_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_session", None)
    monkeypatch.setattr(library, "_reason", None)
    monkeypatch.setattr(library, "_LIBCUDA", "libcuda-of-nowhere.so.1")
    assert driver.available() is False
    for _ in range(2):
        with pytest.raises(DriverError) as caught:
            driver.device_count()
        assert str(caught.value) == (
            "no CUDA device can be used: libcuda-of-nowhere.so.1 cannot be loaded, so NVIDIA's driver is not "
            'installed here\n  what to do: run with device="emulator" or PTXTILE_DEVICE=emulator'
        )


def test_missing_binding_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_session", None)
    monkeypatch.setattr(library, "_reason", None)
    monkeypatch.setattr(library.ctypes, "CDLL", lambda name: None)
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", None)
    with pytest.raises(DriverError, match="the Python package cuda-python cannot be imported"):
        driver.device_count()


def test_no_device() -> None:
    with pytest.raises(DriverError) as caught, driver.use(Standin(devices=0)):
        pass
    assert str(caught.value) == (
        "no CUDA device can be used: the driver sees no device\n"
        '  what to do: run with device="emulator" or PTXTILE_DEVICE=emulator'
    )


def test_failing_initialisation() -> None:
    made = Standin()
    made.fail_next("cuInit", CUresult.CUDA_ERROR_NO_DEVICE)
    with pytest.raises(DriverError) as caught, driver.use(made):
        pass
    assert str(caught.value) == (
        "no CUDA device can be used: could not initialise the CUDA driver: CUDA_ERROR_NO_DEVICE (100), no device\n"
        '  what to do: run with device="emulator" or PTXTILE_DEVICE=emulator'
    )


def test_library_that_cannot_be_loaded() -> None:
    def broken(flags: int) -> None:
        raise RuntimeError('Function "cuInit" not found')

    module = ModuleType("broken")
    module.cuInit = broken  # type: ignore[attr-defined]
    with (
        pytest.raises(DriverError, match='the driver library cannot be loaded .Function "cuInit" not found.'),
        driver.use(module),
    ):
        pass


def test_use_puts_back_what_was_there(standin: Standin) -> None:
    with driver.use(Standin(cuda_version=12080)):
        assert driver.driver_version() == "12.8"
    assert library.binding() is standin


def test_importing_the_driver_package_imports_no_cuda() -> None:
    code = "import sys, ptxtile.driver; print([m for m in ('cuda', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_device_facts(standin: Standin) -> None:
    assert driver.device(0) == driver.Device(0, "Stand-in 90", (9, 0), 132, 1024, 49152, 232448, True)
    assert driver.device(0).target == "sm_90"
    assert driver.device(0) is driver.device(0)


@pytest.mark.parametrize("ordinal", [1, -1, True, "0"])
def test_wrong_ordinal(standin: Standin, ordinal: int) -> None:
    with pytest.raises(DriverError) as caught:
        driver.device(ordinal)
    assert (
        str(caught.value) == f"there is no device {ordinal!r}: this machine has 1, so an ordinal from 0 to 0"
    )


def test_true_is_no_ordinal_even_after_one_was_found() -> None:
    with driver.use(Standin(devices=2)):
        driver.device(1)
        with pytest.raises(DriverError, match="there is no device True"):
            driver.device(True)


def test_activate_restores_the_context_of_others() -> None:
    made = Standin(devices=2)
    with driver.use(made):
        with driver.activate(1):
            assert driver.current_ordinal() == 1
            with driver.activate(0):
                assert driver.current_ordinal() == 0
            with driver.activate(1):
                assert len(made.contexts) == 1
            assert driver.current_ordinal() == 1
        assert made.contexts == []
        assert len(made.named("cuDevicePrimaryCtxRetain")) == 2


def test_failure_names_describes_and_advises(standin: Standin) -> None:
    standin.fail_next("cuMemAlloc", CUresult.CUDA_ERROR_OUT_OF_MEMORY)
    with pytest.raises(DriverError) as caught:
        driver.DeviceBuffer(64)
    assert str(caught.value) == (
        "could not allocate 64 bytes on device 0: CUDA_ERROR_OUT_OF_MEMORY (2), out of memory\n"
        "  what to do: free device arrays, or run on a device with more memory"
    )
    assert (caught.value.code, caught.value.name) == (2, "CUDA_ERROR_OUT_OF_MEMORY")


def test_a_result_the_binding_does_not_know(standin: Standin) -> None:
    assert str(status.failure(standin, 4711, "do it")) == "could not do it: CUresult 4711 (4711)"


def test_first_error_of_a_teardown_is_kept() -> None:
    done = []

    def step(name: str, fails: bool) -> None:
        done.append(name)
        if fails:
            raise DriverError(name)

    with pytest.raises(DriverError, match="^b$"):
        driver.in_order(*(lambda n=n: step(n, n in "bc") for n in "abcd"))
    assert done == list("abcd")


@pytest.mark.parametrize(
    ("cuda", "ptx"),
    [
        (10020, None),
        (11040, "7.4"),
        (12000, "8.0"),
        (12050, "8.5"),
        (12060, "8.5"),
        (12070, "8.6"),
        (13000, "9.0"),
    ],
)
def test_highest_ptx(cuda: int, ptx: str | None) -> None:
    assert driver.highest_ptx(cuda) == ptx


@pytest.mark.parametrize(("ptx", "branch"), [("6.0", 450), ("8.5", 555), ("8.6", 565), ("9.0", 580)])
def test_release_for_ptx(ptx: str, branch: int) -> None:
    release = driver.release_for_ptx(ptx)
    assert release is not None and release.driver == branch


def test_a_version_beyond_the_table() -> None:
    assert driver.release_for_ptx("42.0") is None
    assert driver.highest_ptx(42000) == status.PTX_RELEASES[-1].ptx


def test_the_release_table_rises() -> None:
    rows = [(row.cuda, status._order(row.ptx)) for row in status.PTX_RELEASES]
    assert rows == sorted(rows) and len({cuda for cuda, _ in rows}) == len(rows)


def test_the_release_table_agrees_with_the_grammar() -> None:
    text = (resources.grammar() / "targets.isa").read_text()
    stated = dict(re.findall(r"^driver (\d+) takes ptx ([\d.]+);", text, re.MULTILINE))
    ours = {str(row.driver): row.ptx for row in status.PTX_RELEASES if row.driver}
    both = stated.keys() & ours.keys()
    assert len(both) >= 15
    assert {branch: ours[branch] for branch in both} == {branch: stated[branch] for branch in both}
