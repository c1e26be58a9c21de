"""Random rounding, scales, fixed point and arithmetic of mixed formats, against fractions and ml_dtypes."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from ptxtile.emulator import semantics
from ptxtile.emulator.numeric import BF16, E2M1, E2M3, E3M2, E4M3, E5M2, F16, F32

FORMS = {"f16": F16, "bf16": BF16, "e4m3": E4M3, "e5m2": E5M2, "e2m3": E2M3, "e3m2": E3M2, "e2m1": E2M1}
NUMPY = {
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
    "ue8m0": ml_dtypes.float8_e8m0fnu,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
}


def compute(spelling, types, *sources):
    """One spelling on arrays, a tuple for a vector."""
    opcode, *modifiers = spelling.split(".")
    call = semantics.Call(spelling, opcode, tuple("." + m for m in modifiers), {}, types, len(sources[-1]))
    return semantics.find(opcode)(call, *sources)


def value(bits, name):
    """The value of an encoding as NumPy and ml_dtypes have it."""
    kind = np.dtype(NUMPY[name])
    return float(np.array([bits], f"u{kind.itemsize}").view(kind)[0])


def singles(seed, count, low=-12, high=6):
    rng = random.Random(seed)
    found = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -2.0, 3.4e38, 1e-45, -1e-38]
    found += [rng.uniform(-2, 2) * 2.0 ** rng.randrange(low, high) for _ in range(count - len(found))]
    return np.array(found, np.float32)


def stochastic(x, form, random_bits, width, satfinite, relu):
    """What cvt.rs makes of a float: one step toward zero and a carry."""
    sign = form.sign if math.copysign(1, x) < 0 else 0
    if math.isnan(x):
        return form.nan
    if relu and sign:
        return 0
    if math.isinf(x):
        return sign | (form.largest if satfinite or not form.infinite else form.infinity)
    size = abs(Fraction(x))
    exponent = form.emin if size == 0 else max(form.emin, math.frexp(abs(x))[1] - 1)
    unit = Fraction(2) ** (exponent - form.precision + 1)
    whole, rest = divmod(size, unit)
    up = (rest / unit) + Fraction(random_bits, 1 << width) >= 1
    total = (whole + up) * unit
    largest = Fraction(value(form.largest, next(n for n, f in FORMS.items() if f is form)))
    if total > largest:
        return sign | (form.largest if satfinite or not form.infinite else form.infinity)
    biased = 0 if total < Fraction(2) ** form.emin else math.frexp(float(total))[1] - 1 - form.emin + 1
    step = unit if total < 2 * Fraction(2) ** exponent else 2 * unit
    fraction = int(total / step) & (form.hidden - 1)
    return sign | biased << (form.precision - 1) | fraction


@pytest.mark.parametrize("relu", ["", ".relu"])
@pytest.mark.parametrize("name", ["f16", "bf16"])
@pytest.mark.parametrize("satfinite", ["", ".satfinite"])
def test_random_rounding_of_pairs(name, satfinite, relu):
    a, b = singles(name, 120, -30, 20), singles(name + "b", 120, -16, 2)
    rng = random.Random(1)
    bits = np.array([rng.choice([0, 0xFFFFFFFF, rng.getrandbits(32)]) for _ in a], np.uint32)
    types = (f".{name}x2", ".f32", ".f32", ".b32")
    spelling = f"cvt.rs{relu}{satfinite}.{name}x2.f32"
    found = compute(spelling, types, a.view(np.uint32), b.view(np.uint32), bits)
    width = 13 if name == "f16" else 16
    mask = (1 << width) - 1
    for got, x, y, r in zip(found.tolist(), a.tolist(), b.tolist(), bits.tolist()):
        high = stochastic(x, FORMS[name], r >> 16 & mask, width, satfinite, relu)
        low = stochastic(y, FORMS[name], r & mask, width, satfinite, relu)
        assert got == high << 16 | low, (x, y, hex(r))


@pytest.mark.parametrize("relu", ["", ".relu"])
@pytest.mark.parametrize("name", ["e4m3", "e5m2", "e2m3", "e3m2", "e2m1"])
def test_random_rounding_of_fours(name, relu):
    sources = [singles(name + str(i), 100, -20 if name == "e5m2" else -8, 5) for i in range(4)]
    rng = random.Random(2)
    bits = np.array([rng.choice([0, 0xFFFFFFFF, rng.getrandbits(32)]) for _ in range(100)], np.uint32)
    types = (f".{name}x4", ".f32", ".b32")
    words = tuple(x.view(np.uint32) for x in sources)
    found = compute(f"cvt.rs{relu}.satfinite.{name}x4.f32", types, words, bits)
    form, lane = FORMS[name], 4 if name == "e2m1" else 8
    for position, got in enumerate(found.tolist()):
        r = int(bits[position])
        if name == "e2m1":
            fields = [r >> 24, r >> 8 & 255, r >> 16 & 255, r & 255]
        else:
            fields = [r >> 16, r >> 16, r & 0xFFFF, r & 0xFFFF]
        due = 0
        for source, field in zip(sources, fields):
            width = 8 if name == "e2m1" else 16
            due = due << lane | stochastic(float(source[position]), form, field, width, True, relu)
        assert got == due, (name, hex(r))


def test_random_rounding_is_unbiased():
    """Over all random bits, a quarter of a unit above goes up in a quarter of the cases."""
    x = np.full(1 << 13, 1 + 2.0**-12, np.float32)
    bits = np.arange(1 << 13, dtype=np.uint32)
    found = compute(
        "cvt.rs.f16x2.f32", (".f16x2", ".f32", ".f32", ".b32"), x.view(np.uint32), x.view(np.uint32), bits
    )
    low = (found & np.uint32(0xFFFF)).astype(np.uint16)
    assert (low == 0x3C01).sum() == 1 << 11
    assert ((low == 0x3C00) | (low == 0x3C01)).all()


def nearest(x, mode):
    if mode == "rz":
        return math.trunc(x)
    return round(x)


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("relu", ["", ".relu"])
@pytest.mark.parametrize("mode", ["rn", "rz"])
def test_to_fixed_point(mode, relu, scaled):
    a, b = singles("fixed", 200, -8, 3), singles("fixed b", 200, -8, 3)
    scales = np.random.default_rng(1).integers(120, 135, (200, 2)).astype(np.uint8)
    extra = (scales.view(np.uint16)[:, 0],) if scaled else ()
    word = ".scaled::n2::ue8m0" if scaled else ""
    spelling = f"cvt.{mode}.satfinite{relu}{word}.s2f6x2.f32"
    types = (".s2f6x2", ".f32", ".f32", ".b16")[: 3 + scaled]
    found = compute(spelling, types, a.view(np.uint32), b.view(np.uint32), *extra)
    assert found.dtype == np.uint16
    for i, (got, x, y) in enumerate(zip(found.tolist(), a.tolist(), b.tolist())):
        for lane, number in ((1, x), (0, y)):
            by = Fraction(2) ** (int(scales[i, lane]) - 127) if scaled else Fraction(1)
            if math.isnan(number):
                due = 127
            elif math.isinf(number):
                due = 127 if number > 0 else -128
            else:
                due = max(-128, min(127, nearest(Fraction(number) / by * 64, mode)))
            if relu and not math.isnan(number):
                due = max(due, 0)
            assert got >> 8 * lane & 255 == due & 255, (x, y, lane)


def test_from_fixed_point_with_scales():
    every = np.arange(1 << 16, dtype=np.uint16)
    plain = compute("cvt.rn.bf16x2.s2f6x2", (".bf16x2", ".s2f6x2"), every)
    lanes = every.view(np.int8).astype(np.float32) / 64
    assert (plain.view(ml_dtypes.bfloat16) == lanes.astype(ml_dtypes.bfloat16)).all()
    scales = np.full(every.shape, 0x8180, np.uint16)
    types = (".bf16x2", ".s2f6x2", ".b16")
    twice = compute("cvt.rn.scaled::n2::ue8m0.bf16x2.s2f6x2", types, every, scales)
    assert (
        twice.view(ml_dtypes.bfloat16) == (lanes * np.tile([2, 4], 1 << 16)).astype(ml_dtypes.bfloat16)
    ).all()


def test_a_scale_beyond_the_range_saturates_or_not():
    one = np.array([0x3838], np.uint16)  # two times 1.0 in e4m3
    scale = np.array([0xFEFE], np.uint16)
    types = (".bf16x2", ".e4m3x2", ".b16")
    eight = one + np.uint16(0x1818)
    free = compute("cvt.rn.scaled::n2::ue8m0.bf16x2.e4m3x2", types, eight, scale)
    held = compute("cvt.rn.satfinite.scaled::n2::ue8m0.bf16x2.e4m3x2", types, eight, scale)
    assert (int(free[0]), int(held[0])) == (0x7F807F80, 0x7F7F7F7F)


def test_unsigned_octets_come_back():
    """Every ue5m3 goes to f16x2 and back unchanged, where f16 has it; negative numbers count by their size."""
    every = np.arange(256, dtype=np.uint16)
    pairs = every | every << np.uint16(8)
    wide = compute("cvt.rn.f16x2.ue5m3x2", (".f16x2", ".ue5m3x2"), pairs)
    value_of_last = 1.75 * 2.0**16
    halves = wide.view(np.float16)[::2].astype(np.float64)
    assert halves[0xF7] == 61440.0
    assert np.isinf(halves[0xF8:0xFF]).all() and np.isnan(halves[0xFF])
    back = compute("cvt.rn.satfinite.ue5m3x2.f16x2", (".ue5m3x2", ".f16x2"), wide)
    assert (back[:0xF8] == pairs[:0xF8]).all()
    large = np.array([value_of_last * 2, -3.0, value_of_last], np.float32).view(np.uint32)
    types = (".ue5m3x2", ".f32", ".f32")
    assert compute("cvt.rn.satfinite.ue5m3x2.f32", types, large, large).tolist() == [0xFEFE, 0x8484, 0xFEFE]
    assert compute("cvt.rn.ue5m3x2.f32", types, large, large).tolist() == [0xFFFF, 0x8484, 0xFEFE]


FOURS = ["e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "ue8m0"]


def lanes_of(words, name):
    width = 4 if name == "e2m1" else 8
    mask = 63 if name in ("e2m3", "e3m2") else (1 << width) - 1
    return [[int(word) >> width * i & mask for i in range(4)] for word in words]


def register(name, count, rng):
    bits = 16 if name == "e2m1" else 32
    return rng.integers(0, 1 << bits, count, np.uint64).astype(f"u{bits // 8}")


@pytest.mark.parametrize("target", ["e4m3", "e5m2"])
@pytest.mark.parametrize("source", FOURS)
@pytest.mark.parametrize("opcode", ["add", "sub", "mul", "fma"])
def test_arithmetic_of_fours(opcode, source, target, rational):
    form = FORMS[target]
    other = FOURS[(FOURS.index(source) + 2) % 6]
    rng = np.random.default_rng([len(opcode), FOURS.index(source)])
    a, b, c = register(source, 60, rng), register(other, 60, rng), register(target, 60, rng)
    names = (source, other) if opcode in ("mul", "fma") else (source,)
    sources = {"mul": (a, b), "fma": (a, b, c)}.get(opcode, (a, c))
    for saturates in (False, True):
        spelling = f"{opcode}.rn{'.satfinite' * saturates}.{target}x4.{'.'.join(f'{n}x4' for n in names)}"
        found = compute(spelling, tuple(f".{n}x4" for n in (target, *names)), *sources)
        for row, (got, *operands) in enumerate(
            zip(lanes_of(found, target), lanes_of(a, source), lanes_of(b, other), lanes_of(c, target))
        ):
            for lane in range(4):
                x, y, z = (value(w[lane], n) for w, n in zip(operands, (source, other, target)))
                due = expected(opcode, x, y, z, form, saturates, rational)
                assert got[lane] == due, (spelling, row, lane, x, y, z)


def expected(opcode, x, y, z, form, saturates, rational):
    """The exact result rounded once; special values by the rules of IEEE 754."""
    term = {"add": x, "sub": x, "mul": x * y, "fma": x * y}[opcode]
    addend = {"add": z, "sub": -z, "mul": None, "fma": z}[opcode]
    total = term if addend is None else term + addend
    if math.isnan(total):
        return form.nan
    sign = form.sign if math.copysign(1, total) < 0 else 0
    if (
        math.isinf(x)
        or (math.isinf(y) and opcode in ("mul", "fma"))
        or (addend is not None and math.isinf(addend))
    ):
        return sign | (form.largest if saturates or not form.infinite else form.infinity)
    exact = Fraction(x) * Fraction(y) if opcode in ("mul", "fma") else Fraction(x)
    exact += Fraction(addend or 0)
    result = rational.encode(exact, form, "rn", negative_zero=bool(sign))
    if saturates and result & (form.sign - 1) > form.largest:
        return sign | form.largest
    return result


MIXED = [
    ("add{}.f32x2.f16x2.f32x2", ("f16", "f32"), ["", ".rn", ".rz", ".rm", ".rp"]),
    ("sub{}.f32x2.bf16x2.f32x2", ("bf16", "f32"), [".rn", ".rm"]),
    ("add{}.bf16x2.f32x2.f32x2", ("f32", "f32"), ["", ".rz"]),
    ("sub{}.ftz.f16x2.f32x2.f32x2", ("f32", "f32"), [".rz"]),
    ("mul{}.f16x2.f16x2.bf16x2", ("f16", "bf16"), [""]),
    ("mul{}.bf16x2.bf16x2.f16x2", ("bf16", "f16"), [""]),
    ("mul{}.bf16x2.f32x2.f32x2", ("f32", "f32"), [".rz"]),
    ("mul{}.ftz.f16x2.f32x2.f32x2", ("f32", "f32"), [".rz"]),
    ("fma{}.f32x2.f16x2.f32x2.f32x2", ("f16", "f32", "f32"), [".rn", ".rz", ".rm", ".rp"]),
    ("fma{}.f32x2.bf16x2.f32x2.f32x2", ("bf16", "f32", "f32"), [".rn"]),
]


@pytest.mark.parametrize(("form", "names", "modes"), MIXED, ids=[form for form, _, _ in MIXED])
def test_arithmetic_of_pairs(form, names, modes, rational):
    target = form.split("}")[1].split(".")[2 if ".ftz" in form else 1][:-2]
    to = {**FORMS, "f32": F32}[target]
    rng = random.Random(form)
    for mode in modes:
        spelling = form.format(mode)
        columns = [
            [[_finite(rng, {**FORMS, "f32": F32}[n], rational) for _ in range(2)] for _ in range(80)]
            for n in names
        ]
        words = [_joined(column, name) for column, name in zip(columns, names)]
        found = compute(spelling, tuple(f".{n}x2" for n in (target, *names)), *words)
        got = np.ascontiguousarray(found).view(f"u{to.bits // 8}").reshape(-1, 2).tolist()
        for row, lane in itertools.product(range(80), range(2)):
            values = [
                _value(column[row][lane], n, rational, ".ftz" in form) for column, n in zip(columns, names)
            ]
            opcode = spelling.split(".")[0]
            exact, negative = _exact(opcode, values, mode)
            flush = ".ftz" in form
            due = rational.encode(exact, to, mode[1:] or "rn", flush=flush, negative_zero=negative)
            assert got[row][lane] == due, (spelling, [hex(column[row][lane]) for column in columns])


def _finite(rng, form, rational):
    if rng.random() < 0.3:
        return rng.choice(rational.specials(form))
    return rng.randrange(form.largest + 1) | (form.sign if rng.random() < 0.5 else 0)


def _joined(column, name):
    width = {"f32": 4}.get(name, 2)
    return np.array(column, f"u{width}").view(f"u{2 * width}")[:, 0]


def _value(bits, name, rational, flush):
    """A finite encoding as a fraction, and whether its sign bit is set."""
    form = {**FORMS, "f32": F32}[name]
    number = rational.decode(bits, form)
    if flush and name == "f32" and abs(number) < Fraction(2) ** form.emin:
        number = Fraction(0)
    return number, bool(bits & form.sign)


def _exact(opcode, values, mode):
    """The exact result, and the sign of an exact zero."""
    if opcode in ("mul", "fma"):
        term = values[0][0] * values[1][0], values[0][1] ^ values[1][1]
        if opcode == "mul":
            return term
        addend = values[2]
    else:
        term, addend = values[0], values[1]
    if opcode == "sub":
        addend = -addend[0], not addend[1]
    total = term[0] + addend[0]
    if term[0] == 0 and addend[0] == 0 and term[1] == addend[1]:
        return total, term[1]
    return total, mode == ".rm"
