"""Control flow (PTX ISA 9.7.12): bra brx.idx ret exit trap brkpt nanosleep pmevent."""

from __future__ import annotations

import numpy as np

from ptxtile.emulator.group import Group
from ptxtile.emulator.lanes import Lanes, Threads
from ptxtile.emulator.operands import reader, refuse_undefined
from ptxtile.emulator.program import Program, Site, branch_targets
from ptxtile.emulator.report import fault
from ptxtile.emulator.step import Control, Run, action, control
from ptxtile.ir.operand import Integer


def fall_through(group: Group, lanes: Lanes) -> None:
    """Threads whose guard is false go on behind the instruction."""
    if lanes.count < len(group.threads):
        rest = np.setdiff1d(group.threads, lanes.threads, assume_unique=True)
        lanes.wave.pool.add(group.at(group.number + 1, rest))


def jump(group: Group, lanes: Lanes, threads: Threads, target: int) -> None:
    """These threads of the group go on at `target`; a backward jump in a polling loop counts as a lap."""
    if not len(threads):
        return
    moved = group.at(target, threads)
    step = group.frame.steps[target]
    if not step.poll:
        if group.frame.caller is None:  # a function may be called from a loop that polls
            moved.laps = 0
    elif target <= group.number:
        moved.laps += 1
    lanes.wave.pool.add(moved)


@control("bra")
def bra(program: Program, site: Site) -> Control:
    """bra (9.7.12.3), and brx.idx's one-way sibling."""
    (target,) = branch_targets(site)

    def run(group: Group, lanes: Lanes) -> None:
        fall_through(group, lanes)
        jump(group, lanes, lanes.threads, target)

    return run


@control("brx")
def brx(program: Program, site: Site) -> Control:
    """brx.idx (9.7.12.4): an index out of the list's range is undefined, hence an error."""
    targets = branch_targets(site)
    read = reader(program, site, site.instruction.operands[0], ".u32")

    def run(group: Group, lanes: Lanes) -> None:
        fall_through(group, lanes)
        if not lanes.count:
            return
        index, shadow = read(lanes)
        if shadow is not None:
            refuse_undefined(lanes, shadow, "the branch", f"register {site.instruction.operands[0]}")
        outside = index >= np.uint32(len(targets))
        if outside.any():
            position = int(np.flatnonzero(outside)[0])
            text = f"branch index {int(index[position])} is outside the list of {len(targets)} targets"
            raise fault("out-of-bounds", text, lanes, position)
        for value in np.unique(index):
            jump(group, lanes, lanes.threads[index == value], targets[int(value)])

    return run


@control("exit")
def exit_(program: Program, site: Site) -> Control:
    """exit (9.7.12.7)."""

    def run(group: Group, lanes: Lanes) -> None:
        fall_through(group, lanes)
        lanes.wave.end(lanes.threads)

    return run


@control("ret")
def ret(program: Program, site: Site) -> Control:
    """ret (9.7.12.6): out of a kernel it ends the thread."""
    return returning(program, site)


def returning(program: Program, site: Site) -> Control:
    """What happens at `ret` and at the end of a body."""

    def run(group: Group, lanes: Lanes) -> None:
        fall_through(group, lanes)
        if not lanes.count:
            return
        frame = group.frame
        if frame.caller is None:
            lanes.wave.end(lanes.threads)
            return
        if frame.leave is not None:
            frame.leave(lanes)
        lanes.wave.pool.add(Group(frame.caller, frame.return_to, lanes.threads, group.laps))

    return run


@control("trap")
def trap(program: Program, site: Site) -> Control:
    """trap (9.7.19.6): the program asked to be stopped."""

    def run(group: Group, lanes: Lanes) -> None:
        if lanes.count:
            raise fault("trap", "trap: the program stopped itself", lanes, 0)
        fall_through(group, lanes)

    return run


@action("brkpt", "nanosleep", "pmevent", "griddepcontrol", "fabric")
def nothing(program: Program, site: Site) -> Run:
    """Instructions without an effect that a program can see.

    A launch begins when the one before it has ended and been seen, so griddepcontrol.wait finds nothing to wait for.
    There is one device, and no fabric on which an operation could be under way.
    """
    return lambda lanes: None


@control("setmaxnreg")
def setmaxnreg(program: Program, site: Site) -> Control:
    """setmaxnreg (9.7.19.5): registers go to the CTA's pool, or come from it as soon as it has them."""
    (operand,) = site.instruction.operands
    assert isinstance(operand, Integer)
    count, more = operand.value, ".inc" in site.instruction.form.modifiers

    def run(group: Group, lanes: Lanes) -> None:
        fall_through(group, lanes)
        if lanes.count:
            lanes.wave.warpgroups.registers.change(group, lanes, site, count, more)

    return run
