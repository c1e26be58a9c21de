"""Surfaces (PTX ISA 9.7.11) of one and two dimensions: suld, sust, sured, suq.

What stands outside stops the program under .trap, means the nearest place under .clamp, and reads as zero and is not
written under .zero. Accesses to surfaces are not checked for races.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.actions.textures import attribute, base_of, coordinates, handles, taken
from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.opaque import Image, Ints
from ptxtile.emulator.operands import Read, reader, writer
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.report import count_of, fault
from ptxtile.emulator.step import Run, action
from ptxtile.emulator.values import declared
from ptxtile.emulator.widths import bytes_of, holder
from ptxtile.ir.operand import Address, Operand, Vector

Update = Callable[..., Any]
UPDATES: dict[str, Update] = {
    ".add": np.add.at,
    ".min": np.minimum.at,
    ".max": np.maximum.at,
    ".and": np.bitwise_and.at,
    ".or": np.bitwise_or.at,
}


@dataclass(frozen=True, slots=True)
class Access:
    """An instruction's place on a surface. `width`: bytes of an element, of which it moves `count`."""

    handle: Callable[[Lanes], NDArray[np.uint64]]
    reads: list[Read]
    clamp: str
    width: int
    count: int
    samples: bool
    verb: str

    def places(self, lanes: Lanes) -> Iterator[tuple[NDArray[np.intp], Image, Ints]]:
        """For each surface: the positions of threads that reach it, and where in its bytes; -1: nowhere."""
        values = [x.view(np.int32).astype(np.int64) for x in taken(lanes, self.reads, "where the surface is")]
        for positions, handle in handles(lanes, self.handle(lanes), "surface"):
            assert handle.image is not None
            x = values[0][positions]
            y = np.zeros_like(x) if handle.image.flat else values[1][positions]
            yield positions, handle.image, self._inside(lanes, handle.image, x, y, positions)

    def _inside(self, lanes: Lanes, image: Image, x: Ints, y: Ints, positions: NDArray[np.intp]) -> Ints:
        size = image.sample_bytes if self.samples else self.width * self.count
        x = x * image.sample_bytes if self.samples else x
        crooked = x % size != 0
        if crooked.any():
            position = int(np.flatnonzero(crooked)[0])
            text = (
                f"misaligned: {self.verb} at byte {x[position]} of a row, which is not a multiple of {size}"
            )
            raise fault("misaligned", text, lanes, int(positions[position]))
        most = image.row_bytes - size
        outside = (x < 0) | (x > most) | (y < 0) | (y >= image.texels.shape[0])
        if self.clamp == ".trap" and outside.any():
            position = int(np.flatnonzero(outside)[0])
            rows = count_of(image.texels.shape[0], "row")
            text = (
                f"out of bounds: {self.verb} {count_of(size, 'byte')} at byte {x[position]} of row {y[position]}; the "
                f"surface has {rows} of {count_of(image.row_bytes, 'byte')}"
            )
            raise fault("out-of-bounds", text, lanes, int(positions[position]))
        near = np.clip(y, 0, image.texels.shape[0] - 1) * image.row_bytes
        near = near + np.clip(x, 0, max(most, 0)) // size * size
        return np.where(outside, -1, near) if self.clamp == ".zero" else near


def _access(program: Program, site: Site, width: int, count: int) -> Access:
    modifiers = site.instruction.form.modifiers
    position = next(i for i, o in enumerate(declared(site)) if o.kind == "address")
    address = site.instruction.operands[position]
    assert isinstance(address, Address)
    reads = coordinates(program, site, address.rest[0], ".s32")
    verb = {"suld": "reads", "sust": "writes"}.get(site.opcode, "updates")
    samples = modifiers[0] == ".p"
    return Access(base_of(program, site, address), reads, modifiers[-1], width, count, samples, verb)


def _bytes(image: Image) -> NDArray[np.uint8]:
    return image.texels.reshape(-1).view(np.uint8)


def _elements(operand: Operand) -> tuple[Operand, ...]:
    return operand.elements if isinstance(operand, Vector) else (operand,)


@action("suld")
def suld(program: Program, site: Site) -> Run:
    """Bytes of a surface, at a byte of a row."""
    data = site.instruction.form.modifiers[-2]
    width = bytes_of(data)
    targets = [writer(site, part, data) for part in _elements(site.instruction.operands[0])]
    access = _access(program, site, width, len(targets))

    def run(lanes: Lanes) -> None:
        found = np.zeros((lanes.count, len(targets)), holder(8 * width))
        for positions, image, places in access.places(lanes):
            raw = _bytes(image)
            for column in range(len(targets)):
                index = np.maximum(places, 0)[:, None] + column * width + np.arange(width)
                value = np.ascontiguousarray(raw[index]).view(holder(8 * width))[:, 0]
                found[positions, column] = np.where(places < 0, 0, value)
        for column, write in enumerate(targets):
            write(lanes, np.ascontiguousarray(found[:, column]), None)

    return run


@action("sust")
def sust(program: Program, site: Site) -> Run:
    """.b: bytes at a byte of a row. .p: channels at a texel; those that are not given become 0."""
    modifiers = site.instruction.form.modifiers
    data, formatted = modifiers[-2], modifiers[0] == ".p"
    width = bytes_of(data)
    parts = _elements(site.instruction.operands[1])
    reads = [reader(program, site, part, data) for part in parts]
    access = _access(program, site, 1 if formatted else width, len(parts))

    def run(lanes: Lanes) -> None:
        words = taken(lanes, reads, "what is stored to the surface")
        for positions, image, places in access.places(lanes):
            on = places >= 0
            values = [word[positions[on]] for word in words]
            raw = (
                _samples(image, values)
                if formatted
                else np.concatenate([_raw(v, width) for v in values], axis=1)
            )
            _bytes(image)[places[on][:, None] + np.arange(raw.shape[1])] = raw

    return run


def _raw(value: NDArray[np.generic], width: int) -> NDArray[np.uint8]:
    return np.ascontiguousarray(value).view(np.uint8).reshape(-1, width)


def _samples(image: Image, values: list[NDArray[np.generic]]) -> NDArray[np.uint8]:
    """32-bit words as texels: floats rounded to the channel's width, integers cut to it."""
    kind = image.texels.dtype
    made = np.zeros((len(values[0]), image.texels.shape[2]), kind)
    for channel, word in zip(range(made.shape[1]), values):
        with np.errstate(all="ignore"):
            made[:, channel] = word.view(np.float32 if kind.kind == "f" else f"{kind.kind}4").astype(kind)
    return made.view(np.uint8)


@action("sured")
def sured(program: Program, site: Site) -> Run:
    """Reductions: .b at a byte of a row in the named type, .p at a texel with the sign of its format."""
    modifiers = site.instruction.form.modifiers
    data, update = modifiers[-2], UPDATES[modifiers[1]]
    width = bytes_of(data)
    read = reader(program, site, site.instruction.operands[1], data)
    access = _access(program, site, width, 1)

    def run(lanes: Lanes) -> None:
        (word,) = taken(lanes, [read], "what the surface is updated with")
        for positions, image, places in access.places(lanes):
            on = places >= 0
            signed = data[1] == "s" or (access.samples and image.texels.dtype.kind == "i")
            kind = np.dtype(f"{'i' if signed else 'u'}{width}")
            update(_bytes(image).view(kind), places[on] // width, word[positions[on]].view(kind))

    return run


@action("suq")
def suq(program: Program, site: Site) -> Run:
    """Attributes of a surface."""
    asked = site.instruction.form.modifiers[0][1:]
    destination, place = site.instruction.operands
    locate, write = base_of(program, site, place), writer(site, destination, ".b32")

    def run(lanes: Lanes) -> None:
        result = np.zeros(lanes.count, np.uint32)
        for positions, handle in handles(lanes, locate(lanes), "surface"):
            result[positions] = attribute(handle, asked) or 0
        write(lanes, result, None)

    return run
