"""Device memory: owners, copies, and a small cache of idle blocks for arguments that come from the host.

Addresses and sizes are plain integers, sizes in bytes. Every copy is ordered by the stream it is given; the
caller waits for the stream before it looks at the host side.
"""

from __future__ import annotations

import threading

from ptxtile.driver.device import activate
from ptxtile.driver.library import Session, call, session
from ptxtile.errors import DriverError, OperandError

__all__ = [
    "DeviceBuffer",
    "Scratch",
    "copy_from_device",
    "copy_on_device",
    "copy_to_device",
    "fill",
    "scratch",
]

KEPT_BYTES = 64 << 20  # idle memory a device's scratch may hold on to
_SMALLEST = 512  # bytes; cuMemAlloc gives no smaller blocks


class DeviceBuffer:
    """Owns `nbytes` of device memory; given back by `free`, or when nobody refers to it.

    Giving back waits for the device, so that no kernel in flight loses its memory.
    """

    __slots__ = ("_address", "_session", "nbytes", "ordinal")

    def __init__(self, nbytes: int, ordinal: int = 0) -> None:
        if nbytes < 0:
            raise OperandError(f"a buffer cannot have {nbytes} bytes")
        self._address: int | None = None
        self.nbytes = nbytes
        self.ordinal = ordinal
        with activate(ordinal) as state:
            self._session: Session = state
            # cuMemAlloc refuses 0, and an empty array still wants an address that nobody else has.
            self._address = int(
                call("cuMemAlloc", f"allocate {nbytes} bytes on device {ordinal}", max(nbytes, 1))
            )

    @property
    def address(self) -> int:
        """The device address; DriverError once it is freed."""
        if self._address is None:
            raise DriverError("the device buffer was freed: its address is gone")
        return self._address

    def free(self) -> None:
        """Give the memory back. A second call does nothing."""
        address, self._address = self._address, None
        if address is not None:
            with activate(self.ordinal):
                call("cuMemFree", f"free {self.nbytes} bytes on device {self.ordinal}", address)

    def __del__(self) -> None:
        # At interpreter exit the driver may be gone, and a fault of an earlier kernel shows up in every call:
        # neither may come out of a finaliser.
        try:
            if self._address is not None and session() is self._session:
                self.free()
        except Exception:
            self._address = None


class Scratch:
    """Idle blocks of one device, by size. A block may be given back only when no work in flight uses it."""

    __slots__ = ("_idle", "_idle_bytes", "_lock", "ordinal")

    def __init__(self, ordinal: int) -> None:
        self.ordinal = ordinal
        self._idle: dict[int, list[DeviceBuffer]] = {}
        self._idle_bytes = 0
        self._lock = threading.Lock()

    def take(self, nbytes: int) -> DeviceBuffer:
        """A block of at least `nbytes`, whatever is in it: the size rounded up to a power of two."""
        size = max(_SMALLEST, 1 << (nbytes - 1).bit_length()) if nbytes else _SMALLEST
        with self._lock:
            blocks = self._idle.get(size)
            if blocks:
                self._idle_bytes -= size
                return blocks.pop()
        return DeviceBuffer(size if size <= KEPT_BYTES else nbytes, self.ordinal)

    def give(self, block: DeviceBuffer) -> None:
        """Keep an idle block for later, or free it where enough is kept."""
        with self._lock:
            if self._idle_bytes + block.nbytes <= KEPT_BYTES:
                self._idle.setdefault(block.nbytes, []).append(block)
                self._idle_bytes += block.nbytes
                return
        block.free()

    def clear(self) -> None:
        """Free every idle block."""
        with self._lock:
            blocks = [block for row in self._idle.values() for block in row]
            self._idle.clear()
            self._idle_bytes = 0
        for block in blocks:
            block.free()


def scratch(ordinal: int) -> Scratch:
    """The idle blocks of a device."""
    found: Scratch = session().once("scratch", ordinal, lambda: Scratch(ordinal))
    return found


def copy_to_device(
    device_address: int, host_address: int, nbytes: int, *, ordinal: int, stream: int = 0
) -> None:
    """Start copying host memory to the device; the host memory may change once this returns only if it is pageable."""
    if nbytes:
        with activate(ordinal) as state:
            handle = state.binding.CUstream(stream)
            what = f"copy {nbytes} bytes to device {ordinal}"
            call("cuMemcpyHtoDAsync", what, device_address, host_address, nbytes, handle)


def copy_from_device(
    host_address: int, device_address: int, nbytes: int, *, ordinal: int, stream: int = 0
) -> None:
    """Start copying device memory to the host; there once the stream is synchronised."""
    if nbytes:
        with activate(ordinal) as state:
            handle = state.binding.CUstream(stream)
            what = f"copy {nbytes} bytes from device {ordinal}"
            call("cuMemcpyDtoHAsync", what, host_address, device_address, nbytes, handle)


def copy_on_device(destination: int, source: int, nbytes: int, *, ordinal: int, stream: int = 0) -> None:
    """Start copying inside a device; the ranges must not overlap."""
    if nbytes:
        with activate(ordinal) as state:
            handle = state.binding.CUstream(stream)
            call(
                "cuMemcpyDtoDAsync",
                f"copy {nbytes} bytes on device {ordinal}",
                destination,
                source,
                nbytes,
                handle,
            )


def fill(device_address: int, value: int, nbytes: int, *, ordinal: int, stream: int = 0) -> None:
    """Start setting every byte to `value` (0 to 255)."""
    if not 0 <= value <= 255:
        raise OperandError(f"a byte is 0 to 255, not {value}")
    if nbytes:
        with activate(ordinal) as state:
            handle = state.binding.CUstream(stream)
            call(
                "cuMemsetD8Async",
                f"fill {nbytes} bytes on device {ordinal}",
                device_address,
                value,
                nbytes,
                handle,
            )
