"""Bytes: device memory with its allocations, and the flat stores that every state space is made of.

All addresses are byte addresses in uint64 arrays, all values little endian.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Union

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator import windows
from ptxtile.emulator.races import Races
from ptxtile.emulator.widths import Bits, holder
from ptxtile.errors import EmulatorError

Addresses = NDArray[np.uint64]
Offsets = NDArray[np.int64]
Index = Union[slice, NDArray[np.int64]]

GRAIN = 16
"""Stores are padded to a multiple of this many bytes, so that they can be viewed at any element width."""
RED_ZONE = 512
"""Bytes before the first allocation that belong to nobody."""
SPACING = 1 << 24
"""Bytes between two allocations that belong to nobody: an index that is scaled wrongly must not find the next one."""


class Store:
    """A run of bytes, with what the sanitizer knows of them.

    data       uint8, padded to GRAIN
    unwritten  uint8 of the same length with a 1 for each bit that was never written; None: all were
    races      who touched what last; None where only one thread can reach it, or without the sanitizer
    """

    __slots__ = ("base", "data", "name", "races", "readonly", "size", "unwritten")

    def __init__(
        self, name: str, base: int, size: int, *, written: bool = True, readonly: bool = False
    ) -> None:
        padded = -(-max(size, 1) // GRAIN) * GRAIN
        self.name = name
        self.base = base
        self.size = size
        self.readonly = readonly
        self.data: NDArray[np.uint8] = np.zeros(padded, np.uint8)
        self.unwritten: NDArray[np.uint8] | None = None if written else np.full(padded, 0xFF, np.uint8)
        self.races: Races | None = None

    def elements(self, width: int) -> Bits:
        """All bytes as elements of `width` bytes; writing to it writes to the store."""
        return _elements(self.data, width)

    def gather(self, index: Index, width: int) -> Bits:
        """Elements of `width` bytes (1, 2, 4, 8, 16), as an array of its own."""
        found = _elements(self.data, width)[index]
        return found.copy() if isinstance(index, slice) else found

    def scatter(self, index: Index, width: int, values: Bits, shadow: Bits | None = None) -> None:
        """Write elements of `width` bytes, of which `shadow` is undefined; of two for one place the last stays."""
        _elements(self.data, width)[index] = values
        if self.unwritten is not None:
            _elements(self.unwritten, width)[index] = 0 if shadow is None else shadow

    def shadow(self, index: Index, width: int) -> Bits | None:
        """The bits of these elements that were never written, or None if there are none."""
        if self.unwritten is None:
            return None
        found = _elements(self.unwritten, width)[index]
        if not found.any():
            return None
        return found.copy() if isinstance(index, slice) else found

    def write(self, offset: int, payload: bytes | NDArray[np.uint8]) -> None:
        """Write bytes from outside a kernel."""
        raw = np.frombuffer(payload, np.uint8)
        self.data[offset : offset + len(raw)] = raw
        if self.unwritten is not None:
            self.unwritten[offset : offset + len(raw)] = 0


def _elements(data: NDArray[np.uint8], width: int) -> Bits:
    if width == 16:
        return data.view(np.uint64).reshape(-1, 2)
    return data.view(holder(width * 8))


class Memory:
    """The global memory of a device: allocations that live until they are freed, with red zones between them.

    Kernels reach it by address; `write` and `read` are the host's copies. One Memory may serve many launches.
    """

    def __init__(self) -> None:
        self._stores: list[Store] = []
        self._bases: list[int] = []
        self._next = windows.GLOBAL_BASE + RED_ZONE

    def allocate(self, size: int, *, name: str = "", alignment: int = 256, written: bool = False) -> int:
        """`size` bytes of device memory; returns the address. Its bytes count as never written unless `written`."""
        if size < 0:
            raise EmulatorError(f"an allocation of {size} bytes was asked for", kind="launch")
        base = -(-self._next // alignment) * alignment
        self._next = base + size + SPACING
        self._stores.append(Store(name or f"allocation at {base:#x}", base, size, written=written))
        self._bases.append(base)
        return base

    def free(self, address: int) -> None:
        """Give back what `allocate` returned. The address is never used again."""
        place = self._place(address)
        del self._stores[place], self._bases[place]

    def write(self, address: int, payload: bytes | NDArray[np.generic]) -> None:
        """Copy bytes, or the bytes of a C-contiguous array, to device memory."""
        raw = np.frombuffer(payload, np.uint8) if isinstance(payload, bytes) else _bytes(payload)
        store, offset = self._range(address, len(raw))
        store.write(offset, raw)

    def read(self, address: int, size: int) -> bytes:
        """Copy `size` bytes from device memory."""
        store, offset = self._range(address, size)
        return store.data[offset : offset + size].tobytes()

    def stores(self) -> Iterator[Store]:
        """The allocations there are, by address."""
        return iter(self._stores)

    def find(self, address: int) -> Store | None:
        """The allocation that holds this address, or None."""
        place = bisect_right(self._bases, address) - 1
        if place >= 0 and address < self._bases[place] + self._stores[place].size:
            return self._stores[place]
        return None

    def nearest(self, address: int) -> Store | None:
        """The allocation that this address most likely belongs to: the one before it if near, else the one after."""
        if not self._stores:
            return None
        place = bisect_right(self._bases, address) - 1
        before = self._stores[place] if place >= 0 else None
        after = self._stores[place + 1] if place + 1 < len(self._stores) else None
        if before is None or after is None:
            return before or after
        return before if address - (before.base + before.size) <= after.base - address else after

    def _place(self, address: int) -> int:
        place = bisect_right(self._bases, address) - 1
        if place < 0 or self._bases[place] != address:
            raise EmulatorError(f"{address:#x} is not the address of an allocation", kind="launch")
        return place

    def _range(self, address: int, size: int) -> tuple[Store, int]:
        store = self.find(address) if size else self.nearest(address)
        if store is None or address + size > store.base + max(store.size, 1):
            raise EmulatorError(f"no allocation holds the {size} bytes at {address:#x}", kind="out-of-bounds")
        return store, address - store.base


def _bytes(array: NDArray[np.generic]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
