"""Launches, parameter blocks, streams, events."""

from __future__ import annotations

import ctypes
import threading

import pytest
from standin import CUresult, Parameters, Standin

from ptxtile import driver
from ptxtile.errors import DriverError, OperandError

PTX = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n"
ONE = driver.Geometry((1, 1, 1), (32, 1, 1))


def function() -> driver.Function:
    return driver.load(PTX).function("k")


def test_parameters_arrive_at_their_offsets(standin: Standin) -> None:
    seen: list[object] = []

    def kernel(given: Parameters) -> None:
        seen.extend(
            [given.read(0, ctypes.c_ubyte), given.read(1, ctypes.c_double), given.read(2, ctypes.c_float)]
        )
        seen.append(given.raw(3, 8))

    standin.kernels["k"] = kernel
    standin.function_attributes["PARAMETERS"] = 4
    slots = [
        driver.Slot("B", 0, 1),
        driver.Slot("d", 8, 8),
        driver.Slot("f", 16, 4),
        driver.Slot("8s", 64, 8),
    ]
    launch = driver.Launcher(function(), ONE, slots)
    launch((7, 2.5, 0.5, b"tensor!!"))
    launch((8, -1.0, 0.25, b"map of A"))
    assert seen == [7, 2.5, 0.5, b"tensor!!", 8, -1.0, 0.25, b"map of A"]


def test_no_parameters_pass_a_null_array(standin: Standin) -> None:
    driver.Launcher(function(), ONE)()
    assert standin.named("cuLaunchKernelEx")[0][2] == 0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((), "0 values do not fit 1 parameters: pack_into expected 1 items for packing (got 0)"),
        ((300,), "1 values do not fit 1 parameters: ubyte format requires 0 <= number <= 255"),
    ],
)
def test_values_that_do_not_fit(standin: Standin, values: tuple[int, ...], message: str) -> None:
    """The reason is Python's own (`struct`), whose words for a byte changed with 3.12."""
    launch = driver.Launcher(function(), ONE, [driver.Slot("B", 0, 1)])
    with pytest.raises(OperandError) as caught:
        launch(values)
    assert str(caught.value).replace("'B' format", "ubyte format") == message
    assert standin.launches == []


@pytest.mark.parametrize(
    "slots", [[driver.Slot("Q", 0, 8), driver.Slot("I", 4, 4)], [driver.Slot("Q", 0, 4)]]
)
def test_slots_that_overlap_or_lie(slots: list[driver.Slot]) -> None:
    with pytest.raises(OperandError, match="does not fit its place"):
        driver.ParameterBlock(slots)


def test_geometry_reaches_the_driver(standin: Standin) -> None:
    shape = driver.Geometry((4, 3, 2), (8, 2, 1), (2, 1, 1), 1024, programmatic=True, cooperative=True)
    driver.Launcher(function(), shape)((), stream=7)
    ((_, config),) = standin.launches
    assert (config.gridDimX, config.gridDimY, config.gridDimZ) == (4, 3, 2)
    assert (config.blockDimX, config.blockDimY, config.blockDimZ) == (8, 2, 1)
    assert (config.sharedMemBytes, int(config.hStream), config.numAttrs) == (1024, 7, 3)
    cluster, programmatic, cooperative = config.attrs
    assert [attribute.id.name.rsplit("ATTRIBUTE_")[1] for attribute in config.attrs] == [
        "CLUSTER_DIMENSION",
        "PROGRAMMATIC_STREAM_SERIALIZATION",
        "COOPERATIVE",
    ]
    dim = cluster.value.clusterDim
    assert (dim.x, dim.y, dim.z) == (2, 1, 1)
    assert programmatic.value.programmaticStreamSerializationAllowed == cooperative.value.cooperative == 1


def test_static_cluster_needs_no_attribute(standin: Standin) -> None:
    standin.function_attributes.update(
        REQUIRED_CLUSTER_WIDTH=2, REQUIRED_CLUSTER_HEIGHT=1, REQUIRED_CLUSTER_DEPTH=1
    )
    for cluster in (None, (2, 1, 1)):
        driver.Launcher(function(), driver.Geometry((4, 1, 1), (32, 1, 1), cluster))()
        assert standin.launches[-1][1].numAttrs == 0
    with pytest.raises(DriverError) as caught:
        driver.Launcher(function(), driver.Geometry((4, 1, 1), (32, 1, 1), (4, 1, 1)))
    assert str(caught.value) == (
        "k was assembled for clusters of (2, 1, 1) (.reqnctapercluster) and cannot be launched with clusters of "
        "(4, 1, 1)"
    )


def test_large_cluster_is_allowed_explicitly_and_once(standin: Standin) -> None:
    entry = function()
    for _ in range(2):
        driver.Launcher(entry, driver.Geometry((16, 1, 1), (32, 1, 1), (16, 1, 1)))
    ((_, attribute, value),) = standin.named("cuFuncSetAttribute")
    assert (attribute.name, value) == ("CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED", 1)


def test_cluster_on_a_device_without(standin: Standin) -> None:
    standin.device_attributes.update(CLUSTER_LAUNCH=0, COMPUTE_CAPABILITY_MAJOR=8)
    with pytest.raises(DriverError) as caught:
        driver.Launcher(function(), driver.Geometry((2, 1, 1), (32, 1, 1), (2, 1, 1)))
    assert str(caught.value) == "Stand-in 90 (sm_80) has no clusters: they need sm_90 or later"


@pytest.mark.parametrize(
    ("static", "dynamic", "asks"),
    [(0, 49152, False), (0, 49153, True), (1, 49152, True), (1024, 48128, False), (0, 232448, True)],
)
def test_dynamic_shared_memory_counts_the_static_part(
    standin: Standin, static: int, dynamic: int, asks: bool
) -> None:
    standin.function_attributes["SHARED_SIZE_BYTES"] = static
    entry = function()
    driver.Launcher(entry, driver.Geometry((1, 1, 1), (32, 1, 1), dynamic_shared=dynamic))
    driver.Launcher(entry, driver.Geometry((1, 1, 1), (32, 1, 1), dynamic_shared=dynamic))
    calls = standin.named("cuFuncSetAttribute")
    assert [value for *_, value in calls] == ([dynamic] if asks else [])


def test_more_shared_memory_than_the_device_has(standin: Standin) -> None:
    standin.function_attributes["SHARED_SIZE_BYTES"] = 1024
    with pytest.raises(DriverError) as caught:
        driver.Launcher(function(), driver.Geometry((1, 1, 1), (32, 1, 1), dynamic_shared=232448))
    assert str(caught.value) == (
        "k needs 233472 bytes of shared memory a block (1024 static and 232448 dynamic), and Stand-in 90 has at most "
        "232448\n  what to do: ask for at most 231424 dynamic bytes"
    )


def test_block_larger_than_the_registers_allow(standin: Standin) -> None:
    standin.function_attributes.update(MAX_THREADS_PER_BLOCK=512, NUM_REGS=128)
    with pytest.raises(DriverError) as caught:
        driver.Launcher(function(), driver.Geometry((1, 1, 1), (32, 8, 4)))
    assert str(caught.value) == (
        "k can run with at most 512 threads a block (128 registers each), not 1024\n"
        "  what to do: use a smaller block, or bound the registers with .maxntid or .maxnreg"
    )


def test_failed_launch_describes_itself(standin: Standin) -> None:
    shape = driver.Geometry((2, 1, 1), (32, 1, 1), (2, 1, 1), 64)
    launch = driver.Launcher(function(), shape)
    standin.fail_next("cuLaunchKernelEx", CUresult.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
    with pytest.raises(DriverError) as caught:
        launch()
    assert str(caught.value) == (
        "could not launch k with grid (2, 1, 1), block (32, 1, 1), cluster (2, 1, 1), 64 bytes of dynamic shared "
        "memory: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701), launch out of resources\n"
        "  what to do: the block needs more registers or shared memory than an SM has: use fewer threads, fewer "
        "registers or less shared memory"
    )
    assert standin.contexts == []


def test_threads_share_a_launcher(standin: Standin) -> None:
    seen: list[int] = []
    standin.kernels["k"] = lambda given: seen.append(given.read(0, ctypes.c_uint64))
    standin.function_attributes["PARAMETERS"] = 1
    with driver.activate(0):
        launch = driver.Launcher(function(), ONE, [driver.Slot("Q", 0, 8)])
        threads = [threading.Thread(target=lambda n=n: [launch((n,)) for _ in range(50)]) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(seen) == sorted(list(range(4)) * 50)


class Foreign:
    def __init__(self, answer: object) -> None:
        self.answer = answer

    def __cuda_stream__(self) -> object:
        return self.answer


def test_stream_handles() -> None:
    assert driver.stream_handle(None) == 0
    assert driver.stream_handle(17) == 17
    assert driver.stream_handle(Foreign((0, 23))) == 23  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        ("s", "'s' is no stream: give a CUstream handle as an int, an object with __cuda_stream__, or None"),
        (
            True,
            "True is no stream: give a CUstream handle as an int, an object with __cuda_stream__, or None",
        ),
        (-1, "-1 is no stream: give a CUstream handle as an int, an object with __cuda_stream__, or None"),
        (Foreign((1, 23)), "__cuda_stream__ of Foreign gave (1, 23), not (0, handle)"),
        (Foreign(23), "__cuda_stream__ of Foreign gave 23, not (0, handle)"),
    ],
)
def test_what_is_no_stream(stream: object, message: str) -> None:
    with pytest.raises(OperandError) as caught:
        driver.stream_handle(stream)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_streams_and_events(standin: Standin) -> None:
    stream = driver.Stream()
    start, end = driver.Event(), driver.Event()
    start.record(stream)
    end.record(stream)
    end.synchronize()
    assert end.milliseconds_since(start) == 1.5
    stream.synchronize()
    assert driver.stream_handle(stream) == stream.handle
    assert not driver.is_capturing(stream.handle)
    standin.capturing.add(stream.handle)
    assert driver.is_capturing(stream.handle)
    for thing in (start, end, stream, stream):
        thing.close()
    assert (len(standin.named("cuStreamDestroy")), len(standin.named("cuEventDestroy"))) == (1, 2)
    with pytest.raises(DriverError, match="^the stream was closed: make another$"):
        stream.synchronize()
