"""Host arguments to the bytes of an entry's parameters, and arrays back to the host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Union

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.memory import Memory
from ptxtile.emulator.placement import align_up, alignment_of, size_of
from ptxtile.emulator.program import Program
from ptxtile.emulator.widths import bits_of
from ptxtile.errors import EmulatorError
from ptxtile.ir.module import Function, Parameter
from ptxtile.ir.tensor_map import BYTES, Mapped

Argument = Union[NDArray[np.generic], np.generic, int, float, bool, bytes, Mapped]


@dataclass(frozen=True, slots=True)
class Copy:
    """An array's bytes on the device: `address` of its first element, `size` bytes, in C order."""

    array: NDArray[np.generic]
    address: int
    size: int


def place_arrays(memory: Memory, given: Sequence[Argument], function: Function) -> list[Copy | None]:
    """Copy the arrays among the arguments to device memory; arrays that overlap share it as they do on the host."""
    spans: list[tuple[int, int, int]] = []
    arguments = [argument.array if isinstance(argument, Mapped) else argument for argument in given]
    copies: list[Copy | None] = [None] * len(arguments)
    for number, (argument, parameter) in enumerate(zip(arguments, function.parameters)):
        mapped = isinstance(given[number], Mapped)
        if isinstance(argument, np.ndarray) and argument.dtype.hasobject:
            text = f"{_title(number, parameter)} is an array of Python objects; a kernel takes numbers"
            raise EmulatorError(text, kind="launch")
        if isinstance(argument, np.ndarray) and (mapped or not parameter.shape) and argument.ndim:
            if argument.flags.c_contiguous:
                start = argument.__array_interface__["data"][0]
                spans.append((start, start + argument.nbytes, number))
            else:
                copies[number] = _alone(memory, argument, _title(number, parameter))
    for start, stop, numbers in _overlapping(spans):
        name = " and ".join(_title(number, function.parameters[number]) for number in numbers)
        base = memory.allocate(stop - start, name=name, written=True)
        for number in numbers:
            array = arguments[number]
            assert isinstance(array, np.ndarray)
            copy = Copy(array, base + array.__array_interface__["data"][0] - start, array.nbytes)
            memory.write(copy.address, array)
            copies[number] = copy
    return copies


def _title(number: int, parameter: Parameter) -> str:
    return f"argument {number + 1} ({parameter.name})"


def _alone(memory: Memory, array: NDArray[np.generic], name: str) -> Copy:
    address = memory.allocate(array.nbytes, name=name, written=True)
    memory.write(address, array)
    return Copy(array, address, array.nbytes)


def _overlapping(spans: list[tuple[int, int, int]]) -> list[tuple[int, int, list[int]]]:
    """Spans of host memory merged where they share a byte; empty ones stay by themselves."""
    merged: list[tuple[int, int, list[int]]] = []
    for start, stop, number in sorted(spans):
        if merged and start < merged[-1][1] and start < stop:
            low, high, numbers = merged[-1]
            merged[-1] = (low, max(high, stop), [*numbers, number])
        else:
            merged.append((start, stop, [number]))
    return sorted(merged, key=lambda span: min(span[2]))


def take_back(memory: Memory, copies: Sequence[Copy | None]) -> None:
    """Copy device memory back into the arrays."""
    for copy in copies:
        if copy is not None and copy.array.flags.writeable:
            raw = np.frombuffer(memory.read(copy.address, copy.size), copy.array.dtype)
            copy.array[...] = raw.reshape(copy.array.shape)


def pack(function: Function, arguments: Sequence[Argument], copies: Sequence[Copy | None]) -> bytes:
    """The parameter space of an entry (PTX ISA 5.1.6.1): each argument at its parameter's offset."""
    if len(arguments) != len(function.parameters):
        have = ", ".join(f".{p.type} {p.name}" for p in function.parameters) or "none"
        raise EmulatorError(
            f"{function.name} takes {len(function.parameters)} parameters ({have}), {len(arguments)} arguments were "
            "given",
            kind="launch",
        )
    space = bytearray()
    for number, (parameter, argument, copy) in enumerate(zip(function.parameters, arguments, copies)):
        space.extend(bytes(align_up(len(space), alignment_of(parameter)) - len(space)))
        space.extend(_encode(number, parameter, argument, copy))
    return bytes(space)


def _encode(number: int, parameter: Parameter, argument: Argument, copy: Copy | None) -> bytes:
    size = size_of(parameter)
    what = f"{_title(number, parameter)} is .{parameter.type}{''.join(f'[{n}]' for n in parameter.shape)}"
    if isinstance(argument, Mapped):
        if copy is None or size != BYTES:
            raise EmulatorError(f"{what}; a tensor map of an array takes {BYTES} bytes", kind="launch")
        return argument.map.pack(copy.address)
    if copy is not None:
        if bits_of(parameter.type) != 64 or parameter.type[0] == "f":
            raise EmulatorError(f"{what}, which cannot hold the address of an array", kind="launch")
        return copy.address.to_bytes(size, "little")
    if isinstance(argument, (bytes, bytearray)) or (parameter.shape and isinstance(argument, np.ndarray)):
        raw = bytes(argument) if isinstance(argument, (bytes, bytearray)) else argument.tobytes()
        if len(raw) != size:
            raise EmulatorError(f"{what} of {size} bytes; {len(raw)} bytes were given", kind="launch")
        return raw
    if parameter.shape or parameter.vector > 1:
        raise EmulatorError(f"{what}; it takes {size} bytes or an array of that size", kind="launch")
    return _scalar(what, parameter.type, argument).ljust(size, b"\0")


def _scalar(what: str, name: str, argument: Argument) -> bytes:
    bits = bits_of(name)
    if isinstance(argument, (np.generic, np.ndarray)):
        value = np.asarray(argument)
        if value.dtype.kind not in "iubf":  # formats of ml_dtypes go in by their bits
            if value.dtype.itemsize * 8 != bits:
                raise EmulatorError(
                    f"{what}; a {value.dtype} of {value.dtype.itemsize * 8} bits was given", kind="launch"
                )
            return value.tobytes()
        if value.dtype.itemsize * 8 == bits and (value.dtype.kind == "f" or name[0] != "f"):
            return value.tobytes()
        argument = value.item()
    if not isinstance(argument, (int, float)):
        raise EmulatorError(
            f"{what}; {type(argument).__name__} {argument!r} is no value for it", kind="launch"
        )
    return _number(what, name, bits, argument)


def _number(what: str, name: str, bits: int, value: int | float) -> bytes:
    """A Python number as the parameter's type; one that does not fit is refused."""
    if name in ("f16", "f32", "f64"):
        return np.array(value, f"<f{bits // 8}").tobytes()
    if isinstance(value, float):
        raise EmulatorError(f"{what}; the float {value!r} is no integer", kind="launch")
    low = -(1 << (bits - 1)) if name[0] in "sb" else 0
    high = (1 << (bits - 1)) if name[0] == "s" else 1 << bits
    if not low <= value < high:
        raise EmulatorError(f"{what}; {value} does not fit into it", kind="launch")
    return (int(value) & ((1 << bits) - 1)).to_bytes(bits // 8, "little")


def entry_parameters(program: Program, name: str) -> tuple[Parameter, ...]:
    """The parameters of an entry."""
    return program.code(name).function.parameters
