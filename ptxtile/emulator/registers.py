"""Registers as arrays over threads: bit patterns, and for each bit whether it was ever written.

A register is one array with an element for each thread of the wave. Its shadow has the same shape and a 1 for every
bit that is undefined; None says that every bit of every thread is defined, which is nearly always so and costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Union

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.widths import Bits, bits_of, holder

if TYPE_CHECKING:
    from ptxtile.emulator.watch import Watch

Where = Union[slice, NDArray[np.intp]]
Shadow = Union[Bits, None]


class Registers:
    """The register file of one call path of the function `name`, for all threads of a wave.

    Arrays are shared freely and never changed once shared: `read` may hand out the register itself, `write` may take
    the array of another one, and a write to some of the threads first copies what is shared (all but `_owned`).
    """

    __slots__ = (
        "_owned",
        "_shadows",
        "_shapes",
        "_values",
        "carry",
        "count",
        "local",
        "name",
        "track",
        "types",
        "watch",
    )

    def __init__(self, types: Sequence[str], count: int, track: bool, local: int = 0, name: str = "") -> None:
        self.name = name
        self.types = [holder(bits_of(name)) for name in types]
        self._shapes = [(count, 2) if bits_of(name) == 128 else (count,) for name in types]
        self.count = count
        self.track = track
        self.local = local
        self._values: list[Bits | None] = [None] * len(types)
        self._shadows: list[Shadow] = [None] * len(types)
        self._owned = [False] * len(types)
        self.watch: Watch | None = None
        self.carry: NDArray[np.bool_] = np.zeros(count, np.bool_)

    def read(self, number: int, where: Where, whole: bool) -> tuple[Bits, Shadow]:
        """Values and shadow of a register in the threads `where` (all of them if `whole`)."""
        values = self._values[number]
        if values is None:
            values = self._first(number)
        shadow = self._shadows[number]
        if whole:
            self._owned[number] = False
            return values, shadow
        if shadow is None:
            return values[where], None
        part = shadow[where]
        return values[where], part if part.any() else None

    def write(self, number: int, where: Where, whole: bool, value: Bits, shadow: Shadow = None) -> None:
        """Write a register in the threads `where`. `value` has the register's own NumPy type."""
        if whole:
            self._values[number] = value
            self._owned[number] = False
            self._shadows[number] = shadow if shadow is not None and shadow.any() else None
            return
        values = self._values[number]
        if values is None:
            values = self._first(number)
        if not self._owned[number]:
            values = self._values[number] = values.copy()
            self._owned[number] = True
        values[where] = value
        self._write_shadow(number, where, shadow)

    def _write_shadow(self, number: int, where: Where, shadow: Shadow) -> None:
        known = self._shadows[number]
        if known is None and shadow is None:
            return
        if known is None:
            known = np.zeros_like(self._values[number])
        else:
            known = known.copy()
        known[where] = 0 if shadow is None else shadow
        self._shadows[number] = known if known.any() else None

    def _first(self, number: int) -> Bits:
        """The register before anything was written: zeros, all of them undefined."""
        kind = self.types[number]
        values = np.zeros(self._shapes[number], kind)
        self._values[number] = values
        self._owned[number] = True
        if self.track:
            self._shadows[number] = np.full(self._shapes[number], undefined(kind), kind)
        return values

    def peek(self, number: int) -> tuple[Bits, Shadow]:
        """Values and shadow of a register in all threads, for who only looks."""
        values = self._values[number]
        return (self._first(number) if values is None else values), self._shadows[number]

    def snapshot(self, threads: NDArray[np.intp]) -> list[tuple[int, Bits]]:
        """The values of all registers that were ever used, in these threads, and the carry flag (number -1)."""
        found = [(n, values[threads]) for n, values in enumerate(self._values) if values is not None]
        return [*found, (-1, self.carry[threads])]

    def forget(self, where: Where, whole: bool) -> None:
        """Make every register undefined in these threads, as at the start of a call."""
        for number, values in enumerate(self._values):
            if values is None:
                continue
            if whole:
                self._values[number] = self._shadows[number] = None
            elif self.track:
                self._write_shadow(number, where, np.asarray(undefined(self.types[number])))


def undefined(kind: np.dtype[np.generic]) -> np.generic:
    """The shadow of a value of which no bit is defined."""
    return np.bool_(True) if kind == np.bool_ else kind.type((1 << kind.itemsize * 8) - 1)
