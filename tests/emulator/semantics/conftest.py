"""An independent reference in rational arithmetic, and a way to run one spelling on bit patterns."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest

from ptxtile.emulator import semantics
from ptxtile.emulator.numeric import Format

Run = Callable[..., list[list[int]]]


class Rational:
    """IEEE 754 encodings as fractions, and back, one number at a time: no code shared with the package."""

    @staticmethod
    def decode(bits: int, form: Format) -> Fraction | None:
        """The value of a finite encoding, None of infinity or NaN."""
        magnitude = bits & ((1 << (form.bits - 1)) - 1)
        biased, fraction = magnitude >> (form.precision - 1), magnitude & ((1 << (form.precision - 1)) - 1)
        if magnitude > form.largest:
            return None
        if biased:
            fraction += 1 << (form.precision - 1)
        value = fraction * Fraction(2) ** (max(biased, 1) - 1 + form.emin - (form.precision - 1))
        return -value if bits >> (form.bits - 1) else value

    @staticmethod
    def encode(
        value: Fraction, form: Format, mode: str, flush: bool = False, negative_zero: bool = False
    ) -> int:
        """A value rounded once; `negative_zero` is the sign of an exact zero.

        `flush` gives zero for what is subnormal once rounded to full precision.
        """
        sign = 1 << (form.bits - 1)
        if value == 0:
            return sign if negative_zero else 0
        negative, size = value < 0, abs(value)
        if flush and size < Fraction(2) ** form.emin:
            # Scaled by a power of two out of reach of the subnormals, the exponent is as good as unbounded.
            far = Fraction(2) ** (form.precision + 2)
            whole = Rational.decode(Rational.encode(value * far, form, mode), form)
            if whole is not None and abs(whole) < far * Fraction(2) ** form.emin:
                return sign if negative else 0
        exponent = size.numerator.bit_length() - size.denominator.bit_length()
        exponent = max(exponent - (Fraction(2) ** exponent > size), form.emin)
        scaled = size / Fraction(2) ** (exponent - form.precision + 1)
        whole = scaled.numerator // scaled.denominator
        rest = scaled - whole
        half = Fraction(1, 2)
        up = {
            "rn": rest > half or (rest == half and whole % 2 == 1),
            "rna": rest >= half,
            "rz": False,
            "rm": negative and rest > 0,
            "rp": not negative and rest > 0,
        }[mode]
        magnitude = whole + up + ((exponent - form.emin) << (form.precision - 1))
        if magnitude > form.largest:
            outward = mode in ("rn", "rna") or ((mode == "rm") == negative and mode != "rz")
            magnitude = form.largest + 1 if outward else form.largest
        return magnitude | (sign if negative else 0)

    @staticmethod
    def specials(form: Format) -> list[int]:
        """Encodings at every boundary, both signs; no infinities and NaNs."""
        hidden, one, top = 1 << (form.precision - 1), form.one, form.largest
        values = [0, 1, 2, 3, hidden >> 1, hidden - 1, hidden, hidden + 1, 2 * hidden, one // 2, one // 2 + 1]
        values += [one - 1, one, one + 1, one + hidden // 2, one + hidden, top - 1, top]
        return [value | sign for value in values for sign in (0, form.sign)]

    @classmethod
    def operands(cls, form: Format, count: int, seed: str, rows: int = 120) -> list[list[int]]:
        """Rows of finite encodings: boundaries, random bits, near-equal pairs and near-cancelling triples."""
        rng = random.Random(seed)
        special = cls.specials(form)

        def near(bits: int) -> int:
            size = (bits & (form.sign - 1)) + rng.randrange(-3, 4)
            return max(0, min(form.largest, size)) | (form.sign if rng.random() < 0.5 else 0)

        def draw() -> int:
            if rng.random() < 0.45:
                return rng.choice(special)
            return rng.randrange(form.largest + 1) | (form.sign if rng.random() < 0.5 else 0)

        made = []
        for _ in range(rows):
            row = [draw() for _ in range(count)]
            if rng.random() < 0.3:
                row[-1] = near(row[0])
            if count == 3 and rng.random() < 0.5:
                a, b = cls.decode(row[0], form), cls.decode(row[1], form)
                assert a is not None and b is not None
                row[2] = near(min(cls.encode(abs(a * b), form, "rz"), form.largest))
            made.append(row)
        return made


def _run(
    spelling: str, types: Sequence[str], *sources: Sequence[int], carry: Sequence[int] | None = None
) -> list[list[int]]:
    """The destinations of one spelling, each as a list of integers; after an instruction with .cc the flag, too.

    `types` are those of the operands as the machine tells them, destinations first: (".f32", ".f32", ".f32").
    """
    opcode, *modifiers = spelling.split(".")
    widths = {".pred": np.bool_, ".b8": np.uint8, ".b16": np.uint16, ".b32": np.uint32, ".b64": np.uint64}
    kinds = types[len(types) - len(sources) :]
    arrays = [np.array(values, widths[kind]) for values, kind in zip(sources, kinds)]
    flag = None if carry is None else np.array(carry, np.bool_)
    call = semantics.Call(
        spelling, opcode, tuple("." + m for m in modifiers), {}, tuple(types), len(sources[0]), flag
    )
    function = semantics.find(opcode)
    assert function is not None
    outcome = function(call, *arrays)
    flags: list[np.ndarray] = []
    if isinstance(outcome, semantics.WithCarry):
        outcome, flags = outcome.value, [outcome.carry]
    results = list(outcome) if isinstance(outcome, tuple) else [outcome]
    for result, kind in zip(results, types):
        assert result.dtype == widths[kind], f"{spelling} gives {result.dtype} for {kind}"
    return [[int(x) for x in result] for result in (*results, *flags)]


@pytest.fixture
def rational() -> type[Rational]:
    """The reference arithmetic."""
    return Rational


@pytest.fixture
def run() -> Run:
    """`run(spelling, types, *sources)`: lists of integers in and out."""
    return _run
