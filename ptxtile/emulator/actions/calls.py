"""call (PTX ISA 9.7.12.5), direct and by address; parameters go in by copy, results come out by copy.

Functions without a body are those of the system (`system_calls`), or an error.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator import windows
from ptxtile.emulator.actions.control import fall_through
from ptxtile.emulator.actions.system_calls import SYSTEM
from ptxtile.emulator.group import Frame, Group
from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.operands import reader, refuse_undefined, writer
from ptxtile.emulator.placement import Place
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.report import fault, stop
from ptxtile.emulator.step import Control, control
from ptxtile.ir.module import Parameter
from ptxtile.ir.operand import Arguments, Label, Operand, Register, Symbol

Copy = Callable[[Lanes, Frame, Frame], None]
"""Moves one parameter in the given threads: from the caller's frame to the callee's, or back."""


@control("call")
def call(program: Program, site: Site) -> Control:
    """call{.uni}, with or without results and arguments."""
    operands = site.instruction.operands
    position = next(i for i, operand in enumerate(operands) if not isinstance(operand, Arguments))
    callee = operands[position]
    results = _elements(operands[position - 1]) if position else ()
    arguments = _elements(operands[position + 1]) if position + 1 < len(operands) else ()
    if isinstance(callee, Register):
        return _indirect(program, site, callee, results, arguments)
    if not isinstance(callee, (Symbol, Label)):
        raise stop("unsupported", f"the emulator cannot call {callee}", site)
    if callee.name not in program.codes and callee.name not in program.functions:
        raise stop("undeclared", f"there is no function {callee.name}", site)
    name = callee.name
    if not any(item.name == name and item.body is not None for item in program.module.functions):
        if name in SYSTEM:
            return SYSTEM[name](program, site, results, arguments)
        raise stop("unsupported", f"the emulator has no body of function {name}", site)

    def run(group: Group, lanes: Lanes) -> None:
        fall_through(group, lanes)
        if lanes.count:
            _enter(program, site, name, results, arguments, group, lanes)

    return run


def _elements(operand: Operand) -> tuple[Operand, ...]:
    return operand.elements if isinstance(operand, Arguments) else ()


def _indirect(
    program: Program,
    site: Site,
    callee: Register,
    results: tuple[Operand, ...],
    arguments: tuple[Operand, ...],
) -> Control:
    read = reader(program, site, callee, ".u64")
    names = {address: name for name, address in program.functions.items() if name in program.codes}

    def run(group: Group, lanes: Lanes) -> None:
        fall_through(group, lanes)
        if not lanes.count:
            return
        target, shadow = read(lanes)
        if shadow is not None:
            refuse_undefined(lanes, shadow, "the function called", f"register {callee.name}")
        for value in np.unique(target):
            positions = np.flatnonzero(target == value)
            if int(value) not in names:
                text = f"{int(value):#x} is not the address of a function"
                raise fault("out-of-bounds", text, lanes, int(positions[0]))
            _enter(program, site, names[int(value)], results, arguments, group, lanes.at(positions))

    return run


def _enter(
    program: Program,
    site: Site,
    name: str,
    results: tuple[Operand, ...],
    arguments: tuple[Operand, ...],
    group: Group,
    lanes: Lanes,
) -> None:
    """Go into a function: its frame, its parameters, and the way its results will take back."""
    wave = lanes.wave
    frame = wave.frame(name, group.frame, site.number + 1)
    if frame.leave is None:
        function = program.code(name).function
        ins, outs = len(function.parameters), len(function.returns)
        if (ins, outs) != (len(arguments), len(results)):
            text = (
                f"{name} takes {ins} parameters and returns {outs}; the call passes {len(arguments)} and expects "
                f"{len(results)}"
            )
            raise stop("launch", text, site)
        inside = program.code(name).sites[0]
        frame.enter = [_copy_in(program, site, inside, p, a) for p, a in zip(function.parameters, arguments)]
        back = [_copy_out(program, site, inside, p, r) for p, r in zip(function.returns, results)]
        caller = group.frame

        def leave(leaving: Lanes) -> None:
            for copy in back:
                copy(leaving, caller, frame)

        frame.leave = leave
    frame.registers.forget(lanes.where, lanes.whole)
    for copy in frame.enter:
        copy(lanes, group.frame, frame)
    wave.pool.add(Group(frame, 0, lanes.threads, group.laps))


def _in_frame(lanes: Lanes, frame: Frame) -> Lanes:
    return Lanes(lanes.wave, frame.registers, lanes.threads, lanes.step)


def _copy_in(program: Program, site: Site, inside: Site, parameter: Parameter, argument: Operand) -> Copy:
    if parameter.space == "reg":
        read = reader(program, site, argument, parameter.type)
        write = writer(inside, Register(parameter.name, parameter.type), parameter.type)

        def copy_register(lanes: Lanes, caller: Frame, callee: Frame) -> None:
            value, shadow = read(_in_frame(lanes, caller))
            write(_in_frame(lanes, callee), value, shadow)

        return copy_register
    source, target = _place(site, argument), _place(inside, Symbol(parameter.name, "param"))
    size = min(source.size, target.size)

    def copy_bytes(lanes: Lanes, caller: Frame, callee: Frame) -> None:
        _copy_local(lanes, source.address + caller.local, target.address + callee.local, size)

    return copy_bytes


def _copy_out(program: Program, site: Site, inside: Site, parameter: Parameter, result: Operand) -> Copy:
    if parameter.space == "reg":
        read = reader(program, inside, Register(parameter.name, parameter.type), parameter.type)
        write = writer(site, result, parameter.type)

        def copy_register(lanes: Lanes, caller: Frame, callee: Frame) -> None:
            value, shadow = read(_in_frame(lanes, callee))
            write(_in_frame(lanes, caller), value, shadow)

        return copy_register
    source, target = _place(inside, Symbol(parameter.name, "param")), _place(site, result)
    size = min(source.size, target.size)

    def copy_bytes(lanes: Lanes, caller: Frame, callee: Frame) -> None:
        _copy_local(lanes, source.address + callee.local, target.address + caller.local, size)

    return copy_bytes


def _place(site: Site, operand: Operand) -> Place:
    """Where a .param variable lies in its frame."""
    name = operand.name if isinstance(operand, Symbol) else ""
    for scope in site.scope.chain():
        if name in scope.places:
            return scope.places[name]
    raise stop("unsupported", f"the emulator cannot pass {operand} as a parameter", site)


def _copy_local(lanes: Lanes, source: int, target: int, size: int) -> None:
    """Copy bytes, and what is undefined of them, within each thread's local memory."""
    spaces = lanes.wave.spaces
    base: NDArray[np.int64] = lanes.threads * spaces.local_stride - windows.LOCAL_START
    columns = np.arange(size)
    taken = (base + source)[:, None] + columns
    put = (base + target)[:, None] + columns
    spaces.local.data[put] = spaces.local.data[taken]
    if spaces.local.unwritten is not None:
        spaces.local.unwritten[put] = spaces.local.unwritten[taken]
