"""atom and red (PTX ISA 9.7.13.4, 9.7.13.5): read-modify-write, one thread after the other in thread order.

Threads of one instruction that hit the same place are taken in rounds, one thread a place and round, so that every
thread gets the value that the one before it left. An integer addition without a result needs no rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator import semantics
from ptxtile.emulator.actions.access import Access, space_of
from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.memory import Index
from ptxtile.emulator.operands import Read, address_reader, reader, refuse_undefined, writer
from ptxtile.emulator.ordering import strength_of
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.report import fault, stop
from ptxtile.emulator.semantics import Call
from ptxtile.emulator.spaces import Part
from ptxtile.emulator.step import Run, action
from ptxtile.emulator.widths import Bits, bytes_of
from ptxtile.ir.operand import Operand, Sink, Vector

Update = Callable[[Bits, tuple[Bits, ...]], Bits]
"""The new value, from the old one and the operands."""

OPERATIONS = frozenset({".add", ".min", ".max", ".and", ".or", ".xor", ".exch", ".cas", ".inc", ".dec"})


@action("atom", "red")
def atomic(program: Program, site: Site) -> Run:
    """Every scalar operation and type."""
    modifiers = site.instruction.form.modifiers
    operands = list(site.instruction.operands)
    destination: Operand = Sink() if site.opcode == "red" else operands.pop(0)
    address, *sources = operands
    operation = next((modifier for modifier in modifiers if modifier in OPERATIONS), "")
    count = 2 if operation == ".cas" else 1
    if not operation or ".async" in modifiers or isinstance(sources[0], Vector):
        raise stop("unsupported", f"the emulator cannot run {site.instruction.form.spelling} yet", site)
    name = modifiers[-1]
    readers = [reader(program, site, source, name) for source in sources[:count]]
    write = writer(site, destination, name)
    locate = address_reader(program, site, address)
    width = bytes_of(name)
    access = Access(space_of(program, site, address), width, width, strength_of(site))
    update = update_of(operation, name, access.space != "global")
    quick = isinstance(destination, Sink) and operation == ".add" and name[1] in "us"

    def run(lanes: Lanes) -> None:
        addresses = locate(lanes)
        values = _values(lanes, readers)
        for part in lanes.wave.spaces.parts(lanes, access.space, addresses, width, "updates"):
            chosen = tuple(v if part.positions is None else v[part.positions] for v in values)
            _check(part, access)
            if quick and width >= 4:
                np.add.at(part.store.elements(width), part.offsets // width, chosen[0])
                lanes.wave.happened()
                continue
            write(part.lanes, _rounds(part, width, chosen, update), None)

    return run


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
    shadow = part.store.shadow(part.index(access.width), access.width)
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


def update_of(operation: str, name: str, keeps_subnormals: bool) -> Update:
    """The function of one atomic operation on one type.

    keeps_subnormals   .add.f32 flushes subnormal inputs and results to zero in global memory, not in shared memory
    """
    if operation == ".exch":
        return lambda old, values: values[0]
    if operation == ".cas":
        return _compare_and_swap
    if operation in (".inc", ".dec"):
        return _increment if operation == ".inc" else _decrement
    opcode = operation[1:]
    words: tuple[str, ...] = ()
    if name.startswith((".f", ".bf")) and operation == ".add":
        words = (".rn", ".ftz") if name == ".f32" and not keeps_subnormals else (".rn",)
    if opcode in ("and", "or", "xor"):
        name = name.replace("u", "b").replace("s", "b")
    function = semantics.find(opcode)
    assert function is not None
    modifiers = (*words, name)

    def update(old: Bits, values: tuple[Bits, ...]) -> Bits:
        call = Call(opcode + "".join(modifiers), opcode, modifiers, {"type": name}, (name,) * 3, len(old))
        found = function(call, old, values[0])
        assert isinstance(found, np.ndarray)
        return found

    return update


def _compare_and_swap(old: Bits, values: tuple[Bits, ...]) -> Bits:
    expected, new = values
    same = old == expected
    if old.ndim > 1:
        same = same.all(axis=1, keepdims=True)
    swapped: Bits = np.where(same, new, old)
    return swapped


def _increment(old: Bits, values: tuple[Bits, ...]) -> Bits:
    found: Bits = np.where(old >= values[0], old.dtype.type(0), old + old.dtype.type(1))
    return found


def _decrement(old: Bits, values: tuple[Bits, ...]) -> Bits:
    limit = values[0]
    found: Bits = np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1))
    return found
