"""Scalar video instructions: the manual's pseudo-code where the assembler keeps to it, and what it does elsewhere."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ptxtile.emulator.semantics.video import Part, Scalar

WORDS = [
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    0x80007FFF,
    0xFF00FF00,
]
PARTS = ["", "b0", "b1", "b2", "b3", "h0", "h1"]
FIRST = {
    "vadd": lambda a, b: a + b,
    "vsub": lambda a, b: a - b,
    "vabsdiff": lambda a, b: abs(a - b),
    "vmin": min,
    "vmax": max,
}
COMPARE = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def compute(spelling, a, b, c, asel="", bsel="", dsel=""):
    """The instruction on lists of words."""
    opcode, *modifiers = spelling.split(".")
    parts = [Part.named(name) if name else Part() for name in (dsel, asel, bsel)]
    work = Scalar.of(opcode, tuple("." + m for m in modifiers), parts[0])
    words = [np.array(x, np.uint32) for x in (a, b, c)]
    left, right = (part.take(word, s) for part, word, s in zip(parts[1:], words, work.signed[1:]))
    return work.compute(left, right, words[2]).tolist()


def cut(word, part, signed):
    """partSelectSignExtend of the manual."""
    width = {"": 32, "b": 8, "h": 16}[part[:1]]
    value = word >> width * int(part[1:] or 0) & (1 << width) - 1
    return value - (1 << width) if signed and value >> width - 1 else value


def merged(value, word, part):
    """optMerge of the manual."""
    width = {"": 32, "b": 8, "h": 16}[part[:1]]
    shift = width * int(part[1:] or 0)
    mask = (1 << width) - 1 << shift
    return word & ~mask & 0xFFFFFFFF | value << shift & mask


def rows(seed, count=120):
    rng = random.Random(seed)
    return [
        [rng.choice(WORDS) if rng.random() < 0.6 else rng.getrandbits(32) for _ in range(count)]
        for _ in range(3)
    ]


@pytest.mark.parametrize("opcode", FIRST)
@pytest.mark.parametrize("types", ["u32.u32.u32", "u32.s32.u32", "s32.u32.s32", "s32.s32.s32"])
def test_plain_and_merged_and_summed(opcode, types):
    d, x, y = types.split(".")
    rng = random.Random(opcode + types)
    for _ in range(8):
        asel, bsel, dsel = rng.choice(PARTS), rng.choice(PARTS), rng.choice(PARTS)
        a, b, c = rows(rng.random())
        pairs = [(cut(p, asel, x == "s32"), cut(q, bsel, y == "s32")) for p, q in zip(a, b)]
        values = [FIRST[opcode](*pair) for pair in pairs]
        got = compute(f"{opcode}.{types}", a, b, c, asel, bsel, dsel)
        assert got == [merged(value, word, dsel) for value, word in zip(values, c)]
        got = compute(f"{opcode}.{types}.add", a, b, c, asel, bsel)
        assert got == [value + word & 0xFFFFFFFF for value, word in zip(values, c)]
        if d == "s32":
            got = compute(f"{opcode}.{types}.sat", a, b, c, asel, bsel)
            assert got == [max(-(1 << 31), min((1 << 31) - 1, value)) & 0xFFFFFFFF for value in values]


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
@pytest.mark.parametrize("opcode", ["vshl", "vshr"])
@pytest.mark.parametrize("signed", ["u32", "s32"])
def test_shifts(opcode, signed, mode):
    a, b, c = rows(opcode + mode)
    b = [x % 67 for x in b]
    by = [min(x, 32) if mode == "clamp" else x % 32 for x in b]
    numbers = [cut(x, "", signed == "s32") for x in a]
    values = [x << n if opcode == "vshl" else x >> n for x, n in zip(numbers, by)]
    assert compute(f"{opcode}.u32.{signed}.u32.{mode}", a, b, c) == [x & 0xFFFFFFFF for x in values]
    got = compute(f"{opcode}.u32.{signed}.u32.{mode}", a, b, c, dsel="h1")
    assert got == [merged(x, word, "h1") for x, word in zip(values, c)]


@pytest.mark.parametrize("name", COMPARE)
def test_comparisons(name):
    a, b, c = rows(name)
    for types in ("u32.u32", "s32.u32", "u32.s32", "s32.s32"):
        x, y = types.split(".")
        truth = [int(COMPARE[name](cut(p, "h0", x == "s32"), cut(q, "", y == "s32"))) for p, q in zip(a, b)]
        assert compute(f"vset.{types}.{name}", a, b, c, "h0") == truth
        assert compute(f"vset.{types}.{name}", a, b, c, "h0", dsel="b2") == [
            merged(t, word, "b2") for t, word in zip(truth, c)
        ]


def test_products():
    a, b, c = rows("vmad")
    for scale, shift in (("", 0), (".shr7", 7), (".shr15", 15)):
        for po in ("", ".po"):
            got = compute(f"vmad.s32.s32.s32{po}{scale}", a, b, c)
            due = [
                (cut(x, "", True) * cut(y, "", True) + cut(z, "", True) + (po != "")) >> shift
                for x, y, z in zip(a, b, c)
            ]
            assert got == [x & 0xFFFFFFFF for x in due]
            got = compute(f"vmad.s32.s32.s32{po}.sat{scale}", a, b, c)
            assert got == [max(-(1 << 31), min((1 << 31) - 1, x)) & 0xFFFFFFFF for x in due]


FACTS = [
    # What the manual's pseudo-code gives otherwise, read off the code of NVIDIA's assembler.
    ("vadd.u32.u32.u32.sat", (0x62C7F, 0xFFFFFFFF, 0), "", 0x62C7E),
    ("vsub.u32.u32.s32.sat", (0x83851918, 0x80007FFF, 0), "", 0x03849919),
    ("vsub.u32.u32.u32.sat", (0x62C7F, 0xFFFFFFFF, 0), "", 0),
    ("vsub.u32.u32.u32.sat", (0x62C7F, 0xFFFFFFFF, 0), "b3", 0xFF000000),
    ("vmin.s32.s32.s32.sat", (0x62C7F, 0xFFFFFFFF, 0), "b1", 0x7F00),
    ("vadd.u32.u32.u32.max", (0x80000001, 0xAA6F77, 0xFFFFFFFE), "", 0x80AA6F78),
    ("vmax.u32.u32.u32.max", (0x80000001, 0xAA6F77, 0xFFFFFFFE), "", 0xFFFFFFFE),
    ("vabsdiff.u32.u32.s32.min", (0x83851918, 0x80007FFF, 0xC38F43A8), "", 0xC38F43A8),
    ("vset.s32.u32.eq.max", (0x80000001, 0xAA6F77, 0xFFFFFFFE), "", 0),
    ("vset.u32.u32.eq.max", (0x80000001, 0xAA6F77, 0xFFFFFFFE), "", 0xFFFFFFFE),
    ("vshl.u32.u32.u32.sat.clamp", (0x7FFF8000, 0x2D2D2D2D, 0), "", 0),
    ("vshl.u32.u32.u32.clamp.max", (0x7FFF8000, 0x2D2D2D2D, 0x42C5A2C3), "", 0),
    ("vshr.u32.u32.u32.sat.wrap", (0x7FFF8000, 0x2D2D2D2D, 0x42C5A2C3), "b1", 0x42C5FCC3),
    ("vshr.s32.u32.u32.sat.clamp", (0x80000001, 0, 0xB43687C4), "h0", 0xB436FFFF),
    ("vmad.u32.u32.u32.shr7", (0x62C7F, 0xFFFFFFFF, 0), "", 0xFFFFF3A7),
    ("vmad.u32.u32.u32.sat", (0x62C7F, 0xFFFFFFFF, 0), "", 0),
    ("vmad.u32.u32.u32.sat.shr7", (0x7F, 0xFF00FF00, 0xFF00FF00), "", 0xFFFFFFFF),
]


@pytest.mark.parametrize(("spelling", "words", "dsel", "due"), FACTS)
def test_where_the_assembler_goes_its_own_way(spelling, words, dsel, due):
    assert compute(spelling, *([word] for word in words), dsel=dsel) == [due]


def test_in_a_program():
    """Registers, parts and a literal; bits that were never written stay undefined."""
    from ptxtile.emulator import EmulatorError, launch

    text = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 A)
{
.reg .b32 %r<6>; .reg .b64 %rd<2>;
ld.param.u64 %rd1, [A];
mov.u32 %r1, %tid.x;
mov.b32 %r2, 0x11223344;
vadd.u32.u32.u32 %r3.h1, %r1.b0, 7, %r2;
UNWRITTEN
st.global.b32 [%rd1], %r3;
ret;
}
"""
    out = np.zeros(1, np.uint32)
    launch(text.replace("UNWRITTEN", ""), "k", 1, 1, [out])
    assert out.tolist() == [0x00073344]
    with pytest.raises(EmulatorError) as caught:
        launch(text.replace("UNWRITTEN", "vadd.u32.u32.u32 %r3, %r4, %r1;"), "k", 1, 1, [out])
    assert (caught.value.kind, caught.value.line) == ("uninitialised", 12)


@pytest.mark.parametrize("types", ["s32.s32.s32", "u32.u32.u32", "s32.u32.s32"])
@pytest.mark.parametrize("minus", [(True, False), (False, True), (True, True)])
def test_minus_signs_make_a_signed_result(minus, types):
    a, b, c = rows(str(minus) + types)
    words = [np.array(x, np.uint32) for x in (a, b, c)]
    for scale, shift in (("", 0), (".shr7", 7), (".shr15", 15)):
        for sat in ("", ".sat"):
            modifiers = tuple("." + m for m in f"{types}{sat}{scale}".split("."))
            work = Scalar.of("vmad", modifiers, Part(), minus)
            left, right = (Part().take(word, s) for word, s in zip(words, work.signed[1:]))
            got = work.compute(left, right, words[2]).tolist()
            due = []
            for x, y, z in zip(a, b, c):
                product = cut(x, "", True) * cut(y, "", True)
                value = (-product if minus[0] else product) + (-1 if minus[1] else 1) * cut(
                    z, "", True
                ) >> shift
                due.append((max(-(1 << 31), min((1 << 31) - 1, value)) if sat else value) & 0xFFFFFFFF)
            assert got == due


def test_minus_signs_in_a_program():
    """Two minus signs before the factors leave the product as it is."""
    from ptxtile.emulator import launch

    text = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 A)
{
.reg .b32 %r<8>; .reg .b64 %rd<2>;
ld.param.u64 %rd1, [A];
mov.b32 %r1, 0x00070003;
vmad.s32.s32.s32 %r2, -%r1.h0, %r1.h1, 100;
vmad.s32.s32.s32 %r3, -%r1.h0, -%r1.h1, 100;
mov.b32 %r4, 30;
vmad.s32.s32.s32 %r5, %r1.h0, %r1.h1, -%r4;
st.global.v2.b32 [%rd1], {%r2, %r3};
st.global.b32 [%rd1+8], %r5;
ret;
}
"""
    out = np.zeros(3, np.int32)
    launch(text, "k", 1, 1, [out])
    assert out.tolist() == [79, 121, -9]
