"""Operands made ready: from a record of `ir` to a function that reads or writes arrays over threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Union

import numpy as np

from ptxtile.emulator import windows
from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.memory import Addresses
from ptxtile.emulator.placement import Place
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.registers import Shadow, undefined
from ptxtile.emulator.report import fault, stop
from ptxtile.emulator.widths import Bits, bits_of, holder, is_signed
from ptxtile.ir.operand import (
    Address,
    Float,
    Integer,
    Negated,
    Operand,
    Register,
    Selected,
    Sink,
    Special,
    Symbol,
)

Read = Callable[[Lanes], tuple[Bits, Shadow]]
Write = Callable[[Lanes, Bits, Shadow], None]
Locate = Callable[[Lanes], Addresses]


@lru_cache(maxsize=512)
def constant(value: int, bits: int, count: int) -> Bits:
    """`count` times the same value, as a view of one element."""
    kind = holder(bits)
    if bits == 128:
        pair = np.array([value & (1 << 64) - 1, value >> 64], np.uint64)
        return np.broadcast_to(pair, (count, 2))
    masked = value & ((1 << bits) - 1)
    return np.broadcast_to(np.array(masked, kind), (count,))


def literal_bits(operand: Integer | Float, type_name: str) -> int:
    """The bit pattern of a literal as an operand of that type."""
    if isinstance(operand, Integer):
        return (
            operand.value & ((1 << max(bits_of(type_name), 1)) - 1)
            if bits_of(type_name) > 1
            else int(operand.value != 0)
        )
    bits = bits_of(type_name)
    if bits == operand.width:
        return operand.bits
    if bits == 32:
        wide = np.array([operand.bits], np.uint64).view(np.float64)
        with np.errstate(over="ignore"):
            return int(wide.astype(np.float32).view(np.uint32)[0])
    narrow = np.array([operand.bits], np.uint32).view(np.float32)
    return int(narrow.astype(np.float64).view(np.uint64)[0])


def reader(program: Program, site: Site, operand: Operand, type_name: str) -> Read:
    """A function that reads a scalar operand as bit patterns of `type_name` (with or without its dot)."""
    bits = bits_of(type_name)
    if isinstance(operand, Register):
        return _register_reader(site.register(operand), bits_of(operand.type), bits)
    if isinstance(operand, Negated):
        number = site.register(operand.register)

        def read_negated(lanes: Lanes) -> tuple[Bits, Shadow]:
            value, shadow = lanes.read(number)
            return ~value, shadow

        return read_negated
    if isinstance(operand, (Integer, Float)):
        value = literal_bits(operand, type_name)
        return lambda lanes: (constant(value, bits, lanes.count), None)
    if isinstance(operand, Special):
        name = operand.name
        kind = holder(bits)
        return lambda lanes: (lanes.wave.special(name, lanes).astype(kind, copy=False), None)
    if isinstance(operand, Symbol):
        locate = symbol_reader(program, site, operand)
        kind = holder(bits)
        return lambda lanes: (locate(lanes).astype(kind, copy=False), None)
    if isinstance(operand, Selected):
        return _part_reader(site, operand, bits)
    raise stop("unsupported", f"the emulator cannot read the operand {operand}", site)


def _register_reader(number: int, have: int, want: int) -> Read:
    if have == want:
        return lambda lanes: lanes.read(number)
    kind = holder(want)

    def read_cut(lanes: Lanes) -> tuple[Bits, Shadow]:
        value, shadow = lanes.read(number)
        return value.astype(kind), None if shadow is None else shadow.astype(kind)

    return read_cut


def _part_reader(site: Site, operand: Selected, bits: int) -> Read:
    number = site.register(operand.register)
    width = 8 if operand.part[0] == "b" else 16
    shift = int(operand.part[1]) * width
    kind = holder(bits)

    def read_part(lanes: Lanes) -> tuple[Bits, Shadow]:
        value, shadow = lanes.read(number)
        cut = (value >> value.dtype.type(shift)) & value.dtype.type((1 << width) - 1)
        return cut.astype(kind), None if shadow is None else (shadow >> value.dtype.type(shift)).astype(kind)

    return read_part


def place_of(program: Program, site: Site, name: str) -> Place | None:
    """Where a local, shared or parameter variable lies; None for a variable of global or const memory."""
    for scope in site.scope.chain():
        if name in scope.places:
            return scope.places[name]
    return program.places.get(name)


def symbol_reader(program: Program, site: Site, symbol: Symbol) -> Locate:
    """A function that gives the address of a symbol, in its own state space, in every thread (uint64)."""
    place = place_of(program, site, symbol.name)
    if place is None:
        name, offset = symbol.name, symbol.offset
        if name in program.functions:
            value = program.functions[name]
            return lambda lanes: constant(value, 64, lanes.count)
        return lambda lanes: constant(lanes.wave.address_of(name) + offset, 64, lanes.count)
    address = place.address + symbol.offset
    if place.space == "shared":

        def locate_shared(lanes: Lanes) -> Addresses:
            rank = lanes.wave.rank_of(lanes).astype(np.uint64)
            found: Addresses = (rank << np.uint64(windows.RANK_SHIFT)) + np.uint64(address)
            return found

        return locate_shared
    if place.space == "local":
        return lambda lanes: np.full(lanes.count, address + lanes.wave.frame_of(lanes), np.uint64)
    return lambda lanes: constant(address, 64, lanes.count)


def address_reader(program: Program, site: Site, operand: Operand) -> Locate:
    """A function that gives the address `[base+offset]` in every thread; an undefined one stops the program."""
    if not isinstance(operand, Address):
        raise stop("unsupported", f"the emulator cannot read the address {operand}", site)
    offset = np.uint64(operand.offset & (1 << 64) - 1)
    base = operand.base
    if isinstance(base, Symbol):
        locate = symbol_reader(program, site, base)
        return locate if not offset else lambda lanes: locate(lanes) + offset
    if isinstance(base, Integer):
        value = np.uint64((base.value + operand.offset) & (1 << 64) - 1)
        return lambda lanes: constant(int(value), 64, lanes.count)
    if not isinstance(base, Register):
        raise stop("unsupported", f"the emulator cannot read the address {operand}", site)
    number = site.register(base)

    def locate_register(lanes: Lanes) -> Addresses:
        value, shadow = lanes.read(number)
        if shadow is not None:
            refuse_undefined(lanes, shadow, f"the address {operand}", f"register {base.name}")
        wide = value.astype(np.uint64, copy=False)
        return wide + offset if offset else wide

    return locate_register


def refuse_undefined(lanes: Lanes, shadow: Bits, use: str, source: str) -> None:
    """Stop the program: bits that were never written are used for something that matters."""
    marked = shadow if shadow.ndim == 1 else shadow.any(axis=1)
    position = int(np.flatnonzero(marked)[0])
    raise fault(
        "uninitialised",
        f"uninitialised: {use} depends on {source}, which holds bits that were never written",
        lanes,
        position,
    )


def writer(site: Site, operand: Operand, type_name: str) -> Write:
    """A function that writes a scalar destination with bit patterns of `type_name`, extended to the register."""
    if isinstance(operand, Sink):
        return lambda lanes, value, shadow: None
    if not isinstance(operand, Register):
        raise stop("unsupported", f"the emulator cannot write the operand {operand}", site)
    number = site.register(operand)
    have, want = bits_of(operand.type), bits_of(type_name)
    kind = holder(have)
    if have == want or (have < 128 and want < 128 and kind == holder(want)):
        return lambda lanes, value, shadow: lanes.write(number, value, shadow)
    signed = is_signed(type_name) and have > want > 1

    def write_extended(lanes: Lanes, value: Bits, shadow: Shadow) -> None:
        source = value.view(np.dtype(f"i{value.dtype.itemsize}")) if signed else value
        lost = shadow
        if shadow is not None:
            lost = (shadow.view(source.dtype) if signed else shadow).astype(kind)
        lanes.write(number, source.astype(kind), lost)

    return write_extended


def spread(shadow: Bits, kind: np.dtype[np.generic]) -> Bits:
    """The shadow of a value as that of its extension: all bits of a thread that has any."""
    marked = shadow != 0
    return np.where(marked, undefined(kind), kind.type(0)).astype(kind)


Plain = Union[Register, Integer, Float, Special, Symbol, Negated, Selected]
