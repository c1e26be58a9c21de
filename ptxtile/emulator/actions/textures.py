"""Textures (PTX ISA 9.7.10): tex and tld4 of one and two dimensions by points, txq, istypep.

Coordinates are floats, of which the texel is the one they fall into, or integers; outside the texture these give zero.
A residency predicate is always true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator import opaque
from ptxtile.emulator.actions.bulk import named
from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.opaque import Doubles, Image, Ints, Opaque, Sampling
from ptxtile.emulator.operands import Read, Write, address_reader, reader, refuse_undefined, writer
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.report import fault, stop
from ptxtile.emulator.step import Run, action
from ptxtile.emulator.values import declared
from ptxtile.emulator.widths import Bits
from ptxtile.ir.operand import Address, Operand, Pair, Register, Symbol, Vector

Locate = Callable[[Lanes], NDArray[np.uint64]]
ORDER = {1: 0x10B0, 2: 0x10B2, 4: 0x10B5}
"""Channel orders R, RG, RGBA, by the numbers that the ISA takes from OpenCL."""
DATA = {"int8": 0x10D7, "int16": 0x10D8, "int32": 0x10D9, "uint8": 0x10DA, "uint16": 0x10DB, "uint32": 0x10DC}
DATA |= {"float16": 0x10DD, "float32": 0x10DE}
NORMALISED = {"int8": 0x10D0, "int16": 0x10D1, "uint8": 0x10D2, "uint16": 0x10D3}


def base_of(program: Program, site: Site, operand: Operand) -> Locate:
    """A function that gives the handle, or the address of the variable that holds it, in every thread."""
    if isinstance(operand, Address):
        return address_reader(program, site, Address(operand.base, operand.offset))
    if isinstance(operand, (Register, Symbol)):
        return address_reader(program, site, Address(operand))
    raise stop("unsupported", f"the emulator cannot read the handle {operand}", site)


def handles(
    lanes: Lanes, numbers: NDArray[np.uint64], kind: str
) -> Iterator[tuple[NDArray[np.intp], Opaque]]:
    """The objects of one kind that these numbers stand for, each with the positions of its threads."""
    for number in np.unique(numbers):
        positions = np.flatnonzero(numbers == number)
        found = resolve(lanes, int(number))
        if found is None or found.kind != kind:
            what = "nothing that the emulator knows" if found is None else f"a {found.kind}"
            text = f"handle: {int(number):#x} stands for {what}, and a {kind} is needed here"
            raise fault("handle", text, lanes, int(positions[0]))
        yield positions, found


def resolve(lanes: Lanes, number: int) -> Opaque | None:
    """What a handle, or the address of an opaque variable, stands for."""
    found = opaque.find(number)
    if found is not None:
        return found
    names = {
        variable.name
        for variable in lanes.wave.launch.program.variables
        if variable.type in opaque.REFERENCES
    }
    machine = lanes.wave.machine
    if number in (machine.addresses.get(name) for name in names):
        return opaque.find(int.from_bytes(machine.memory.read(number, 8), "little"))
    return None


def coordinates(program: Program, site: Site, operand: Operand, type_name: str) -> list[Read]:
    """Readers of the parts of a coordinate vector, or of the one coordinate."""
    parts = operand.elements if isinstance(operand, Vector) else (operand,)
    return [reader(program, site, part, type_name) for part in parts]


def taken(lanes: Lanes, reads: list[Read], what: str) -> list[Bits]:
    """Their values; undefined bits stop the program."""
    values = []
    for read in reads:
        value, shadow = read(lanes)
        if shadow is not None:
            refuse_undefined(lanes, shadow, what, "a register")
        values.append(np.ascontiguousarray(value))
    return values


def _targets(site: Site, operand: Operand, type_name: str) -> tuple[list[Write], Write | None]:
    resident = None
    if isinstance(operand, Pair):
        resident = writer(site, operand.second, ".pred")
        operand = operand.first
    parts = operand.elements if isinstance(operand, Vector) else (operand,)
    return [writer(site, part, type_name) for part in parts], resident


def _parts(site: Site) -> tuple[Operand, Operand | None, Operand]:
    """Texture, sampler if there is one, coordinates."""
    position = next(i for i, o in enumerate(declared(site)) if o.kind == "address")
    address = site.instruction.operands[position]
    assert isinstance(address, Address)
    *before, where = address.rest
    return address, before[0] if before else None, where


@action("tex", "tld4")
def tex(program: Program, site: Site) -> Run:
    """One texel, or of the four around a place one channel each."""
    form, operands = site.instruction.form, named(site)
    if "f" in operands or "o" in operands:
        raise stop(
            "unsupported", f"the emulator cannot run {form.spelling} with a depth or a packed offset", site
        )
    *_, data, kind = form.modifiers
    place, separate, where = _parts(site)
    texture = base_of(program, site, place)
    apart = None if separate is None else base_of(program, site, separate)
    reads = coordinates(program, site, where, kind)
    shifts = coordinates(program, site, operands["e"], ".s32") if "e" in operands else []
    writes, resident = _targets(site, site.instruction.operands[0], ".b16" if data == ".f16" else ".b32")
    gathered = "rgba".index(form.modifiers[0][1]) if form.opcode == "tld4" else None

    def run(lanes: Lanes) -> None:
        values = [_numbers(x, kind) for x in taken(lanes, reads, "where the texture is read")]
        offsets = [
            x.view(np.int32).astype(np.int64) for x in taken(lanes, shifts, "where the texture is read")
        ]
        samplings = _samplings(lanes, apart)
        results = np.zeros((lanes.count, 4), np.uint32)
        for positions, handle in handles(lanes, texture(lanes), "texture"):
            assert handle.image is not None and handle.sampling is not None
            for mine, sampling in _by_sampler(positions, samplings, handle.sampling):
                point = [x[mine] for x in values[: 1 if handle.image.flat else 2]]
                moved = [x[mine] for x in offsets]
                if gathered is None:
                    found = _point(handle.image, sampling, point, moved, kind == ".s32")
                else:
                    found = _gather(handle.image, sampling, point, moved, gathered)
                results[mine] = encoded(found, handle.image, data)
        _deliver(lanes, results, data, writes)
        if resident is not None:
            resident(lanes, np.ones(lanes.count, np.bool_), None)

    return run


def _numbers(bits: Bits, kind: str) -> Doubles:
    values = bits.view(np.int32) if kind == ".s32" else bits.view(np.float32)
    return values.astype(np.float64)


def _samplings(lanes: Lanes, apart: Locate | None) -> list[tuple[NDArray[np.intp], Sampling]] | None:
    if apart is None:
        return None
    found = []
    for positions, handle in handles(lanes, apart(lanes), "sampler"):
        assert handle.sampling is not None
        found.append((positions, handle.sampling))
    return found


def _by_sampler(
    positions: NDArray[np.intp], apart: list[tuple[NDArray[np.intp], Sampling]] | None, own: Sampling
) -> Iterator[tuple[NDArray[np.intp], Sampling]]:
    if apart is None:
        yield positions, own
        return
    for others, sampling in apart:
        both = np.intersect1d(positions, others)
        if len(both):
            yield both, sampling


def _sizes(image: Image) -> tuple[int, int]:
    return image.texels.shape[1], image.texels.shape[0]


def _texels(image: Image, sampling: Sampling, places: list[Ints], whole: bool) -> Doubles:
    """Texels at numbered places, x first; `whole`: what is outside is zero, whatever the sampler says."""
    indices, inside = [], np.ones(len(places[0]), np.bool_)
    for place, size, mode in zip(places, _sizes(image), sampling.address):
        index, on = opaque.within(place, size, "border" if whole else mode, sampling.normalized)
        indices.append(index)
        inside = inside & on
    rows = indices[1] if len(indices) > 1 else np.zeros_like(indices[0])
    return opaque.fetch(image, (0, 0, 0, 0) if whole else sampling.border, rows, indices[0], inside)


def _point(
    image: Image, sampling: Sampling, point: list[Doubles], offsets: list[Ints], whole: bool
) -> Doubles:
    places = []
    for number, (value, size) in enumerate(zip(point, _sizes(image))):
        place = value.astype(np.int64) if whole else opaque.axis(value, size, sampling.normalized)
        places.append(place + offsets[number] if offsets else place)
    if image.flat and offsets and not whole:
        # On hardware the one offset moves the one row as well, which shows where the sampler has a border.
        places.append(offsets[0])
    return _texels(image, sampling, places, whole)


def _gather(
    image: Image, sampling: Sampling, point: list[Doubles], offsets: list[Ints], channel: int
) -> Doubles:
    """One channel of the texels around a place, against the clock from the lower left one."""
    corner = []
    for number, (value, size) in enumerate(zip(point, _sizes(image))):
        place = opaque.axis(value, size, sampling.normalized, back=0.5)
        corner.append(place + offsets[number] if offsets else place)
    columns = [
        _texels(image, sampling, [corner[0] + right, corner[1] + down], False)[:, channel]
        for right, down in ((0, 1), (1, 1), (1, 0), (0, 0))
    ]
    return np.stack(columns, axis=1)


def encoded(numbers: Doubles, image: Image, data: str) -> NDArray[np.uint32]:
    """Texels as the bits of a destination: floats as floats of its width, integers as they are."""
    if image.floating:
        with np.errstate(all="ignore"):
            if data in (".f16", ".f16x2"):
                return numbers.astype(np.float16).view(np.uint16).astype(np.uint32)
            return numbers.astype(np.float32).view(np.uint32)
    return (numbers.astype(np.int64) & 0xFFFFFFFF).astype(np.uint32)


def _deliver(lanes: Lanes, results: NDArray[np.uint32], data: str, writes: list[Write]) -> None:
    if data == ".f16x2":
        halves = results & np.uint32(0xFFFF)
        upper = halves << np.uint32(16)
        results = np.stack([halves[:, 0] | upper[:, 1], halves[:, 2] | upper[:, 3]], axis=1)
    for column, write in enumerate(writes):
        word = np.ascontiguousarray(results[:, column])
        write(lanes, word.astype(np.uint16) if data == ".f16" else word, None)


@action("txq")
def txq(program: Program, site: Site) -> Run:
    """Attributes of a texture, and of its sampler or of a sampler by itself."""
    asked = site.instruction.form.modifiers[-2][1:]
    destination, place = site.instruction.operands[:2]
    locate, write = base_of(program, site, place), writer(site, destination, ".b32")

    def run(lanes: Lanes) -> None:
        numbers = locate(lanes)
        result = np.zeros(lanes.count, np.uint32)
        for number in np.unique(numbers):
            handle = resolve(lanes, int(number))
            mine = numbers == number
            answer = None if handle is None else attribute(handle, asked)
            if answer is None:
                what = "nothing that the emulator knows" if handle is None else f"a {handle.kind}"
                text = f"handle: {int(number):#x} stands for {what}, which has no {asked}"
                raise fault("handle", text, lanes, int(np.flatnonzero(mine)[0]))
            result[mine] = answer
        write(lanes, result, None)

    return run


def attribute(handle: Opaque, name: str) -> int | None:
    """What txq and suq say, or None of what the object has not."""
    found: dict[str, int] = {}
    if handle.image is not None:
        _, columns, channels = handle.image.texels.shape
        kind = handle.image.texels.dtype.name
        found |= {
            "width": columns,
            "height": 0 if handle.image.flat else handle.image.texels.shape[0],
            "depth": 0,
        }
        found |= {"channel_order": ORDER[channels], "array_size": 0}
        found["channel_data_type"] = (NORMALISED if handle.image.as_float else DATA)[kind]
        found |= (
            {"memory_layout": 0} if handle.kind == "surface" else {"num_mipmap_levels": 1, "num_samples": 1}
        )
    if handle.sampling is not None:
        modes = [opaque.ADDRESSES.index(mode) for mode in handle.sampling.address]
        found |= {"filter_mode": 0, "addr_mode_0": modes[0], "addr_mode_1": modes[1], "addr_mode_2": modes[1]}
        found["normalized_coords"] = int(handle.sampling.normalized)
        found["force_unnormalized_coords"] = int(not handle.sampling.normalized)
    return found.get(name)


@action("istypep")
def istypep(program: Program, site: Site) -> Run:
    """Whether a number is a handle of that type, or the address of a variable that holds one."""
    wanted = opaque.REFERENCES[site.instruction.form.modifiers[0][1:]]
    destination, source = site.instruction.operands
    read, write = reader(program, site, source, ".u64"), writer(site, destination, ".pred")

    def run(lanes: Lanes) -> None:
        (numbers,) = taken(lanes, [read], "which object is asked for")
        result = np.zeros(lanes.count, np.bool_)
        for number in np.unique(numbers):
            found = resolve(lanes, int(number))
            result[numbers == number] = found is not None and found.kind == wanted
        write(lanes, result, None)

    return run
