"""The threads that execute one instruction together, and their access to registers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.registers import Registers, Shadow, Where
from ptxtile.emulator.widths import Bits

if TYPE_CHECKING:
    from ptxtile.emulator.machine import Wave
    from ptxtile.emulator.step import Step

Threads = NDArray[np.intp]


class Lanes:
    """Some threads of a wave at one instruction.

    threads   their numbers in the wave, ascending
    where     the same as an index: a slice if they are consecutive, so that reads are views
    whole     whether they are all the threads of the wave
    """

    __slots__ = ("count", "registers", "step", "threads", "wave", "where", "whole")

    def __init__(self, wave: Wave, registers: Registers, threads: Threads, step: Step) -> None:
        self.wave = wave
        self.registers = registers
        self.threads = threads
        self.step = step
        self.count = len(threads)
        self.where: Where = threads
        self.whole = self.count == wave.count
        if self.count and int(threads[-1]) - int(threads[0]) + 1 == self.count:
            self.where = slice(int(threads[0]), int(threads[-1]) + 1)

    def read(self, number: int) -> tuple[Bits, Shadow]:
        """A register's values and shadow in these threads."""
        watch = self.registers.watch
        if watch is not None and number in watch.rows:
            watch.touch(self, number, "read")
        return self.registers.read(number, self.where, self.whole)

    def write(self, number: int, value: Bits, shadow: Shadow = None) -> None:
        """Write a register in these threads; `value` has its NumPy type and is handed over."""
        watch = self.registers.watch
        if watch is not None and number in watch.rows:
            watch.touch(self, number, "written")
        self.registers.write(number, self.where, self.whole, value, shadow)

    def narrow(self, mask: NDArray[np.bool_]) -> Lanes:
        """Those threads whose element of `mask` is true."""
        if mask.all():
            return self
        return Lanes(self.wave, self.registers, self.threads[mask], self.step)

    def at(self, positions: NDArray[np.intp]) -> Lanes:
        """The threads at these positions among these."""
        return Lanes(self.wave, self.registers, self.threads[positions], self.step)

    def repeat(self, position: int, count: int) -> Lanes:
        """One of these threads, as many times, for an instruction with several accesses a thread."""
        return Lanes(self.wave, self.registers, np.repeat(self.threads[position], count), self.step)
