"""What a caller may pass for a parameter: numbers, buffers, host arrays, device arrays.

NumPy arrays, CPU tensors       copied to the GPU before a launch and back after it, or used in place by the
                                emulator. C-contiguous and of native byte order, or they are refused. An array
                                that is not writable is only read: a kernel that changes it is an error.
ptxtile's device arrays         used in place
__cuda_array_interface__, DLPack on a CUDA device        used in place
numbers, constants              see `parameters.scalar_value`
buffers                         for array parameters such as tensor maps
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Union

from ptxtile.dtypes import DType, dtype_of
from ptxtile.errors import OperandError
from ptxtile.execute.arrays import DeviceArray
from ptxtile.execute.dlpack import CUDA_KINDS, HOST_KINDS, look
from ptxtile.execute.parameters import Place, Value, blob_value, describe, scalar_value, signature
from ptxtile.ir.tensor_map import BYTES, Mapped, TiledMap

if TYPE_CHECKING:
    import numpy

    HostData = numpy.ndarray[Any, Any]

__all__ = [
    "Argument",
    "ArrayFacts",
    "DeviceArgument",
    "HostArgument",
    "MapArgument",
    "PlainArgument",
    "array_facts",
    "classify",
    "classify_all",
]


@dataclass(frozen=True, slots=True)
class PlainArgument:
    """A value that is packed as it is."""

    place: Place
    value: Value


@dataclass(frozen=True, slots=True)
class HostArgument:
    """An array in host memory. `writable` says whether what a kernel does to it is wanted back."""

    place: Place
    array: HostData
    writable: bool


@dataclass(frozen=True, slots=True)
class DeviceArgument:
    """Device memory used in place: its address, its device if known, the stream it was made on if it names one."""

    place: Place
    address: int
    ordinal: int | None
    stream: int | None = None


@dataclass(frozen=True, slots=True)
class MapArgument:
    """The tensor map of an array, encoded when the array's address is known."""

    place: Place
    map: TiledMap
    array: HostArgument | DeviceArgument


Argument = Union[PlainArgument, HostArgument, DeviceArgument, MapArgument]


def _host(place: Place, array: HostData) -> HostArgument:
    if array.dtype.hasobject:
        raise OperandError(f"{place} cannot be an array of Python objects")
    if not array.dtype.isnative:
        raise OperandError(
            f"{place} cannot be an array of foreign byte order ({array.dtype.str}): pass a native copy"
        )
    if not array.flags.c_contiguous:
        raise OperandError(
            f"{place} cannot be an array of shape {array.shape} with strides {array.strides} bytes: it is not "
            "contiguous in row-major order; pass numpy.ascontiguousarray(…) and copy back what the kernel writes"
        )
    return HostArgument(place, array, bool(array.flags.writeable))


def _interface(place: Place, given: object, interface: dict[str, Any]) -> DeviceArgument:
    """A `__cuda_array_interface__` (version 2 or 3)."""
    strides, shape = interface.get("strides"), interface["shape"]
    if strides is not None and not _row_major(shape, strides, int(interface["typestr"][2:])):
        raise OperandError(
            f"{place} cannot be a device array of shape {tuple(shape)} with strides {tuple(strides)} bytes: it is not "
            "contiguous in row-major order"
        )
    stream = interface.get("stream")
    ordinal = getattr(getattr(given, "device", None), "index", None)  # PyTorch's; others do not say
    return DeviceArgument(place, int(interface["data"][0]), ordinal if type(ordinal) is int else None, stream)


def _cuda_interface(given: object) -> dict[str, Any] | None:
    """`__cuda_array_interface__`, if the object has one for its dtype; else DLPack may."""
    try:
        found: dict[str, Any] | None = getattr(given, "__cuda_array_interface__", None)
    except (KeyError, TypeError, ValueError):
        return None
    return found


def _row_major(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    if 0 in shape:
        return True
    expected = itemsize
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent != 1 and stride != expected:
            return False
        expected *= extent
    return True


def _exchanged(place: Place, given: Any, stream: int) -> HostArgument | DeviceArgument:
    """A DLPack object."""
    kind, ordinal = given.__dlpack_device__()
    if kind in HOST_KINDS:
        return _host(place, _from_host(given))
    if kind not in CUDA_KINDS:
        raise OperandError(
            f"{place} cannot be {describe(given)}: it is on a device of DLPack kind {int(kind)}"
        )
    view = look(given, stream)
    if view.strides is not None and not _row_major(view.shape, view.strides, 1):
        raise OperandError(
            f"{place} cannot be a device array of shape {view.shape} with strides {view.strides} elements: it is not "
            "contiguous in row-major order"
        )
    return DeviceArgument(place, view.address, int(ordinal))


def _from_host(given: Any) -> HostData:
    """The memory of a DLPack object on the host as a NumPy array.

    NumPy takes what an older capsule gives for not writable, since that cannot say; where the object also turns
    into an array of the same memory, as PyTorch's tensors do, that one knows.
    """
    import numpy

    view: HostData = numpy.from_dlpack(given)
    if not view.flags.writeable and hasattr(given, "__array__"):
        direct: HostData = numpy.asarray(given)
        if direct.ctypes.data == view.ctypes.data and direct.dtype == view.dtype:
            return direct
    return view


def _array(place: Place, given: Any, stream: int) -> HostArgument | DeviceArgument | None:
    """An array in any of its guises; None for what is no array."""
    if isinstance(given, DeviceArray):
        if given.device == "emulator":
            return _host(place, given.host)
        return DeviceArgument(place, given.address, int(given.device))
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(given, numpy.ndarray):
        return _host(place, given)
    interface = _cuda_interface(given)
    if interface is not None:
        return _interface(place, given, interface)
    if hasattr(given, "__dlpack_device__") and hasattr(given, "__dlpack__"):
        return _exchanged(place, given, stream)
    return None


@dataclass(frozen=True, slots=True)
class ArrayFacts:
    """What an array argument is. `address` is its device address, None for a host array: its copy is aligned anew."""

    dtype: DType
    shape: tuple[int, ...]
    address: int | None


def array_facts(what: str, given: Any) -> ArrayFacts:
    """Dtype, shape and address of anything that can be passed for an array.

    Args:
        what: "scale: argument 'A'", the beginning of an error.
        given: the argument.

    Raises:
        OperandError: it is no array, or of a dtype that ptxtile lacks.
    """
    if isinstance(given, DeviceArray):
        return ArrayFacts(given.dtype, given.shape, None if given.device == "emulator" else given.address)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(given, numpy.ndarray):
        return ArrayFacts(_dtype_of(what, given), tuple(given.shape), None)
    interface = _cuda_interface(given)
    if interface is not None:
        element = given if hasattr(given, "dtype") else interface["typestr"]
        return ArrayFacts(_dtype_of(what, element), tuple(interface["shape"]), int(interface["data"][0]))
    if not (hasattr(given, "__dlpack_device__") and hasattr(given, "dtype") and hasattr(given, "shape")):
        raise OperandError(
            f"{what} cannot be {describe(given)}: a NumPy array or a device array (ptxtile.asarray, DLPack, "
            "__cuda_array_interface__) is due"
        )
    on_device = given.__dlpack_device__()[0] in CUDA_KINDS
    return ArrayFacts(
        _dtype_of(what, given), tuple(given.shape), look(given, 0).address if on_device else None
    )


def _dtype_of(what: str, element: object) -> DType:
    if isinstance(element, str):
        import numpy

        element = numpy.dtype(element)
    try:
        return _named(getattr(element, "dtype", element))
    except TypeError as error:
        raise OperandError(f"{what}: {error}") from None


@lru_cache(maxsize=256)
def _named(element: Any) -> DType:
    """`dtype_of`, remembered: NumPy computes a dtype's name anew at each question."""
    return dtype_of(element)


def classify(place: Place, given: object, stream: int = 0) -> Argument:
    """What `given` is for `place` in a launch on `stream`; OperandError where it cannot be passed there."""
    if isinstance(given, Mapped):
        return _mapped(place, given, stream)
    if not place.kind:
        return PlainArgument(place, blob_value(place, given))
    if type(given) is int or type(given) is float:
        return PlainArgument(place, scalar_value(place, given))
    array = _array(place, given, stream) if getattr(given, "ndim", 1) or place.holds_address else None
    if array is None or (
        isinstance(array, HostArgument) and array.array.ndim == 0 and not place.holds_address
    ):
        return PlainArgument(place, scalar_value(place, given))
    if not place.holds_address:
        raise OperandError(
            f"{place} cannot be an array: an array is passed as an address, for which .u64 is due"
        )
    return array


def _mapped(place: Place, given: Mapped, stream: int) -> MapArgument:
    if place.kind or place.size != BYTES:
        raise OperandError(f"{place} cannot be a tensor map, which is an array of {BYTES} bytes")
    array = _array(place, given.array, stream)
    if array is None:
        raise OperandError(f"{place} cannot be the tensor map of {describe(given.array)}: an array is due")
    return MapArgument(place, given.map, array)


def classify_all(
    name: str, taken: tuple[Place, ...], given: tuple[object, ...], stream: int = 0
) -> tuple[Argument, ...]:
    """Every argument of a launch of the entry `name` on `stream`, in order.

    Raises:
        OperandError: a wrong count, or the first argument that cannot be passed.
    """
    if len(given) != len(taken):
        raise OperandError(
            f"{name} takes {len(taken)} argument{'' if len(taken) == 1 else 's'} ({signature(taken)}), not {len(given)}"
        )
    return tuple(classify(place, value, stream) for place, value in zip(taken, given))
