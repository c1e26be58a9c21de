"""tensormap.replace and tensormap.cp_fenceproxy (PTX ISA 9.7.9.28, 9.7.13.16) on the emulator's own tensor maps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ptxtile.emulator.actions.bulk import named, whole
from ptxtile.emulator.actions.tensor_copy import read_map
from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.operands import address_reader, reader, refuse_undefined
from ptxtile.emulator.ordering import Strength
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.report import fault
from ptxtile.emulator.spaces import Part
from ptxtile.emulator.step import Run, action
from ptxtile.ir.operand import Integer
from ptxtile.ir.tensor_map import BYTES, ELEMENTS, TiledMap

TYPES = (*ELEMENTS[:8], "f32.ftz", "f64", "bf16", "tf32", "tf32.ftz")
"""Element types in this instruction's order, which is not the driver's."""
SWIZZLES = (0, 32, 64, 128)
INTERLEAVES = (0, 16, 32)
ALIGNMENT = 128
CHOICES: dict[str, tuple[object, ...]] = {
    "elemtype": TYPES,
    "swizzle_mode": SWIZZLES,
    "interleave_layout": INTERLEAVES,
    "fill_mode": (False, True),
    "swizzle_atomicity": (0, 1, 2, 3),
}


@action("tensormap")
def tensormap(program: Program, site: Site) -> Run:
    """Change a field; copy from shared to global memory."""
    if site.instruction.form.modifiers[0] == ".cp_fenceproxy":
        return _copy(program, site)
    operands, modifiers = named(site), site.instruction.form.modifiers
    field, space = modifiers[2][1:], next((m[1:] for m in modifiers if m in (".global", ".shared::cta")), "")
    locate = address_reader(program, site, operands["addr"])
    read = reader(program, site, operands["new_val"], ".b64" if modifiers[-1] == ".b64" else ".b32")
    which = operands.get("ord")
    number = which.value if isinstance(which, Integer) else 0

    def run(lanes: Lanes) -> None:
        value, shadow = read(lanes)
        if shadow is not None:
            refuse_undefined(lanes, shadow, "a field of the tensor map", "a register")
        addresses = locate(lanes)
        for position in range(lanes.count):
            one = lanes.at(np.array([position]))
            part = whole(
                one, space, addresses[position : position + 1], BYTES, "changes the tensor map of", 64
            )
            map_, base = read_map(one, part)
            changed, base = _changed(one, map_, base, field, number, int(value[position]))
            _write(part, changed.pack(base))

    return run


def _changed(
    lanes: Lanes, map_: TiledMap, base: int, field: str, number: int, value: int
) -> tuple[TiledMap, int]:
    """The map with one field changed."""
    if field == "global_address":
        return map_, value
    if field == "rank":
        return _ranked(map_, value + 1), base
    if field in CHOICES:
        if value >= len(CHOICES[field]):
            raise fault("tensor-map", f"tensor map: {field} has no meaning {value} here", lanes, 0)
        return _chosen(map_, field, value), base
    held = {
        "box_dim": map_.box,
        "global_dim": map_.extents,
        "global_stride": map_.strides,
        "element_stride": map_.element_strides,
    }[field]
    if number >= len(held):
        text = f"tensor map: {field} {number} of a map of {map_.rank} dimensions"
        raise fault("tensor-map", text, lanes, 0)
    made = (*held[:number], value, *held[number + 1 :])
    if field == "box_dim":
        return replace(map_, box=made), base
    if field == "global_dim":
        return replace(map_, extents=made), base
    if field == "global_stride":
        return replace(map_, strides=made), base
    return replace(map_, element_strides=made), base


def _chosen(map_: TiledMap, field: str, value: int) -> TiledMap:
    """The map with a field changed whose values are numbered."""
    if field == "elemtype":
        return replace(map_, element=TYPES[value])
    if field == "swizzle_mode":
        return replace(map_, swizzle=SWIZZLES[value])
    if field == "interleave_layout":
        return replace(map_, interleave=INTERLEAVES[value])
    if field == "swizzle_atomicity":
        return replace(map_, atomicity=value)
    return replace(map_, nan=bool(value))


def _ranked(map_: TiledMap, rank: int) -> TiledMap:
    """The map with more or fewer dimensions, new ones of extent 1."""

    def fit(values: tuple[int, ...], count: int, fill: int) -> tuple[int, ...]:
        return (*values, *(fill,) * count)[:count]

    return replace(
        map_,
        extents=fit(map_.extents, rank, 1),
        strides=fit(map_.strides, rank - 1, 0),
        box=fit(map_.box, rank, 1),
        element_strides=fit(map_.element_strides, rank, 1),
    )


def _write(part: Part, packed: bytes) -> None:
    lanes = part.lanes
    if part.store.readonly:
        raise fault("read-only", f"read-only: the {part.store.name} cannot be written", lanes, 0)
    if lanes.wave.machine.sanitizer is not None:
        lanes.wave.machine.sanitizer.write(part, BYTES, Strength(), ())
    part.store.write(int(part.offsets[0]), packed)
    lanes.wave.happened()


def _copy(program: Program, site: Site) -> Run:
    """The whole warp copies one map; its first lane here does it."""
    operands = named(site)
    target, source = (
        address_reader(program, site, operands["dst"]),
        address_reader(program, site, operands["src"]),
    )

    def run(lanes: Lanes) -> None:
        warps = lanes.wave.warp[lanes.where]
        targets, sources = target(lanes), source(lanes)
        for position in np.unique(warps, return_index=True)[1].tolist():
            one, own = lanes.at(np.array([position])), slice(position, position + 1)
            given = whole(one, "shared::cta", sources[own], BYTES, "copies the tensor map of", ALIGNMENT)
            part = whole(one, "global", targets[own], BYTES, "copies to", ALIGNMENT)
            start = int(given.offsets[0])
            _write(part, given.store.data[start : start + BYTES].tobytes())

    return run
