"""A launch on the emulator: host arrays in place, everything else as it goes to a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptxtile.driver import Geometry
from ptxtile.errors import OperandError
from ptxtile.execute.arguments import Argument, DeviceArgument, HostArgument, MapArgument, PlainArgument
from ptxtile.execute.entry import Entry
from ptxtile.execute.staging import changed, regions
from ptxtile.ir.tensor_map import Mapped

__all__ = ["emulate"]


def emulate(
    entry: Entry, arguments: Sequence[Argument], shape: Geometry, *, sanitize: bool = True, seed: int = 0
) -> None:
    """Run an entry on the emulator; returns when it is done.

    Every launch starts with the module's variables as they are initialised.

    Raises:
        OperandError: an array on a CUDA device, or the kernel wrote to an array that is not writable.
        EmulatorError: the emulator stopped the program.
    """
    from ptxtile import emulator

    held = [each.array if isinstance(each, MapArgument) else each for each in arguments]
    copies = _copies([argument for argument in held if isinstance(argument, HostArgument)])
    emulator.launch(
        entry.source,
        entry.name,
        shape.grid,
        shape.block,
        [_value(argument, copies) for argument in arguments],
        cluster=shape.cluster,
        dynamic_shared=shape.dynamic_shared,
        sanitize=sanitize,
        seed=seed,
    )
    for argument, copy in copies.values():
        if argument.array.tobytes() != copy.tobytes():
            raise changed(argument)


def _copies(arguments: Sequence[HostArgument]) -> dict[int, tuple[HostArgument, Any]]:
    """Stand-ins, by parameter, for arrays that are only read: what a kernel writes there must show.

    An array that shares memory with a writable argument needs none: there, the kernel may write.
    """
    return {
        argument.place.index: (argument, argument.array.copy())
        for region in regions(arguments)
        if not any(argument.writable for argument in region.members)
        for argument in region.members
    }


def _value(argument: Argument, copies: dict[int, tuple[HostArgument, Any]]) -> Any:
    if isinstance(argument, MapArgument):
        return Mapped(argument.map, _value(argument.array, copies))
    if isinstance(argument, DeviceArgument):
        raise OperandError(
            f"{argument.place} is on a CUDA device, and the emulator runs on the CPU: pass a host array"
        )
    if isinstance(argument, PlainArgument):
        return argument.value
    _, array = copies.get(argument.place.index, (argument, argument.array))
    return array if array.ndim else array.reshape(1)  # the emulator takes an array without axes for a number
