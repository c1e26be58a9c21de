"""Every rounding of every format against rational arithmetic."""

from __future__ import annotations

import operator
import random
from fractions import Fraction

import pytest

from ptxtile.emulator.numeric import BF16, F16, F32, F64, Format

FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}
MODES = ("rn", "rz", "rm", "rp")
CARRIERS = {16: ".b16", 32: ".b32", 64: ".b64"}

CASES = [
    (op, mode, name, flush)
    for name in FORMATS
    for mode in (MODES if name in ("f32", "f64") else ("rn",))
    for op in ("add", "sub", "mul", "fma", "div", "rcp", "sqrt")
    for flush in ((False, True) if name in ("f32", "f16") else (False,))
    if name in ("f32", "f64") or op in ("add", "sub", "mul", "fma")
]


def _flushed(bits: int, form: Format, flush: bool) -> int:
    return bits & form.sign if flush and bits & (form.sign - 1) < 1 << (form.precision - 1) else bits


def _sum_is_negative_zero(terms: tuple[bool, bool], zeros: bool, mode: str) -> bool:
    if zeros and terms[0] == terms[1]:
        return terms[0]
    return mode == "rm"


def _sign(bits: int, form: Format) -> bool:
    return bits >= form.sign


@pytest.mark.parametrize(("op", "mode", "name", "flush"), CASES)
def test_rounded_once_from_the_exact_value(op, mode, name, flush, rational, run):
    form = FORMATS[name]
    count = {"fma": 3, "rcp": 1, "sqrt": 1}.get(op, 2)
    rows = rational.operands(form, count, f"{op}{mode}{name}{flush}")
    kinds = (CARRIERS[form.bits],) * (count + 1)
    spelling = f"{op}.{mode}{'.ftz' if flush else ''}.{name}"
    [results] = run(spelling, kinds, *zip(*rows))
    checked = 0
    for row, got in zip(rows, results):
        bits = [_flushed(x, form, flush) for x in row]
        values = [rational.decode(x, form) for x in bits]
        negative = [_sign(x, form) for x in bits]
        if op == "sqrt":
            if values[0] > 0:
                assert _is_root(got, values[0], form, mode, rational), f"{spelling} {row[0]:#x} -> {got:#x}"
                checked += 1
            continue
        if op in ("div", "rcp"):
            over, under = (values[0], values[1]) if op == "div" else (Fraction(1), values[0])
            if under == 0:
                continue
            exact, zero = over / under, (negative[0] ^ negative[-1]) if op == "div" else negative[0]
        elif op == "mul":
            exact, zero = values[0] * values[1], negative[0] ^ negative[1]
        elif op == "fma":
            product = values[0] * values[1]
            exact = product + values[2]
            signs = (negative[0] ^ negative[1], negative[2])
            zero = _sum_is_negative_zero(signs, product == values[2] == 0, mode)
        else:
            second = negative[1] ^ (op == "sub")
            exact = (operator.add if op == "add" else operator.sub)(values[0], values[1])
            zero = _sum_is_negative_zero((negative[0], second), values[0] == values[1] == 0, mode)
        want = rational.encode(exact, form, mode, flush, zero)
        assert got == want, f"{spelling} {[hex(x) for x in row]}: {got:#x}, exactly {want:#x}"
        checked += 1
    assert checked > 30


def _is_root(got, value, form, mode, rational):
    """Whether `got` is the root of `value` rounded, by squaring its neighbours."""
    below, here, above = (rational.decode(got + step, form) for step in (-1, 0, 1))
    if mode in ("rz", "rm"):
        return here**2 <= value < above**2
    if mode == "rp":
        return below**2 < value <= here**2
    return ((below + here) / 2) ** 2 <= value <= ((here + above) / 2) ** 2


@pytest.mark.parametrize("narrow", ["f16", "bf16"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("op", ["add", "sub", "fma"])
def test_mixed_precision_rounds_once_to_f32(op, mode, narrow, rational, run):
    form = FORMATS[narrow]
    small = rational.operands(form, 2, op + mode + narrow)
    wide = [row[0] for row in rational.operands(F32, 1, op + narrow + mode)]
    sources = [[row[0] for row in small], [row[1] for row in small], wide]
    if op != "fma":
        del sources[1]
    kinds = (".b32", *(".b16",) * (len(sources) - 1), ".b32")
    [results] = run(f"{op}.{mode}.f32.{narrow}", kinds, *sources)
    for (*factors, c), got in zip(zip(*sources), results):
        first = [rational.decode(x, form) for x in factors]
        term = first[0] * first[-1] if op == "fma" else first[0]
        addend = rational.decode(c, F32) * (-1 if op == "sub" else 1)
        negative = _sign(factors[0], form) ^ (_sign(factors[-1], form) if op == "fma" else False)
        signs = (negative, _sign(c, F32) ^ (op == "sub"))
        zero = _sum_is_negative_zero(signs, term == addend == 0, mode)
        assert got == rational.encode(term + addend, F32, mode, False, zero)


def test_packed_lanes_are_the_scalars(rational, run):
    for name, lane, register in (("f16", ".b16", ".b32"), ("bf16", ".b16", ".b32"), ("f32", ".b32", ".b64")):
        form = FORMATS[name]
        rows = rational.operands(form, 3, name)
        [scalar] = run(f"fma.rn.{name}", (lane,) * 4, *zip(*rows))
        bits = form.bits
        packed = [
            [low | high << bits for low, high in zip(column[0::2], column[1::2])] for column in zip(*rows)
        ]
        [together] = run(f"fma.rn.{name}x2", (register,) * 4, *packed)
        assert together == [low | high << bits for low, high in zip(scalar[0::2], scalar[1::2])]


def test_f64_fma_of_moderate_numbers_at_ties_and_cancellations(rational, run):
    """Those that the quick path takes, with addends built to sit on its boundaries, beside some that it leaves."""
    rng = random.Random(7)
    rows = []
    for _ in range(1500):
        a, b = (rng.getrandbits(52) | (1023 + rng.randrange(-30, 30)) << 52 for _ in range(2))
        if rng.random() < 0.3:
            a &= ~((1 << 40) - 1)
            b &= ~((1 << 40) - 1)
        if rng.random() < 0.03:
            b = rng.choice([0, 1, 1 << 52, F64.largest])
        product = rational.decode(a, F64) * rational.decode(b, F64)
        near = min(rational.encode(product, F64, "rz"), F64.largest)
        kind = rng.randrange(5)
        if kind == 0:  # cancels all but the last bits
            c = min(max(near + rng.randrange(-2, 3), 0), F64.largest)
        elif kind == 1:  # leaves the product's low half beside a lone leading bit
            c = (rng.randrange(1 << 4) << 48) | (min(near >> 52, 1900) + rng.randrange(0, 60)) << 52
        elif kind == 2:  # far below: only breaks a tie
            c = rng.getrandbits(52) | max((near >> 52) - rng.randrange(40, 130), 0) << 52
        elif kind == 3:
            c = rng.choice([0, 1, F64.hidden, 1 << 52])
        else:
            c = rng.getrandbits(52) | (1023 + rng.randrange(-70, 70)) << 52
        rows.append([a | rng.getrandbits(1) << 63, b, c | rng.getrandbits(1) << 63])
    for place in range(26, 60):  # a tie that only the product's low half breaks: (1 + t)(1 - t) = 1 - t * t
        tiny = Fraction(1, 1 << place)
        a, b = (rational.encode(1 + t, F64, "rn") for t in (tiny, -tiny))
        odd = [rng.getrandbits(52) | 1 | (1023 + 53) << 52 for _ in range(8)]
        rows += [[a | rng.getrandbits(1) << 63, b, c | rng.getrandbits(1) << 63] for c in odd]
    [results] = run("fma.rn.f64", (".b64",) * 4, *zip(*rows))
    for row, got in zip(rows, results):
        a, b, c = (rational.decode(x, F64) for x in row)
        negative = (row[0] ^ row[1]) >> 63 == 1
        zero = _sum_is_negative_zero((negative, row[2] >> 63 == 1), a * b == c == 0, "rn")
        want = rational.encode(a * b + c, F64, "rn", False, zero)
        assert got == want, f"{[hex(x) for x in row]}: {got:#x}, exactly {want:#x}"


@pytest.mark.parametrize("mode", MODES)
def test_bf16_from_f32_and_wider(mode, rational, run):
    """Values around every kind of bf16 tie: its rounding goes through an odd-rounded f32."""
    rows = [row[0] for row in rational.operands(BF16, 1, mode)]
    wide = [x << 16 | low for x in rows for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)]
    [results] = run(f"cvt.{mode}.bf16.f32", (".b16", ".b32"), wide)
    doubles = [rational.encode(rational.decode(x, F32), F64, "rn") for x in wide if rational.decode(x, F32)]
    doubles = [x + step for x in doubles for step in (-1, 0, 1)]
    [deep] = run(f"cvt.{mode}.bf16.f64", (".b16", ".b64"), doubles)
    for inputs, form, outputs in ((wide, F32, results), (doubles, F64, deep)):
        for x, got in zip(inputs, outputs):
            value = rational.decode(x, form)
            if value is not None:
                want = rational.encode(value, BF16, mode, False, x >= form.sign)
                assert got == want, f"{x:#x}: {got:#x}, exactly {want:#x}"


def test_quick_fma_is_the_exact_one_where_a_sum_lies_in_the_middle():
    """Halfway cases, near ones, subnormal results and zeros: what rounds twice in float64."""
    import numpy as np

    from ptxtile.emulator import numeric_float as nf

    chance = np.random.default_rng(8)
    a = (chance.integers(0, 1 << 12, 1 << 16) | 127 << 23).astype(np.uint32)
    b = (chance.integers(0, 1 << 12, 1 << 16) | 127 << 23).astype(np.uint32)
    c = (chance.integers(100, 176, 1 << 16) << 23 | chance.integers(0, 2, 1 << 16)).astype(np.uint32)
    small = chance.integers(0, 1 << 24, 1 << 16).astype(np.uint32)
    factor = np.full(1 << 16, 0x3F000001, np.uint32)
    zeros = np.zeros(1 << 16, np.uint32)
    for each in (
        (a, b, c),
        (factor, small, zeros),
        (factor, small, small ^ np.uint32(1 << 31)),
        (zeros, a, zeros),
    ):
        assert (nf.fused(*each, F32) == nf._fused32(*each)).all()
