"""Matrices in shared memory as tcgen05 reads them: by descriptor, in chunks of 16 bytes (PTX ISA 9.7.16.4.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.memory import Store
from ptxtile.emulator.tiles import CHUNK, MASKS
from ptxtile.emulator.widths import Bits

Offsets = NDArray[np.int64]
SPANS = {0: 0, 1: 128, 2: 128, 4: 64, 6: 32}
"""Bytes of the swizzle's span by bits 61 to 63; 1 exchanges pairs of chunks."""
PER_CHUNK = {"tf32": 4, "f16": 8, "bf16": 8}
PAIRED = 1


@dataclass(frozen=True, slots=True)
class Descriptor:
    """start, leading, stride: bytes. base: the pattern's phase, times 128 bytes. mode: of SPANS.

    absolute: `leading` is the address where lines of 128 bytes that begin before go on.
    """

    start: int
    leading: int
    stride: int
    base: int
    mode: int
    absolute: bool = False

    @property
    def span(self) -> int:
        """Bytes of a line of the swizzle's pattern, 0 for no swizzle."""
        return SPANS[self.mode]


def unpacked(bits: int, deep: bool = False) -> Descriptor | str:
    """The fields of a 64-bit descriptor, or what is wrong with it. `deep`: for 48 bytes along k."""
    if bits >> 46 & 7 != 1:
        return f"bits 46 to 48 are {bits >> 46 & 7:#05b}; a matrix descriptor of tcgen05 has 0b001 there"
    mode, absolute = bits >> 61 & 7, bool(bits >> 52 & 1)
    if absolute and not (deep and mode == 2):
        return "bit 52 asks for an absolute leading address, which K = 96 with a swizzle of 128 bytes has"
    if mode not in SPANS:
        return f"bits 61 to 63 are {mode}; swizzles are 0, 1, 2, 4 and 6"
    field = (1 << 14) - 1
    start, leading, stride = ((bits >> place & field) << 4 for place in (0, 16, 32))
    if deep and mode == 2 and start % 128 > 80 and not absolute:
        return "48 bytes cross the end of a line of 128 bytes, and bit 52 does not say where they go on"
    return Descriptor(start, leading, stride, bits >> 49 & 7, mode, absolute)


def _swizzled(places: Offsets, descriptor: Descriptor) -> Offsets:
    phase = places - (descriptor.base << 7)
    if descriptor.mode == PAIRED:
        return places ^ (phase >> 2 & 0x60)
    return places ^ (phase >> 3 & MASKS[descriptor.span])


def k_major(descriptor: Descriptor, rows: int, chunks: int) -> Offsets:
    """Addresses of the chunks of each row: (rows, chunks)."""
    row = np.arange(rows, dtype=np.int64)[:, None]
    chunk = np.arange(chunks, dtype=np.int64)[None, :]
    span = descriptor.span
    if descriptor.absolute:
        begun = descriptor.start % span + chunk * CHUNK
        along = np.where(begun < span, chunk * CHUNK, begun - span + descriptor.leading - descriptor.start)
    elif span:
        along = chunk * CHUNK % span + chunk * CHUNK // span * descriptor.leading
    else:
        along = chunk * descriptor.leading
    line = row % 8 * (span or CHUNK) + row // 8 * descriptor.stride
    return _swizzled(descriptor.start + line + along, descriptor)


def mn_major(descriptor: Descriptor, blocks: int, depth: int) -> Offsets:
    """Addresses of chunks along the rows at each k: (blocks, depth), a block being the rows of one chunk."""
    block = np.arange(blocks, dtype=np.int64)[:, None]
    k = np.arange(depth, dtype=np.int64)[None, :]
    span = descriptor.span
    if not span:
        places = block * descriptor.stride + k % 8 * CHUNK + k // 8 * descriptor.leading
    else:
        wide, lines = span // CHUNK, 4 if descriptor.mode == PAIRED else 8
        across = block % wide * CHUNK + block // wide * descriptor.leading
        places = across + k % lines * span + k // lines * descriptor.stride
    return _swizzled(descriptor.start + places, descriptor)


def per_chunk(kind: str, packed: bool) -> int:
    """Elements in 16 bytes; `packed`: of four bits without padding."""
    return 32 if packed else PER_CHUNK.get(kind, 16)


def chunk_elements(data: Bits, kind: str, packed: bool) -> Bits:
    """Chunks (..., 16) of bytes as elements (..., per_chunk); six and four bits lie together, then padding."""
    if kind == "tf32":
        return np.ascontiguousarray(data).view(np.uint32)
    if kind in ("f16", "bf16"):
        return np.ascontiguousarray(data).view(np.uint16)
    if kind == "e2m1":
        used = data if packed else data[..., :8]
        return np.stack([used & 15, used >> 4], axis=-1).reshape(*data.shape[:-1], -1)
    if kind in ("e2m3", "e3m2"):
        return six_bits(data)
    return data


def six_bits(data: Bits) -> Bits:
    """The 16 elements of six bits in the first 12 of 16 bytes: (..., 16)."""
    triples = data[..., :12].reshape(*data.shape[:-1], 4, 3).astype(np.uint32)
    word = triples[..., 0] | triples[..., 1] << 8 | triples[..., 2] << 16
    found: Bits = (word[..., None] >> np.array([0, 6, 12, 18], np.uint32) & 63).astype(np.uint8)
    return found.reshape(*data.shape[:-1], 16)


def matrix(
    store: Store, chunks: Offsets, kind: str, packed: bool, transposed: bool
) -> tuple[Bits, NDArray[np.bool_]]:
    """A matrix (rows, k) of elements from its chunks' offsets, and which of its rows are undefined."""
    places = chunks[..., None] + np.arange(CHUNK)
    found = _rows(chunk_elements(store.data[places], kind, packed), transposed)
    lost: NDArray[np.bool_] = np.zeros(len(found), np.bool_)
    if store.unwritten is not None:
        marks = store.unwritten[places]
        if marks.any():
            lost = np.any(_rows(chunk_elements(marks, kind, packed), transposed) != 0, axis=1)
    return found, lost


def _rows(parts: Bits, transposed: bool) -> Bits:
    if transposed:
        return parts.transpose(0, 2, 1).reshape(-1, parts.shape[1])
    return parts.reshape(len(parts), -1)
