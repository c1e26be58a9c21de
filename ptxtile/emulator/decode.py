"""Programs decoded to steps; what the emulator lacks is found here, before anything runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ptxtile.emulator import actions, semantics
from ptxtile.emulator.polling import calls
from ptxtile.emulator.program import Code, Program, Site
from ptxtile.emulator.report import stop
from ptxtile.emulator.special import known
from ptxtile.emulator.step import ACTIONS, CONTROLS, Control, Run, Step
from ptxtile.emulator.support import supports
from ptxtile.emulator.values import compile_value
from ptxtile.ir.module import GenericSymbol, MaskedSymbol
from ptxtile.ir.operand import Address, Arguments, Label, Operand as Written, Pair, Special, Symbol, Vector

RECURSION_FRAMES = 64
"""Frames of local memory that a thread gets where functions call themselves."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """The functions that an entry can reach.

    local_bytes     local memory of a thread, for the deepest chain of calls
    tensor_memory   whether any of them uses tensor memory
    """

    codes: dict[str, Code]
    steps: dict[str, list[Step]]
    local_bytes: int
    tensor_memory: bool = False


def decode(program: Program, entry: Code) -> Decoded:
    """Decode an entry and all that it may call. An instruction that the emulator lacks is an EmulatorError."""
    actions.load()
    codes: dict[str, Code] = {}
    steps: dict[str, list[Step]] = {}
    waiting = [entry.function.name]
    while waiting:
        name = waiting.pop()
        if name in codes:
            continue
        code = codes[name] = program.code(name)
        steps[name] = [_step(program, code, site) for site in code.sites]
        steps[name].append(_last(program, code))
        waiting.extend(callees(program, code))
        if any(calls(site.instruction) == "" for site in code.sites):
            waiting.extend(name for name in _addressed(program) if name in program.codes)
    tensor_memory = any(site.opcode == "tcgen05" for code in codes.values() for site in code.sites)
    return Decoded(codes, steps, _local_bytes(program, codes, entry), tensor_memory)


def _addressed(program: Program) -> Iterator[str]:
    """The names that initialisers of variables mention: functions that a call may find there."""
    stack = [variable.initial for variable in program.variables]
    while stack:
        value = stack.pop()
        if isinstance(value, tuple):
            stack.extend(value)
        elif isinstance(value, (GenericSymbol, MaskedSymbol)):
            stack.append(value.symbol)
        elif isinstance(value, Symbol):
            yield value.name


def callees(program: Program, code: Code) -> list[str]:
    """Functions with a body that this one calls, or whose address it takes."""
    found: list[str] = []
    for site in code.sites:
        for operand in site.instruction.operands:
            found.extend(name for name in _symbols(operand) if name in program.codes)
        if site.opcode == "call":
            for operand in site.instruction.operands:
                if isinstance(operand, Label):
                    for scope in site.scope.chain():
                        if operand.name in scope.lists:
                            found.extend(scope.lists[operand.name].labels)
    return [name for name in dict.fromkeys(found) if name in program.codes]


def _symbols(operand: Written) -> list[str]:
    if isinstance(operand, Symbol):
        return [operand.name]
    if isinstance(operand, Address):
        return _symbols(operand.base)
    return []


def _local_bytes(program: Program, codes: dict[str, Code], entry: Code) -> int:
    largest = max(code.frame for code in codes.values())
    total = sum(-(-code.frame // 16) * 16 for code in codes.values())
    if _recursive(program, codes):
        return max(total, (largest + 16) * RECURSION_FRAMES)
    return total if len(codes) > 1 else entry.frame


def _recursive(program: Program, codes: dict[str, Code]) -> bool:
    edges = {name: callees(program, code) for name, code in codes.items()}
    changed = True
    while (
        changed
    ):  # take away functions that call nobody left; what stays calls itself, or calls one that does
        gone = [name for name, targets in edges.items() if not any(target in edges for target in targets)]
        for name in gone:
            del edges[name]
        changed = bool(gone)
    return bool(edges)


def _step(program: Program, code: Code, site: Site) -> Step:
    guard = None
    if site.instruction.guard is not None:
        guard = (site.register(site.instruction.guard.register), site.instruction.guard.negated)
    _check_specials(site)
    run, control = _behaviour(program, site)
    flow = code.flow
    return Step(
        site,
        run,
        control,
        guard,
        flow.joins[site.number],
        flow.rank[site.number],
        code.polls[site.number],
        tuple(code.assumes.get(site.number, ())),
    )


def _behaviour(program: Program, site: Site) -> tuple[Run | None, Control | None]:
    opcode, spelling = site.opcode, site.instruction.form.spelling
    if not supports(spelling):
        raise stop("unsupported", f"the emulator cannot run {spelling} yet", site)
    if opcode in CONTROLS:
        return None, CONTROLS[opcode](program, site)
    if opcode in ACTIONS:
        return ACTIONS[opcode](program, site), None
    function = semantics.find(opcode)
    assert function is not None, spelling
    return compile_value(program, site, function), None


def _last(program: Program, code: Code) -> Step:
    """The step after the last instruction: a function that ends there returns."""
    from ptxtile.emulator.actions.control import returning

    number = len(code.sites)
    if code.sites:
        before = code.sites[-1]
        site = Site(number, before.instruction, before.scope, before.line)
    else:
        raise stop_empty(code)
    return Step(
        site, None, returning(program, site), None, code.flow.joins[number], code.flow.rank[number], 0
    )


def stop_empty(code: Code) -> Exception:
    """The error for a function without an instruction."""
    from ptxtile.errors import EmulatorError

    return EmulatorError(f"{code.function.name} has no instructions", kind="launch")


def _check_specials(site: Site) -> None:
    for operand in site.instruction.operands:
        for part in _parts(operand):
            if isinstance(part, Special) and not known(part.name):
                raise stop("unsupported", f"the emulator has no special register {part.name}", site)


def _parts(operand: Written) -> list[Written]:
    if isinstance(operand, (Vector, Arguments)):
        return list(operand.elements)
    if isinstance(operand, Pair):
        return [operand.first, operand.second]
    return [operand]
