"""cast, bitcast, pack, unpack: one instruction a pair, its value, and the messages."""

from __future__ import annotations

import numpy as np
import pytest

import ptxtile as pt
from builder.running import failure, instructions, run, spellings, text


@pytest.mark.parametrize(
    ("source", "dtype", "expected"),
    [
        ("float32", "int32", ["cvt.rzi.s32.f32"]),
        ("float64", "uint8", ["cvt.rzi.u8.f64"]),
        ("float16", "int64", ["cvt.rzi.s64.f16"]),
        ("int32", "float32", ["cvt.rn.f32.s32"]),
        ("uint8", "float16", ["cvt.rn.f16.u8"]),
        ("int64", "float64", ["cvt.rn.f64.s64"]),
        ("float32", "float16", ["cvt.rn.f16.f32"]),
        ("float32", "bfloat16", ["cvt.rn.bf16.f32"]),
        ("float64", "float32", ["cvt.rn.f32.f64"]),
        ("float16", "float32", ["cvt.f32.f16"]),
        ("bfloat16", "float32", ["cvt.f32.bf16"]),
        ("float32", "float64", ["cvt.f64.f32"]),
        ("float16", "bfloat16", ["cvt.rn.bf16.f16"]),
        ("int32", "int64", ["cvt.s64.s32"]),
        ("int32", "uint64", ["cvt.u64.s32"]),
        ("uint32", "int8", ["cvt.s8.u32"]),
        ("int8", "int32", ["cvt.s32.s8"]),
        ("int32", "uint32", ["mov.b32"]),
        ("uint64", "int64", ["mov.b64"]),
        ("int32", "bool_", ["setp.ne.b32"]),
        ("int8", "bool_", ["cvt.s16.s8", "setp.ne.b16"]),
        ("float32", "bool_", ["setp.neu.f32"]),
        ("bool_", "float32", ["selp.f32"]),
        ("bool_", "uint8", ["selp.b16"]),
        ("float32", "float8_e4m3fn", ["cvt.rn.satfinite.e4m3x2.f32"]),
        ("float8_e5m2", "float16", ["cvt.rn.f16x2.e5m2x2", "mov.b32"]),
        ("float8_e4m3fn", "float32", ["cvt.rn.f16x2.e4m3x2", "mov.b32", "cvt.f32.f16"]),
    ],
)
def test_one_documented_instruction(source: str, dtype: str, expected: list[str]) -> None:
    assert spellings(lambda x: pt.cast(x, getattr(pt, dtype)), getattr(pt, source)) == expected


def test_rounding_is_named() -> None:
    assert spellings(lambda x: pt.cast(x, pt.int32, "rmi"), pt.float32) == ["cvt.rmi.s32.f32"]
    assert spellings(lambda x: pt.cast(x, pt.float16, "rz"), pt.float32) == ["cvt.rz.f16.f32"]


def test_constants_and_instructions_agree() -> None:
    numbers = np.array(
        [0, -0.0, 1.5, -1.5, 300, -300, 3e9, -3e9, 1e20, -1e20, np.inf, -np.inf, np.nan], np.float32
    )
    for dtype in (
        pt.int8,
        pt.uint8,
        pt.int16,
        pt.int32,
        pt.uint32,
        pt.int64,
        pt.uint64,
        pt.float64,
        pt.float16,
    ):
        at_run_time = run(lambda x, d=dtype: pt.cast(x, d), numbers, result=dtype)
        known: list[object] = []
        instructions(
            lambda d=dtype, k=known: k.extend(pt.cast(pt.float32(float(n)), d).value for n in numbers)
        )
        assert np.array_equal(at_run_time, np.array(known, dtype.numpy), equal_nan=dtype.kind == "float"), (
            dtype
        )


def test_every_pair_is_a_form_or_an_error_of_ours() -> None:
    kinds = pt.dtypes.ALL
    refused = set()
    for source in kinds:
        for dtype in kinds:
            try:
                spellings(lambda x, d=dtype: pt.cast(x, d), source)
            except pt.TraceError:
                refused.add((source.name, dtype.name))
    small = {"float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"}
    rest = {pair for pair in refused if not small & set(pair)}
    assert rest == {("bfloat16", "int8"), ("bfloat16", "uint8"), ("int8", "bfloat16"), ("uint8", "bfloat16")}


def test_values() -> None:
    whole = np.array([-(1 << 31), -129, -1, 0, 127, 255, 256, (1 << 31) - 1], np.int32)
    for dtype in (pt.int8, pt.uint8, pt.int16, pt.int64, pt.uint64, pt.uint32, pt.float32, pt.float64):
        assert np.array_equal(
            run(lambda x, d=dtype: pt.cast(x, d), whole, result=dtype), whole.astype(dtype.numpy)
        )
    assert np.array_equal(run(lambda x: pt.cast(pt.cast(x, pt.bool_), pt.int32), whole), whole != 0)
    halves = np.array([2.5, -2.5, 3.5, 0.5], np.float32)
    assert np.array_equal(run(lambda x: pt.cast(x, pt.int32, "rni"), halves, result=pt.int32), [2, -2, 4, 0])
    small = np.array([1.0625, -448, 0.25, 1000], np.float32)
    got = run(lambda x: pt.cast(pt.cast(x, pt.float8_e4m3fn), pt.float32), small)
    assert np.array_equal(got, [1.0, -448, 0.25, 448])


def test_bits() -> None:
    assert instructions(lambda x: pt.bitcast(x, pt.uint32), pt.float32) == ["mov.b32 %r0, %f0"]
    known: list[object] = []
    instructions(
        lambda: known.extend([pt.bitcast(pt.float32(1), pt.int32), pt.bitcast(pt.uint16(0x3C00), pt.float16)])
    )
    assert repr(known) == "[pt.int32(1065353216), pt.float16(1.0)]"


def test_pack_makes_a_carrier_on_the_host() -> None:
    assert repr(pt.pack(2.0, 2.0, dtype=pt.float16)) == "pt.uint32(1073758208)"
    assert repr(pt.pack(1, -1, dtype=pt.int8)) == "pt.uint16(65281)"
    assert repr(pt.pack(pt.float32(1), pt.float32(2))) == "pt.uint64(4611686019492741120)"
    assert repr(pt.pack(1, 2, 3, 4, dtype=pt.uint8)) == "pt.uint32(67305985)"


def test_pack_and_unpack_at_run_time() -> None:
    assert instructions(lambda h: pt.pack(h, 1.5), pt.float16) == [
        "mov.b16 %rs1, 15872",
        "mov.b32 %r0, {%rs0, %rs1}",
    ]
    assert instructions(lambda r: pt.unpack(r, pt.float16), pt.uint32) == ["mov.b32 {%rs0, %rs1}, %r0"]
    assert instructions(lambda r: pt.unpack(r, pt.float32), pt.uint64) == ["mov.b64 {%f0, %f1}, %rd0"]
    words = np.arange(64, dtype=np.uint32) * 0x01030509
    swapped = run(lambda r: pt.pack(*reversed(pt.unpack(r, pt.uint16))), words)
    assert np.array_equal(swapped, (words >> 16) | (words << 16))


@pytest.mark.parametrize(
    ("source", "dtype", "message"),
    [
        (
            "pt.cast(a, pt.float64, 'rn')",
            "float32",
            ("pt.cast from float32 to float64 is exact: it takes no rounding, not 'rn'"),
        ),
        (
            "pt.cast(a, pt.int32, 'rn')",
            "float32",
            ("pt.cast from float32 to int32: rounding is one of rni, rzi, rmi, rpi, not 'rn'"),
        ),
        (
            "pt.cast(a, pt.float8_e4m3fn)",
            "float16",
            (
                "pt.cast from float16 to float8_e4m3fn: PTX converts 8-bit floats e4m3 and e5m2 from "
                "float32, and to float16 (and from there to float32)"
            ),
        ),
        (
            "pt.cast(a, pt.int8)",
            "bfloat16",
            "pt.cast from bfloat16 to int8: PTX has no such cvt; go through pt.float32",
        ),
        (
            "pt.cast(a, pt.bool_)",
            "float8_e4m3fn",
            ("pt.cast from float8_e4m3fn to bool_: PTX compares no 8-bit floats; cast to float32 first"),
        ),
        (
            "pt.bitcast(a, pt.uint64)",
            "float32",
            ("pt.bitcast from float32 to uint64: the widths differ (32 and 64 bits)"),
        ),
        (
            "pt.bitcast(2.0, pt.uint32)",
            "float32",
            "pt.bitcast: 2.0 has no dtype; write pt.float32(…) or another",
        ),
        (
            "pt.unpack(a, pt.float16)",
            "uint16",
            (
                "pt.unpack: a uint16 holds no whole number of float16; a carrier is a uint32 or uint64 "
                "and its parts have 16 bits or more"
            ),
        ),
        ("pt.pack(a, a)", "int8", "pt.pack: PTX packs no run-time int8; shift and or them as uint32"),
        (
            "pt.pack(a, pt.float32(1))",
            "float16",
            (
                "pt.pack: float16 is wanted and this is float32; nothing is converted silently: write "
                "pt.cast(value, pt.float16)"
            ),
        ),
    ],
)
def test_messages(source: str, dtype: str, message: str) -> None:
    error = failure(lambda a: eval(source, {"pt": pt, "a": a}), getattr(pt, dtype))
    assert str(error) == message + "\n  <string>:1"


def test_messages_of_pack_on_the_host() -> None:
    for arguments, dtype, message in [
        ((2.0, 2.0), None, "pt.pack: say what the numbers are, as in pt.pack(2.0, 2.0, dtype=pt.float16)"),
        ((1, 2, 3), pt.uint8, "pt.pack: 3 values of uint8 are 24 bits; a carrier has 16, 32 or 64 bits"),
        ((300, 1), pt.uint8, "pt.pack: 300 does not fit pt.uint8, which holds 0 to 255"),
    ]:
        with pytest.raises(pt.OperandError) as caught:
            pt.pack(*arguments, dtype=dtype)
        assert text(caught.value) == message
