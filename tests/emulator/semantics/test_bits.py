"""Bit fields, counts, shifts and permutations against one-bit-at-a-time definitions."""

from __future__ import annotations

import random

import pytest

WIDTHS = {16: ".b16", 32: ".b32", 64: ".b64"}


def _values(bits: int, seed: str, rows: int = 100) -> list[int]:
    rng = random.Random(seed)
    ones = (1 << bits) - 1
    special = [0, 1, ones, ones - 1, ones >> 1, (ones >> 1) + 1, 0x80, 3]
    return [
        rng.choice(special) if rng.random() < 0.3 else rng.getrandbits(bits) >> rng.randrange(bits)
        for _ in range(rows)
    ]


def _amounts(seed: str, rows: int = 100) -> list[int]:
    rng = random.Random(seed)
    return [
        rng.choice([0, 1, 31, 32, 33, 63, 64, 65, 255]) if rng.random() < 0.5 else rng.randrange(70)
        for _ in range(rows)
    ]


@pytest.mark.parametrize("bits", [32, 64])
def test_counts(bits, run):
    a, kind = _values(bits, "count"), WIDTHS[bits]
    w = ".b32"
    assert run(f"popc.b{bits}", (w, kind), a) == [[x.bit_count() for x in a]]
    assert run(f"clz.b{bits}", (w, kind), a) == [[bits - x.bit_length() for x in a]]
    assert run(f"brev.b{bits}", (kind, kind), a) == [[int(f"{x:0{bits}b}"[::-1], 2) for x in a]]
    for family in "us":
        positive = [x ^ ((1 << bits) - 1) if family == "s" and x >> (bits - 1) else x for x in a]
        found = [(x.bit_length() - 1) & 0xFFFFFFFF for x in positive]
        assert run(f"bfind.{family}{bits}", (w, kind), a) == [found]
        shifts = [f if f == 0xFFFFFFFF else bits - 1 - f for f in found]
        assert run(f"bfind.shiftamt.{family}{bits}", (w, kind), a) == [shifts]


def test_counts_near_a_power_of_two_that_doubles_round_to(run):
    assert run("clz.b64", (".b32", ".b64"), [(1 << 63) - 1, (1 << 54) - 1]) == [[1, 10]]


def test_fns_as_the_manual_counts(run):
    mask, base, offset = [0xAAAAAAAA] * 6, [3, 3, 2, 2, 3, 2], [1, -1, 1, -1, 0, 0]
    got = run("fns.b32", (".b32",) * 4, mask, base, [x & 0xFFFFFFFF for x in offset])
    assert got == [[3, 3, 3, 1, 3, 0xFFFFFFFF]]
    assert run("fns.b32", (".b32",) * 4, [0xF, 0xF0], [0, 31], [4, 0xFFFFFFFC]) == [[3, 4]]
    assert run("fns.b32", (".b32",) * 4, [0xF, 0xF], [0, 0], [5, 0x80000000]) == [[0xFFFFFFFF] * 2]


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("family", ["u", "s"])
def test_bfe(bits, family, run):
    a, b, c = _values(bits, family), _amounts("b" + family), _amounts("c" + family)
    kind = WIDTHS[bits]
    [results] = run(f"bfe.{family}{bits}", (kind, kind, ".b32", ".b32"), a, b, c)
    for x, position, length, got in zip(a, b, c, results):
        top = min(position + length - 1, bits - 1)
        sign = (x >> top) & 1 if family == "s" and length else 0
        want = sum(
            ((x >> (position + i)) & 1 if i < length and position + i < bits else sign) << i
            for i in range(bits)
        )
        assert got == want, f"bfe.{family}{bits} {x:#x} {position} {length}"


@pytest.mark.parametrize("bits", [32, 64])
def test_bfi(bits, run):
    a, b, c, d = _values(bits, "a"), _values(bits, "b"), _amounts("c"), _amounts("d")
    kind = WIDTHS[bits]
    [results] = run(f"bfi.b{bits}", (kind, kind, kind, ".b32", ".b32"), a, b, c, d)
    for x, y, position, length, got in zip(a, b, c, d, results):
        want = y
        for i in range(length):
            if position + i < bits:
                want = want & ~(1 << (position + i)) | ((x >> i) & 1) << (position + i)
        assert got == want


def test_32_bit_fields_take_positions_modulo_256(run):
    w = ".b32"
    assert run("bfe.u32", (w,) * 4, [0xABCD], [256 + 4], [512 + 8]) == [[0xBC]]
    assert run("bfi.b32", (w,) * 5, [0xF], [0], [256 + 4], [256 + 4]) == [[0xF0]]


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_masks_and_extensions(mode, run):
    a, b = _amounts("a"), _amounts("b")
    w, ones = ".b32", 0xFFFFFFFF
    [masks] = run(f"bmsk.{mode}.b32", (w,) * 3, a, b)
    for start, width, got in zip(a, b, masks):
        if mode == "wrap":
            start, width = start & 31, width & 31
        assert got == (((1 << width) - 1) << start) & ones
    values = _values(32, "v")
    for family in "us":
        [extended] = run(f"szext.{mode}.{family}32", (w,) * 3, values, b)
        for x, width, got in zip(values, b, extended):
            if mode == "clamp" and width >= 32:
                want = x
            else:
                width &= 31
                want = x & ((1 << width) - 1)
                if family == "s" and width and want >> (width - 1):
                    want |= ones << width & ones
            assert got == want


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_shifts_stop_at_the_width(bits, run):
    a, b = _values(bits, "s"), [*_amounts("t")[:-1], 0xFFFFFFFF]
    kind, mask = WIDTHS[bits], (1 << bits) - 1
    assert run(f"shl.b{bits}", (kind, kind, ".b32"), a, b) == [
        [(x << min(n, 99)) & mask for x, n in zip(a, b)]
    ]
    assert run(f"shr.u{bits}", (kind, kind, ".b32"), a, b) == [[x >> min(n, 99) for x, n in zip(a, b)]]
    signed = [x - (1 << bits) if x >> (bits - 1) else x for x in a]
    assert run(f"shr.s{bits}", (kind, kind, ".b32"), a, b) == [
        [(x >> min(n, 99)) & mask for x, n in zip(signed, b)]
    ]


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_funnel_shifts(mode, run):
    a, b, c = _values(32, "a"), _values(32, "b"), _amounts("c")
    by = [min(n, 32) if mode == "clamp" else n & 31 for n in c]
    pairs = [x | y << 32 for x, y in zip(a, b)]
    w = ".b32"
    left = [(p << n >> 32) & 0xFFFFFFFF for p, n in zip(pairs, by)]
    assert run(f"shf.l.{mode}.b32", (w,) * 4, a, b, c) == [left]
    assert run(f"shf.r.{mode}.b32", (w,) * 4, a, b, c) == [[(p >> n) & 0xFFFFFFFF for p, n in zip(pairs, by)]]


def test_lop3_is_its_truth_table(run):
    a, b, c = 0xF0F0F0F0, 0xCCCCCCCC, 0xAAAAAAAA
    for table in range(256):
        [got] = run("lop3.b32", (".b32",) * 5, [a], [b], [c], [table])
        assert got == [int(f"{table:02x}" * 4, 16)]


def test_lop3_with_a_predicate(run):
    types = (".b32", ".pred", ".b32", ".b32", ".b32", ".b32", ".pred")
    sources = ([5, 0, 5, 0], [5, 1, 3, 0], [0] * 4, [0xC0] * 4)
    assert run("lop3.and.b32", types, *sources, [1, 1, 0, 0]) == [[5, 0, 1, 0], [1, 0, 0, 0]]
    assert run("lop3.or.b32", types, *sources, [0, 0, 1, 1]) == [[5, 0, 1, 0], [1, 0, 1, 1]]


def test_logic_of_words_and_predicates(run):
    w, p = ".b32", ".pred"
    assert run("and.b32", (w,) * 3, [0b1100], [0b1010]) == [[0b1000]]
    assert run("xor.pred", (p,) * 3, [1, 0, 1], [1, 1, 0]) == [[0, 1, 1]]
    assert run("not.pred", (p, p), [1, 0]) == [[0, 1]]
    assert run("not.b16", (".b16", ".b16"), [0xFF]) == [[0xFF00]]
    assert run("cnot.b32", (w, w), [0, 9]) == [[1, 0]]


def test_prmt(run):
    w = ".b32"
    a, b = 0x33221180, 0x77665544
    assert run("prmt.b32", (w,) * 4, [a] * 3, [b] * 3, [0x7410, 0x8888, 0x000F]) == [
        [0x77441180, 0xFFFFFFFF, 0x80808000]
    ]
    modes = {
        "f4e": [0x33221180, 0x44332211, 0x55443322, 0x66554433],
        "b4e": [0x55667780, 0x66778011, 0x77801122, 0x80112233],
        "rc8": [0x80808080, 0x11111111, 0x22222222, 0x33333333],
        "ecl": [0x33221180, 0x33221111, 0x33222222, 0x33333333],
        "ecr": [0x80808080, 0x11111180, 0x22221180, 0x33221180],
        "rc16": [0x11801180, 0x33223322, 0x11801180, 0x33223322],
    }
    for mode, want in modes.items():
        assert run(f"prmt.b32.{mode}", (w,) * 4, [a] * 4, [b] * 4, [0, 1, 2, 3]) == [want], mode
