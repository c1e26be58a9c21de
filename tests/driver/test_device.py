"""The driver layer on a real GPU: skipped, with the reason, where there is none."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterator

import pytest

from ptxtile import driver
from ptxtile.errors import DriverError


def _why_not() -> str:
    try:
        driver.device_count()
    except DriverError as error:
        return str(error).splitlines()[0]
    return ""


pytestmark = pytest.mark.skipif(bool(_why_not()), reason=_why_not() or "there is a GPU")

SCALE = """.version 7.0
.target sm_75
.address_size 64
.visible .entry scale(.param .u64 p, .param .f32 k, .param .u32 n)
{
.reg .pred %q; .reg .b32 %r<6>; .reg .b64 %a<4>; .reg .f32 %f<4>;
ld.param.u64 %a0, [p]; ld.param.f32 %f0, [k]; ld.param.u32 %r0, [n];
mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
mad.lo.u32 %r4, %r1, %r2, %r3;
setp.ge.u32 %q, %r4, %r0;
@%q bra done;
mul.wide.u32 %a1, %r4, 4; add.u64 %a2, %a0, %a1;
ld.global.f32 %f1, [%a2]; mul.rn.f32 %f2, %f1, %f0; st.global.f32 [%a2], %f2;
done: ret;
}
"""
SHARED = """.version 7.0
.target sm_75
.address_size 64
.extern .shared .align 16 .b8 pool[];
.visible .entry far(.param .u64 p, .param .u32 offset)
{
.reg .b32 %r<5>; .reg .b64 %a;
ld.param.u64 %a, [p]; ld.param.u32 %r0, [offset];
mov.u32 %r1, pool; add.u32 %r2, %r1, %r0;
st.shared.u32 [%r2], 77; ld.shared.u32 %r3, [%r2]; st.global.u32 [%a], %r3;
ret;
}
"""
CLUSTER = """.version 7.8
.target sm_90
.address_size 64
.visible .entry rank(.param .u64 p)
{
.reg .b32 %r<4>; .reg .b64 %a<3>;
ld.param.u64 %a0, [p]; mov.u32 %r0, %cluster_ctarank; mov.u32 %r1, %ctaid.x;
mul.wide.u32 %a1, %r1, 4; add.u64 %a2, %a0, %a1; st.global.u32 [%a2], %r0;
ret;
}
"""
P64, F32, U32 = driver.Slot("Q", 0, 8), driver.Slot("f", 8, 4), driver.Slot("I", 12, 4)


@pytest.fixture
def stream() -> Iterator[driver.Stream]:
    made = driver.Stream()
    yield made
    made.close()


def _read(buffer: driver.DeviceBuffer, kind: type, count: int, stream: driver.Stream) -> list[float]:
    host = (kind * count)()
    driver.copy_from_device(
        ctypes.addressof(host), buffer.address, ctypes.sizeof(host), ordinal=0, stream=stream.handle
    )
    stream.synchronize()
    return list(host)


def test_launch_with_scalars_and_a_tail(stream: driver.Stream) -> None:
    n = 1000
    host = (ctypes.c_float * n)(*range(n))
    buffer = driver.DeviceBuffer(4 * n)
    driver.copy_to_device(buffer.address, ctypes.addressof(host), 4 * n, ordinal=0, stream=stream.handle)
    with driver.load(SCALE) as module:
        launch = driver.Launcher(
            module.function("scale"), driver.Geometry((8, 1, 1), (128, 1, 1)), [P64, F32, U32]
        )
        launch((buffer.address, 3.0, n - 1), stream.handle)
        assert _read(buffer, ctypes.c_float, n, stream) == [3.0 * i for i in range(n - 1)] + [n - 1]


def test_facts_of_a_loaded_function() -> None:
    with driver.load(SCALE) as module:
        facts = module.function("scale").facts
    assert facts.registers > 0 and facts.local_bytes == 0 and facts.static_shared == 0
    assert facts.binary_version == int(driver.device(0).target.removeprefix("sm_"))


def test_log_of_a_bad_module() -> None:
    with pytest.raises(DriverError) as caught:
        driver.load(SCALE.replace("mul.rn.f32 %f2", "mul.rn.f32 %oops"))
    assert caught.value.name == "CUDA_ERROR_INVALID_PTX"
    assert "%oops" in caught.value.log and "line 13" in caught.value.log
    assert f"driver: CUDA {driver.driver_version()}" in str(caught.value)


def test_module_newer_than_the_driver() -> None:
    with pytest.raises(DriverError) as caught:
        driver.load(SCALE.replace(".version 7.0", ".version 99.0"))
    assert caught.value.name == "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"
    assert "module: PTX 99.0 for sm_75" in str(caught.value)


def test_hundred_kib_of_dynamic_shared_memory(stream: driver.Stream) -> None:
    size = 100 * 1024
    if driver.device(0).shared_per_block_optin < size:
        pytest.skip("the device has less than 100 KiB of shared memory a block")
    buffer = driver.DeviceBuffer(4)
    with driver.load(SHARED) as module:
        shape = driver.Geometry((1, 1, 1), (1, 1, 1), dynamic_shared=size)
        launch = driver.Launcher(module.function("far"), shape, [P64, driver.Slot("I", 8, 4)])
        launch((buffer.address, size - 4), stream.handle)
        assert _read(buffer, ctypes.c_uint32, 1, stream) == [77]


def test_cluster_launch(stream: driver.Stream) -> None:
    if not driver.device(0).has_clusters:
        pytest.skip("the device has no clusters")
    buffer = driver.DeviceBuffer(4 * 8)
    with driver.load(CLUSTER) as module:
        shape = driver.Geometry((8, 1, 1), (32, 1, 1), (4, 1, 1))
        driver.Launcher(module.function("rank"), shape, [P64])((buffer.address,), stream.handle)
        assert _read(buffer, ctypes.c_uint32, 8, stream) == [0, 1, 2, 3] * 2
    fixed = CLUSTER.replace("(.param .u64 p)", "(.param .u64 p) .reqnctapercluster 2")
    with driver.load(fixed) as module:
        function = module.function("rank")
        assert function.facts.cluster == (2, 1, 1)
        driver.Launcher(function, driver.Geometry((8, 1, 1), (32, 1, 1)), [P64])(
            (buffer.address,), stream.handle
        )
        assert _read(buffer, ctypes.c_uint32, 8, stream) == [0, 1] * 4


def test_programmatic_launch(stream: driver.Stream) -> None:
    buffer = driver.DeviceBuffer(4 * 8)
    with driver.load(CLUSTER) as module:
        shape = driver.Geometry((8, 1, 1), (32, 1, 1), programmatic=True)
        launch = driver.Launcher(module.function("rank"), shape, [P64])
        for _ in range(3):
            launch((buffer.address,), stream.handle)
        assert _read(buffer, ctypes.c_uint32, 8, stream) == [0] * 8


def test_events_and_the_cost_of_a_launch(stream: driver.Stream) -> None:
    buffer = driver.DeviceBuffer(4)
    start, end = driver.Event(), driver.Event()
    entry = "(" + ", ".join(f".param .u64 p{i}" for i in range(16)) + ")"
    text = f".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry none{entry} {{ ret; }}\n"
    with driver.load(text) as module, driver.activate(0):
        slots = [driver.Slot("Q", 8 * i, 8) for i in range(16)]
        launch = driver.Launcher(module.function("none"), driver.Geometry((1, 1, 1), (1, 1, 1)), slots)
        values = (buffer.address,) * 16
        start.record(stream)
        best = 1.0
        for _ in range(20):
            begin = time.perf_counter()
            for _ in range(50):
                launch(values, stream.handle)
            best = min(best, (time.perf_counter() - begin) / 50)
            stream.synchronize()
        end.record(stream)
        end.synchronize()
        assert end.milliseconds_since(start) > 0
    print(f"one launch with 16 arguments: {best * 1e6:.2f} µs")


def test_assembled_cubin_runs(stream: driver.Stream) -> None:
    try:
        cubin = driver.assemble(CLUSTER, driver.device(0).target)
    except Exception as error:
        pytest.skip(str(error).splitlines()[0])
    buffer = driver.DeviceBuffer(4)
    with driver.load(cubin) as module:
        shape = driver.Geometry((1, 1, 1), (1, 1, 1))
        driver.Launcher(module.function("rank"), shape, [P64])((buffer.address,), stream.handle)
        assert _read(buffer, ctypes.c_uint32, 1, stream) == [0]


def test_launches_are_captured_into_a_graph(stream: driver.Stream) -> None:
    host = (ctypes.c_float * 4)(1, 2, 3, 4)
    buffer = driver.DeviceBuffer(16)
    driver.copy_to_device(buffer.address, ctypes.addressof(host), 16, ordinal=0, stream=stream.handle)
    with driver.load(SCALE) as module, driver.activate(0) as state:
        shape = driver.Geometry((1, 1, 1), (32, 1, 1))
        launch = driver.Launcher(module.function("scale"), shape, [P64, F32, U32])
        cuda = state.binding
        handle = cuda.CUstream(stream.handle)
        assert not driver.is_capturing(stream.handle)
        mode = cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        assert int(cuda.cuStreamBeginCapture(handle, mode)[0]) == 0
        assert driver.is_capturing(stream.handle)
        for _ in range(2):
            launch((buffer.address, 2.0, 4), stream.handle)
        result, graph = cuda.cuStreamEndCapture(handle)
        assert int(result) == 0
        result, executable = cuda.cuGraphInstantiate(graph, 0)
        assert int(result) == 0
        assert _read(buffer, ctypes.c_float, 4, stream) == [1, 2, 3, 4]
        for _ in range(2):
            assert int(cuda.cuGraphLaunch(executable, handle)[0]) == 0
        assert _read(buffer, ctypes.c_float, 4, stream) == [16, 32, 48, 64]
        cuda.cuGraphExecDestroy(executable)
        cuda.cuGraphDestroy(graph)


def test_the_current_context_stays_what_it_was() -> None:
    current = driver.session().binding.cuCtxGetCurrent
    before = int(current()[1])
    driver.DeviceBuffer(4).free()
    assert int(current()[1]) == before
