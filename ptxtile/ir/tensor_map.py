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
    106     22         zeros
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from ptxtile.dtypes import DType, dtype_of
from ptxtile.errors import LayoutError

__all__ = ["BYTES", "ELEMENTS", "Mapped", "TiledMap", "element_of"]

BYTES = 128
_MAGIC = b"PTXT"
_FORMAT = struct.Struct("<4sBBBBHB5BQ5Q4Q5H22x")
_GREATEST_BOX = 256
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
class TiledMap:
    """A map of tiles of a tensor in global memory. Innermost dimension first, as the hardware counts.

    element          one of ELEMENTS
    extents          of the tensor, in elements
    strides          of dimensions 1, 2, …, in bytes; dimension 0 is dense
    box              of a tile, in elements
    element_strides  how far apart the elements of a tile are in the tensor
    interleave       0, 16 or 32 bytes
    swizzle          0, 32, 64 or 128 bytes: the span whose 16-byte chunks are permuted in shared memory
    l2_promotion     0, 64, 128 or 256 bytes: what an access brings into L2 at least
    nan              what lies outside the tensor reads as NaN instead of zero
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
    def box_bytes(self) -> int:
        """Bytes that a load of one box writes into shared memory, out-of-bounds elements included."""
        total = self.itemsize
        for extent in self.box:
            total *= extent
        return total

    def check(self, what: str) -> None:
        """LayoutError, beginning with `what`, where the hardware has no such map."""
        _check_options(what, self)
        _check_box(what, self)
        _check_tensor(what, self)

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
        made = cls(
            ELEMENTS[element],
            fields[13 : 13 + rank],
            fields[18 : 18 + rank - 1],
            fields[22 : 22 + rank],
            fields[7 : 7 + rank],
            interleave,
            swizzle,
            promotion,
            bool(nan),
        )
        return made, fields[12]


@dataclass(frozen=True, slots=True)
class Mapped:
    """An argument of a launch: the map of an array, which is encoded once the array's address is known."""

    map: TiledMap
    array: object


def _filled(values: tuple[int, ...], count: int) -> tuple[int, ...]:
    return (*values, *(0,) * (count - len(values)))


def _check_options(what: str, made: TiledMap) -> None:
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
    if made.interleave == 32 and made.swizzle != 32:
        raise LayoutError(f"{what}: interleave=32 goes with swizzle=32 alone, not {made.swizzle}")
    if made.nan and made.element not in _FLOATS:
        raise LayoutError(f"{what}: elements of type {made.element} have no NaN to fill with")


def _check_box(what: str, made: TiledMap) -> None:
    if len(made.box) != made.rank or len(made.element_strides) != made.rank:
        raise LayoutError(
            f"{what}: box and element strides have one entry a dimension, {made.rank}; given are "
            f"{len(made.box)} and {len(made.element_strides)}"
        )
    for extent in made.box:
        if not 1 <= extent <= _GREATEST_BOX:
            raise LayoutError(f"{what}: a box has 1 to 256 elements along each dimension, not {extent}")
    for stride in made.element_strides:
        if not 1 <= stride <= 8:
            raise LayoutError(f"{what}: an element stride is 1 to 8, not {stride}")
    inner = made.box[0] * made.itemsize
    if not made.interleave and inner % 16:
        raise LayoutError(
            f"{what}: the innermost extent of the box is {made.box[0]} elements, {inner} bytes; it must be a multiple "
            "of 16 bytes"
        )
    if not made.interleave and made.swizzle and inner > made.swizzle:
        raise LayoutError(
            f"{what}: the innermost extent of the box is {inner} bytes, more than the swizzle of {made.swizzle} bytes "
            "spans; use a narrower box or a wider swizzle"
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
