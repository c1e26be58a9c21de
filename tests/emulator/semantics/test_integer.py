"""Integer arithmetic against Python's integers."""

from __future__ import annotations

import random

import pytest

WIDTHS = {16: ".b16", 32: ".b32", 64: ".b64"}
KINDS = [(family, bits) for family in "us" for bits in WIDTHS]


def _values(bits: int, seed: str, rows: int = 80) -> list[int]:
    rng = random.Random(seed)
    ones = (1 << bits) - 1
    special = [0, 1, 2, ones, ones - 1, ones >> 1, (ones >> 1) + 1, (ones >> 1) + 2, 0xFF, 0x7FFF & ones]
    return [rng.choice(special) if rng.random() < 0.5 else rng.getrandbits(bits) for _ in range(rows)]


def _number(x: int, family: str, bits: int) -> int:
    return x - (1 << bits) if family == "s" and x >> (bits - 1) else x


def _clamp(x: int, family: str, bits: int) -> int:
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if family == "s" else (0, (1 << bits) - 1)
    return max(low, min(high, x))


def _quotient(a: int, b: int) -> int:
    size = abs(a) // abs(b)
    return -size if (a < 0) != (b < 0) else size


OPERATIONS = {
    "add": lambda a, b, n: a + b,
    "sub": lambda a, b, n: a - b,
    "mul.lo": lambda a, b, n: a * b,
    "mul.hi": lambda a, b, n: (a * b) >> n,
    "min": lambda a, b, n: min(a, b),
    "max": lambda a, b, n: max(a, b),
    "div": lambda a, b, n: _quotient(a, b) if b else -1,
    "rem": lambda a, b, n: a - b * _quotient(a, b) if b else -1,
}


@pytest.mark.parametrize(("family", "bits"), KINDS)
@pytest.mark.parametrize("op", OPERATIONS)
def test_two_operands(op, family, bits, run):
    a, b = _values(bits, op), _values(bits, op + family)
    [results] = run(f"{op}.{family}{bits}", (WIDTHS[bits],) * 3, a, b)
    mask = (1 << bits) - 1
    for x, y, got in zip(a, b, results):
        want = OPERATIONS[op](_number(x, family, bits), _number(y, family, bits), bits) & mask
        assert got == want, f"{op}.{family}{bits} {x:#x} {y:#x}: {got:#x}, not {want:#x}"


@pytest.mark.parametrize(("family", "bits"), KINDS)
@pytest.mark.parametrize("op", ["mad.lo", "mad.hi", "sad"])
def test_three_operands(op, family, bits, run):
    a, b, c = (_values(bits, op + x) for x in "abc")
    [results] = run(f"{op}.{family}{bits}", (WIDTHS[bits],) * 4, a, b, c)
    for x, y, z, got in zip(a, b, c, results):
        p, q = _number(x, family, bits), _number(y, family, bits)
        term = {"mad.lo": p * q, "mad.hi": (p * q) >> bits, "sad": abs(p - q)}[op]
        assert got == (term + z) & ((1 << bits) - 1)


@pytest.mark.parametrize(("family", "bits"), [(f, b) for f, b in KINDS if b < 64])
def test_wide(family, bits, run):
    a, b = _values(bits, "a"), _values(bits, "b")
    c = _values(2 * bits, "c")
    narrow, wide = WIDTHS[bits], WIDTHS[2 * bits]
    [products] = run(f"mul.wide.{family}{bits}", (wide, narrow, narrow), a, b)
    [sums] = run(f"mad.wide.{family}{bits}", (wide, narrow, narrow, wide), a, b, c)
    for x, y, z, product, total in zip(a, b, c, products, sums):
        exact = _number(x, family, bits) * _number(y, family, bits)
        assert product == exact & ((1 << 2 * bits) - 1)
        assert total == (exact + z) & ((1 << 2 * bits) - 1)


def test_saturation(run):
    top, bottom = 0x7FFFFFFF, 0x80000000
    w = ".b32"
    assert run("add.sat.s32", (w,) * 3, [top, bottom, 5], [1, 0xFFFFFFFF, 6]) == [[top, bottom, 11]]
    assert run("sub.sat.s32", (w,) * 3, [bottom, top], [1, 0xFFFFFFFF]) == [[bottom, top]]
    assert run("mad.hi.sat.s32", (w,) * 4, [bottom], [bottom], [top]) == [[top]]
    assert run("add.sat.u32", (w,) * 3, [0xFFFFFFFF], [2]) == [[0xFFFFFFFF]]
    assert run("add.sat.u16x2", (w,) * 3, [0xFFFF0001], [0x00020002]) == [[0xFFFF0003]]


def test_division_by_zero_gives_all_ones_at_every_width(run):
    for family, bits in KINDS:
        for op in ("div", "rem"):
            assert run(f"{op}.{family}{bits}", (WIDTHS[bits],) * 3, [7, 0], [0, 0]) == [[(1 << bits) - 1] * 2]


def test_the_least_number_by_minus_one_wraps(run):
    for bits, kind in WIDTHS.items():
        least, ones = 1 << (bits - 1), (1 << bits) - 1
        assert run(f"div.s{bits}", (kind,) * 3, [least], [ones]) == [[least]]
        assert run(f"rem.s{bits}", (kind,) * 3, [least], [ones]) == [[0]]
        assert run(f"abs.s{bits}", (kind,) * 2, [least, ones]) == [[least, 1]]
        assert run(f"neg.s{bits}", (kind,) * 2, [least, ones]) == [[least, 1]]


def test_packed_halves_do_not_touch_each_other(run):
    w = ".b32"
    assert run("add.u16x2", (w,) * 3, [0x0001FFFF], [0x00020001]) == [[0x00030000]]
    assert run("min.s16x2", (w,) * 3, [0x8000_0005], [0x7FFF_FFFF]) == [[0x8000_FFFF]]
    assert run("max.relu.s16x2", (w,) * 3, [0x8000_0005], [0xFFFF_FFFF]) == [[0x0000_0005]]
    assert run("min.relu.s32", (w,) * 3, [0xFFFFFFFE, 4], [1, 9]) == [[0, 4]]
    assert run("min.u8x4", (w,) * 3, [0x01FF02FE], [0xFF0101FF]) == [[0x010101FE]]


@pytest.mark.parametrize("family", ["u", "s"])
@pytest.mark.parametrize("half", ["lo", "hi"])
def test_24_bit_products_ignore_the_upper_byte(half, family, run):
    a, b, c = (_values(32, half + x) for x in "abc")
    [results] = run(f"mad24.{half}.{family}32", (".b32",) * 4, a, b, c)
    [products] = run(f"mul24.{half}.{family}32", (".b32",) * 3, a, b)
    for x, y, z, total, product in zip(a, b, c, results, products):
        exact = _number(x & 0xFFFFFF, family, 24) * _number(y & 0xFFFFFF, family, 24)
        part = (exact >> (16 if half == "hi" else 0)) & 0xFFFFFFFF
        assert (product, total) == (part, (part + z) & 0xFFFFFFFF)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("family", ["u", "s"])
def test_carries_chain(bits, family, run):
    a, b, c = (_values(bits, x + family) for x in "abc")
    flag = [i % 2 for i in range(len(a))]
    kind, mask = WIDTHS[bits], (1 << bits) - 1
    name = f"{family}{bits}"
    totals = {
        f"add.cc.{name}": [x + y for x, y in zip(a, b)],
        f"addc.cc.{name}": [x + y + f for x, y, f in zip(a, b, flag)],
        f"sub.cc.{name}": [x + (y ^ mask) + 1 for x, y in zip(a, b)],
        f"subc.cc.{name}": [x + (y ^ mask) + f for x, y, f in zip(a, b, flag)],
    }
    for spelling, exact in totals.items():
        want = [[t & mask for t in exact], [t >> bits for t in exact]]
        assert run(spelling, (kind,) * 3, a, b, carry=flag) == want, spelling
        if spelling.startswith(("addc", "subc")):
            assert run(spelling.replace(".cc", ""), (kind,) * 3, a, b, carry=flag) == want[:1]
    products = [_number(x, family, bits) * _number(y, family, bits) for x, y in zip(a, b)]
    for half, shift in (("lo", 0), ("hi", bits)):
        exact = [((p >> shift) & mask) + z + f for p, z, f in zip(products, c, flag)]
        want = [[t & mask for t in exact], [t >> bits for t in exact]]
        assert run(f"madc.{half}.cc.{name}", (kind,) * 4, a, b, c, carry=flag) == want
        without = [((p >> shift) & mask) + z for p, z in zip(products, c)]
        want = [[t & mask for t in without], [t >> bits for t in without]]
        assert run(f"mad.{half}.cc.{name}", (kind,) * 4, a, b, c, carry=flag) == want


def test_the_borrow_is_an_inverted_carry(run):
    w = ".b32"
    assert run("sub.cc.u32", (w,) * 3, [5, 3], [3, 5], carry=[0, 0]) == [[2, 0xFFFFFFFE], [1, 0]]
    assert run("addc.u32", (w,) * 3, [0, 0], [0, 0], carry=[1, 0]) == [[1, 0]]
    assert run("subc.u32", (w,) * 3, [9, 9], [1, 1], carry=[1, 0]) == [[8, 7]]


@pytest.mark.parametrize("first", ["u", "s"])
@pytest.mark.parametrize("second", ["u", "s"])
def test_dot_products(first, second, run):
    a, b, c = (_values(32, first + second + x) for x in "abc")

    def lane(x: int, i: int, bits: int, family: str) -> int:
        return _number((x >> (bits * i)) & ((1 << bits) - 1), family, bits)

    names = f"{first}32.{second}32"
    [four] = run(f"dp4a.{names}", (".b32",) * 4, a, b, c)
    [low] = run(f"dp2a.lo.{names}", (".b32",) * 4, a, b, c)
    [high] = run(f"dp2a.hi.{names}", (".b32",) * 4, a, b, c)
    for x, y, z, got in zip(a, b, c, zip(four, low, high)):
        want = [z + sum(lane(x, i, 8, first) * lane(y, i, 8, second) for i in range(4))]
        want += [z + sum(lane(x, i, 16, first) * lane(y, i + s, 8, second) for i in range(2)) for s in (0, 2)]
        assert got == tuple(t & 0xFFFFFFFF for t in want)
