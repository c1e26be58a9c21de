"""Arrays on a device: `empty`, `zeros`, `asarray`.

A device is a CUDA ordinal or "emulator", whose arrays live in host memory: the same program runs on both.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Union

from ptxtile import driver
from ptxtile.dtypes import DType, dtype_of
from ptxtile.errors import OperandError
from ptxtile.execute.dlpack import CUDA, TYPE_CODES, export
from ptxtile.execute.machine import Machine, choose

if TYPE_CHECKING:
    import numpy

    HostData = numpy.ndarray[Any, Any]

__all__ = ["DeviceArray", "asarray", "empty", "zeros"]

Shape = Union[int, Sequence[int]]


def _extents(shape: Shape) -> tuple[int, ...]:
    try:
        raw = tuple(shape) if isinstance(shape, Iterable) else (shape,)
        extents = tuple(operator.index(extent) for extent in raw)
    except TypeError:
        raise OperandError(f"a shape is one or several integers, not {shape!r}") from None
    if any(extent < 0 for extent in extents):
        raise OperandError(f"a shape has no negative extents: {extents}")
    return extents


def _dtype(what: object) -> DType:
    try:
        return dtype_of(what)
    except TypeError as error:
        raise OperandError(str(error)) from None


class DeviceArray:
    """A row-major array on a device. Exports `__cuda_array_interface__` and DLPack from a CUDA device."""

    __slots__ = ("__weakref__", "_buffer", "_host", "device", "dtype", "shape")

    shape: tuple[int, ...]
    dtype: DType
    device: Machine

    def __init__(self, shape: Shape, dtype: object, device: Machine | None = None) -> None:
        """Memory whose contents are undefined; `empty` is the public way.

        Raises:
            OperandError: a wrong shape or dtype.
            DriverError: no such device, or no memory left.
        """
        self.shape = _extents(shape)
        self.dtype = _dtype(dtype)
        self.device = choose(device)
        self._host: HostData | None = None
        self._buffer: driver.DeviceBuffer | None = None
        if self.device == "emulator":
            import numpy

            self._host = numpy.empty(self.shape, self.dtype.numpy)
        else:
            self._buffer = driver.DeviceBuffer(self.nbytes, int(self.device))

    @property
    def size(self) -> int:
        """Elements."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """Axes."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes."""
        return self.size * self.dtype.itemsize

    @property
    def address(self) -> int:
        """Machine it starts: a device address, or a host address on the emulator."""
        return self._buffer.address if self._buffer is not None else int(self.host.ctypes.data)

    @property
    def host(self) -> HostData:
        """The memory itself as a NumPy array, on the emulator only."""
        if self._host is None:
            raise OperandError(
                f"the array is on device {self.device}: use .numpy() for a copy in host memory"
            )
        return self._host

    def numpy(self) -> HostData:
        """A copy in host memory, once all work on the device is done."""
        if self._host is not None:
            return self._host.copy()
        import numpy

        made: HostData = numpy.empty(self.shape, self.dtype.numpy)
        ordinal = int(self.device)
        driver.synchronize(ordinal)
        driver.copy_from_device(made.ctypes.data, self.address, self.nbytes, ordinal=ordinal)
        driver.synchronize_stream(0, ordinal)
        return made

    def copy_from(self, source: HostData | DeviceArray) -> None:
        """Copy a host or device array of the same shape and dtype into this one, and wait for it.

        Raises:
            OperandError: another shape or dtype.
        """
        import numpy

        data = source.numpy() if isinstance(source, DeviceArray) else numpy.asarray(source)
        if tuple(data.shape) != self.shape or data.dtype != self.dtype.numpy:
            raise OperandError(
                f"an array of shape {tuple(data.shape)} and dtype {data.dtype} cannot be copied into one of shape "
                f"{self.shape} and dtype {self.dtype.name}"
            )
        if self._host is not None:
            self._host[...] = data
            return
        data = numpy.ascontiguousarray(data)
        ordinal = int(self.device)
        driver.synchronize(ordinal)
        driver.copy_to_device(self.address, data.ctypes.data, self.nbytes, ordinal=ordinal)
        driver.synchronize_stream(0, ordinal)

    def _fill_zero(self) -> None:
        if self._host is not None:
            self._host.view("uint8" if self.ndim else self._host.dtype)[...] = 0
            return
        ordinal = int(self.device)
        driver.fill(self.address, 0, self.nbytes, ordinal=ordinal)
        driver.synchronize_stream(0, ordinal)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> HostData:
        made = self._host if self._host is not None and not copy else self.numpy()
        return made if dtype is None else made.astype(dtype)

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        if self._buffer is None:
            raise AttributeError("an array of the emulator is not on a CUDA device")
        return {
            "shape": self.shape,
            "typestr": self.dtype.numpy.str,
            "data": (self.address if self.size else 0, False),
            "strides": None,
            "version": 3,
            "stream": None,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0) if self._buffer is None else (CUDA, int(self.device))

    def __dlpack__(self, *, stream: object = None, **options: object) -> object:
        # Work on this array is ordered by the streams its user chose; there is none of its own to wait for.
        if self._buffer is None:
            return self.host.__dlpack__()
        code = TYPE_CODES.get(self.dtype.name, TYPE_CODES.get(self.dtype.kind))
        if code is None or self.dtype.name.startswith("float8"):
            raise BufferError(f"DLPack has no type for {self.dtype.name}: exchange a view of it as uint8")
        return export(self, self.address, int(self.device), self.shape, code, max(self.dtype.bits, 8))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without axes has no len()")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype.name}, device={self.device!r})"


def empty(shape: Shape, dtype: object, *, device: Machine | None = None) -> DeviceArray:
    """An array with undefined contents.

    Args:
        shape: an extent or several.
        dtype: ptxtile's, NumPy's, ml_dtypes', or its name.
        device: a CUDA ordinal or "emulator"; by default PTXTILE_DEVICE, else the current GPU, else the emulator.
    """
    return DeviceArray(shape, dtype, device)


def zeros(shape: Shape, dtype: object, *, device: Machine | None = None) -> DeviceArray:
    """An array of zeros; arguments as for `empty`."""
    made = DeviceArray(shape, dtype, device)
    made._fill_zero()
    return made


def asarray(source: object, dtype: object = None, *, device: Machine | None = None) -> DeviceArray:
    """A copy of a host array, of anything NumPy takes, or of another device array, on a device.

    Args:
        source: the data.
        dtype: None keeps the source's; another converts as NumPy's astype.
        device: as for `empty`.
    """
    import numpy

    data = source.numpy() if isinstance(source, DeviceArray) else numpy.asarray(source)
    wanted = _dtype(data.dtype if dtype is None else dtype)
    made = DeviceArray(data.shape, wanted, device)
    made.copy_from(data.astype(wanted.numpy, copy=False))
    return made
