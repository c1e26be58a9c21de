"""tcgen05.cp and tcgen05.shift (PTX ISA 9.7.16.9): shared to tensor memory, and rows down by one."""

from __future__ import annotations

import numpy as np

from ptxtile.emulator import windows
from ptxtile.emulator.actions.bulk import named
from ptxtile.emulator.actions.tcgen05_alloc import paired
from ptxtile.emulator.actions.tcgen05_commit import Touched, queue
from ptxtile.emulator.datapaths import Places
from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.operands import address_reader, reader, refuse_undefined
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.report import fault
from ptxtile.emulator.shared_matrix import Offsets, k_major, six_bits, unpacked
from ptxtile.emulator.step import Run
from ptxtile.emulator.tensor_memory import Cells
from ptxtile.emulator.tiles import CHUNK
from ptxtile.emulator.widths import Bits

SHAPES = {
    "128x256b": (128, 2),
    "4x256b": (4, 2),
    "128x128b": (128, 1),
    "64x128b": (64, 1),
    "32x128b": (32, 1),
}
"""Rows, and chunks of 16 bytes of each."""


def copied_lanes(shape: str, multicast: str) -> Places:
    """The lanes of each row, from the address's: (rows, copies)."""
    row = np.arange(SHAPES[shape][0], dtype=np.int64)[:, None]
    copies = {"warpx4": [0, 32, 64, 96], "warpx2::02_13": [0, 64], "warpx2::01_23": [0, 32]}.get(
        multicast, [0]
    )
    if shape == "4x256b":
        row = row * 32
    if multicast == "warpx2::01_23":
        row = row + row // 32 * 32
    found: Places = row + np.array(copies, np.int64)
    return found


def copy(program: Program, site: Site) -> Run:
    """tcgen05.cp: rows of a matrix that a descriptor names."""
    operands, modifiers = named(site), site.instruction.form.modifiers
    shape = next(m[1:] for m in modifiers if m[1:] in SHAPES)
    multicast = next((m[1:] for m in modifiers if m.startswith(".warpx")), "")
    source = next((m[1:3] for m in modifiers if m in (".b6x16_p32", ".b4x16_p64")), "")
    locate = address_reader(program, site, operands["taddr"])
    read = reader(program, site, operands["s_desc"], ".u64")
    lanes_of = copied_lanes(shape, multicast)
    pair = ".cta_group::2" in modifiers

    def run(lanes: Lanes) -> None:
        addresses = locate(lanes)
        descriptors, shadow = read(lanes)
        if shadow is not None:
            refuse_undefined(lanes, shadow, "what is copied", "a register")
        for position in range(lanes.count):
            one = lanes.at(np.array([position]))
            _copy(one, int(addresses[position]), int(descriptors[position]), shape, lanes_of, source, pair)

    return run


def ctas_of(lanes: Lanes, pair: bool) -> list[int]:
    """The CTAs on which work of the only thread of `lanes` goes on, the even one first."""
    cta = int(lanes.wave.cta[lanes.threads[0]])
    if not pair:
        return [cta]
    paired(lanes, cta)
    return sorted((cta, lanes.wave.spaces.tensor.peer(cta)))


def shared_offsets(lanes: Lanes, cta: int, places: Offsets, what: str, bits: int) -> Offsets:
    """Addresses of chunks as offsets in the wave's shared memory, checked."""
    spaces = lanes.wave.spaces
    inside = places - windows.SHARED_START
    bad = (inside < 0) | (inside + CHUNK > spaces.shared_size)
    if bad.any():
        text = (
            f"out of bounds: the descriptor of {what} ({bits:#018x}) leads to shared address {int(places[bad][0]):#x}; "
            f"the CTA has {windows.SHARED_START:#x} to {windows.SHARED_START + spaces.shared_size:#x}"
        )
        raise fault("out-of-bounds", text, lanes, 0)
    return inside + cta * spaces.shared_stride


def _copy(
    lanes: Lanes, address: int, bits: int, shape: str, lanes_of: Places, source: str, pair: bool
) -> None:
    descriptor = unpacked(bits)
    if isinstance(descriptor, str):
        raise fault("tensor-memory", f"tensor memory: the descriptor {bits:#018x}: {descriptor}", lanes, 0)
    memory, stores = lanes.wave.spaces.tensor, lanes.wave.spaces.shared
    rows, chunks = SHAPES[shape]
    start, column = address >> 16 & 0xFFFF, address & 0xFFFF
    places = k_major(descriptor, rows, chunks)
    shared, written = [], []
    for cta in ctas_of(lanes, pair):
        top = start + int(lanes_of.max())
        memory.check(lanes, 0, cta, (column, column + 4 * chunks - 1), "copies to", top)
        shared.append(shared_offsets(lanes, cta, places, "the source", bits))
        columns = column + np.arange(4 * chunks, dtype=np.int64)
        written.append(memory.cells(cta, start + lanes_of[:, :, None], columns))

    def act() -> None:
        for offsets, cells in zip(shared, written):
            held = offsets[..., None] + np.arange(CHUNK)
            memory.words[cells] = _words(stores.data[held], source)[:, None, :]
            if stores.unwritten is not None and memory.unwritten is not None:
                memory.unwritten[cells] = _words(stores.unwritten[held], source)[:, None, :]

    granules = [(each[..., None] + np.arange(0, CHUNK, 4)).reshape(-1) for each in shared]
    queue(lanes, Touched(granules, (), np.stack(written)), act)


def _words(data: Bits, source: str) -> Bits:
    """Rows of chunks of bytes, (rows, chunks, 16), as words (rows, 4 chunks); six and four bits go to a byte each."""
    if source == "b6":
        data = six_bits(data)
    elif source == "b4":
        used = data[..., :8]
        data = np.stack([used & 15, used >> 4], axis=-1).reshape(data.shape) << 2
    return np.ascontiguousarray(data.reshape(len(data), -1)).view(np.uint32)


def shift(program: Program, site: Site) -> Run:
    """tcgen05.shift.down: of 32 lanes and eight columns each row but the last takes the next one's words."""
    locate = address_reader(program, site, named(site)["taddr"])
    pair = ".cta_group::2" in site.instruction.form.modifiers

    def run(lanes: Lanes) -> None:
        addresses = locate(lanes)
        for position in range(lanes.count):
            _shift(lanes.at(np.array([position])), int(addresses[position]), pair)

    return run


def _shift(lanes: Lanes, address: int, pair: bool) -> None:
    memory = lanes.wave.spaces.tensor
    start, column = address >> 16 & 0xFFFF, address & 0xFFFF
    if start % 32:
        text = f"tensor memory: the lane of tcgen05.shift is a multiple of 32, not {start}"
        raise fault("tensor-memory", text, lanes, 0)
    blocks: list[Cells] = []
    for cta in ctas_of(lanes, pair):
        memory.check(lanes, 0, cta, (column, column + 7), "shifts", start + 31)
        row, across = np.arange(32, dtype=np.int64)[:, None], np.arange(8, dtype=np.int64)[None, :]
        blocks.append(memory.cells(cta, start + row, column + across))

    def act() -> None:
        for cells in blocks:
            for held in (memory.words, memory.unwritten):
                if held is not None:
                    held[cells[:-1]] = held[cells[1:]]

    queue(lanes, Touched((), blocks, np.stack([cells[:-1] for cells in blocks])), act)
