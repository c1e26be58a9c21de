"""The CUDA driver: found at first use, initialised once, called through `cuda.bindings.driver`.

Everything in `driver/` reaches the driver through `call`, which turns a CUresult into a DriverError, or keeps
the entry point at hand after `binding()` gave it. Tests put another binding in its place with `use`.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from ptxtile.driver.status import cuda_text, failure, highest_ptx, no_gpu
from ptxtile.errors import DriverError

__all__ = [
    "Session",
    "available",
    "binding",
    "call",
    "driver_ptx",
    "driver_version",
    "in_order",
    "session",
    "use",
]

_LIBCUDA = {"win32": "nvcuda.dll"}.get(sys.platform, "libcuda.so.1")


class Session:
    """An initialised driver and what was learnt about it. `kept` holds what other modules cache a driver at a time."""

    __slots__ = ("binding", "kept", "lock", "version")

    def __init__(self, binding: ModuleType, version: int) -> None:
        self.binding = binding
        self.version = version
        self.kept: dict[tuple[str, int], Any] = {}
        self.lock = threading.RLock()

    def once(self, kind: str, number: int, make: Callable[[], Any]) -> Any:
        """What `make` gave the first time it was asked for under (`kind`, `number`)."""
        found = self.kept.get((kind, number))
        if found is None:
            with self.lock:
                found = self.kept.get((kind, number))
                if found is None:
                    found = self.kept[kind, number] = make()
        return found


_session: Session | None = None
_reason: DriverError | None = None  # why there is none: found once, since a look for libcuda is slow
_lock = threading.Lock()


def _import_binding() -> ModuleType:
    """`cuda.bindings.driver`; a DriverError that says which of the two halves is missing."""
    try:
        ctypes.CDLL(_LIBCUDA)  # far quicker to find missing than the binding is to import
    except OSError as error:
        raise no_gpu(f"{_LIBCUDA} cannot be loaded, so NVIDIA's driver is not installed here") from error
    try:
        return importlib.import_module("cuda.bindings.driver")
    except ImportError as error:
        raise no_gpu(f"the Python package cuda-python cannot be imported ({error})") from error


def _initialise(module: ModuleType) -> Session:
    try:
        (result,) = module.cuInit(0)
    except RuntimeError as error:
        raise no_gpu(f"the driver library cannot be loaded ({error})") from error
    if int(result):
        error_ = failure(module, result, "initialise the CUDA driver")
        raise no_gpu(str(error_).splitlines()[0]) from error_
    result, version = module.cuDriverGetVersion()
    if int(result):
        raise failure(module, result, "ask the CUDA driver for its version")
    result, count = module.cuDeviceGetCount()
    if int(result) or not count:
        raise no_gpu("the driver sees no device")
    return Session(module, int(version))


def session() -> Session:
    """The initialised driver.

    Raises:
        DriverError: there is no cuda-python, no driver or no device; the same error every time.
    """
    global _session, _reason
    found = _session
    if found is not None:
        return found
    with _lock:
        if _session is None:
            if _reason is not None:
                raise DriverError(str(_reason), code=_reason.code, name=_reason.name)
            try:
                _session = _initialise(_import_binding())
            except DriverError as error:
                _reason = error
                raise
        return _session


def binding() -> ModuleType:
    """The `cuda.bindings.driver` in use, initialised; raises DriverError like `session`."""
    return session().binding


def available() -> bool:
    """Whether a kernel can be launched on a GPU here. Looks once, says nothing."""
    try:
        session()
    except DriverError:
        return False
    return True


def driver_version() -> str:
    """The CUDA version of the driver, as "13.0"."""
    return cuda_text(session().version)


def driver_ptx() -> str | None:
    """The highest PTX version the driver is known to take, as "9.0"; None for a driver before CUDA 11."""
    return highest_ptx(session().version)


@contextmanager
def use(module: ModuleType) -> Iterator[Session]:
    """Put `module` in the place of `cuda.bindings.driver` until the block ends.

    This is the seam for tests without a GPU: `module` has the entry points, enums and structures of
    `cuda.bindings.driver` that ptxtile calls, under their own names. Objects made inside the block (modules,
    buffers, streams) belong to that driver and must not be used after it.
    """
    global _session, _reason
    with _lock:
        before = _session, _reason
        _session, _reason = None, None
    try:
        made = _initialise(module)
        _session = made
        yield made
    finally:
        _session, _reason = before


def call(name: str, what: str, *arguments: object) -> Any:
    """Call the entry point `name`; its one value, a tuple of its values, or None.

    Args:
        name: an entry point of the driver, "cuMemAlloc".
        what: completes "could not …" in the error.
        arguments: passed on as they are.

    Raises:
        DriverError: any result but CUDA_SUCCESS.
    """
    module = session().binding
    answer = getattr(module, name)(*arguments)
    if int(answer[0]):
        raise failure(module, answer[0], what)
    if len(answer) == 2:
        return answer[1]
    return answer[1:] or None


def in_order(*steps: Callable[[], object]) -> None:
    """Take every step of a teardown, then raise the first error met: a later one is often only its echo."""
    first: DriverError | None = None
    for step in steps:
        try:
            step()
        except DriverError as error:
            first = first or error
    if first is not None:
        raise first
