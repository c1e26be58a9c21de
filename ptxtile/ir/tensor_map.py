"""What a tensor map says: the 128-byte operand of tensor copies (PTX ISA 5.5), before a machine encodes it.

The GPU's encoding is the driver's secret (`cuTensorMapEncodeTiled`). The emulator's is `pack` below, little-endian:

    offset  bytes      field
    0       4          b"PTXT"
    4       1          rank
    5       1          element type, its index in ELEMENTS
    6       1          interleave, in bytes: 0, 16 or 32
    7       1          swizzle, in bytes: 0, 32, 64 or 128
    8       2          L2 promotion, in bytes: 0, 64, 128 or 256
    10      1          1 if what lies out of bounds is NaN, 0 if it is zero
    11      5          element strides, innermost first
    16      8          global address
    24      5 x 8      extents in elements, innermost first, 0 beyond the rank
    64      4 x 8      strides in bytes of dimensions 1, 2, …
    96      5 x 2      box extents, innermost first
    106     1          1 if it is a map of pixels (im2col), 0 of tiles
    107     1          swizzle atomicity, as tensormap.replace numbers it
    108     3 x 2      im2col: lower corner of the bounding box, innermost first
    114     3 x 2      im2col: upper corner
    120     8          zeros
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

from ptxtile.dtypes import DType, dtype_of
from ptxtile.errors import LayoutError

__all__ = ["BYTES", "ELEMENTS", "Im2col", "Mapped", "TiledMap", "element_of"]

BYTES = 128
_MAGIC = b"PTXT"
_FORMAT = struct.Struct("<4sBBBBHB5BQ5Q4Q5HBB6h8x")
_GREATEST_BOX = 256
_GREATEST_COLUMN = 1024
_GREATEST_RANK = 5

ELEMENTS = (
    "u8",
    "u16",
    "u32",
    "s32",
    "u64",
    "s64",
    "f16",
    "f32",
    "f64",
    "bf16",
    "f32.ftz",
    "tf32",
    "tf32.ftz",
)
"""Element types, in the order of the driver's numbers."""

_SIZES = {"u8": 1, "u16": 2, "f16": 2, "bf16": 2, "u64": 8, "s64": 8, "f64": 8}
_FLOATS = frozenset({"f16", "bf16", "f32", "f64", "f32.ftz", "tf32", "tf32.ftz"})
_NAMES = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64"}
_INTEGERS = {"uint32": "u32", "int32": "s32", "uint64": "u64", "int64": "s64"}


def element_of(dtype: object) -> str:
    """The element type that carries a dtype; eight-bit floats and narrow integers travel as unsigned bits."""
    kind: DType = dtype_of(dtype)
    named = {**_NAMES, **_INTEGERS}.get(kind.name)
    if named is None and kind.bits in (8, 16):
        named = f"u{kind.bits}"
    if named is None:
        raise LayoutError(f"a tensor map has no element type for {kind.name}; it has {', '.join(ELEMENTS)}")
    return named


@dataclass(frozen=True, slots=True)
class Im2col:
    """The bounding box of pixels of an im2col map, innermost first: corners of the dimensions between channels and
    images, in elements from those of the tensor; the upper corner is counted from the tensor's end."""

    lower: tuple[int, ...]
    upper: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TiledMap:
    """A map of tiles of a tensor in global memory. Innermost dimension first, as the hardware counts.

    element          one of ELEMENTS
    extents          of the tensor, in elements
    strides          of dimensions 1, 2, …, in bytes; dimension 0 is dense
    box              of a tile, in elements; of an im2col map (channels, pixels)
    element_strides  how far apart the elements of a tile are in the tensor
    interleave       0; or 16 or 32 bytes, the unit that dimension 0 and its box count: the dimensions are pixels, then
                     slices of channels, then images, and a copy moves one slice, whatever the box says, of pixels
                     (im2col) too (as an H200 does)
    swizzle          0, 32, 64 or 128 bytes: the span whose 16-byte chunks are permuted in shared memory
    l2_promotion     0, 64, 128 or 256 bytes: what an access brings into L2 at least
    nan              what lies outside the tensor reads as NaN instead of zero
    im2col           the bounding box of pixels, None for a map of tiles
    atomicity        what a swizzle of 128 bytes keeps together: 0 16 bytes, 1 32 bytes, 2 the same with the
                     halves of 16 bytes exchanged in every other line, 3 64 bytes
    """

    element: str
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...]
    interleave: int = 0
    swizzle: int = 0
    l2_promotion: int = 0
    nan: bool = False
    im2col: Im2col | None = None
    atomicity: int = 0

    @property
    def rank(self) -> int:
        """Dimensions of the tensor."""
        return len(self.extents)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return _SIZES.get(self.element, 4)

    @property
    def address_alignment(self) -> int:
        """Bytes to which the tensor's address must be aligned."""
        return 32 if self.interleave == 32 else 16

    @property
    def tile(self) -> tuple[int, ...]:
        """What a copy of one box is in shared memory, in elements, innermost first. The box counts elements of the
        tensor: with an element stride of 2 half of them are moved. Dimension 0 has no stride."""
        if self.im2col is not None:
            return (self.interleave // self.itemsize, self.box[1]) if self.interleave else self.box
        steps = self.element_strides if self.interleave else (1, *self.element_strides[1:])
        moved = tuple(-(-extent // step) for extent, step in zip(self.box, steps))
        if self.interleave:
            return (self.interleave // self.itemsize, *moved[:-2], 1, moved[-1])
        return moved

    @property
    def box_bytes(self) -> int:
        """Bytes that a load of one box writes into shared memory, out-of-bounds elements included."""
        return math.prod(self.tile) * self.itemsize

    def check(self, what: str) -> None:
        """LayoutError, beginning with `what`, where the hardware has no such map."""
        if self in _right:
            return
        _check_options(what, self)
        if self.im2col is not None:
            _check_pixels(what, self, self.im2col)
        _check_box(what, self)
        _check_tensor(what, self)
        if len(_right) < _KEPT:
            _right.add(self)

    def pack(self, address: int) -> bytes:
        """The emulator's 128 bytes for a tensor at `address`; the layout stands in the module's docstring."""
        return _FORMAT.pack(
            _MAGIC,
            self.rank,
            ELEMENTS.index(self.element),
            self.interleave,
            self.swizzle,
            self.l2_promotion,
            self.nan,
            *_filled(self.element_strides, 5),
            address,
            *_filled(self.extents, 5),
            *_filled(self.strides, 4),
            *_filled(self.box, 5),
            self.im2col is not None,
            self.atomicity,
            *_filled(self.im2col.lower if self.im2col else (), 3),
            *_filled(self.im2col.upper if self.im2col else (), 3),
        )

    @classmethod
    def unpack(cls, data: bytes) -> tuple[TiledMap, int]:
        """The map and the address that `pack` wrote; LayoutError for bytes that are none."""
        if len(data) != BYTES or data[:4] != _MAGIC:
            raise LayoutError("these bytes are no tensor map of the emulator")
        fields = _FORMAT.unpack(data)
        rank, element, interleave, swizzle, promotion, nan = fields[1:7]
        if not 1 <= rank <= _GREATEST_RANK or element >= len(ELEMENTS):
            raise LayoutError(f"a tensor map of rank {rank} with element type {element} is none")
        pixels = None
        if fields[27]:
            pixels = Im2col(fields[29 : 29 + rank - 2], fields[32 : 32 + rank - 2])
        made = cls(
            ELEMENTS[element],
            fields[13 : 13 + rank],
            fields[18 : 18 + rank - 1],
            fields[22 : 22 + (2 if pixels else rank)],
            fields[7 : 7 + rank],
            interleave,
            swizzle,
            promotion,
            bool(nan),
            pixels,
            fields[28],
        )
        return made, fields[12]


@dataclass(frozen=True, slots=True)
class Mapped:
    """An argument of a launch: the map of an array, which is encoded once the array's address is known."""

    map: TiledMap
    array: object


_right: set[TiledMap] = set()
"""Maps that were checked: a launch asks again each time. The first 1024 are remembered."""
_KEPT = 1024


def _filled(values: tuple[int, ...], count: int) -> tuple[int, ...]:
    return (*values, *(0,) * (count - len(values)))


def _check_options(what: str, made: TiledMap) -> None:
    if made.element not in ELEMENTS:
        raise LayoutError(f"{what}: element is one of {', '.join(ELEMENTS)}, not {made.element!r}")
    for name, given, allowed in (
        ("interleave", made.interleave, (0, 16, 32)),
        ("swizzle", made.swizzle, (0, 32, 64, 128)),
        ("l2_promotion", made.l2_promotion, (0, 64, 128, 256)),
    ):
        if given not in allowed or isinstance(given, bool):
            raise LayoutError(f"{what}: {name} is one of {', '.join(map(str, allowed))} bytes, not {given!r}")
    if not 1 <= made.rank <= _GREATEST_RANK:
        raise LayoutError(f"{what}: a tensor map has one to five dimensions, not {made.rank}")
    if made.interleave and made.rank < 3:
        raise LayoutError(f"{what}: an interleaved map has at least three dimensions, not {made.rank}")
    if made.atomicity not in range(4) or (made.atomicity and made.swizzle != 128):
        raise LayoutError(
            f"{what}: a swizzle atomicity is 0, or 1 to 3 with swizzle=128, not {made.atomicity} with {made.swizzle}"
        )
    if made.interleave == 32 and made.swizzle != 32:
        raise LayoutError(f"{what}: interleave=32 goes with swizzle=32 alone, not {made.swizzle}")
    if made.nan and made.element not in _FLOATS:
        raise LayoutError(f"{what}: elements of type {made.element} have no NaN to fill with")


def _check_pixels(what: str, made: TiledMap, pixels: Im2col) -> None:
    """An im2col map: three to five dimensions, a corner entry for each between channels and images."""
    if made.rank < 3:
        raise LayoutError(
            f"{what}: an im2col map has three to five dimensions (images, pixels, channels), not {made.rank}"
        )
    bits = 16 // (made.rank - 2)
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    for corner in (pixels.lower, pixels.upper):
        if len(corner) != made.rank - 2:
            raise LayoutError(
                f"{what}: a corner of im2col= has one entry a dimension of pixels, {made.rank - 2}, not {len(corner)}"
            )
        for entry in corner:
            if not low <= entry <= high:
                raise LayoutError(
                    f"{what}: a corner of im2col= in {made.rank} dimensions is {low} to {high}, not {entry}"
                )


def _check_box(what: str, made: TiledMap) -> None:
    due = made.rank if made.im2col is None else 2
    if len(made.box) != due:
        entries = "one entry a dimension" if made.im2col is None else "pixels and channels"
        raise LayoutError(f"{what}: a box has {entries}, {due}; given are {len(made.box)}")
    if len(made.element_strides) != made.rank:
        raise LayoutError(
            f"{what}: element_strides has one entry a dimension, {made.rank}; given are {len(made.element_strides)}"
        )
    for dim, extent in enumerate(made.box):
        most = _GREATEST_COLUMN if made.im2col is not None and dim else _GREATEST_BOX
        if not 1 <= extent <= most:
            where = "along each dimension" if made.im2col is None else "a pixel" if not dim else "(pixels)"
            raise LayoutError(f"{what}: a box has 1 to {most} elements {where}, not {extent}")
    for stride in made.element_strides:
        if not 1 <= stride <= 8:
            raise LayoutError(f"{what}: an element stride is 1 to 8, not {stride}")
    _check_line(what, made)


def _check_line(what: str, made: TiledMap) -> None:
    inner = made.box[0] * made.itemsize
    if inner % 16:
        raise LayoutError(
            f"{what}: the innermost extent of the box is {made.box[0]} elements, {inner} bytes; it must be a multiple "
            "of 16 bytes"
        )
    if made.interleave:  # what is said of lines and swizzles is said of units then
        return
    if made.swizzle and inner > made.swizzle:
        raise LayoutError(
            f"{what}: the innermost extent of the box is {inner} bytes, more than the swizzle of {made.swizzle} bytes "
            "spans; use a narrower box or a wider swizzle"
        )
    if inner < made.swizzle:
        raise LayoutError(
            f"{what}: a swizzle of {made.swizzle} bytes is larger than the innermost extent of the box, {inner} bytes; "
            "use a wider box or a narrower swizzle"
        )


def _check_tensor(what: str, made: TiledMap) -> None:
    if len(made.strides) != made.rank - 1:
        raise LayoutError(
            f"{what}: {made.rank} dimensions have {made.rank - 1} strides, not {len(made.strides)}"
        )
    for extent in made.extents:
        if not 1 <= extent <= 1 << 32:
            raise LayoutError(f"{what}: an extent is 1 to 2**32, not {extent}")
    due = 32 if made.interleave == 32 else 16
    for stride in made.strides:
        if stride % due or not 0 <= stride < 1 << 40:
            raise LayoutError(
                f"{what}: a stride of {stride} bytes; it must be a multiple of {due} bytes below 2**40, so the "
                f"innermost extent must be a multiple of {max(due // made.itemsize, 1)} elements"
            )
