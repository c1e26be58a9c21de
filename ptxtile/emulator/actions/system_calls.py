"""Functions that the system gives to programs: vprintf, and the __assertfail of C's assert (CUDA C++ Guide)."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator import windows
from ptxtile.emulator.actions.control import fall_through, jump
from ptxtile.emulator.formatting import Conversion, parse, render
from ptxtile.emulator.group import Group
from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.memory import Addresses
from ptxtile.emulator.operands import place_of, refuse_undefined
from ptxtile.emulator.ordering import Strength
from ptxtile.emulator.placement import Place
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.report import fault, stop
from ptxtile.emulator.step import Control
from ptxtile.ir.operand import Operand, Symbol

Words = NDArray[np.unsignedinteger]
Operands = tuple[Operand, ...]
Compile = Callable[[Program, Site, Operands, Operands], Control]
LONGEST = 1 << 16
"""Bytes of a string after which it counts as one without an end."""
NULL_FORMAT = -1 & 0xFFFFFFFF
"""What vprintf returns where there is no format."""


def _places(program: Program, site: Site, operands: Operands, count: int, name: str) -> list[Place]:
    """Where the .param variables of a call lie."""
    found = [place_of(program, site, o.name) if isinstance(o, Symbol) else None for o in operands]
    if len(found) != count or any(place is None for place in found):
        raise stop("launch", f"{name} takes {count} parameters of .param space", site)
    return [place for place in found if place is not None]


def _fetch(lanes: Lanes, space: str, addresses: Addresses, width: int, what: str) -> Words:
    """One element in every thread."""
    found = np.zeros(lanes.count, np.dtype(f"u{width}"))
    sanitizer = lanes.wave.machine.sanitizer
    for part in lanes.wave.spaces.parts(lanes, space, addresses, width, "reads"):
        if sanitizer is not None:
            sanitizer.read(part, width, Strength())
        index = part.offsets // width
        shadow = part.store.shadow(index, width)
        if shadow is not None:
            refuse_undefined(part.lanes, shadow, what, "memory")
        found[slice(None) if part.positions is None else part.positions] = part.store.gather(index, width)
    return found


def _parameter(group: Group, lanes: Lanes, place: Place, width: int) -> Words:
    address = np.full(lanes.count, place.address + group.frame.local, np.uint64)
    return _fetch(lanes, "local", address, width, "a parameter of the call")


def _text(lanes: Lanes, address: int) -> str:
    """A string that ends with a zero byte, at a generic address."""
    raw = bytearray()
    first = lanes.at(np.zeros(1, np.intp))
    while len(raw) < LONGEST:
        place = np.array([address + len(raw)], np.uint64)
        byte = int(_fetch(first, "", place, 1, "a string")[0])
        if not byte:
            break
        raw.append(byte)
    return raw.decode(errors="replace")


def _vprintf(program: Program, site: Site, results: Operands, arguments: Operands) -> Control:
    """Print from every thread, in the order of threads; returns how many values the format takes."""
    format_place, values_place = _places(program, site, arguments, 2, "vprintf")
    answers = _places(program, site, results, len(results), "vprintf")

    def run(group: Group, lanes: Lanes) -> None:
        fall_through(group, lanes)
        if not lanes.count:
            return
        formats = _parameter(group, lanes, format_place, 8)
        values = _parameter(group, lanes, values_place, 8).astype(np.uint64)
        texts = [""] * lanes.count
        counts = np.full(lanes.count, NULL_FORMAT, np.uint32)
        for address in np.unique(formats[formats != 0]):
            positions = np.flatnonzero(formats == address)
            some = lanes.at(positions)
            conversions = parse(_text(some, int(address)))
            for position, text in zip(positions, _rendered(some, conversions, values[positions])):
                texts[position] = text
            counts[positions] = sum(1 + c.stars for c in conversions if c.letter)
        sys.stdout.write("".join(texts))
        for place in answers:
            _answer(group, lanes, place, counts)
        jump(group, lanes, lanes.threads, site.number + 1)

    return run


def _rendered(lanes: Lanes, conversions: list[Conversion], buffer: Addresses) -> list[str]:
    """What each thread prints."""
    lines: list[list[str]] = [[] for _ in range(lanes.count)]
    offset = number = 0

    def take(size: int) -> Words:
        nonlocal offset, number
        offset, number = -(-offset // size) * size + size, number + 1
        what = f"what vprintf prints as value {number}"
        return _fetch(lanes, "", buffer + np.uint64(offset - size), size, what)

    for conversion in conversions:
        if not conversion.letter:
            for line in lines:
                line.append(conversion.text)
            continue
        stars = [take(4).view(np.int32).tolist() for _ in range(conversion.stars)]
        words = take(conversion.size)
        for position, line in enumerate(lines):
            value = _value(lanes, conversion, words[position : position + 1], position)
            line.append(render(conversion, value, [star[position] for star in stars]))
    return ["".join(line) for line in lines]


def _value(lanes: Lanes, conversion: Conversion, word: Words, position: int) -> int | float | str:
    if conversion.letter == "s":
        address = int(word[0])
        return _text(lanes.at(np.array([position])), address) if address else "(null)"
    if conversion.letter in "eEfFgGaA":
        return float(word.view(np.float64)[0])
    return int(word[0])


def _answer(group: Group, lanes: Lanes, place: Place, counts: Words) -> None:
    spaces = lanes.wave.spaces
    inside = place.address + group.frame.local - windows.LOCAL_START
    spaces.local.scatter((lanes.threads * spaces.local_stride + inside) // 4, 4, counts)


def _assertfail(program: Program, site: Site, results: Operands, arguments: Operands) -> Control:
    """Stop the program, with what it says: message, file, line and function, and the size of a character."""
    places = _places(program, site, arguments, 5, "__assertfail")

    def run(group: Group, lanes: Lanes) -> None:
        fall_through(group, lanes)
        if not lanes.count:
            return
        first = lanes.at(np.zeros(1, np.intp))
        message, file, function = (_said(group, first, places[i]) for i in (0, 1, 3))
        line = int(_parameter(group, first, places[2], 4)[0])
        raise fault("trap", f"assertion failed: {message} ({file}:{line}, {function})", lanes, 0)

    return run


def _said(group: Group, lanes: Lanes, place: Place) -> str:
    return _text(lanes, int(_parameter(group, lanes, place, 8)[0]))


SYSTEM: dict[str, Compile] = {"vprintf": _vprintf, "__assertfail": _assertfail}
"""Functions without a body that a program may call, by name."""
