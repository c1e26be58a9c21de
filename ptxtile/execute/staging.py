"""Host arrays on the GPU for the length of one launch: copied in, copied back, aliases kept.

Arrays that share memory share it on the device too: overlapping ranges are merged into one region, and each array
is the address of its first byte in its region.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

from ptxtile import driver
from ptxtile.errors import DriverError, OperandError
from ptxtile.execute.arguments import HostArgument

__all__ = ["Region", "Staged", "changed", "regions"]


@dataclass(frozen=True, slots=True)
class Region:
    """Adjoining host memory, `nbytes` from address `start`, and the arguments that lie in it."""

    start: int
    nbytes: int
    members: tuple[HostArgument, ...]


def _range(argument: HostArgument) -> tuple[int, int]:
    start = int(argument.array.ctypes.data)
    return start, start + int(argument.array.nbytes)


def regions(arguments: Sequence[HostArgument]) -> tuple[Region, ...]:
    """The host memory of the arguments, overlapping ranges merged. An empty array is a region of its own."""
    made: list[Region] = []
    for argument in sorted(arguments, key=_range):
        start, end = _range(argument)
        last = made[-1] if made else None
        if last is not None and start < last.start + last.nbytes and start < end:
            stop = max(end, last.start + last.nbytes)
            made[-1] = Region(last.start, stop - last.start, (*last.members, argument))
        else:
            made.append(Region(start, end - start, (argument,)))
    return tuple(made)


def changed(argument: HostArgument) -> OperandError:
    """The error for a kernel that wrote to an array that is not writable."""
    return OperandError(
        f"the kernel wrote to {argument.place}, an array that is not writable; the array was left as it was"
    )


class Staged:
    """Device copies of host arrays for one launch on one stream.

    `addresses` maps a parameter's index to its device address. Everything is put into the stream; `finish` waits
    for it, so the caller's arrays hold the results when it returns.
    """

    __slots__ = ("_blocks", "_ordinal", "_regions", "_stream", "addresses")

    def __init__(self, arguments: Sequence[HostArgument], ordinal: int, stream: int) -> None:
        self._ordinal = ordinal
        self._stream = stream
        self._regions = regions(arguments)
        self._blocks: list[driver.DeviceBuffer] = []
        self.addresses: dict[int, int] = {}
        if self._regions and stream and driver.is_capturing(stream):
            raise DriverError(
                "the stream is being captured into a graph, and host arrays cannot be copied in a capture\n"
                "  what to do: pass device arrays (ptxtile.asarray)"
            )
        pool = driver.scratch(ordinal)
        try:
            for region in self._regions:
                block = pool.take(region.nbytes)
                self._blocks.append(block)
                driver.copy_to_device(
                    block.address, region.start, region.nbytes, ordinal=ordinal, stream=stream
                )
                for member in region.members:
                    self.addresses[member.place.index] = block.address + _range(member)[0] - region.start
        except BaseException:
            self.abandon()
            raise

    def finish(self) -> None:
        """Copy back what may be written, wait, and give the device memory back.

        Raises:
            OperandError: the kernel changed an array that is not writable; the array keeps its contents.
            DriverError: the kernel faulted.
        """
        try:
            checks = [self._copy_back(argument) for region in self._regions for argument in region.members]
            driver.synchronize_stream(self._stream, self._ordinal)
        except BaseException:
            self.abandon()
            raise
        self._release()
        for argument, seen in filter(None, checks):
            start, end = _range(argument)
            if ctypes.string_at(start, end - start) != seen.raw:
                raise changed(argument)

    def _copy_back(self, argument: HostArgument) -> tuple[HostArgument, ctypes.Array[ctypes.c_char]] | None:
        start, end = _range(argument)
        address = self.addresses[argument.place.index]
        if argument.writable:
            driver.copy_from_device(start, address, end - start, ordinal=self._ordinal, stream=self._stream)
            return None
        seen = ctypes.create_string_buffer(max(end - start, 1))
        driver.copy_from_device(
            ctypes.addressof(seen), address, end - start, ordinal=self._ordinal, stream=self._stream
        )
        return (argument, seen) if end > start else None

    def abandon(self) -> None:
        """Give the memory back after an error: only once the stream is done with it, if it ever is."""
        try:
            driver.synchronize_stream(self._stream, self._ordinal)
        except DriverError:
            self._blocks.clear()  # the context is lost, and its memory with it
            return
        self._release()

    def _release(self) -> None:
        pool = driver.scratch(self._ordinal)
        while self._blocks:
            pool.give(self._blocks.pop())
