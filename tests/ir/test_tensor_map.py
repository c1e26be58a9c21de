"""Tensor maps before a machine encodes them: the emulator's bytes, and what the hardware cannot have."""

from __future__ import annotations

import pytest

import ptxtile as pt
from ptxtile.errors import LayoutError
from ptxtile.ir.tensor_map import BYTES, Im2col, TiledMap


def test_bytes_of_the_emulator():
    map_ = TiledMap("bf16", (64, 300), (128,), (64, 128), (1, 2), 0, 128, 256, True)
    data = map_.pack(0x7F0000001000)
    assert len(data) == BYTES and data[:4] == b"PTXT"
    assert data[4:8] == bytes([2, 9, 0, 128]) and data[8:16] == bytes([0, 1, 1, 1, 2, 0, 0, 0])
    assert TiledMap.unpack(data) == (map_, 0x7F0000001000)


def test_bytes_of_pixels():
    map_ = TiledMap(
        "f16",
        (64, 17, 9, 2),
        (128, 2176, 19584),
        (64, 1000),
        (1, 1, 2, 1),
        0,
        128,
        0,
        False,
        Im2col((-1, 2), (3, -4)),
    )
    assert TiledMap.unpack(map_.pack(64)) == (map_, 64)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\0" * 128, "these bytes are no tensor map of the emulator"),
        (b"PTXT" + bytes([6, 0]) + b"\0" * 122, "a tensor map of rank 6 with element type 0 is none"),
        (b"PTXT" + bytes([1, 13]) + b"\0" * 122, "a tensor map of rank 1 with element type 13 is none"),
    ],
)
def test_bytes_that_are_none(data, message):
    with pytest.raises(LayoutError) as caught:
        TiledMap.unpack(data)
    assert str(caught.value) == message


def test_what_a_copy_moves():
    plain = pt.TensorMap((64, 64, 64), pt.float32, box=(2, 8, 32), swizzle=128)
    assert (plain.tile, plain.box_bytes) == ((2, 8, 32), 2 * 8 * 32 * 4)
    strided = pt.TensorMap((64, 64, 64), pt.float32, box=(2, 9, 32), element_strides=(1, 4, 1))
    assert (strided.tile, strided.box_bytes) == ((2, 3, 32), 2 * 3 * 32 * 4)
    units = pt.TensorMap((2, 4, 9, 18, 8), pt.uint16, box=(2, 1, 3, 16, 8), interleave=16)
    assert (units.tile, units.box_bytes) == ((2, 1, 3, 16, 8), 2 * 3 * 16 * 16)
    assert units.of((2, 4, 9, 18, 8)).extents == (18, 9, 4, 2)
    assert units.of((2, 4, 9, 18, 8)).strides == (18 * 16, 9 * 18 * 16, 4 * 9 * 18 * 16)
    pixels = pt.TensorMap((2, 9, 9, 32), pt.float32, box=(50, 32), im2col=((0, 0), (0, 0)))
    assert (pixels.tile, pixels.box_bytes) == ((50, 32), 50 * 32 * 4)
    column = TiledMap(
        "u16", (8, 4, 6, 2), (256, 1024, 6144), (16, 12), (1,) * 4, 32, 32, im2col=Im2col((0, 0), (0, 0))
    )
    column.check("a map")
    assert (column.tile, column.box_bytes) == ((16, 12), 12 * 32)


def make(shape=(64, 64), dtype=pt.float16, box=(8, 64), **options):
    return lambda: pt.TensorMap(shape, dtype, box=box, **options)


PIXELS = {"shape": (2, 8, 8, 64), "box": (32, 64)}
MESSAGES = [
    (
        make(box=(8, 4)),
        "the innermost extent of the box is 4 elements, 8 bytes; it must be a multiple of 16 bytes",
    ),
    (
        make(box=(8, 64), swizzle=64),
        "the innermost extent of the box is 128 bytes, more than the swizzle of 64 bytes spans; use a narrower box or a wider swizzle",
    ),
    (
        make(box=(8, 32), swizzle=128),
        "a swizzle of 128 bytes is larger than the innermost extent of the box, 64 bytes; use a wider box or a narrower swizzle",
    ),
    (make(box=(257, 64)), "a box has 1 to 256 elements along each dimension, not 257"),
    (make(box=(0, 64)), "a box has 1 to 256 elements along each dimension, not 0"),
    (make(box=(64,)), "a box has one entry a dimension, 2; given are 1"),
    (make(box=64), "box= is a tuple of integers, not 64"),
    (make(box=(8, 64.0)), "box= is a tuple of integers, not (8, 64.0)"),
    (make(swizzle=256), "swizzle is one of 0, 32, 64, 128 bytes, not 256"),
    (make(swizzle=True), "swizzle is one of 0, 32, 64, 128 bytes, not True"),
    (make(interleave=8), "interleave is one of 0, 16, 32 bytes, not 8"),
    (make(l2_promotion=32), "l2_promotion is one of 0, 64, 128, 256 bytes, not 32"),
    (
        make(interleave=16),
        (
            "with interleave=16 a tensor is (images, slices, *pixels, 8), four dimensions or more, and its box has as many; these have 2 "
            "and 2"
        ),
    ),
    (
        make(shape=(2, 4, 64, 16), box=(1, 1, 64, 16), interleave=32),
        "interleave=32 goes with swizzle=32 alone, not 0",
    ),
    (make(shape=(2,) * 5 + (64,), box=(1,) * 5 + (64,)), "a tensor map has one to five dimensions, not 6"),
    (make(element_strides=(9, 1)), "an element stride is 1 to 8, not 9"),
    (make(element_strides=(1,)), "element_strides has one entry a dimension, 2; given are 1"),
    (make(dtype=pt.uint8, nan=True), "elements of type u8 have no NaN to fill with"),
    (
        make(element="tf64"),
        "element is one of u8, u16, u32, s32, u64, s64, f16, f32, f64, bf16, f32.ftz, tf32, tf32.ftz, not 'tf64'",
    ),
    (make(box=(8, 32), element="tf32"), "elements of type tf32 have 4 bytes, and float16 has 2"),
    (
        make(shape=(64, 60)),
        "a stride of 120 bytes; it must be a multiple of 16 bytes below 2**40, so the innermost extent must be a multiple of 8 elements",
    ),
    (make(shape=(64, (1 << 32) + 8)), "an extent is 1 to 2**32, not 4294967304"),
    (
        make(im2col=((0,), (0,))),
        "an im2col map has three to five dimensions (images, pixels, channels), not 2",
    ),
    (
        make(**PIXELS, im2col=((0,), (0, 0))),
        "a corner of im2col= has one entry a dimension of pixels, 2, not 1",
    ),
    (
        make(**PIXELS, im2col=((0, -129), (0, 0))),
        "a corner of im2col= in 4 dimensions is -128 to 127, not -129",
    ),
    (make(**PIXELS, im2col=(0, 0, 0)), "im2col= is (lower corner, upper corner), not (0, 0, 0)"),
    (
        make(shape=(2, 8, 8, 64), box=(1025, 64), im2col=((0, 0), (0, 0))),
        "a box has 1 to 1024 elements (pixels), not 1025",
    ),
    (
        make(shape=(2, 8, 8, 64), box=(1, 1, 1, 64), im2col=((0, 0), (0, 0))),
        "a box has pixels and channels, 2; given are 4",
    ),
]


@pytest.mark.parametrize(("maker", "text"), MESSAGES, ids=[text[:50] for _, text in MESSAGES])
def test_messages(maker, text):
    with pytest.raises(LayoutError) as caught:
        maker()
    assert str(caught.value) == f"pt.TensorMap: {text}"


def test_a_dtype_without_element_type():
    with pytest.raises(LayoutError) as caught:
        pt.TensorMap((64, 64), pt.bool_, box=(8, 64))
    assert str(caught.value).startswith("a tensor map has no element type for bool_; it has u8, u16")
