"""Launching: one function with one geometry and one parameter block, prepared once and launched many times."""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Union

from ptxtile.driver.device import activate, device, primary_context
from ptxtile.driver.library import session
from ptxtile.driver.module import Function
from ptxtile.driver.status import failure
from ptxtile.errors import DriverError, OperandError

__all__ = ["Dim3", "Geometry", "Launcher", "ParameterBlock", "Slot", "Value"]

Dim3 = tuple[int, int, int]
Value = Union[int, float, bytes]

_PORTABLE_CLUSTER = 8


@dataclass(frozen=True, slots=True)
class Geometry:
    """How many threads, and how they are grouped: blocks in the grid, threads in the block, blocks in the cluster.

    `dynamic_shared` is in bytes. `programmatic` lets the grid start before the one ahead of it in the stream has
    ended (programmatic dependent launch); `cooperative` asks that all blocks be resident at once.
    """

    grid: Dim3
    block: Dim3
    cluster: Dim3 | None = None
    dynamic_shared: int = 0
    programmatic: bool = False
    cooperative: bool = False


@dataclass(frozen=True, slots=True)
class Slot:
    """A parameter in the block: its `struct` code ("Q", "f", "128s"), its offset and its size in bytes."""

    code: str
    offset: int
    size: int


class ParameterBlock:
    """The parameters of one launch in one host buffer, and the array of pointers to them that the driver reads."""

    __slots__ = ("_buffer", "_pack", "_pointers", "address", "count")

    def __init__(self, slots: Sequence[Slot]) -> None:
        layout, end = "<", 0
        for slot in slots:
            if slot.offset < end or struct.calcsize("<" + slot.code) != slot.size:
                raise OperandError(f"the parameter at byte {slot.offset} does not fit its place")
            layout += f"{slot.offset - end}x{slot.code}"
            end = slot.offset + slot.size
        packer = struct.Struct(layout)
        self.count = len(slots)
        self._pack = packer.pack_into
        self._buffer = ctypes.create_string_buffer(max(end, 1))
        base = ctypes.addressof(self._buffer)
        self._pointers = (ctypes.c_void_p * max(len(slots), 1))(*[base + slot.offset for slot in slots])
        self.address = ctypes.addressof(self._pointers) if slots else 0

    def pack(self, values: Sequence[Value]) -> None:
        """Write one value a slot; OperandError for a wrong count or a value that its code cannot hold."""
        try:
            self._pack(self._buffer, 0, *values)
        except (struct.error, OverflowError) as error:
            raise OperandError(f"{len(values)} values do not fit {self.count} parameters: {error}") from error


def _check_cluster(function: Function, geometry: Geometry) -> bool:
    """Whether the launch has to name the cluster size: not where `.reqnctapercluster` did."""
    fixed, cluster = function.facts.cluster, geometry.cluster
    if fixed is not None:
        if cluster is not None and cluster != fixed:
            raise DriverError(
                f"{function.name} was assembled for clusters of {fixed} (.reqnctapercluster) and cannot be launched "
                f"with clusters of {cluster}"
            )
        return False
    if cluster is None:
        return False
    limits = device(function.module.ordinal)
    if not limits.has_clusters:
        raise DriverError(f"{limits.name} ({limits.target}) has no clusters: they need sm_90 or later")
    return True


def _check(function: Function, geometry: Geometry) -> None:
    x, y, z = geometry.block
    threads = x * y * z
    if threads > function.facts.max_threads:
        raise DriverError(
            f"{function.name} can run with at most {function.facts.max_threads} threads a block "
            f"({function.facts.registers} registers each), not {threads}\n"
            "  what to do: use a smaller block, or bound the registers with .maxntid or .maxnreg"
        )
    function.allow_dynamic_shared(geometry.dynamic_shared)
    cluster = function.facts.cluster or geometry.cluster
    if cluster and cluster[0] * cluster[1] * cluster[2] > _PORTABLE_CLUSTER:
        function.allow_large_cluster()


def _attributes(function: Function, geometry: Geometry) -> list[object]:
    module = session().binding
    identifier = module.CUlaunchAttributeID
    made: list[object] = []

    def add(name: str) -> object:
        attribute = module.CUlaunchAttribute()
        attribute.id = getattr(identifier, f"CU_LAUNCH_ATTRIBUTE_{name}")
        made.append(attribute)
        return attribute.value

    if _check_cluster(function, geometry) and geometry.cluster is not None:
        dim = getattr(add("CLUSTER_DIMENSION"), "clusterDim")  # noqa: B009
        dim.x, dim.y, dim.z = geometry.cluster
    if geometry.programmatic:
        setattr(add("PROGRAMMATIC_STREAM_SERIALIZATION"), "programmaticStreamSerializationAllowed", 1)  # noqa: B010
    if geometry.cooperative:
        setattr(add("COOPERATIVE"), "cooperative", 1)  # noqa: B010
    return made


class Launcher:
    """A function, a geometry and a parameter block, checked once; calling it launches. Safe to share by threads.

    A launch allocates nothing and waits for nothing, so it can be captured into a graph.
    """

    __slots__ = (
        "_block",
        "_config",
        "_context",
        "_entry",
        "_function",
        "_geometry",
        "_get_context",
        "_lock",
        "_module",
        "_ok",
        "_stream",
    )

    def __init__(self, function: Function, geometry: Geometry, slots: Sequence[Slot] = ()) -> None:
        _check(function, geometry)
        module = session().binding
        config = module.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = geometry.grid
        config.blockDimX, config.blockDimY, config.blockDimZ = geometry.block
        config.sharedMemBytes = geometry.dynamic_shared
        attributes = _attributes(function, geometry)
        # Set once at most: bindings of CUDA 12 free a list twice that is replaced by an empty one.
        if attributes:
            config.attrs = attributes
            config.numAttrs = len(attributes)
        self._config = config
        self._function = function
        self._geometry = geometry
        self._block = ParameterBlock(slots)
        self._context = int(primary_context(function.module.ordinal))
        self._module = module
        self._entry = module.cuLaunchKernelEx
        self._get_context = module.cuCtxGetCurrent
        self._ok = module.CUresult.CUDA_SUCCESS
        self._stream = 0
        self._lock = threading.Lock()

    def __call__(self, values: Sequence[Value] = (), stream: int = 0) -> None:
        """Launch on a stream (a CUstream as an integer) with one value a slot.

        Raises:
            OperandError: the values do not fit the slots.
            DriverError: the driver refused the launch, or an earlier kernel faulted.
        """
        _, current = self._get_context()
        if int(current) != self._context:
            with activate(self._function.module.ordinal):
                self._launch(values, stream)
        else:
            self._launch(values, stream)

    def _launch(self, values: Sequence[Value], stream: int) -> None:
        # The driver copies the parameters during the call: one buffer serves every launch, one at a time.
        with self._lock:
            self._block.pack(values)
            if stream != self._stream:
                self._config.hStream = self._module.CUstream(stream)
                self._stream = stream
            (result,) = self._entry(self._config, self._function.handle, self._block.address, 0)
        if result is not self._ok and int(result):
            raise failure(self._module, result, self._describe())

    def _describe(self) -> str:
        shape = self._geometry
        text = f"launch {self._function.name} with grid {shape.grid}, block {shape.block}"
        if shape.cluster:
            text += f", cluster {shape.cluster}"
        return text + (
            f", {shape.dynamic_shared} bytes of dynamic shared memory" if shape.dynamic_shared else ""
        )
