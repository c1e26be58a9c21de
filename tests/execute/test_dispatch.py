"""Running an entry on the stand-in driver, whose kernels are Python functions."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
from standin import CUresult, Parameters, Standin

from ptxtile import driver, execute
from ptxtile.errors import DriverError, OperandError
from ptxtile.execute import Entry, dispatch, geometry, launch
from ptxtile.execute.logs import AssemblerWarning
from ptxtile.ir.module import Function, Module, Parameter

TEXT = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n"


def entry(*parameters: str) -> Entry:
    """An entry with these parameter types; its text is fixed, since the stand-in does not read it."""
    listed = tuple(Parameter(f"p{index}", name) for index, name in enumerate(parameters))
    made = Entry(Module("8.0", "sm_90", (Function("k", True, listed, linkage="visible"),)), "k")
    made._text = TEXT
    return made


def start(
    standin: Standin, taken: Entry, *arguments: object, kernel: Callable[[Parameters], None], **more: object
) -> object:
    standin.function_attributes["PARAMETERS"] = len(taken.places)
    standin.kernels["k"] = kernel
    return launch(taken, arguments, geometry(taken.function, 1, 32), **more)  # type: ignore[arg-type]


def floats(given: Parameters, index: int, count: int) -> ctypes.Array[ctypes.c_float]:
    return (ctypes.c_float * count).from_address(given.read(index, ctypes.c_uint64))


def test_host_arrays_go_in_and_come_back(standin: Standin) -> None:
    def scale(given: Parameters) -> None:
        a, b = floats(given, 0, 4), floats(given, 1, 4)
        k = given.read(2, ctypes.c_float)
        b[:] = [k * x for x in a]

    x, y = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    assert start(standin, entry("u64", "u64", "f32"), x, y, 2.0, kernel=scale) == 0
    assert y.tolist() == [0, 2, 4, 6]
    assert standin.named("cuStreamSynchronize")


def test_device_arrays_are_used_in_place_and_nothing_waits(standin: Standin) -> None:
    seen: list[int] = []
    taken = entry("u64", "u32")
    a = execute.zeros(4, "float32", device=0)
    before = len(standin.calls)
    for _ in range(2):
        start(
            standin, taken, a, 3, kernel=lambda given: seen.append(given.read(0, ctypes.c_uint64)), stream=5
        )
    assert seen == [a.address] * 2
    names = [name for name, _ in standin.calls[before:]]
    assert names.count("cuModuleLoadDataEx") == 1 and names.count("cuLaunchKernelEx") == 2
    assert not [name for name in names if "Synchronize" in name or "Mem" in name]


def test_aliased_arrays_share_memory(standin: Standin) -> None:
    base = np.arange(12, dtype=np.float32)
    left, right, apart = base[:8], base[4:], np.zeros(2, np.float32)
    addresses: list[int] = []

    def kernel(given: Parameters) -> None:
        addresses.extend(given.read(index, ctypes.c_uint64) for index in range(4))
        floats(given, 0, 8)[7] = 100.0
        floats(given, 1, 8)[0] = -1.0

    start(standin, entry("u64", "u64", "u64", "u64"), left, right, apart, left, kernel=kernel)
    assert addresses[1] - addresses[0] == 16 and addresses[3] == addresses[0]
    assert base.tolist() == [0, 1, 2, 3, -1, 5, 6, 100, 8, 9, 10, 11]


def test_empty_arrays_have_an_address(standin: Standin) -> None:
    seen: list[int] = []
    x = np.zeros((0, 3), np.float32)
    start(standin, entry("u64"), x, kernel=lambda given: seen.append(given.read(0, ctypes.c_uint64)))
    assert seen[0]


def test_arrays_that_are_not_writable(standin: Standin) -> None:
    def spoil(given: Parameters) -> None:
        floats(given, 0, 2)[0] = 9.0

    x = np.zeros(2, np.float32)
    x.flags.writeable = False
    start(standin, entry("u64"), x, kernel=lambda given: None)
    with pytest.raises(OperandError) as caught:
        start(standin, entry("u64"), x, kernel=spoil)
    assert str(caught.value) == (
        "the kernel wrote to argument 1 ('p0', .u64), an array that is not writable; the array was left as it was"
    )
    assert x.tolist() == [0, 0]


def test_memory_goes_back_to_the_pool(standin: Standin) -> None:
    x = np.zeros(300, np.float32)
    for _ in range(3):
        start(standin, entry("u64"), x, kernel=lambda given: None)
    assert len(standin.named("cuMemAlloc")) == 1
    standin.fail_next("cuLaunchKernelEx", CUresult.CUDA_ERROR_INVALID_VALUE)
    with pytest.raises(DriverError, match="could not launch k with grid"):
        start(standin, entry("u64"), x, kernel=lambda given: None)
    start(standin, entry("u64"), x, kernel=lambda given: None)
    assert len(standin.named("cuMemAlloc")) == 1


def test_a_fault_keeps_its_error_and_the_lost_memory(standin: Standin) -> None:
    x = np.zeros(4, np.float32)
    for _ in range(2):
        standin.fail_next("cuStreamSynchronize", CUresult.CUDA_ERROR_ILLEGAL_ADDRESS)
    with pytest.raises(DriverError) as caught:
        start(standin, entry("u64"), x, kernel=lambda given: None)
    assert str(caught.value) == (
        "could not finish the work on the stream: CUDA_ERROR_ILLEGAL_ADDRESS (700), illegal address\n"
        '  what to do: a kernel touched memory that is not its own; run it with device="emulator" to see where. This '
        "CUDA context is lost: start a new process"
    )


def test_host_arrays_in_a_capture(standin: Standin) -> None:
    standin.capturing.add(9)
    with pytest.raises(DriverError) as caught:
        start(standin, entry("u64"), np.zeros(4), kernel=lambda given: None, stream=9)
    assert str(caught.value) == (
        "the stream is being captured into a graph, and host arrays cannot be copied in a capture\n"
        "  what to do: pass device arrays (ptxtile.asarray)"
    )
    assert standin.launches == []
    a = execute.zeros(4, "float32", device=0)
    start(standin, entry("u64"), a, kernel=lambda given: None, stream=9)
    assert len(standin.launches) == 1


def test_a_stream_that_an_array_names_is_waited_for(standin: Standin) -> None:
    class Foreign:
        def __init__(self, stream: int) -> None:
            self.__cuda_array_interface__ = {
                "shape": (2,),
                "typestr": "<f4",
                "data": (8192, False),
                "version": 3,
                "stream": stream,
            }

    start(standin, entry("u64"), Foreign(5), kernel=lambda given: None, stream=5)
    assert not standin.named("cuStreamWaitEvent")
    start(standin, entry("u64"), Foreign(7), kernel=lambda given: None, stream=5)
    ((stream, _, _),) = standin.named("cuStreamWaitEvent")
    assert int(stream) == 5
    assert int(standin.named("cuEventRecord")[0][1]) == 7


def test_an_array_on_another_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(
        "PTXTILE_DEVICE", raising=False
    )  # the array's own device decides where nothing else is said
    made = Standin(devices=2)
    with driver.use(made):
        a = execute.zeros(2, "int8", device=1)
        with pytest.raises(OperandError) as caught:
            start(made, entry("u64"), a, kernel=lambda given: None, device=0)
        assert str(caught.value) == (
            "argument 1 ('p0', .u64) is on device 1, and the launch is on device 0: pass device=1, or copy the array"
        )
        assert start(made, entry("u64"), a, kernel=lambda given: None) == 1


def test_a_device_array_on_the_emulator(standin: Standin) -> None:
    a = execute.zeros(2, "int8", device=0)
    with pytest.raises(OperandError) as caught:
        start(standin, entry("u64"), a, kernel=lambda given: None, device="emulator")
    assert str(caught.value) == (
        "argument 1 ('p0', .u64) is on a CUDA device, and the emulator runs on the CPU: pass a host array"
    )


def test_an_entry_that_is_not_there() -> None:
    module = Module("8.0", "sm_90", (Function("k", True), Function("f", False)))
    for name in ("other", "f"):
        with pytest.raises(OperandError) as caught:
            Entry(module, name)
        assert str(caught.value) == f"the module has no entry {name!r}; it has k"
    with pytest.raises(OperandError) as caught:
        Entry(7, "k")  # type: ignore[arg-type]
    assert str(caught.value) == "a module is a ptxtile.Module or PTX text, not int"


def test_the_log_of_a_load_becomes_warnings(standin: Standin) -> None:
    standin.info_log = (
        "ptxas info    : (C7510) Potential Performance Loss: wgmma serialized in function 'k'\n"
    )
    with pytest.warns(AssemblerWarning, match=r"^\(C7510\) Potential Performance Loss: wgmma serialized"):
        start(standin, entry("u32"), 1, kernel=lambda given: None)
    start(standin, entry("u32"), 1, kernel=lambda given: None)  # loaded before: nothing is said again


def test_threads_and_sessions_do_not_mix(standin: Standin) -> None:
    taken = entry("u32")
    start(standin, taken, 1, kernel=lambda given: None)
    other = Standin()
    with driver.use(other):
        start(other, taken, 1, kernel=lambda given: None)
    assert len(other.launches) == 1


@pytest.mark.parametrize(
    ("types", "given"),
    [
        (("u64", "u32", "f32", "f64"), ("array", 7, 0.1, 0.1)),
        (("s64", "s8", "u8"), ("array", -128, 255)),
        (("b64", "b32"), ("array", -1)),
        (("u32", "f32"), (True, 3)),
        (("f32",), (float("inf"),)),
    ],
)
def test_the_quick_way_and_the_careful_way_agree(
    standin: Standin, monkeypatch: pytest.MonkeyPatch, types: tuple[str, ...], given: tuple[object, ...]
) -> None:
    array = execute.zeros(2, "float32", device=0)
    arguments = [array if value == "array" else value for value in given]
    seen: list[list[bytes]] = []
    taken = entry(*types)

    def kernel(passed: Parameters) -> None:
        seen.append([passed.raw(place.index, place.size) for place in taken.places])

    start(standin, taken, *arguments, kernel=kernel)
    monkeypatch.setattr(dispatch, "_quick_values", lambda *ignored: None)
    start(standin, taken, *arguments, kernel=kernel)
    assert seen[0] == seen[1]


def test_the_quick_way_refuses_what_the_careful_way_refuses(standin: Standin) -> None:
    for type_name, value in (("f32", 3.41e38), ("u32", -1), ("u32", 1.0), ("u8", 256)):
        with pytest.raises(OperandError, match=r"^argument 1 "):
            start(standin, entry(type_name), value, kernel=lambda given: None)


def test_an_address_that_breaks_its_promise(standin: Standin) -> None:
    listed = tuple(Parameter(name, "u64", pointer=True, pointer_align=16) for name in "AB")
    taken = Entry(Module("8.0", "sm_90", (Function("k", True, listed),)), "k")
    taken._text = TEXT
    base = np.zeros(16, np.float32)
    start(standin, taken, base[:8], base[4:], kernel=lambda given: None)
    with pytest.raises(OperandError) as caught:
        start(standin, taken, base[:8], base[1:], kernel=lambda given: None)
    (address,) = standin.memory
    assert str(caught.value) == (
        f"argument 2 ('B', .u64) starts at device address {address + 4:#x}, and the kernel takes addresses that are "
        "multiples of 16 (.ptr .align 16): pass a copy"
    )
    with pytest.raises(OperandError, match=r"^argument 1 \('A', .u64\) starts at device address 0x2008, "):
        start(standin, taken, _foreign(8200), base, kernel=lambda given: None)


def _foreign(address: int) -> object:
    made = type("Foreign", (), {})()
    made.__cuda_array_interface__ = {"shape": (2,), "typestr": "<f4", "data": (address, False), "version": 3}
    return made


def test_run_keeps_entries(standin: Standin) -> None:
    module = Module("8.0", "sm_90", (Function("k", True, linkage="visible"),))
    for _ in range(2):
        execute.run(module, "k", (), grid=2, block=32)
    assert len(standin.launches) == 2 and len(standin.named("cuModuleLoadDataEx")) == 1
    assert execute.entry_of(module, "k") is execute.entry_of(module, "k")
    assert execute.entry_of(TEXT, "k") is execute.entry_of(TEXT, "k")


def test_run_checks_what_it_is_given(standin: Standin) -> None:
    module = Module("8.0", "sm_90", (Function("k", True, linkage="visible"),))
    with pytest.raises(OperandError, match=r"^grid \(0, 1, 1\): grid.x must be 1 to 2147483647, not 0$"):
        execute.run(module, "k", (), grid=0, block=32)
    with pytest.raises(OperandError, match=r"^k takes 0 arguments \(none\), not 1$"):
        execute.run(module, "k", (1,), grid=1, block=32)
    with pytest.raises(DriverError, match=r"^there is no device 3: "):
        execute.run(module, "k", (), grid=1, block=32, device=3)
    with pytest.raises(OperandError, match=r"^'x' is no stream: "):
        execute.run(module, "k", (), grid=1, block=32, stream="x")


# --- targets of one architecture --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("target", "device", "due"),
    [
        ("sm_100f", "sm_90", "sm_90a"),
        ("sm_90a", "sm_90", None),
        ("sm_100f", "sm_100", None),
        ("sm_100f", "sm_103", None),
        ("sm_90a", "sm_120", "sm_120a"),
        ("sm_80", "sm_90", None),
    ],
)
def test_a_module_of_another_family_is_made_for_the_device(monkeypatch, target, device, due):
    monkeypatch.setattr(dispatch, "choose", lambda *_: 0)
    monkeypatch.setattr(dispatch.driver, "device", lambda _: SimpleNamespace(target=device))
    assert dispatch.target_here(target, (), None) == due


def test_the_emulator_runs_every_target():
    assert dispatch.target_here("sm_100f", (), "emulator") is None
