"""set, setp, selp, slct."""

from __future__ import annotations

import pytest

P, H, W, D = ".pred", ".b16", ".b32", ".b64"
NAN, ONE, TWO, MINUS_ONE = 0x7FC00000, 0x3F800000, 0x40000000, 0xBF800000


@pytest.mark.parametrize(
    ("operator", "signed", "unsigned"),
    [
        ("eq", [0, 0, 1], [0, 0, 1]),
        ("ne", [1, 1, 0], [1, 1, 0]),
        ("lt", [1, 0, 0], [0, 1, 0]),
        ("le", [1, 0, 1], [0, 1, 1]),
        ("gt", [0, 1, 0], [1, 0, 0]),
        ("ge", [0, 1, 1], [1, 0, 1]),
    ],
)
def test_integers_by_sign(operator, signed, unsigned, run):
    for bits, kind in ((16, H), (32, W), (64, D)):
        a, b = [(1 << bits) - 1, 1, 7], [1, (1 << bits) - 1, 7]
        assert run(f"setp.{operator}.s{bits}", (P, kind, kind), a, b) == [signed]
        assert run(f"setp.{operator}.u{bits}", (P, kind, kind), a, b) == [unsigned]


def test_unsigned_names(run):
    a, b = [1, 2, 0xFFFFFFFF], [2, 2, 1]
    for operator, want in (("lo", [1, 0, 0]), ("ls", [1, 1, 0]), ("hi", [0, 0, 1]), ("hs", [0, 1, 1])):
        assert run(f"setp.{operator}.u32", (P, W, W), a, b) == [want]


def test_ordered_and_unordered_floats(run):
    a, b = [ONE, TWO, NAN, 0], [TWO, ONE, ONE, 1 << 31]
    wants = {
        "eq": [0, 0, 0, 1],
        "ne": [1, 1, 0, 0],
        "lt": [1, 0, 0, 0],
        "ge": [0, 1, 0, 1],
        "equ": [0, 0, 1, 1],
        "neu": [1, 1, 1, 0],
        "ltu": [1, 0, 1, 0],
        "leu": [1, 0, 1, 1],
        "gtu": [0, 1, 1, 0],
        "geu": [0, 1, 1, 1],
        "num": [1, 1, 0, 1],
        "nan": [0, 0, 1, 0],
    }
    for operator, want in wants.items():
        assert run(f"setp.{operator}.f32", (P, W, W), a, b) == [want], operator


def test_ftz_compares_subnormals_as_zeros(run):
    assert run("setp.gt.f32", (P, W, W), [1], [0]) == [[1]]
    assert run("setp.gt.ftz.f32", (P, W, W), [1], [0]) == [[0]]
    assert run("setp.eq.ftz.f16", (P, H, H), [1], [0x8001]) == [[1]]


def test_the_second_predicate_is_of_the_negation_before_the_boolean(run):
    c = [0, 1, 0, 1]
    a, b = [1, 1, 2, 2], [1, 1, 1, 1]
    types = (P, P, W, W, P)
    assert run("setp.eq.and.s32", types, a, b, c) == [[0, 1, 0, 0], [0, 0, 0, 1]]
    assert run("setp.eq.or.s32", types, a, b, c) == [[1, 1, 0, 1], [0, 1, 1, 1]]
    assert run("setp.eq.xor.s32", types, a, b, c) == [[1, 0, 0, 1], [0, 1, 1, 0]]
    assert run("setp.eq.s32", (P, P, W, W), a, b) == [[1, 1, 0, 0], [0, 0, 1, 1]]
    assert run("setp.eq.and.s32", (P, W, W, P), a, b, c) == [[0, 1, 0, 0]]


def test_packed_halves_write_a_predicate_each(run):
    assert run("setp.lt.f16x2", (P, P, W, W), [0x40003C00], [0x3C004000]) == [[1], [0]]
    assert run("setp.lt.and.bf16x2", (P, P, W, W, P), [0x3F803F80] * 2, [0x40004000] * 2, [0, 1]) == [
        [0, 1],
        [0, 1],
    ]


def test_set_writes_all_ones_or_one(run):
    assert run("set.lt.u32.s32", (W, W, W), [0xFFFFFFFF, 3], [0, 2]) == [[0xFFFFFFFF, 0]]
    assert run("set.lt.f32.s32", (W, W, W), [0xFFFFFFFF, 3], [0, 2]) == [[ONE, 0]]
    assert run("set.gt.and.s32.f64", (W, D, D, P), [0x4000000000000000] * 2, [0] * 2, [0, 1]) == [
        [0, 0xFFFFFFFF]
    ]
    assert run("set.eq.f16.f16", (H, H, H), [0], [0x8000]) == [[0x3C00]]
    assert run("set.eq.bf16.bf16", (H, H, H), [0], [0]) == [[0x3F80]]
    assert run("set.ne.u16.f16", (H, H, H), [0x3C00], [0]) == [[0xFFFF]]


def test_set_of_packed_halves_keeps_lanes_apart(run):
    assert run("set.eq.f16x2.f16x2", (W, W, W), [0x3C000000], [0x3C003C00]) == [[0x3C000000]]
    assert run("set.eq.u32.f16x2", (W, W, W), [0x00003C00], [0x3C003C00]) == [[0x0000FFFF]]
    assert run("set.eq.and.u32.f16x2", (W, W, W, P), [0x3C003C00] * 2, [0x3C003C00] * 2, [1, 0]) == [
        [0xFFFFFFFF, 0]
    ]


def test_selections_keep_bits(run):
    signalling = 0x7F800001
    assert run("selp.f32", (W, W, W, P), [signalling] * 2, [TWO] * 2, [1, 0]) == [[signalling, TWO]]
    assert run("slct.u64.s32", (D, D, D, W), [1, 1], [2, 2], [0, 0xFFFFFFFF]) == [[1, 2]]
    c = [0, 1 << 31, ONE, MINUS_ONE, NAN, 0x80000001]
    assert run("slct.f32.f32", (W, W, W, W), [signalling] * 6, [TWO] * 6, c) == [
        [signalling, signalling, signalling, TWO, TWO, TWO]
    ]
    assert run("slct.ftz.b32.f32", (W, W, W, W), [1], [2], [0x80000001]) == [[1]]
