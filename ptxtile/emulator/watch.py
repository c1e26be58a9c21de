"""Registers that asynchronous work owns: who touches them when (PTX ISA 9.7.15.3, 9.7.15.7, 9.7.16.8.3).

Between its issue and the wait for it a wgmma owns its registers, and before its issue a wgmma.fence must come after the
last other access to them. A tcgen05.ld owns its destinations until tcgen05.wait::ld.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.program import Code, Site, registers_of
from ptxtile.emulator.report import at_line, fault
from ptxtile.ir.operand import Register, Vector

if TYPE_CHECKING:
    from ptxtile.emulator.lanes import Lanes, Threads


LOADED = "tcgen05.wait::ld"


@dataclass(slots=True, eq=False)
class Flight:
    """An operation that has not been waited for: its registers, and by thread whether it is the thread's."""

    site: Site
    numbers: frozenset[int]
    threads: NDArray[np.bool_]
    wait: str = "wgmma.wait_group"


class Watch:
    """The watched registers of one register file.

    touched   by register and thread: the fences that the thread had executed, plus one, at its last access
    fenced    by thread: the fences it had executed at its last one
    """

    def __init__(self, names: dict[int, str], count: int) -> None:
        self.names = names
        self.rows = {number: row for row, number in enumerate(names)}
        self.clock = 1
        self.touched: NDArray[np.int32] = np.ones((len(names), count), np.int32)
        self.fenced: NDArray[np.int32] = np.zeros(count, np.int32)
        self.flights: list[Flight] = []

    def touch(self, lanes: Lanes, number: int, verb: str) -> None:
        """Threads access a watched register; the caller knows that it is one."""
        for flight in self.flights:
            if number in flight.numbers:
                mine = flight.threads[lanes.threads]
                if mine.any():
                    what = "load that writes it" if flight.wait == LOADED else "operation that works on it"
                    text = (
                        f"in flight: register {self.names[number]} is {verb} before {flight.wait} has waited for "
                        f"the {what}"
                    )
                    position = int(np.flatnonzero(mine)[0])
                    raise fault("in-flight", text, lanes, position, f"issued at {at_line(flight.site)}")
        self.touched[self.rows[number], lanes.where] = self.clock

    def fence(self, threads: Threads) -> None:
        """wgmma.fence."""
        self.fenced[threads] = self.clock
        self.clock += 1

    def issue(self, lanes: Lanes, numbers: frozenset[int]) -> None:
        """An operation of these threads begins to own these registers."""
        rows = [self.rows[number] for number in sorted(numbers)]
        late = self.touched[rows][:, lanes.threads] > self.fenced[lanes.threads]
        if late.any():
            row, position = (int(part[0]) for part in np.nonzero(late))
            name = self.names[sorted(numbers)[row]]
            text = (
                f"wgmma.fence: register {name} was accessed, or is used for the first time, and no wgmma.fence has "
                "come since"
            )
            raise fault("in-flight", text, lanes, position)
        self._begin(lanes, numbers, "wgmma.wait_group")

    def load(self, lanes: Lanes, numbers: frozenset[int]) -> None:
        """A tcgen05.ld of these threads begins to own these registers."""
        for number in sorted(numbers):
            self.touch(lanes, number, "loaded again")
        self._begin(lanes, numbers, LOADED)

    def _begin(self, lanes: Lanes, numbers: frozenset[int], wait: str) -> None:
        mine: NDArray[np.bool_] = np.zeros(self.touched.shape[1], np.bool_)
        mine[lanes.threads] = True
        self.flights.append(Flight(lanes.step.site, numbers, mine, wait))

    def land(self, site: Site, threads: Threads) -> None:
        """The oldest operation of a site is done for these threads."""
        for flight in self.flights:
            if flight.site is site and flight.threads[threads].all():
                flight.threads[threads] = False
                if not flight.threads.any():
                    self.flights.remove(flight)
                return


def matrix_registers(site: Site) -> dict[str, tuple[int, ...]]:
    """The register numbers of each vector operand of a wgmma.mma_async: "d", and perhaps "a"."""
    vectors = [operand for operand in site.instruction.operands if isinstance(operand, Vector)]
    return {
        name: tuple(site.register(register) for register in registers_of(vector))
        for name, vector in zip(("d", "a"), vectors)
    }


def loaded_registers(site: Site) -> tuple[int, ...]:
    """The register numbers of a tcgen05.ld's destinations, the reduced value last."""
    written = site.instruction.operands
    named = [each for each in written[:2] if isinstance(each, (Vector, Register))]
    return tuple(site.register(register) for operand in named for register in registers_of(operand))


def watch_of(code: Code, count: int) -> Watch | None:
    """What watches the registers of a function for `count` threads, if asynchronous work owns any."""
    numbers: set[int] = set()
    for site in code.sites:
        if site.opcode == "wgmma" and ".mma_async" in site.instruction.form.modifiers:
            for registers in matrix_registers(site).values():
                numbers.update(registers)
        elif site.opcode == "tcgen05" and ".ld" in site.instruction.form.modifiers:
            numbers.update(loaded_registers(site))
    if not numbers:
        return None
    return Watch({number: code.register_names[number] for number in sorted(numbers)}, count)
