"""Scale factors of blocks along k (PTX ISA 9.7.14.3, 9.7.16.10.7): formats, and factors multiplied by them."""

from __future__ import annotations

import numpy as np

from ptxtile.emulator.tensor_core import LEAST, Doubles, Factor, factor
from ptxtile.emulator.widths import Bits

VECTORS = {".scale_vec::1X": 1, ".scale_vec::2X": 2, ".scale_vec::4X": 4, ".block16": 4}


def vector_of(modifiers: tuple[str, ...]) -> int:
    """How many scale factors a row has; what is not written follows from the kind."""
    for modifier in modifiers:
        if modifier in VECTORS:
            return VECTORS[modifier]
    return 1 if ".kind::mxf8f6f4" in modifiers else 2


def scale(bits: Bits, kind: str) -> Factor:
    """ue8m0: two to the power of the byte less 127, 255 is NaN; ue4m3: as e4m3, whatever its sign bit."""
    if kind == "ue4m3":
        return factor(bits & np.uint8(0x7F), "e4m3")
    power = bits.astype(np.int64) - 127
    value: Doubles = np.where(bits == 255, np.nan, np.ldexp(1.0, power))
    return Factor(value, power)


def scaled(given: Factor, bits: Bits, kind: str) -> Factor:
    """Each row's blocks multiplied by its scale factors: (…, rows, k) by (…, rows, blocks), exactly."""
    by = scale(bits, kind)
    depth = given.value.shape[-1] // bits.shape[-1]
    value, power = np.repeat(by.value, depth, axis=-1), np.repeat(by.exponent, depth, axis=-1)
    with np.errstate(invalid="ignore"):
        product: Doubles = given.value * value
    exponent = np.where(given.exponent <= LEAST, given.exponent, given.exponent + power)
    return Factor(product, np.where((product == 0) & (exponent > LEAST), LEAST, exponent))
