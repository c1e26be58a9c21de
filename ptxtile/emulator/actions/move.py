"""mov (PTX ISA 9.7.9.6, 9.7.9.7): registers, literals, special registers, addresses, packs; mapa, getctarank."""

from __future__ import annotations

import numpy as np

from ptxtile.emulator import windows
from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.operands import reader, writer
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.registers import Shadow
from ptxtile.emulator.report import fault
from ptxtile.emulator.special import SPECIALS
from ptxtile.emulator.step import Run, action
from ptxtile.emulator.widths import Bits, bits_of, holder
from ptxtile.ir.operand import Operand, Special, Vector


@action("mov")
def mov(program: Program, site: Site) -> Run:
    """mov in all of its signatures."""
    destination, source = site.instruction.operands
    name = site.instruction.form.modifiers[-1]
    if isinstance(source, Vector) and isinstance(destination, Vector):
        moves = [_plain(program, site, d, s, name) for d, s in zip(destination.elements, source.elements)]

        def run(lanes: Lanes) -> None:
            for move in moves:
                move(lanes)

        return run
    if isinstance(source, Vector):
        return _pack(program, site, destination, source, bits_of(name))
    if isinstance(destination, Vector):
        if isinstance(source, Special) and f"{source.name}.x" in SPECIALS:
            return _special_vector(program, site, destination, source, name)
        return _unpack(program, site, destination, source, name)
    return _plain(program, site, destination, source, name)


def _plain(program: Program, site: Site, destination: Operand, source: Operand, name: str) -> Run:
    read, write = reader(program, site, source, name), writer(site, destination, name)

    def run(lanes: Lanes) -> None:
        value, shadow = read(lanes)
        write(lanes, value, shadow)

    return run


def _pack(program: Program, site: Site, destination: Operand, source: Vector, bits: int) -> Run:
    """The elements, first in the low bits."""
    part = bits // len(source.elements)
    readers = [reader(program, site, element, f"b{part}") for element in source.elements]
    write = writer(site, destination, f"b{bits}")

    def run(lanes: Lanes) -> None:
        found = [read(lanes) for read in readers]
        value = pack([value for value, _ in found], bits)
        shadow: Shadow = None
        if any(own is not None for _, own in found):
            shadow = pack([np.zeros_like(v) if own is None else own for v, own in found], bits)
        write(lanes, value, shadow)

    return run


def pack(parts: list[Bits], bits: int) -> Bits:
    """Parts of `bits`/len each, put together, first in the low bits."""
    if bits == 128 and len(parts) == 2:
        return np.stack([part.astype(np.uint64) for part in parts], axis=1)
    if bits == 128:
        return np.stack([pack(parts[:2], 64), pack(parts[2:], 64)], axis=1)
    kind = holder(bits)
    width = bits // len(parts)
    value = parts[0].astype(kind)
    for i, part in enumerate(parts[1:], 1):
        value |= part.astype(kind) << kind.type(i * width)
    return value


def unpack(value: Bits, bits: int, count: int) -> list[Bits]:
    """What `pack` put together."""
    if bits == 128:
        halves = [value[:, 0], value[:, 1]]
        return halves if count == 2 else [part for half in halves for part in unpack(half, 64, count // 2)]
    width = bits // count
    kind = holder(width)
    return [(value >> value.dtype.type(i * width)).astype(kind) for i in range(count)]


def _unpack(program: Program, site: Site, destination: Vector, source: Operand, name: str) -> Run:
    bits, count = bits_of(name), len(destination.elements)
    read = reader(program, site, source, name)
    writers = [writer(site, element, f"b{bits // count}") for element in destination.elements]

    def run(lanes: Lanes) -> None:
        value, shadow = read(lanes)
        shadows: list[Bits] | list[None] = [None] * count if shadow is None else unpack(shadow, bits, count)
        for write, part, own in zip(writers, unpack(value, bits, count), shadows):
            write(lanes, part, own if own is not None and own.any() else None)

    return run


def _special_vector(program: Program, site: Site, destination: Vector, source: Special, name: str) -> Run:
    moves = [
        _plain(program, site, element, Special(f"{source.name}.{letter}"), name)
        for element, letter in zip(destination.elements, "xyzw")
    ]

    def run(lanes: Lanes) -> None:
        for move in moves:
            move(lanes)

    return run


@action("mapa")
def mapa(program: Program, site: Site) -> Run:
    """mapa (9.7.9.24): the address of the same variable in another CTA of the cluster."""
    destination, source, rank = site.instruction.operands
    name = site.instruction.form.modifiers[-1]
    read, read_rank = reader(program, site, source, name), reader(program, site, rank, ".u32")
    write = writer(site, destination, name)
    kind = holder(bits_of(name))
    keep = kind.type(((1 << bits_of(name)) - 1) & ~(0xFF << windows.RANK_SHIFT))

    def run(lanes: Lanes) -> None:
        value, shadow = read(lanes)
        target, _ = read_rank(lanes)
        outside = target >= np.uint32(lanes.wave.cluster_size)
        if outside.any():
            position = int(np.flatnonzero(outside)[0])
            text = f"the cluster has {lanes.wave.cluster_size} CTAs, and no rank {int(target[position])}"
            raise fault("out-of-bounds", text, lanes, position)
        write(lanes, (value & keep) | (target.astype(kind) << kind.type(windows.RANK_SHIFT)), shadow)

    return run


@action("getctarank")
def getctarank(program: Program, site: Site) -> Run:
    """getctarank (9.7.9.25): the rank of the CTA that a shared address belongs to."""
    destination, source = site.instruction.operands
    name = site.instruction.form.modifiers[-1]
    read, write = reader(program, site, source, name), writer(site, destination, ".u32")

    def run(lanes: Lanes) -> None:
        value, shadow = read(lanes)
        rank = (value >> value.dtype.type(windows.RANK_SHIFT)) & value.dtype.type(0xFF)
        write(lanes, rank.astype(np.uint32), None if shadow is None else shadow.astype(np.uint32))

    return run
