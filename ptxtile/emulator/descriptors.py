"""Matrices in shared memory as the tensor core finds them by a descriptor (PTX ISA 9.7.15.5.1.2).

Memory is read in chunks of 16 bytes. A matrix whose lines run along k (K-major) or along rows (MN-major) consists of
blocks of eight lines of 16, 32, 64 or 128 bytes; two byte offsets say where the next block is in either direction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.tiles import CHUNK, MASKS

Offsets = NDArray[np.int64]
LINES = 8
SPANS = {0: 0, 1: 128, 2: 64, 3: 32}
"""Bytes of the swizzle's span by the descriptor's mode, bits 62 and 63."""


@dataclass(frozen=True, slots=True)
class Descriptor:
    """start, leading, stride: bytes. base: the pattern's phase, times 128 bytes. span: bytes, 0 for no swizzle."""

    start: int
    leading: int
    stride: int
    base: int
    span: int


def unpacked(bits: int) -> Descriptor:
    """The fields of a 64-bit descriptor."""
    field = (1 << 14) - 1
    return Descriptor(
        (bits & field) << 4,
        (bits >> 16 & field) << 4,
        (bits >> 32 & field) << 4,
        bits >> 49 & 7,
        SPANS[bits >> 62 & 3],
    )


def swizzled(places: Offsets, descriptor: Descriptor) -> Offsets:
    """Addresses with their chunks permuted."""
    phase = places - (descriptor.base << 7)
    return places ^ (phase >> 3 & MASKS[descriptor.span])


def k_major(descriptor: Descriptor, rows: int, row_bytes: int) -> Offsets:
    """Addresses of the chunks of each row: (rows, row_bytes / 16)."""
    row = np.arange(rows, dtype=np.int64)[:, None]
    chunk = np.arange(row_bytes // CHUNK, dtype=np.int64)[None, :]
    if not descriptor.span:
        along = chunk * descriptor.leading
    else:
        along = chunk * CHUNK % descriptor.span + chunk * CHUNK // descriptor.span * descriptor.leading
    line = (row % LINES) * (descriptor.span or CHUNK) + (row // LINES) * descriptor.stride
    return swizzled(descriptor.start + line + along, descriptor)


def mn_major(descriptor: Descriptor, rows: int, depth: int) -> Offsets:
    """Addresses of chunks of eight rows of 16-bit elements at each k: (rows / 8, depth)."""
    block = np.arange(rows // 8, dtype=np.int64)[:, None]
    k = np.arange(depth, dtype=np.int64)[None, :]
    if not descriptor.span:
        places = block * descriptor.stride + k % LINES * CHUNK + k // LINES * descriptor.leading
    else:
        wide = descriptor.span // CHUNK
        across = block % wide * CHUNK + block // wide * descriptor.leading
        places = across + k % LINES * descriptor.span + k // LINES * descriptor.stride
    return swizzled(descriptor.start + places, descriptor)
