"""Devices, their limits, and their primary contexts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ptxtile.driver.library import Session, call, session
from ptxtile.errors import DriverError

__all__ = [
    "Device",
    "activate",
    "current_ordinal",
    "device",
    "device_count",
    "primary_context",
    "synchronize",
]


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU and the limits a launch is held to. Memory in bytes.

    `shared_per_block` is what a block gets unasked (48 KiB), `shared_per_block_optin` the most it may ask for,
    static and dynamic together.
    """

    ordinal: int
    name: str
    compute_capability: tuple[int, int]
    multiprocessors: int
    max_threads_per_block: int
    shared_per_block: int
    shared_per_block_optin: int
    has_clusters: bool

    @property
    def target(self) -> str:
        """Its plain target, "sm_90"; it also runs "sm_90a" and, from sm_100 on, "sm_100f"."""
        major, minor = self.compute_capability
        return f"sm_{major}{minor}"


_ATTRIBUTES = {
    "major": "COMPUTE_CAPABILITY_MAJOR",
    "minor": "COMPUTE_CAPABILITY_MINOR",
    "multiprocessors": "MULTIPROCESSOR_COUNT",
    "threads": "MAX_THREADS_PER_BLOCK",
    "shared": "MAX_SHARED_MEMORY_PER_BLOCK",
    "optin": "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    "clusters": "CLUSTER_LAUNCH",
}


def device_count() -> int:
    """How many devices the driver shows; raises DriverError where there is no driver."""
    return int(call("cuDeviceGetCount", "count the devices"))


def _handle(ordinal: int) -> object:
    count = device_count()
    if isinstance(ordinal, bool) or not isinstance(ordinal, int) or not 0 <= ordinal < count:
        raise DriverError(
            f"there is no device {ordinal!r}: this machine has {count}, so an ordinal from 0 to {count - 1}"
        )
    return call("cuDeviceGet", f"get device {ordinal}", ordinal)


def _look_up(ordinal: int) -> Device:
    handle = _handle(ordinal)
    attribute = session().binding.CUdevice_attribute
    value = {
        key: int(
            call(
                "cuDeviceGetAttribute",
                f"read {name} of device {ordinal}",
                getattr(attribute, f"CU_DEVICE_ATTRIBUTE_{name}"),
                handle,
            )
        )
        for key, name in _ATTRIBUTES.items()
    }
    name = call("cuDeviceGetName", f"read the name of device {ordinal}", 128, handle)
    return Device(
        ordinal=ordinal,
        name=name.split(b"\0", 1)[0].decode(errors="replace"),
        compute_capability=(value["major"], value["minor"]),
        multiprocessors=value["multiprocessors"],
        max_threads_per_block=value["threads"],
        shared_per_block=value["shared"],
        shared_per_block_optin=max(value["optin"], value["shared"]),
        has_clusters=bool(value["clusters"]),
    )


def device(ordinal: int = 0) -> Device:
    """The device with that ordinal; DriverError where there is none."""
    if isinstance(ordinal, bool):  # True == 1, so it would find device 1 below
        _handle(ordinal)
    found: Device = session().once("device", ordinal, lambda: _look_up(ordinal))
    return found


def primary_context(ordinal: int) -> Any:
    """The device's primary context, retained once for the life of the process: PyTorch's and JAX's too."""
    return session().once(
        "context",
        ordinal,
        lambda: call("cuDevicePrimaryCtxRetain", f"open a context on device {ordinal}", _handle(ordinal)),
    )


def current_ordinal() -> int:
    """The device whose context is current on this thread; 0 where none is."""
    context = call("cuCtxGetCurrent", "ask for the current context")
    if not int(context):
        return 0
    return int(call("cuCtxGetDevice", "ask for the current device"))


@contextmanager
def activate(ordinal: int) -> Iterator[Session]:
    """Make the device's primary context current on this thread, and put back what was current."""
    state = session()
    context = primary_context(ordinal)
    current = call("cuCtxGetCurrent", "ask for the current context")
    if int(current) == int(context):
        yield state
        return
    call("cuCtxPushCurrent", f"make device {ordinal} current", context)
    try:
        yield state
    finally:
        state.binding.cuCtxPopCurrent()  # an error here would hide the one that matters


def synchronize(ordinal: int = 0) -> None:
    """Wait for all work on a device; raises the DriverError that work there ended in."""
    with activate(ordinal):
        call("cuCtxSynchronize", f"finish the work on device {ordinal}")
