"""One call that runs an entry of a module on either machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptxtile import driver
from ptxtile.errors import OperandError
from ptxtile.execute.arguments import (
    Argument,
    DeviceArgument,
    HostArgument,
    MapArgument,
    PlainArgument,
    classify_all,
)
from ptxtile.execute.arrays import DeviceArray
from ptxtile.execute.emulated import emulate
from ptxtile.execute.entry import Entry, ModuleLike, entry_of
from ptxtile.execute.geometry import Extents, geometry
from ptxtile.execute.machine import Machine, choose
from ptxtile.execute.parameters import Place
from ptxtile.execute.staging import Staged
from ptxtile.execute.tensor_maps import encode
from ptxtile.isa import runs_on

__all__ = ["launch", "run", "target_here"]

_FLOAT32 = 3.4e38  # a little less than the largest one; what lies beyond takes the careful way


def run(
    module: ModuleLike,
    name: str,
    arguments: Sequence[object],
    *,
    grid: Extents,
    block: Extents | None = None,
    cluster: Extents | None = None,
    dynamic_shared: int = 0,
    stream: object = None,
    device: int | str | None = None,
    programmatic: bool = False,
    sanitize: bool = True,
    seed: int = 0,
) -> None:
    """Run one entry of a module.

    Host arrays are copied in and back, and the call waits; with device arrays alone it returns at once. To launch
    the same entry again and again, make an `Entry` and call `launch`.

    Args:
        module: a Module, or PTX text.
        name: the entry.
        arguments: one a parameter; see `arguments` for what may be given.
        grid, block, cluster, dynamic_shared: see `geometry.geometry`.
        stream: where to launch on a GPU; the legacy default stream if None.
        device: a CUDA ordinal or "emulator"; see `machine.choose` for the default.
        programmatic: the grid may start before the one ahead of it has ended (programmatic dependent launch).
        sanitize, seed: for the emulator.

    Raises:
        OperandError: arguments or geometry that do not fit the entry.
        DriverError: the driver refused the module or the launch, or the kernel faulted.
        EmulatorError: the emulator stopped the program.
    """
    entry = entry_of(module, name)
    shape = geometry(entry.function, grid, block, cluster, dynamic_shared, programmatic=programmatic)
    launch(entry, arguments, shape, stream=stream, device=device, sanitize=sanitize, seed=seed)


def _arrays_on(given: Sequence[Any]) -> int | None:
    """The CUDA device that the first argument that knows one lives on."""
    for value in given:
        kind = type(value)
        if kind is int or kind is float:
            continue
        if isinstance(value, DeviceArray):
            if value.device != "emulator":
                return value.device
        elif hasattr(value, "__dlpack_device__") and type(value).__module__ != "numpy":
            where, ordinal = value.__dlpack_device__()
            if where == 2:
                return int(ordinal)
    return None


def target_here(target: str, arguments: Sequence[object], device: int | str | None) -> str | None:
    """The target to make a module for in place of `target`, which is one architecture's or family's own: that of the
    device of a launch, where it is another. None where `target` is right, and for the emulator, which runs any."""
    if target[-1] not in "af":
        return None
    machine = choose(device, _arrays_on(arguments) if device is None else None)
    if machine == "emulator":
        return None
    own = driver.device(machine).target + "a"
    return None if own in runs_on(target) else own


def launch(
    entry: Entry,
    arguments: Sequence[object],
    shape: driver.Geometry,
    *,
    stream: object = None,
    device: int | str | None = None,
    sanitize: bool = True,
    seed: int = 0,
) -> Machine:
    """Launch an entry; like `run` with everything looked up. Returns the machine it ran on."""
    machine = choose(device, _arrays_on(arguments) if device is None else None)
    given = tuple(arguments)
    if machine == "emulator":
        emulate(entry, classify_all(entry.name, entry.places, given), shape, sanitize=sanitize, seed=seed)
        return machine
    handle = driver.stream_handle(stream)
    values = _quick_values(entry.places, given, machine)
    if values is not None:
        entry.launcher(machine, shape)(values, handle)
    else:
        _launch(entry, classify_all(entry.name, entry.places, given, handle), shape, handle, machine)
    return machine


def _quick_values(
    taken: tuple[Place, ...], given: tuple[Any, ...], ordinal: int
) -> list[driver.Value] | None:
    """The values of a launch with our own device arrays and plain numbers that fit; None for everything else."""
    if len(taken) != len(given):
        return None
    values: list[driver.Value] = []
    for place, value in zip(taken, given):
        kind = type(value)
        if kind is DeviceArray and place.holds_address and value.device == ordinal:
            address = value.address
            if address % place.alignment:
                return None
            values.append(address)
        elif (
            (kind is int and place.kind != "b" and place.low <= value <= place.high)
            or (kind is float and place.code == "d")
            or (kind is float and place.code == "f" and -_FLOAT32 < value < _FLOAT32)
        ):
            values.append(value)
        else:
            return None
    return values


def _launch(
    entry: Entry, arguments: tuple[Argument, ...], shape: driver.Geometry, stream: int, ordinal: int
) -> None:
    launcher = entry.launcher(ordinal, shape)
    values: list[driver.Value] = []
    host: list[HostArgument] = []
    maps: list[MapArgument] = []
    for argument in arguments:
        if isinstance(argument, MapArgument):
            maps.append(argument)
            argument = argument.array
        if isinstance(argument, PlainArgument):
            values.append(argument.value)
        elif isinstance(argument, HostArgument):
            host.append(argument)
            values.append(0)
        else:
            values.append(_address(argument, ordinal, stream))
    if not host:
        _encode(maps, values, ordinal)
        launcher(values, stream)
        return
    staged = Staged(host, ordinal, stream)
    try:
        for argument in host:
            address = values[argument.place.index] = staged.addresses[argument.place.index]
            _check_alignment(argument.place, address)
        _encode(maps, values, ordinal)
        launcher(values, stream)
    except BaseException:
        staged.abandon()
        raise
    staged.finish()


def _encode(maps: Sequence[MapArgument], values: list[driver.Value], ordinal: int) -> None:
    """Put each tensor map in the place of its array's address."""
    for argument in maps:
        address = values[argument.place.index]
        assert isinstance(address, int)
        values[argument.place.index] = encode(argument.place, argument.map, address, ordinal)


def _check_alignment(place: Place, address: int) -> None:
    """A misaligned access would end the CUDA context, so an address that breaks its promise is refused."""
    if address % place.alignment:
        raise OperandError(
            f"{place} starts at device address {address:#x}, and the kernel takes addresses that are multiples of "
            f"{place.alignment} (.ptr .align {place.alignment}): pass a copy"
        )


def _address(argument: DeviceArgument, ordinal: int, stream: int) -> int:
    if argument.ordinal is not None and argument.ordinal != ordinal:
        raise OperandError(
            f"{argument.place} is on device {argument.ordinal}, and the launch is on device {ordinal}: "
            f"pass device={argument.ordinal}, or copy the array"
        )
    _check_alignment(argument.place, argument.address)
    if argument.stream is not None and argument.stream != stream:
        driver.order_after(stream, argument.stream, ordinal)
    return argument.address
