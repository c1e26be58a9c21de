"""What each instruction computes: one function an instruction, one module a chapter, registered by opcode.

A function registered with `value` is pure: it knows no machine. It receives a Call and one array a source operand,
element i for thread i of those that execute, and returns the destinations' arrays. Values are bit patterns: unsigned
NumPy integers of the operand type's width (uint8, 16, 32, 64; `bool` for .pred; a pair of uint64 (low, high) in a
trailing axis of 2 for .b128). A vector operand is a tuple of arrays. Instructions that touch memory, control or other
threads belong to the machine (`emulator.machine`) and are registered with `action` there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Union

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]
Source = Union[Array, tuple[Array, ...]]
Outcome = Union[Array, tuple[Source, ...]]


@dataclass(frozen=True, slots=True)
class Call:
    """What a value function is told beside its sources.

    spelling, opcode, modifiers   of the form: "add.rn.f32", "add", (".rn", ".f32")
    slots    the modifier in each slot, by name without dot: {"rnd": ".rn", "type": ".f32"}
    types    the PTX type of every operand, destinations first: (".f32", ".f32", ".f32"). A pair p|q counts as two
             destinations, written or `_`; a predicate source that is not written does not count
    count    threads that execute: the length of every array
    carry    CC.CF of these threads before the instruction, for the extended-precision instructions (PTX ISA 9.7.2)
    """

    spelling: str
    opcode: str
    modifiers: tuple[str, ...]
    slots: Mapping[str, str]
    types: tuple[str | None, ...]
    count: int
    carry: NDArray[np.bool_] | None = None

    def has(self, modifier: str) -> bool:
        """Whether `modifier` (".ftz") is written."""
        return modifier in self.modifiers


@dataclass(frozen=True, slots=True)
class WithCarry:
    """A result together with the new CC.CF."""

    value: Array
    carry: NDArray[np.bool_]


Value = Callable[..., Union[Outcome, WithCarry]]
_values: dict[str, Value] = {}


def value(*opcodes: str) -> Callable[[Value], Value]:
    """Register a pure function for these opcodes; two functions for one opcode are a programming error."""

    def register(function: Value) -> Value:
        for opcode in opcodes:
            if opcode in _values:
                raise RuntimeError(
                    f"two semantics for {opcode}: {_values[opcode].__name__}, {function.__name__}"
                )
            _values[opcode] = function
        return function

    return register


def find(opcode: str) -> Value | None:
    """The pure function of an opcode, or None. Loads the chapters at first use."""
    if not _values:
        from ptxtile.emulator.semantics import chapters

        chapters.load()
    return _values.get(opcode)


def names() -> frozenset[str]:
    """Every opcode that has a pure function."""
    find("")
    return frozenset(_values)
