"""Loads and stores (PTX ISA 9.7.9.8 to 9.7.9.12): ld ldu st, prefetch and its kin, cvta, isspacep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

import numpy as np

from ptxtile.emulator import windows
from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.memory import Addresses
from ptxtile.emulator.operands import (
    Read,
    Write,
    address_reader,
    place_of,
    reader,
    refuse_undefined,
    writer,
)
from ptxtile.emulator.ordering import Strength, strength_of
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.registers import Shadow
from ptxtile.emulator.report import fault, stop
from ptxtile.emulator.spaces import Part
from ptxtile.emulator.step import Run, action
from ptxtile.emulator.widths import Bits, bytes_of, holder
from ptxtile.ir.operand import Address, Operand, Symbol, Vector

SPACES = frozenset(
    {
        ".global",
        ".shared",
        ".shared::cta",
        ".shared::cluster",
        ".local",
        ".const",
        ".param",
        ".param::entry",
        ".param::func",
    }
)


def space_of(program: Program, site: Site, operand: Operand) -> str:
    """The state space that an ld or st names, without dot; "" is generic.

    `.param` means the kernel's parameters, or a function's, which lie in the thread's local memory.
    """
    written = next((modifier for modifier in site.instruction.form.modifiers if modifier in SPACES), "")
    if written.startswith(".param"):
        if isinstance(operand, Address) and isinstance(operand.base, Symbol):
            place = place_of(program, site, operand.base.name)
            return "param" if place is None else place.space
        return "param"
    return written[1:]


def element_type(site: Site) -> str:
    """The type of what is loaded or stored: the last modifier."""
    return site.instruction.form.modifiers[-1]


def elements(operand: Operand) -> tuple[Operand, ...]:
    """The scalars of a vector operand, or the scalar itself."""
    return operand.elements if isinstance(operand, Vector) else (operand,)


@dataclass(frozen=True, slots=True)
class Access:
    """What a load or store does to memory: space, bytes of an element and of the whole, and memory-model strength."""

    space: str
    width: int
    total: int
    strength: Strength


def access_of(program: Program, site: Site, address: Operand, count: int) -> Access:
    """The Access of a site."""
    width = bytes_of(element_type(site))
    return Access(space_of(program, site, address), width, width * count, strength_of(site))


@action("ld", "ldu")
def ld(program: Program, site: Site) -> Run:
    """ld, ld.global.nc, ldu: every vector length; the value extends to a wider register."""
    destination, address = site.instruction.operands[:2]
    name = element_type(site)
    parts = elements(destination)
    writers = [writer(site, part, name) for part in parts]
    locate = address_reader(program, site, address)
    access = access_of(program, site, address, len(parts))

    def run(lanes: Lanes) -> None:
        addresses = locate(lanes)
        found = list(lanes.wave.spaces.parts(lanes, access.space, addresses, access.total, "reads"))
        if len(found) == 1 and found[0].positions is None:
            _load_part(found[0], access, writers)
            return
        for part in found:
            _load_part(part, access, writers)

    return run


def _load_part(part: Part, access: Access, writers: list[Write]) -> None:
    lanes, store = part.lanes, part.store
    sanitizer = lanes.wave.machine.sanitizer
    if sanitizer is not None:
        sanitizer.read(part, access.total, access.strength)
    width = access.width
    found: list[tuple[Bits, Shadow]] = []
    for i in range(len(writers)):
        if part.stride == 0:
            one = (part.offsets[:1] + i * width) // width
            value = store.gather(one, width)
            found.append(
                (
                    np.broadcast_to(value, (lanes.count, *value.shape[1:])),
                    _repeat(store.shadow(one, width), lanes),
                )
            )
        else:
            index = part.index(width, i * width)
            found.append((store.gather(index, width), store.shadow(index, width)))
    for write, (value, shadow) in zip(writers, found):
        write(lanes, value, shadow)


def _repeat(shadow: Shadow, lanes: Lanes) -> Shadow:
    return None if shadow is None else np.repeat(shadow, lanes.count, axis=0)


Sources = list[Union[Read, None]]


@action("st")
def st(program: Program, site: Site) -> Run:
    """st: every vector length; an undefined bit stops the program, since others would read it."""
    modifiers = site.instruction.form.modifiers
    # st.async without an mbarrier tells nobody when it arrives: it is a store like any other.
    counted = ".mbarrier::complete_tx::bytes" in modifiers and bool(site.instruction.operands[2:])
    if modifiers[0] == ".bulk" or counted:
        from ptxtile.emulator.actions import remote

        return (
            remote.zeros(program, site)
            if modifiers[0] == ".bulk"
            else remote.asynchronous_store(program, site)
        )
    address, source = site.instruction.operands[:2]
    name = element_type(site)
    parts = elements(source)
    readers = [reader(program, site, part, name) for part in parts]
    locate = address_reader(program, site, address)
    access = access_of(program, site, address, len(parts))
    if access.space in ("const", "param"):
        raise stop("unsupported", f"the emulator cannot store to .{access.space}", site)

    def run(lanes: Lanes) -> None:
        addresses = locate(lanes)
        values = [read(lanes) for read in readers]
        lost = any(shadow is not None for _, shadow in values)
        for target in lanes.wave.spaces.parts(lanes, access.space, addresses, access.total, "writes"):
            if (
                lost and target.store is not lanes.wave.spaces.local
            ):  # what only the thread sees may be undefined
                _refuse_lost(target, parts, values)
            _store_part(target, access, values)

    return run


def _refuse_lost(target: Part, parts: tuple[Operand, ...], values: list[tuple[Bits, Shadow]]) -> None:
    """Stop if one of these threads stores an undefined bit, which others would read."""
    for part, (_, shadow) in zip(parts, values):
        chosen = shadow if shadow is None or target.positions is None else shadow[target.positions]
        if chosen is not None and chosen.any():
            refuse_undefined(target.lanes, chosen, "the stored value", f"register {part}")


def _store_part(part: Part, access: Access, values: list[tuple[Bits, Shadow]]) -> None:
    lanes, store = part.lanes, part.store
    if store.readonly:
        raise fault("read-only", f"read-only: the {store.name} cannot be written", lanes, 0)
    sanitizer = lanes.wave.machine.sanitizer
    if lanes.wave.mbarriers.objects and store is lanes.wave.spaces.shared:
        lanes.wave.mbarriers.overwritten(lanes, part.offsets, access.total)
    chosen = [
        value if part.positions is None or value.ndim == 0 else value[part.positions] for value, _ in values
    ]
    if sanitizer is not None:
        sanitizer.write(part, access.total, access.strength, chosen)
    for i, value in enumerate(chosen):
        shadow = values[i][1]
        if shadow is not None and part.positions is not None:
            shadow = shadow[part.positions]
        store.scatter(part.index(access.width, i * access.width), access.width, value, shadow)
    lanes.wave.happened()


@action("prefetch", "prefetchu", "discard", "applypriority", "createpolicy")
def hint(program: Program, site: Site) -> Run:
    """Instructions about caches; an address must still be a defined one."""
    if site.opcode == "createpolicy":
        write = writer(site, site.instruction.operands[0], ".b64")
        return lambda lanes: write(lanes, np.zeros(lanes.count, np.uint64), None)
    locate = address_reader(program, site, site.instruction.operands[0])

    def run(lanes: Lanes) -> None:
        locate(lanes)

    return run


@action("cvta")
def cvta(program: Program, site: Site) -> Run:
    """cvta (9.7.9.20): to generic from a space, and with .to back."""
    destination, source = site.instruction.operands
    name = element_type(site)
    space = next(m for m in site.instruction.form.modifiers if m in SPACES)[1:].partition("::")[0]
    read, write = reader(program, site, source, name), writer(site, destination, name)
    base = windows.WINDOWS.get(space, 0)
    kind = holder(bytes_of(name) * 8)
    if ".to" in site.instruction.form.modifiers:
        base = -base
    step = kind.type(base & ((1 << bytes_of(name) * 8) - 1))

    def run(lanes: Lanes) -> None:
        value, shadow = read(lanes)
        write(lanes, (value + step).astype(kind, copy=False), shadow)

    return run


@action("isspacep")
def isspacep(program: Program, site: Site) -> Run:
    """isspacep (9.7.9.19): whether a generic address lies in a space's window."""
    destination, source = site.instruction.operands
    space = site.instruction.form.modifiers[-1][1:]
    read, write = reader(program, site, source, ".u64"), writer(site, destination, ".pred")

    def run(lanes: Lanes) -> None:
        value, shadow = read(lanes)
        marked = None if shadow is None else shadow != 0
        write(lanes, _inside(lanes, space, value.astype(np.uint64, copy=False)), marked)

    return run


def _inside(lanes: Lanes, space: str, address: Addresses) -> Bits:
    name = space.partition("::")[0]
    if name == "global":
        windowed = [
            (address >= np.uint64(b)) & (address < np.uint64(b + windows.WINDOW_SIZE))
            for b in windows.WINDOWS.values()
        ]
        found: Bits = ~np.logical_or.reduce(windowed)
        return found
    base = np.uint64(windows.WINDOWS[name])
    found = (address >= base) & (address < base + np.uint64(windows.WINDOW_SIZE))
    if space in ("shared", "shared::cta"):
        rank = (address - base) >> np.uint64(windows.RANK_SHIFT)
        found = found & (rank == lanes.wave.rank_of(lanes).astype(np.uint64))
    return found
