"""DLPack (version 0 capsules, which every library still gives): looking into one, and making one."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ptxtile.errors import OperandError

__all__ = ["CUDA_KINDS", "HOST_KINDS", "View", "export", "look"]

CUDA = 2
HOST_KINDS = frozenset({1, 3})  # CPU, CUDA pinned
CUDA_KINDS = frozenset({2, 13})  # CUDA, CUDA managed
_NAME = b"dltensor"

TYPE_CODES = {"int": 0, "uint": 1, "float": 2, "bfloat16": 4, "bool": 6}


class _Device(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int32), ("ordinal", ctypes.c_int32))


class _DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter))


@dataclass(frozen=True, slots=True)
class View:
    """What a capsule describes; strides in elements, None for row-major order."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None


def _api(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


def look(given: Any, stream: int) -> View:
    """The memory of a DLPack object on a CUDA device, without taking it over: the caller keeps `given` alive.

    The producer makes its data ready for `stream`, a CUstream as an integer.
    """
    capsule = given.__dlpack__(
        stream=stream or 1
    )  # the protocol calls the legacy default stream 1, and forbids 0
    is_valid = _api("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
    if not is_valid(capsule, _NAME):
        raise OperandError(f"{type(given).__name__}.__dlpack__ gave no unused capsule named 'dltensor'")
    pointer = _api("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(capsule, _NAME)
    tensor = _Managed.from_address(pointer).tensor
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else None
    return View((tensor.data or 0) + tensor.byte_offset, shape, strides)


# What an exported capsule points to, and the array that owns the memory, until the consumer calls the deleter.
_exported: dict[int, tuple[Any, ...]] = {}


def _delete(managed: Any) -> None:
    _exported.pop(ctypes.addressof(managed.contents), None)


_deleter = _Deleter(_delete)


def _destroy(capsule: int) -> None:
    """The capsule's destructor: frees what no consumer took (it renames a capsule that it takes)."""
    valid = ctypes.pythonapi.PyCapsule_IsValid
    get = ctypes.pythonapi.PyCapsule_GetPointer
    valid.argtypes = get.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    get.restype = ctypes.c_void_p
    if valid(capsule, _NAME):
        _exported.pop(get(capsule, _NAME), None)


_Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_destructor = _Destructor(_destroy)


def export(
    owner: object, address: int, ordinal: int, shape: tuple[int, ...], type_code: int, bits: int
) -> object:
    """A capsule for row-major device memory that `owner` keeps alive."""
    extents = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    tensor = _Tensor(
        data=address,
        device=_Device(CUDA, ordinal),
        ndim=len(shape),
        dtype=_DataType(type_code, bits, 1),
        shape=ctypes.cast(extents, ctypes.POINTER(ctypes.c_int64)),
        strides=None,
        byte_offset=0,
    )
    managed = _Managed(tensor=tensor, context=None, deleter=_deleter)
    key = ctypes.addressof(managed)
    _exported[key] = (managed, extents, owner)
    new = _api("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _Destructor)
    return new(key, _NAME, _destructor)
