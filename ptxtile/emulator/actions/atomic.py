"""atom and red (PTX ISA 9.7.13.4, 9.7.13.5): read-modify-write, one thread after the other in thread order.

Threads of one instruction that hit the same place are taken in rounds, one thread a place and round, so that every
thread gets the value that the one before it left. An integer addition without a result needs no rounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.actions.access import Access, elements, space_of
from ptxtile.emulator.actions.remote import asynchronous_reduction
from ptxtile.emulator.actions.updates import OPERATIONS, Update, update_of
from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.memory import Index
from ptxtile.emulator.operands import Read, Write, address_reader, reader, refuse_undefined, writer
from ptxtile.emulator.ordering import strength_of
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.report import fault
from ptxtile.emulator.spaces import Part
from ptxtile.emulator.step import Run, action
from ptxtile.emulator.widths import Bits, bytes_of
from ptxtile.ir.operand import Operand, Sink


@action("atom", "red")
def atomic(program: Program, site: Site) -> Run:
    """Every operation and type; of a vector, each element by itself."""
    modifiers = site.instruction.form.modifiers
    operands = list(site.instruction.operands)
    destination: Operand = operands.pop(0) if site.opcode == "atom" else Sink()
    address, *sources = operands
    operation = next((modifier for modifier in modifiers if modifier in OPERATIONS), "")
    if any(modifier.startswith(".mbarrier") for modifier in modifiers):
        return asynchronous_reduction(program, site)
    name = modifiers[-1]
    count = 2 if operation == ".cas" else 1
    parts = elements(sources[0])
    readers = [[reader(program, site, part, name) for part in (each, *sources[1:count])] for each in parts]
    writes = _writers(site, destination, name, len(parts))
    locate = address_reader(program, site, address)
    width = bytes_of(name)
    access = Access(space_of(program, site, address), width, width * len(parts), strength_of(site))
    updates = {inside: update_of(operation, name, inside) for inside in (False, True)}
    quick = isinstance(destination, Sink) and operation == ".add" and name[1] in "us"

    def run(lanes: Lanes) -> None:
        addresses = locate(lanes)
        values = [_values(lanes, each) for each in readers]
        for part in lanes.wave.spaces.parts(lanes, access.space, addresses, access.total, "updates"):
            _check(part, access)
            update = updates[part.store is lanes.wave.spaces.shared]
            for number, (each, write) in enumerate(zip(values, writes)):
                chosen = tuple(v if part.positions is None else v[part.positions] for v in each)
                element = part if not number else replace(part, offsets=part.offsets + number * width)
                if quick and width >= 4:
                    np.add.at(part.store.elements(width), element.offsets // width, chosen[0])
                    lanes.wave.happened()
                else:
                    write(part.lanes, _rounds(element, width, chosen, update), None)

    return run


def _writers(site: Site, destination: Operand, name: str, count: int) -> list[Write]:
    if isinstance(destination, Sink):
        return [writer(site, destination, name)] * count
    return [writer(site, part, name) for part in elements(destination)]


def _values(lanes: Lanes, readers: list[Read]) -> list[Bits]:
    values = []
    for read in readers:
        value, shadow = read(lanes)
        if shadow is not None:
            refuse_undefined(lanes, shadow, "what goes to memory", "a register")
        values.append(value)
    return values


def _check(part: Part, access: Access) -> None:
    if part.store.readonly:
        raise fault("read-only", f"read-only: the {part.store.name} cannot be written", part.lanes, 0)
    for shift in range(0, access.total, access.width):
        shadow = part.store.shadow(part.index(access.width, shift), access.width)
        if shadow is not None:
            refuse_undefined(part.lanes, shadow, "the updated value", "memory")
    sanitizer = part.lanes.wave.machine.sanitizer
    if sanitizer is not None:
        sanitizer.write(part, access.total, access.strength, ())


def _rounds(part: Part, width: int, values: tuple[Bits, ...], update: Update) -> Bits:
    """Do the updates; the values before each."""
    index = part.index(width)
    if isinstance(index, slice):
        return _update(part, index, width, values, update)
    if len(values) == 2:
        return _swaps(part, index, width, values)
    result: Bits | None = None
    for chosen in rounds(index):
        places = index[chosen]
        old = _update(part, places, width, tuple(value[chosen] for value in values), update)
        if result is None:
            result = np.zeros((len(index), *old.shape[1:]), old.dtype)
        result[chosen] = old
    assert result is not None
    return result


def _swaps(part: Part, index: NDArray[np.int64], width: int, values: tuple[Bits, ...]) -> Bits:
    """Compare-and-swaps: all that fail now do so at once; of those that would succeed, one a place does."""
    expected, new = values
    result = np.zeros_like(expected)
    left = np.arange(len(index))
    while len(left):
        old = part.store.gather(index[left], width)
        result[left] = old
        same = old == expected[left]
        left = left[same if same.ndim == 1 else same.all(axis=1)]
        if not len(left):
            break
        _, first = np.unique(index[left], return_index=True)
        winners = left[first]
        part.store.scatter(index[winners], width, new[winners])
        part.lanes.wave.happened()
        left = np.delete(left, first)
    return result


def _update(part: Part, index: Index, width: int, values: tuple[Bits, ...], update: Update) -> Bits:
    old = part.store.gather(index, width)
    new = update(old, values)
    part.store.scatter(index, width, new)
    if not np.array_equal(old, new):  # a failed compare-and-swap is nothing that others could have waited for
        part.lanes.wave.happened()
    return old


def rounds(places: NDArray[np.int64]) -> Iterator[NDArray[np.intp]]:
    """Positions in rounds: in each, every place at most once; earlier positions in earlier rounds."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    turn = np.arange(len(places)) - np.repeat(starts, np.diff(np.append(starts, len(places))))
    by_turn = np.argsort(turn, kind="stable")
    sizes = np.bincount(turn)
    for start, size in zip(np.cumsum(sizes) - sizes, sizes):
        yield np.sort(order[by_turn[start : start + size]])
