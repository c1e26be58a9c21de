"""Operands whose exact results lie halfway between two numbers of the destination, or one step beside that."""

from __future__ import annotations

import numpy as np
from device_semantics_cases import Case
from numpy.typing import NDArray

from ptxtile.emulator.numeric import FORMATS, Format
from ptxtile.emulator.semantics.kinds import Kind, kind_of

Words = NDArray[np.generic]
CUTS = {"f64": (29, 42, 45), "f32": (13, 16, 20, 21), "f16": (7, 8), "bf16": (4, 5)}
"""Bits that a conversion from a format to a narrower one drops."""
PRECISIONS = (24, 11, 8, 53)


def _kind(operand: str) -> Kind | None:
    return kind_of("." + operand.partition(":")[0])


def _beside(count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return rng.choice(np.array([-1, 0, 0, 1]), count)


def _near(form: Format, count: int, span: int, rng: np.random.Generator) -> NDArray[np.uint64]:
    """Random normal numbers, of either sign, up to 2**span in size and down to its reciprocal."""
    exponent = rng.integers(-span, span + 1, count) + 1 - form.emin
    bits = (exponent << (form.precision - 1)) | rng.integers(0, form.hidden, count)
    return (bits | rng.integers(0, 2, count) << (form.bits - 1)).astype(np.uint64)


def _dropped(name: str, count: int, rng: np.random.Generator) -> NDArray[np.uint64]:
    """Numbers halfway between two of a narrower format."""
    form = FORMATS[name]
    cut = rng.choice(np.array(CUTS[name]), count).astype(np.uint64)
    half = np.uint64(1) << (cut - np.uint64(1))
    bits = _near(form, count, 13, rng) & ~((half << np.uint64(1)) - np.uint64(1)) | half
    return bits + _beside(count, rng).astype(np.uint64)


def _whole(bits: int, count: int, rng: np.random.Generator) -> NDArray[np.uint64]:
    """Integers halfway between two floats of some precision."""
    precision = rng.choice(np.array([p for p in PRECISIONS if p < bits - 1]), count)
    extra = rng.integers(1, bits - precision)
    lead = rng.integers(0, 1 << 62, count) >> (62 - precision) | 1 << (precision - 1)
    value = (lead << extra) + (1 << (extra - 1)) + _beside(count, rng)
    return np.where(rng.integers(0, 2, count) == 1, value, -value).astype(np.uint64) & np.uint64(
        (1 << bits) - 1
    )


def _product(form: Format, count: int, rng: np.random.Generator) -> list[NDArray[np.uint64]]:
    """Two factors whose product has one bit more than the format holds."""
    long = rng.integers(2, form.precision, count)
    factors = []
    for length in (long, form.precision + 1 - long):
        odd = rng.integers(0, 1 << 62, count) >> (62 - length) | 1 << (length - 1) | 1
        fraction = (odd << (form.precision - length)) & (form.hidden - 1)
        factors.append(((-form.emin + 1) << (form.precision - 1) | fraction).astype(np.uint64))
    return factors


def _small(of: NDArray[np.uint64], form: Format, rng: np.random.Generator) -> NDArray[np.uint64]:
    """Half a unit of each number, or a step beside it, of either sign."""
    exponent = (of & np.uint64(form.sign - 1)) >> np.uint64(form.precision - 1)
    bits = (exponent - np.uint64(form.precision)) << np.uint64(form.precision - 1)
    sign = rng.integers(0, 2, len(of)).astype(np.uint64) << np.uint64(form.bits - 1)
    return (bits + _beside(len(of), rng).astype(np.uint64)) | sign


def _arithmetic(opcode: str, kind: Kind, count: int, rng: np.random.Generator) -> list[NDArray[np.uint64]]:
    form = kind.form
    if opcode == "mul":
        return _product(form, count, rng)
    one = np.full(count, form.one, np.uint64)
    a = _near(form, count, 3, rng)
    return [a, one, _small(a, form, rng)] if opcode in ("fma", "mad") else [a, _small(a, form, rng)]


def _lanes(case: Case, count: int, rng: np.random.Generator) -> list[NDArray[np.uint64]] | None:
    """For each source its lanes, `count` a source of one lane; None: nothing of this case lies halfway."""
    opcode, kinds = case.spelling.partition(".")[0], [_kind(source) for source in case.sources]
    first = kinds[0]
    if first is None or any(kind != first for kind in kinds):
        return None
    if opcode == "cvt" and first.format in CUTS:
        return [_dropped(first.format, count * first.lanes, rng) for _ in kinds]
    target = _kind(case.targets[0])
    if opcode == "cvt" and not first.floating and target is not None and target.floating and first.bits >= 16:
        return [_whole(first.bits, count, rng)]
    if opcode in ("add", "sub", "mul", "fma", "mad") and first.format in CUTS:
        return _arithmetic(opcode, first, count * first.lanes, rng)
    return None


def replace(case: Case, arrays: list[Words], rng: np.random.Generator) -> list[Words]:
    """The operands with some in the middle replaced by such ones."""
    count = len(arrays[0]) // 8
    lanes = _lanes(case, count, rng)
    if lanes is None:
        return arrays
    found = []
    for array, lane, source in zip(arrays, lanes, case.sources):
        kind = _kind(source)
        assert kind is not None
        words = lane.astype(f"u{kind.bits // 8}").view(array.dtype)
        found.append(np.concatenate([array[: 4 * count], words, array[5 * count :]]))
    return [*found, *arrays[len(found) :]]
