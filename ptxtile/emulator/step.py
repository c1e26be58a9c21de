"""One decoded instruction, and the tables of what instructions do to the machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptxtile.emulator.program import Program, Site

if TYPE_CHECKING:
    from ptxtile.emulator.group import Group
    from ptxtile.emulator.lanes import Lanes

Run = Callable[["Lanes"], None]
Control = Callable[["Group", "Lanes"], None]


@dataclass(frozen=True, slots=True)
class Step:
    """What the machine executes.

    run       for an instruction after which the next one follows; called with the threads whose guard is true
    control   for one that decides itself what follows, for all threads of the group: called with the group and the
              threads whose guard is true (perhaps none); it puts every thread back into the pool, or parks or ends it
    guard     register number and whether it is negated
    assumes   predicate registers that are claimed to be true before the instruction
    joins     whether running threads stop here for others to catch up
    """

    site: Site
    run: Run | None
    control: Control | None
    guard: tuple[int, bool] | None
    joins: bool
    rank: int
    poll: int
    assumes: tuple[int, ...] = ()


Compile = Callable[[Program, Site], Run]
CompileControl = Callable[[Program, Site], Control]

ACTIONS: dict[str, Compile] = {}
CONTROLS: dict[str, CompileControl] = {}


def action(*opcodes: str) -> Callable[[Compile], Compile]:
    """Register what makes an instruction ready that touches memory or the machine and falls through."""

    def register(function: Compile) -> Compile:
        for opcode in opcodes:
            if opcode in ACTIONS:
                raise RuntimeError(f"two actions for {opcode}")
            ACTIONS[opcode] = function
        return function

    return register


def control(*opcodes: str) -> Callable[[CompileControl], CompileControl]:
    """Register what makes an instruction ready that may branch, wait or end."""

    def register(function: CompileControl) -> CompileControl:
        for opcode in opcodes:
            if opcode in CONTROLS:
                raise RuntimeError(f"two controls for {opcode}")
            CONTROLS[opcode] = function
        return function

    return register
