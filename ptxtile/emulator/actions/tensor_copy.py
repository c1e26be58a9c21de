"""Tensor copies (PTX ISA 9.7.9.27.1): load, store, reduce and prefetch of tiles; tile mode, gather4, scatter4."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator import windows
from ptxtile.emulator.actions.bulk import cta_of, destinations, named, whole
from ptxtile.emulator.actions.updates import OPERATIONS, update_of
from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.memory import Store
from ptxtile.emulator.mma_shape import scalars
from ptxtile.emulator.operands import Locate, Read, address_reader, reader, refuse_undefined
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.report import fault
from ptxtile.emulator.spaces import Part
from ptxtile.emulator.step import Run
from ptxtile.emulator.tiles import (
    CHUNK,
    FLIPPED,
    NAN_PATTERN,
    Tile,
    column_tile,
    gathered_tile,
    pieces,
    pixel_tile,
    tile_of,
    unit_tile,
)
from ptxtile.emulator.transfer import Bytes, Combine, Source, Target, Transfer, barrier_of
from ptxtile.emulator.widths import Bits
from ptxtile.errors import LayoutError
from ptxtile.ir.operand import Address, Vector
from ptxtile.ir.tensor_map import BYTES, TiledMap

ALIGNMENT = 128
"""Of the shared memory of a tile, in bytes."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A tensor copy's operands, ready to be read."""

    map: Locate
    coordinates: tuple[Read, ...]
    rank: int
    by_row: bool
    shared_space: str
    shared: Locate | None
    barrier: Locate | None
    mask: Read | None
    operation: str
    pixels: str
    offsets: tuple[Read, ...]


def _plan(program: Program, site: Site) -> Plan:
    operands, modifiers = named(site), site.instruction.form.modifiers
    address = operands["tensor_map"]
    assert isinstance(address, Address)
    (vector,) = address.rest
    assert isinstance(vector, Vector)
    shared = operands.get("dst", operands.get("src"))
    space = next((m[1:] for m in modifiers if m.startswith(".shared")), "")
    return Plan(
        address_reader(program, site, Address(address.base, address.offset)),
        tuple(reader(program, site, part, ".s32") for part in vector.elements),
        int(next(m for m in modifiers if m[2:] == "d" and m[1].isdigit())[1]),
        any(m in (".tile::gather4", ".tile::scatter4") for m in modifiers),
        space,
        None if shared is None else address_reader(program, site, shared),
        address_reader(program, site, operands["mbar"]) if "mbar" in operands else None,
        reader(program, site, operands["cta_mask"], ".u16") if "cta_mask" in operands else None,
        next((m for m in modifiers if m in OPERATIONS), ""),
        next((m for m in modifiers if m.startswith(".im2col")), ""),
        tuple(reader(program, site, part, ".u16") for part in scalars(operands["offsets"]))
        if "offsets" in operands
        else (),
    )


def tensor_copy(program: Program, site: Site) -> Run:
    """Every tensor copy of sm_90, and gather4 and scatter4."""
    plan = _plan(program, site)

    def run(lanes: Lanes) -> None:
        for position in range(lanes.count):
            _one(plan, lanes.at(np.array([position])))

    return run


def _one(plan: Plan, lanes: Lanes) -> None:
    """The copy of one thread."""
    map_, base = read_map(lanes, whole(lanes, "", plan.map(lanes), BYTES, "reads the tensor map of", 64))
    if map_.rank != plan.rank:
        text = f"a {plan.rank}-dimensional copy of a tensor map of {map_.rank} dimensions"
        raise fault("tensor-map", f"tensor map: {text}", lanes, 0)
    if bool(plan.pixels) != (map_.im2col is not None):
        text = "a tensor map of pixels goes with .im2col, a map of tiles without"
        raise fault("tensor-map", f"tensor map: {text}", lanes, 0)
    place = [int(_defined(lanes, read).astype(np.uint32).view(np.int32)[0]) for read in plan.coordinates]
    if plan.pixels:
        tile = _pixels(plan, lanes, map_, place)
    elif map_.interleave:
        tile = unit_tile(map_, place)
    else:
        tile = gathered_tile(map_, place[0], place[1:]) if plan.by_row else tile_of(map_, place)
    if plan.shared is None:
        return
    if plan.barrier is not None:
        _load(plan, lanes, map_, base, tile)
    else:
        _check_store(plan, lanes, place)
        _check_elements(plan, lanes, map_)
        _store(plan, lanes, map_, base, tile)


def _pixels(plan: Plan, lanes: Lanes, map_: TiledMap, place: list[int]) -> Tile:
    moved = [int(_defined(lanes, read)[0]) for read in plan.offsets]
    if not plan.pixels.startswith(".im2col::w"):
        return pixel_tile(map_, place, moved or [0] * (map_.rank - 2))
    if not map_.swizzle or map_.atomicity == FLIPPED or map_.interleave:
        text = (
            f"tensor map: {plan.pixels} takes a map with a swizzle, one that exchanges no halves of 16 bytes, "
            "and without interleaving"
        )
        raise fault("tensor-map", text, lanes, 0)
    return column_tile(map_, place, moved[0], moved[1], plan.pixels.endswith("::128"))


def _check_store(plan: Plan, lanes: Lanes, place: list[int]) -> None:
    """A store in tile mode cannot begin before its tensor: an H200 faults, whatever the swizzle and the element.

    Measured for stores; reductions take the same path. im2col and scatter4 were not measured and are not refused.
    """
    if plan.pixels or plan.by_row or min(place) >= 0:
        return
    verb = "reduces into" if plan.operation else "stores to"
    text = (
        f"out of bounds: {verb} a tile from the coordinates {{{', '.join(map(str, place))}}}; hardware stops with "
        "CUDA_ERROR_ILLEGAL_INSTRUCTION where one of them is negative, and clips only what hangs over the upper ends"
    )
    raise fault("out-of-bounds", text, lanes, 0)


def _check_elements(plan: Plan, lanes: Lanes, map_: TiledMap) -> None:
    """Nothing reduces integers of 8 and 16 bits: an H200 faults (16 bits measured, 8 inferred)."""
    if plan.operation and map_.element in ("u8", "u16"):
        text = (
            f"tensor map: a reduction {plan.operation} has no elements of {map_.element}; hardware stops with "
            "CUDA_ERROR_ILLEGAL_INSTRUCTION"
        )
        raise fault("tensor-map", text, lanes, 0)


def _defined(lanes: Lanes, read: Read) -> Bits:
    value, shadow = read(lanes)
    if shadow is not None:
        refuse_undefined(lanes, shadow, "which tile is copied", "a coordinate")
    return np.ascontiguousarray(value)


def read_map(lanes: Lanes, part: Part) -> tuple[TiledMap, int]:
    """The tensor map at the only address of `part`, and the address of its tensor."""
    start = int(part.offsets[0])
    try:
        return TiledMap.unpack(part.store.data[start : start + BYTES].tobytes())
    except LayoutError as error:
        raise fault("tensor-map", f"tensor map: {error}", lanes, 0) from None


def _tensor(lanes: Lanes, base: int, tile: Tile, verb: str) -> tuple[Store, int] | None:
    """The allocation that holds what of a tile lies in the tensor, and where the tensor begins in it."""
    rows = tile.rows[tile.present]
    if not len(rows) or tile.low == tile.high:
        return None
    first, last = base + int(rows.min()) + tile.low, base + int(rows.max()) + tile.high
    store = lanes.wave.machine.memory.find(first)
    if store is None or last > store.base + store.size:
        text = f"out of bounds: {verb} a tile from {first:#x} to {last:#x}, which no allocation holds"
        raise fault("out-of-bounds", text, lanes, 0)
    return store, base - store.base


def _load(plan: Plan, lanes: Lanes, map_: TiledMap, base: int, tile: Tile) -> None:
    assert plan.shared is not None and plan.barrier is not None
    source = _global_source(lanes, map_, base, tile)
    mask = None if plan.mask is None else int(plan.mask(lanes)[0][0])
    targets = []
    found = destinations(
        lanes, plan.shared_space, plan.shared(lanes), plan.barrier(lanes), mask, tile.size, ALIGNMENT
    )
    for part, counter in found:
        assert counter is not None
        offsets, unit = _shared_pieces(part, map_, tile)
        counted = barrier_of(counter)
        targets.append(Target(part.store, offsets, unit, cta=cta_of(part), barrier=counted, size=tile.size))
    Transfer(lanes, source, targets, "mbarrier").start()


def _shared_pieces(part: Part, map_: TiledMap, tile: Tile) -> tuple[NDArray[np.int64], int]:
    """Offsets in the store of the pieces of a tile in shared memory, and their bytes; the swizzle goes by their shared
    addresses."""
    stride = part.lanes.wave.spaces.shared_stride
    cta, inside = divmod(int(part.offsets[0]), stride)
    places, unit = pieces(windows.SHARED_START + inside, tile.size, map_.swizzle, map_.atomicity)
    return places - windows.SHARED_START + cta * stride, unit


def _global_source(lanes: Lanes, map_: TiledMap, base: int, tile: Tile) -> Source:
    found = _tensor(lanes, base, tile, "reads")
    shape = (len(tile.rows), tile.pitch)
    pattern = NAN_PATTERN if map_.nan else b"\0\0"
    fill = np.frombuffer(pattern * (tile.pitch // 2), np.uint8)

    def take() -> tuple[Bytes, Bytes | None]:
        data = np.broadcast_to(fill, shape).copy()
        lost: Bytes | None = None
        if found is not None:
            store, start = found
            columns = np.arange(tile.low, tile.high)
            places = (tile.rows[tile.present] + start)[:, None] + columns
            data[tile.present, tile.low : tile.high] = store.data[places]
            if store.unwritten is not None and store.unwritten[places].any():
                lost = np.zeros(shape, np.uint8)
                lost[tile.present, tile.low : tile.high] = store.unwritten[places]
                lost = lost.reshape(-1)
        return data.reshape(-1), lost

    if found is None:
        return Source(None, np.zeros(0, np.int64), take)
    store, start = found
    columns = np.arange(tile.low & ~3, tile.high, 4)
    return Source(store, ((tile.rows[tile.present] + start)[:, None] + columns).reshape(-1), take)


def _store(plan: Plan, lanes: Lanes, map_: TiledMap, base: int, tile: Tile) -> None:
    assert plan.shared is not None
    part = whole(lanes, plan.shared_space, plan.shared(lanes), tile.size, "copies", ALIGNMENT)
    if map_.atomicity == FLIPPED:
        text = "tensor map: a swizzle that exchanges halves of 16 bytes is for copies to shared memory"
        raise fault("tensor-map", text, lanes, 0)
    offsets, _ = _shared_pieces(part, map_, tile)
    store = part.store

    def take() -> tuple[Bytes, Bytes | None]:
        places = offsets[:, None] + np.arange(CHUNK)
        lost = None if store.unwritten is None else store.unwritten[places].reshape(-1)
        return store.data[places].reshape(-1), lost

    combine, unit = _combine(plan, map_)
    target = _global_target(lanes, base, tile, unit, combine)
    source = Source(store, (offsets[:, None] + np.arange(0, CHUNK, 4)).reshape(-1), take)
    Transfer(lanes, source, [] if target is None else [target], "bulk_group").start(cta_of(part))


def _combine(plan: Plan, map_: TiledMap) -> tuple[Combine | None, int]:
    """How a reduction combines elements, and in which units a store writes."""
    if not plan.operation:
        return None, map_.itemsize
    name = "." + map_.element.partition(".")[0].replace("tf32", "f32")
    if plan.operation in (".and", ".or", ".xor"):
        name = f".b{map_.itemsize * 8}"
    return update_of(plan.operation, name, map_.element != "f32.ftz"), map_.itemsize


def _global_target(
    lanes: Lanes, base: int, tile: Tile, itemsize: int, combine: Combine | None
) -> Target | None:
    """Where what of a tile lies in the tensor is written."""
    found = _tensor(lanes, base, tile, "writes")
    if found is None:
        return None
    store, start = found
    rows = np.flatnonzero(tile.present)
    unit = itemsize
    while combine is None and unit < CHUNK and not _splits(tile, start, rows, unit * 2):
        unit *= 2
    columns = np.arange(tile.low, tile.high, unit)
    offsets = ((tile.rows[rows] + start)[:, None] + columns).reshape(-1)
    chosen = ((rows * tile.pitch)[:, None] + columns).reshape(-1) // unit
    return Target(store, offsets, unit, chosen, combine)


def _splits(tile: Tile, start: int, rows: NDArray[np.intp], unit: int) -> bool:
    """Whether units of this size would not fit the tile's rows."""
    if tile.low % unit or tile.high % unit or tile.pitch % unit:
        return True
    return bool(((tile.rows[rows] + start + tile.low) % unit).any())
