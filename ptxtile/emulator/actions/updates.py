"""What atomic operations and reductions make of an old value and an operand (PTX ISA 9.7.13.5)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ptxtile.emulator import semantics
from ptxtile.emulator.semantics import Call
from ptxtile.emulator.widths import Bits

Update = Callable[[Bits, tuple[Bits, ...]], Bits]
"""The new value, from the old one and the operands."""

OPERATIONS = frozenset({".add", ".min", ".max", ".and", ".or", ".xor", ".exch", ".cas", ".inc", ".dec"})


def update_of(operation: str, name: str, keeps_subnormals: bool) -> Update:
    """The function of one atomic operation on one type.

    keeps_subnormals   .add.f32 flushes subnormal inputs and results to zero in global memory, not in shared memory;
                       there .add.f64 also gives a NaN as it is, a signalling one too: the operand's, else the old
    """
    if operation == ".exch":
        return lambda old, values: values[0]
    if operation == ".cas":
        return _compare_and_swap
    if operation in (".inc", ".dec"):
        return _increment if operation == ".inc" else _decrement
    opcode = operation[1:]
    words: tuple[str, ...] = ()
    if name.startswith((".f", ".bf")) and operation == ".add":
        words = (".rn", ".ftz") if name == ".f32" and not keeps_subnormals else (".rn",)
    if opcode in ("and", "or", "xor"):
        name = name.replace("u", "b").replace("s", "b")
    function = semantics.find(opcode)
    assert function is not None
    double = name == ".f64" and operation == ".add"
    modifiers = (*words, name)

    def update(old: Bits, values: tuple[Bits, ...]) -> Bits:
        call = Call(opcode + "".join(modifiers), opcode, modifiers, {"type": name}, (name,) * 3, len(old))
        new = values[0]
        # In shared memory the old number is the second operand, whose NaN wins.
        found = function(call, new, old) if double else function(call, old, new)
        assert isinstance(found, np.ndarray)
        if not double or keeps_subnormals:
            return found
        kept = np.where(np.isnan(old.view(np.float64)), old, found)
        return np.where(np.isnan(new.view(np.float64)), new, kept)

    return update


def _compare_and_swap(old: Bits, values: tuple[Bits, ...]) -> Bits:
    expected, new = values
    same = old == expected
    if old.ndim > 1:
        same = same.all(axis=1, keepdims=True)
    swapped: Bits = np.where(same, new, old)
    return swapped


def _increment(old: Bits, values: tuple[Bits, ...]) -> Bits:
    found: Bits = np.where(old >= values[0], old.dtype.type(0), old + old.dtype.type(1))
    return found


def _decrement(old: Bits, values: tuple[Bits, ...]) -> Bits:
    limit = values[0]
    found: Bits = np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1))
    return found
