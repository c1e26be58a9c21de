"""Tensor maps in the GPU's encoding: 128 bytes that only the driver knows how to write."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

from ptxtile.driver.device import activate
from ptxtile.driver.library import binding, call

__all__ = ["TiledFields", "encode_tiled"]

_INTERLEAVE = {0: "NONE", 16: "16B", 32: "32B"}
_SWIZZLE = {0: "NONE", 32: "32B", 64: "64B", 128: "128B"}
_ATOMS = {0: "", 1: "_ATOM_32B", 2: "_ATOM_32B_FLIP_8B", 3: "_ATOM_64B"}
_PROMOTION = {0: "NONE", 64: "L2_64B", 128: "L2_128B", 256: "L2_256B"}
_FILL = {False: "NONE", True: "NAN_REQUEST_ZERO_FMA"}
_BYTES = 128
_UNUSED_STRIDE = 16


@dataclass(frozen=True, slots=True)
class TiledFields:
    """The arguments of cuTensorMapEncodeTiled, or of cuTensorMapEncodeIm2col; dimensions innermost first.

    element      the driver's number of the element type
    extents, box, element_strides    in elements
    strides      of dimensions 1, 2, …, in bytes
    interleave, swizzle, l2_promotion    in bytes, 0 for none
    nan          fill with NaN outside the tensor
    corners      of im2col: (lower, upper) of the bounding box of pixels; the box is (channels, pixels). None for tiles
    atomicity    of a swizzle of 128 bytes: 0 16 bytes, 1 32, 2 32 with exchanged halves, 3 64
    """

    element: int
    extents: Sequence[int]
    strides: Sequence[int]
    box: Sequence[int]
    element_strides: Sequence[int]
    interleave: int
    swizzle: int
    l2_promotion: int
    nan: bool
    corners: tuple[Sequence[int], Sequence[int]] | None = None
    atomicity: int = 0


def encode_tiled(fields: TiledFields, address: int, ordinal: int) -> bytes:
    """The 128 bytes of the map for the tensor at a device address; DriverError if the driver refuses it."""
    cuda = binding()

    def enum(kind: str, name: str) -> object:
        return getattr(getattr(cuda, f"CUtensorMap{kind}"), name)

    if fields.corners is None:
        entry = "cuTensorMapEncodeTiled"
        box: list[object] = [[cuda.cuuint32_t(extent) for extent in fields.box]]
    else:
        entry = "cuTensorMapEncodeIm2col"
        lower, upper = fields.corners
        channels, pixels = fields.box
        box = [list(lower), list(upper), channels, pixels]
    # A tensor of one dimension has no stride, and yet the driver refuses a null pointer to them.
    strides = fields.strides or (_UNUSED_STRIDE,)
    # the array must not be a null pointer, which is what an empty list becomes; the driver reads rank - 1 of it
    strides = fields.strides or (16,)
    with activate(ordinal):
        made = call(
            entry,
            f"encode a tensor map of extents {tuple(fields.extents)}, box {tuple(fields.box)}",
            cuda.CUtensorMapDataType(fields.element),
            len(fields.extents),
            address,
            [cuda.cuuint64_t(extent) for extent in fields.extents],
            [cuda.cuuint64_t(stride) for stride in strides],
            *box,
            [cuda.cuuint32_t(stride) for stride in fields.element_strides],
            enum("Interleave", f"CU_TENSOR_MAP_INTERLEAVE_{_INTERLEAVE[fields.interleave]}"),
            enum("Swizzle", f"CU_TENSOR_MAP_SWIZZLE_{_SWIZZLE[fields.swizzle]}{_ATOMS[fields.atomicity]}"),
            enum("L2promotion", f"CU_TENSOR_MAP_L2_PROMOTION_{_PROMOTION[fields.l2_promotion]}"),
            enum("FloatOOBfill", f"CU_TENSOR_MAP_FLOAT_OOB_FILL_{_FILL[fields.nan]}"),
        )
    return ctypes.string_at(made.getPtr(), _BYTES)
