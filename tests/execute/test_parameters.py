"""Parameter places and the numbers that go there."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from ptxtile import dtypes as pt
from ptxtile.errors import OperandError
from ptxtile.execute.parameters import Place, blob_value, places, scalar_value, signature
from ptxtile.ir.module import Function, Parameter

NEVER = "a float never becomes an integer here; pass int(…) if that is meant"
INEXACT = "no .f32 is exactly that; pass a float to have it rounded"
UNTYPED = "it takes 32 bits: pass a typed constant of that width, or the bits as an int"


def place(type_name: str, shape: tuple[int, ...] = ()) -> Place:
    (made,) = places(Function("k", True, (Parameter("x", type_name, shape),)))
    return made


def test_places_are_aligned_like_ptx_aligns_them() -> None:
    taken = places(
        Function(
            "k",
            True,
            (
                Parameter("a", "u8"),
                Parameter("b", "f64"),
                Parameter("c", "b16"),
                Parameter("map", "b8", (128,), align=64),
                Parameter("d", "f32"),
            ),
        )
    )
    assert [(p.name, p.offset, p.size, p.code) for p in taken] == [
        ("a", 0, 1, "B"),
        ("b", 8, 8, "d"),
        ("c", 16, 2, "H"),
        ("map", 64, 128, "128s"),
        ("d", 192, 4, "f"),
    ]
    assert signature(taken) == "a: .u8, b: .f64, c: .b16, map: .b8[128], d: .f32"


def test_a_type_that_no_entry_takes() -> None:
    with pytest.raises(OperandError) as caught:
        place("pred")
    assert str(caught.value) == (
        "a kernel parameter cannot have the type .pred: it takes .u8 to .u64, .f32 and the like"
    )


@pytest.mark.parametrize(
    ("type_name", "given", "value"),
    [
        ("u32", 7, 7),
        ("u32", True, 1),
        ("u8", 255, 255),
        ("s8", -128, -128),
        ("b8", -1, 255),
        ("b32", 2**32 - 1, 2**32 - 1),
        ("u64", 2**64 - 1, 2**64 - 1),
        ("s32", np.int64(-5), -5),
        ("u16", pt.uint16(9), 9),
        ("f32", 0.1, 0.1),
        ("f32", 3, 3.0),
        ("f32", -(2**24), -(2.0**24)),
        ("f32", np.float32(0.5), 0.5),
        ("f32", pt.float16(2), 2.0),
        ("f32", ml_dtypes.bfloat16(2.5), 2.5),
        ("f32", math.inf, math.inf),
        ("f64", 1e300, 1e300),
        ("f64", 2**1000, 2.0**1000),
        ("f16", 65504, 65504.0),
        ("b16", pt.bfloat16(2), 0x4000),
        ("b16", pt.float16(2), 0x4000),
        ("b16", ml_dtypes.bfloat16(1), 0x3F80),
        ("b16", np.float16(1), 0x3C00),
        ("b32", np.float32(1), 0x3F800000),
        ("b32", pt.float32(1), 0x3F800000),
        ("b64", np.float64(1), 0x3FF0000000000000),
        ("f64", np.array(2.5), 2.5),
    ],
)
def test_numbers_that_fit(type_name: str, given: object, value: float) -> None:
    found = scalar_value(place(type_name), given)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("type_name", "given", "message"),
    [
        ("u32", 2.0, "float 2.0: " + NEVER),
        ("u32", np.float64(2), "numpy.float64 np.float64(2.0): " + NEVER),
        ("u32", -1, "int -1: it holds 0 to 4294967295"),
        ("s8", 128, "int 128: it holds -128 to 127"),
        ("b8", 256, "int 256: it holds -128 to 255"),
        ("u32", np.int64(2**32), "numpy.int64 np.int64(4294967296): it holds 0 to 4294967295"),
        ("f32", 1e39, "float 1e+39: it is beyond the largest .f32"),
        ("f16", 70000.0, "float 70000.0: it is beyond the largest .f16"),
        ("f32", 2**24 + 1, "int 16777217: " + INEXACT),
        ("f32", 2**200, "int 1606938044258990275541962092341162602...: " + INEXACT),
        ("b32", 1.0, "float 1.0: " + UNTYPED),
        ("b32", pt.float16(1), "pt.float16(1.0): " + UNTYPED),
        ("f32", "x", "str 'x': a number is due"),
        ("f32", 1j, "complex 1j: a number is due"),
        ("u64", None, "NoneType None: an array or an address is due"),
    ],
)  # fmt: skip
def test_numbers_that_do_not_fit(type_name: str, given: object, message: str) -> None:
    with pytest.raises(OperandError) as caught:
        scalar_value(place(type_name), given)
    assert str(caught.value) == f"argument 1 ('x', .{type_name}) cannot be {message}"


def test_buffers() -> None:
    blob = place("b8", (4,))
    assert blob_value(blob, b"abcd") == b"abcd"
    assert blob_value(blob, np.arange(4, dtype=np.uint8)) == b"\0\1\2\3"
    assert blob_value(place("b32", (2,)), bytearray(8)) == bytes(8)
    with pytest.raises(OperandError) as caught:
        blob_value(blob, b"abc")
    assert str(caught.value) == ("argument 1 ('x', .b8[4]) cannot be a buffer of 3 bytes: it takes exactly 4")
    with pytest.raises(OperandError) as caught:
        blob_value(blob, 7)
    assert str(caught.value) == "argument 1 ('x', .b8[4]) cannot be int 7: a buffer of 4 bytes is due"
