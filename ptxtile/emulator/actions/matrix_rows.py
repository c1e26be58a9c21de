"""Rows of matrices in shared memory, whose addresses the lanes of a warp exchange (PTX ISA 9.7.14.5.15)."""

from __future__ import annotations

import numpy as np

from ptxtile.emulator.actions.access import space_of
from ptxtile.emulator.actions.bulk import named
from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.operands import Read, address_reader
from ptxtile.emulator.ordering import Strength
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.registers import Shadow
from ptxtile.emulator.report import fault
from ptxtile.emulator.widths import Bits

ROW = 16
"""Bytes of a row, and what its address is a multiple of."""


def row_addresses(program: Program, site: Site, count: int, verb: str) -> tuple[Read, str]:
    """A reader of the lanes' row addresses, which the first `count` lanes give and which are checked; the space."""
    operand = named(site)["p"]
    locate = address_reader(program, site, operand)

    def read(lanes: Lanes) -> tuple[Bits, Shadow]:
        found = locate(lanes)
        gives = lanes.wave.lane[lanes.where] < count
        odd = np.flatnonzero(gives & (found % np.uint64(ROW) != 0))
        if len(odd):
            text = f"misaligned: {verb} a row at shared address {int(found[odd[0]]):#x}, which is not a multiple of 16"
            raise fault("misaligned", text, lanes, int(odd[0]))
        return found, None

    return read, space_of(program, site, operand)


def row_count(site: Site) -> int:
    """How many matrices the instruction moves."""
    return int(next(m for m in site.instruction.form.modifiers if m in (".x1", ".x2", ".x4"))[2:])


def load_part(lanes: Lanes, space: str, addresses: Bits, width: int) -> tuple[Bits, Shadow]:
    """`width` bytes at the address of each lane, and which of their bits are undefined."""
    (part,) = lanes.wave.spaces.parts(lanes, space, addresses, width, "reads")
    sanitizer = lanes.wave.machine.sanitizer
    if sanitizer is not None:
        sanitizer.read(part, width, Strength())
    index = part.index(width)
    return part.store.gather(index, width), part.store.shadow(index, width)


def store_pieces(lanes: Lanes, space: str, results: list[Bits], pieces: list[Bits], width: int) -> None:
    """Each piece, of `width` bytes a lane, at its addresses."""
    sanitizer = lanes.wave.machine.sanitizer
    for addresses, piece in zip(results, pieces):
        (part,) = lanes.wave.spaces.parts(lanes, space, addresses, width, "writes")
        if sanitizer is not None:
            sanitizer.write(part, width, Strength(), (piece,))
        part.store.scatter(part.index(width), width, piece)
    lanes.wave.happened()
