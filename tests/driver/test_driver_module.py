"""Loading modules: logs, versions, functions, unloading."""

from __future__ import annotations

import pytest
from standin import CUresult, Standin

from ptxtile import driver
from ptxtile.driver import module as module_file
from ptxtile.errors import DriverError

PTX = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n"


def test_load_passes_both_logs_and_a_nul(standin: Standin) -> None:
    standin.info_log = "ptxas info    : Used 4 registers\n"
    with driver.load(PTX, optimization=2) as loaded:
        assert loaded.info == "ptxas info    : Used 4 registers"
        ((image, options),) = standin.named("cuModuleLoadDataEx")
        assert image == PTX.encode() + b"\0"
        assert set(options) == {
            "CU_JIT_INFO_LOG_BUFFER",
            "CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES",
            "CU_JIT_ERROR_LOG_BUFFER",
            "CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES",
            "CU_JIT_LOG_VERBOSE",
            "CU_JIT_OPTIMIZATION_LEVEL",
        }
        assert options["CU_JIT_OPTIMIZATION_LEVEL"] == 2
    assert standin.modules == {}


def test_a_cubin_is_passed_as_it_is(standin: Standin) -> None:
    driver.load(b"\x7fELF\0\1\2")
    assert standin.images == [b"\x7fELF\0\1\2"]


def test_failed_load_shows_log_and_versions(standin: Standin) -> None:
    standin.fail_next(
        "cuModuleLoadDataEx",
        CUresult.CUDA_ERROR_INVALID_PTX,
        error_log="ptxas application ptx input, line 4; error   : Unknown symbol 'x'\n",
        info_log="ptxas info    : 0 bytes gmem\n",
    )
    with pytest.raises(DriverError) as caught:
        driver.load(PTX)
    assert str(caught.value) == (
        "could not load the module on device 0: CUDA_ERROR_INVALID_PTX (218), invalid ptx\n"
        "  driver: CUDA 13.0, which takes PTX up to 9.0\n"
        "  device 0: Stand-in 90, sm_90\n"
        "  module: PTX 8.0 for sm_90\n"
        "  what to do: the driver's assembler refused the text: its log says which line\n"
        "  log:\n"
        "    ptxas application ptx input, line 4; error   : Unknown symbol 'x'\n"
        "    ptxas info    : 0 bytes gmem"
    )
    assert caught.value.log.startswith("ptxas application ptx input, line 4")


def test_version_too_new_for_the_driver() -> None:
    made = Standin(cuda_version=12040)
    with driver.use(made):
        made.fail_next("cuModuleLoadDataEx", CUresult.CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
        with pytest.raises(DriverError) as caught:
            driver.load(PTX.replace("8.0", "8.7"))
    assert str(caught.value) == (
        "could not load the module on device 0: CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222), unsupported ptx version\n"
        "  driver: CUDA 12.4, which takes PTX up to 8.4\n"
        "  device 0: Stand-in 90, sm_90\n"
        "  module: PTX 8.7 for sm_90\n"
        "  what to do: PTX 8.7 needs a driver of CUDA 12.8 (branch 570) or later: pin ptx_version='8.4' if the "
        "module's forms allow it, update the driver, or load a cubin from `ptxtile.assemble`"
    )


def test_a_log_that_fills_its_buffer_says_so(standin: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_file, "LOG_BYTES", 32)
    standin.fail_next("cuModuleLoadDataEx", CUresult.CUDA_ERROR_INVALID_PTX, error_log="x" * 100)
    with pytest.raises(DriverError) as caught:
        driver.load(PTX)
    assert caught.value.log == "x" * 31 + "\n(the log was cut off at 32 bytes)"


def test_function_facts(standin: Standin) -> None:
    standin.function_attributes.update(NUM_REGS=40, LOCAL_SIZE_BYTES=16, SHARED_SIZE_BYTES=128)
    function = driver.load(PTX).function("k")
    assert function.facts == driver.FunctionFacts(
        registers=40,
        local_bytes=16,
        static_shared=128,
        constant_bytes=0,
        max_threads=1024,
        ptx_version=80,
        binary_version=90,
        cluster=None,
    )
    assert function.module.function("k") is function


def test_absent_function(standin: Standin) -> None:
    with pytest.raises(DriverError) as caught:
        driver.load(PTX).function("other")
    assert str(caught.value) == (
        "could not find the entry 'other': CUDA_ERROR_NOT_FOUND (500), not found\n"
        "  what to do: no such name in the module: an entry must be .visible .entry"
    )


def test_symbol(standin: Standin) -> None:
    assert driver.load(PTX).symbol("table") == (4096, 16)


def test_unload_twice_and_use_after(standin: Standin) -> None:
    loaded = driver.load(PTX)
    loaded.unload()
    loaded.unload()
    assert len(standin.named("cuModuleUnload")) == 1
    with pytest.raises(DriverError, match="^the module was unloaded: load it again$"):
        loaded.function("k")


def test_unload_does_not_hide_the_first_error(standin: Standin) -> None:
    standin.fail_next("cuModuleUnload", CUresult.CUDA_ERROR_DEINITIALIZED)
    with pytest.raises(ZeroDivisionError), driver.load(PTX):
        raise ZeroDivisionError
    standin.fail_next("cuModuleUnload", CUresult.CUDA_ERROR_ILLEGAL_ADDRESS)
    with pytest.raises(DriverError, match="CUDA_ERROR_ILLEGAL_ADDRESS"), driver.load(PTX):
        pass
