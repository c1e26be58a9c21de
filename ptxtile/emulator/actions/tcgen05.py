"""tcgen05 (PTX ISA 9.7.16): the tensor cores of the fifth generation and their memory, one module a subject."""

from __future__ import annotations

from ptxtile.emulator.actions.control import fall_through
from ptxtile.emulator.actions.tcgen05_alloc import allocate, free, relinquish
from ptxtile.emulator.actions.tcgen05_commit import commit
from ptxtile.emulator.actions.tcgen05_copy import copy, shift
from ptxtile.emulator.actions.tcgen05_mma import multiply
from ptxtile.emulator.actions.tcgen05_move import load, store, wait
from ptxtile.emulator.group import Group
from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.step import Control, Run, control

COLLECTIVE = {".alloc": allocate, ".dealloc": free, ".ld": load, ".st": store}
"""What a whole warp does."""
SINGLE = {".cp": copy, ".shift": shift, ".mma": multiply, ".commit": commit}
"""What each thread does for itself."""


@control("tcgen05")
def tcgen05(program: Program, site: Site) -> Control:
    """Every instruction of the family. The fences order what here is in order anyway."""
    verb = site.instruction.form.modifiers[0]
    if verb in COLLECTIVE:
        return COLLECTIVE[verb](program, site)
    if verb in SINGLE:
        return _falling(site, SINGLE[verb](program, site))
    if verb.startswith(".wait"):
        return _falling(site, wait(site))
    return _falling(site, relinquish if verb.startswith(".relinquish") else _nothing)


def _nothing(lanes: Lanes) -> None:
    return


def _falling(site: Site, act: Run) -> Control:
    def run(group: Group, lanes: Lanes) -> None:
        fall_through(group, lanes)
        if lanes.count:
            act(lanes)
            lanes.wave.pool.add(group.at(site.number + 1, lanes.threads))

    return run
