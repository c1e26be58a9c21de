"""A stand-in for `cuda.bindings.driver`: the entry points that ptxtile calls, on host memory, without a GPU.

`ptxtile.driver.use(Standin())` puts it in place. Device addresses are addresses of host buffers, so copies are
real; a launch calls the Python function registered in `kernels` under the entry's name, or does nothing. Every
call is recorded in `calls`; `fail_next` makes the next call of an entry point fail.

It is as strict as the real binding where a wrong call would be noticed late: handles are objects of their own
classes, options are enum members, log buffers are writable and zeroed, PTX ends in NUL, work needs a current
context.
"""

from __future__ import annotations

import ctypes
import enum
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

from standin.constants import DEVICE, FUNCTION, CUresult, enums

__all__ = ["CUresult", "Parameters", "Standin"]


class Handle:
    """An opaque handle: `CUstream(7)`, `int(handle)`."""

    def __init__(self, value: int = 0) -> None:
        self.value = int(value)

    def __int__(self) -> int:
        return self.value

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and int(other) == self.value  # type: ignore[call-overload]

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value})"


class CUcontext(Handle): ...


class CUmodule(Handle): ...


class CUfunction(Handle): ...


class CUstream(Handle): ...


class CUevent(Handle): ...


class CUdeviceptr(Handle): ...


class CUdevice(Handle): ...


class Dim:
    """A `clusterDim` inside an attribute value."""

    x = y = z = 0


class AttributeValue:
    """The union of a launch attribute."""

    def __init__(self) -> None:
        self.clusterDim = Dim()
        self.programmaticStreamSerializationAllowed = 0
        self.cooperative = 0


class CUlaunchAttribute:
    def __init__(self) -> None:
        self.id: enum.IntEnum | None = None
        self.value = AttributeValue()


class CUlaunchConfig:
    def __init__(self) -> None:
        self.gridDimX = self.gridDimY = self.gridDimZ = 0
        self.blockDimX = self.blockDimY = self.blockDimZ = 0
        self.sharedMemBytes = 0
        self.hStream = CUstream(0)
        self.attrs: list[CUlaunchAttribute] = []
        self.numAttrs = 0


class Parameters:
    """What a launch hands to a kernel function: the raw parameters and the geometry."""

    def __init__(self, pointers: list[int], config: CUlaunchConfig) -> None:
        self.pointers = pointers
        self.config = config

    def read(self, index: int, kind: Any) -> Any:
        """Parameter `index` as a ctypes type; a c_void_p gives the device address."""
        return kind.from_address(self.pointers[index]).value

    def raw(self, index: int, size: int) -> bytes:
        return ctypes.string_at(self.pointers[index], size)


class Standin(ModuleType):
    """See the module's docstring. `cuda_version` as cuDriverGetVersion counts; `devices` how many it shows."""

    CUresult = CUresult
    CUcontext, CUmodule, CUfunction, CUdevice = CUcontext, CUmodule, CUfunction, CUdevice
    CUstream, CUevent, CUdeviceptr = CUstream, CUevent, CUdeviceptr
    CUlaunchConfig, CUlaunchAttribute = CUlaunchConfig, CUlaunchAttribute

    def __init__(self, *, cuda_version: int = 13000, devices: int = 1) -> None:
        super().__init__("standin")
        self.cuda_version = cuda_version
        self.devices = devices
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.failures: dict[str, list[tuple[CUresult, str, str]]] = {}
        self.kernels: dict[str, Callable[[Parameters], None]] = {}
        self.launches: list[tuple[str, CUlaunchConfig]] = []
        self.device_attributes: dict[str, int] = dict(DEVICE)
        self.function_attributes: dict[str, int] = dict(FUNCTION)
        self.info_log = ""
        self.memory: dict[int, Any] = {}
        self.modules: dict[int, list[str]] = {}
        self.images: list[bytes] = []
        self.functions: dict[int, str] = {}
        self.contexts: list[CUcontext] = []
        self.capturing: set[int] = set()
        self._next = 100
        for name, members in enums().items():
            setattr(self, name, members)

    # What tests use.
    def fail_next(self, entry: str, result: CUresult, *, error_log: str = "", info_log: str = "") -> None:
        """Make the next call of `entry` return `result`, with these logs if it is a load."""
        self.failures.setdefault(entry, []).append((result, error_log, info_log))

    def named(self, entry: str) -> list[tuple[Any, ...]]:
        """The arguments of every recorded call of `entry`."""
        return [arguments for name, arguments in self.calls if name == entry]

    def _enter(self, entry: str, *arguments: Any, context: bool = True) -> CUresult:
        self.calls.append((entry, arguments))
        waiting = self.failures.get(entry)
        if waiting:
            return waiting.pop(0)[0]
        if context and not self.contexts:
            return CUresult.CUDA_ERROR_INVALID_CONTEXT
        return CUresult.CUDA_SUCCESS

    def _number(self) -> int:
        self._next += 1
        return self._next

    # Start, devices, contexts.
    def cuInit(self, flags: int) -> tuple[CUresult]:
        return (self._enter("cuInit", flags, context=False),)

    def cuDriverGetVersion(self) -> tuple[CUresult, int]:
        return self._enter("cuDriverGetVersion", context=False), self.cuda_version

    def cuGetErrorString(self, result: CUresult) -> tuple[CUresult, bytes | None]:
        if not isinstance(result, CUresult):
            raise TypeError("not a CUresult")
        return CUresult.CUDA_SUCCESS, result.name.removeprefix("CUDA_ERROR_").replace(
            "_", " "
        ).lower().encode()

    def cuDeviceGetCount(self) -> tuple[CUresult, int]:
        return self._enter("cuDeviceGetCount", context=False), self.devices

    def cuDeviceGet(self, ordinal: int) -> tuple[CUresult, CUdevice]:
        return self._enter("cuDeviceGet", ordinal, context=False), CUdevice(ordinal)

    def cuDeviceGetName(self, length: int, device: CUdevice) -> tuple[CUresult, bytes]:
        return self._enter("cuDeviceGetName", length, device, context=False), b"Stand-in 90".ljust(
            length, b"\0"
        )

    def cuDeviceGetAttribute(self, attribute: enum.IntEnum, device: CUdevice) -> tuple[CUresult, int]:
        result = self._enter("cuDeviceGetAttribute", attribute, device, context=False)
        return result, self.device_attributes[attribute.name.removeprefix("CU_DEVICE_ATTRIBUTE_")]

    def cuDevicePrimaryCtxRetain(self, device: CUdevice) -> tuple[CUresult, CUcontext]:
        return self._enter("cuDevicePrimaryCtxRetain", device, context=False), CUcontext(1000 + int(device))

    def cuCtxGetCurrent(self) -> tuple[CUresult, CUcontext]:
        return CUresult.CUDA_SUCCESS, self.contexts[-1] if self.contexts else CUcontext(0)

    def cuCtxGetDevice(self) -> tuple[CUresult, CUdevice]:
        return self._enter("cuCtxGetDevice"), CUdevice(int(self.contexts[-1]) - 1000 if self.contexts else 0)

    def cuCtxPushCurrent(self, context: CUcontext) -> tuple[CUresult]:
        self.contexts.append(context)
        return (CUresult.CUDA_SUCCESS,)

    def cuCtxPopCurrent(self) -> tuple[CUresult, CUcontext]:
        return CUresult.CUDA_SUCCESS, self.contexts.pop()

    def cuCtxSynchronize(self) -> tuple[CUresult]:
        return (self._enter("cuCtxSynchronize"),)

    # Modules and functions.
    def cuModuleLoadDataEx(
        self, image: bytes, count: int, options: list[enum.IntEnum], values: list[Any]
    ) -> tuple[CUresult, CUmodule]:
        given = dict(zip(options, values, strict=True))
        names = {option.name: value for option, value in given.items()}
        assert count == len(options) == len(given)
        waiting = self.failures.get("cuModuleLoadDataEx")
        logs = waiting[0][1:] if waiting else ("", self.info_log)
        for name, log in zip(("ERROR", "INFO"), logs, strict=True):
            buffer = names[f"CU_JIT_{name}_LOG_BUFFER"]
            size = names[f"CU_JIT_{name}_LOG_BUFFER_SIZE_BYTES"]
            assert isinstance(buffer, bytearray) and size == len(buffer) and not any(buffer), (
                "log buffers are zeroed"
            )
            part = log.encode()[: size - 1]
            buffer[: len(part)] = part
        result = self._enter("cuModuleLoadDataEx", image, names)
        if not image.startswith(b"\x7fELF"):
            assert image.endswith(b"\0") and image.count(b"\0") == 1, "PTX ends in one NUL"
        handle = CUmodule(self._number())
        self.images.append(image)
        self.modules[int(handle)] = re.findall(r"\.entry\s+([\w$]+)", image.decode(errors="replace"))
        return result, handle

    def cuModuleUnload(self, module: CUmodule) -> tuple[CUresult]:
        result = self._enter("cuModuleUnload", module)
        if not result:
            del self.modules[int(module)]
        return (result,)

    def cuModuleGetFunction(self, module: CUmodule, name: bytes) -> tuple[CUresult, CUfunction]:
        result = self._enter("cuModuleGetFunction", module, name)
        if not result and name.decode() not in self.modules[int(module)]:
            result = CUresult.CUDA_ERROR_NOT_FOUND
        handle = CUfunction(self._number())
        self.functions[int(handle)] = name.decode()
        return result, handle

    def cuModuleGetGlobal(self, module: CUmodule, name: bytes) -> tuple[CUresult, CUdeviceptr, int]:
        return self._enter("cuModuleGetGlobal", module, name), CUdeviceptr(4096), 16

    def cuFuncGetAttribute(self, attribute: enum.IntEnum, function: CUfunction) -> tuple[CUresult, int]:
        result = self._enter("cuFuncGetAttribute", attribute, function)
        return result, self.function_attributes[attribute.name.removeprefix("CU_FUNC_ATTRIBUTE_")]

    def cuFuncSetAttribute(
        self, function: CUfunction, attribute: enum.IntEnum, value: int
    ) -> tuple[CUresult]:
        return (self._enter("cuFuncSetAttribute", function, attribute, value),)

    # Memory.
    def cuMemAlloc(self, size: int) -> tuple[CUresult, CUdeviceptr]:
        result = self._enter("cuMemAlloc", size)
        assert size > 0, "cuMemAlloc refuses 0"
        buffer = ctypes.create_string_buffer(b"\xcc" * size, size)
        address = ctypes.addressof(buffer)
        if not result:
            self.memory[address] = buffer
        return result, CUdeviceptr(address)

    def cuMemFree(self, address: int) -> tuple[CUresult]:
        result = self._enter("cuMemFree", address)
        if not result and self.memory.pop(int(address), None) is None:
            result = CUresult.CUDA_ERROR_INVALID_VALUE
        return (result,)

    def _inside(self, address: int, size: int) -> bool:
        return any(
            base <= address and address + size <= base + len(held) for base, held in self.memory.items()
        )

    def _copy(
        self, entry: str, to: int, source: int, size: int, device: tuple[int, ...], stream: CUstream
    ) -> Any:
        assert isinstance(stream, CUstream)
        result = self._enter(entry, to, source, size, stream)
        if not result and not all(self._inside(address, size) for address in device):
            result = CUresult.CUDA_ERROR_INVALID_VALUE
        if not result:
            ctypes.memmove(to, source, size)
        return (result,)

    def cuMemcpyHtoDAsync(self, to: int, source: int, size: int, stream: CUstream) -> Any:
        return self._copy("cuMemcpyHtoDAsync", to, source, size, (to,), stream)

    def cuMemcpyDtoHAsync(self, to: int, source: int, size: int, stream: CUstream) -> Any:
        return self._copy("cuMemcpyDtoHAsync", to, source, size, (source,), stream)

    def cuMemcpyDtoDAsync(self, to: int, source: int, size: int, stream: CUstream) -> Any:
        return self._copy("cuMemcpyDtoDAsync", to, source, size, (to, source), stream)

    def cuMemsetD8Async(self, to: int, value: int, size: int, stream: CUstream) -> tuple[CUresult]:
        result = self._enter("cuMemsetD8Async", to, value, size, stream)
        if not result:
            ctypes.memset(to, value, size)
        return (result,)

    # Streams and events.
    def cuStreamCreate(self, flags: int) -> tuple[CUresult, CUstream]:
        return self._enter("cuStreamCreate", flags), CUstream(self._number())

    def cuStreamDestroy(self, stream: CUstream) -> tuple[CUresult]:
        return (self._enter("cuStreamDestroy", stream),)

    def cuStreamSynchronize(self, stream: CUstream) -> tuple[CUresult]:
        return (self._enter("cuStreamSynchronize", stream),)

    def cuStreamIsCapturing(self, stream: CUstream) -> tuple[CUresult, int]:
        return self._enter("cuStreamIsCapturing", stream, context=False), int(int(stream) in self.capturing)

    def cuStreamWaitEvent(self, stream: CUstream, event: CUevent, flags: int) -> tuple[CUresult]:
        return (self._enter("cuStreamWaitEvent", stream, event, flags),)

    def cuEventCreate(self, flags: int) -> tuple[CUresult, CUevent]:
        return self._enter("cuEventCreate", flags), CUevent(self._number())

    def cuEventRecord(self, event: CUevent, stream: CUstream) -> tuple[CUresult]:
        return (self._enter("cuEventRecord", event, stream),)

    def cuEventSynchronize(self, event: CUevent) -> tuple[CUresult]:
        return (self._enter("cuEventSynchronize", event),)

    def cuEventElapsedTime(self, start: CUevent, end: CUevent) -> tuple[CUresult, float]:
        return self._enter("cuEventElapsedTime", start, end), 1.5

    def cuEventDestroy(self, event: CUevent) -> tuple[CUresult]:
        return (self._enter("cuEventDestroy", event),)

    # Launch.
    def cuLaunchKernelEx(self, config: CUlaunchConfig, function: CUfunction, params: int, extra: int) -> Any:
        result = self._enter("cuLaunchKernelEx", config, function, params, extra)
        name = self.functions[int(function)]
        if not result:
            self.launches.append((name, config))
            kernel = self.kernels.get(name)
            if kernel is not None:
                width = ctypes.sizeof(ctypes.c_void_p)
                count = self.function_attributes["PARAMETERS"]
                pointers = [
                    ctypes.c_void_p.from_address(params + width * index).value or 0 for index in range(count)
                ]
                kernel(Parameters(pointers, config))
        return (result,)
