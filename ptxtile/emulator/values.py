"""Instructions that only compute: operands to arrays, the chapter's function, arrays to registers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Union

import numpy as np

from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.operands import Read, Write, reader, spread, writer
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.registers import Shadow
from ptxtile.emulator.report import stop
from ptxtile.emulator.semantics import Call, Value, WithCarry
from ptxtile.emulator.shadows import nothing, rule_of
from ptxtile.emulator.step import Run
from ptxtile.emulator.widths import Bits, bits_of, holder
from ptxtile.ir.operand import Operand as Written, Pair, Vector
from ptxtile.isa.form import Operand

Source = Union[Read, tuple[Read, ...]]
CARRIES = frozenset({"addc", "subc", "madc"})


@dataclass(frozen=True, slots=True)
class Leaf:
    """A scalar destination: how to write it, and its type."""

    write: Write
    type: str


def declared(site: Site) -> tuple[Operand, ...]:
    """The operands that the instruction's signature declares, one for each written one."""
    signature = site.instruction.signature
    if signature is None:
        from ptxtile.isa import bind

        signature = bind(site.instruction.form, tuple(operand.shape for operand in site.instruction.operands))
    return signature.operands


def type_of(site: Site, operand: Operand) -> str:
    """The PTX type of a declared operand; an operand without one cannot be computed with."""
    if operand.type is None:
        raise stop("unsupported", f"the emulator does not know the type of operand {operand.name}", site)
    return operand.type


def compile_value(program: Program, site: Site, function: Value) -> Run:
    """Make a pure instruction ready."""
    leaves: list[Leaf] = []
    sources: list[Source] = []
    types: list[str | None] = []
    pairs = list(zip(declared(site), site.instruction.operands))
    for operand, written in pairs:
        if operand.role in ("out", "inout"):
            found = list(_leaves(site, operand, written))
            leaves.extend(found)
            types.extend(leaf.type for leaf in found)
    for operand, written in pairs:
        if operand.role in ("in", "inout"):
            sources.append(_source(program, site, operand, written))
            types.append(operand.type)
    return _runner(site, function, leaves, sources, tuple(types))


def _leaves(site: Site, operand: Operand, written: Written) -> Iterator[Leaf]:
    if isinstance(written, Pair):
        halves = operand.elements or (operand, operand)
        for half, part in zip(halves, (written.first, written.second)):
            yield Leaf(writer(site, part, type_of(site, half)), type_of(site, half))
    elif isinstance(written, Vector):
        for element in written.elements:
            yield Leaf(writer(site, element, type_of(site, operand)), type_of(site, operand))
    else:
        yield Leaf(writer(site, written, type_of(site, operand)), type_of(site, operand))


def _source(program: Program, site: Site, operand: Operand, written: Written) -> Source:
    name = type_of(site, operand)
    if isinstance(written, Vector):
        return tuple(reader(program, site, element, name) for element in written.elements)
    return reader(program, site, written, name)


def _runner(
    site: Site, function: Value, leaves: list[Leaf], sources: list[Source], types: tuple[str | None, ...]
) -> Run:
    form = site.instruction.form
    signature = site.instruction.signature
    slots = signature.slots if signature is not None else {}
    carries = site.opcode in CARRIES or ".cc" in form.modifiers
    combine = nothing if _cancels(site) else rule_of(site.opcode)
    kinds = [holder(bits_of(leaf.type)) for leaf in leaves]

    def run(lanes: Lanes) -> None:
        values, shadows = _read_all(sources, lanes)
        carry = lanes.registers.carry[lanes.where] if carries else None
        call = Call(form.spelling, form.opcode, form.modifiers, slots, types, lanes.count, carry)
        outcome = function(call, *values)
        if isinstance(outcome, WithCarry):
            lanes.registers.carry[lanes.where] = outcome.carry
            outcome = outcome.value
        results = list(_flatten(outcome))
        undefined = None
        if any(shadow is not None for shadow in shadows):
            undefined = combine(call, values, shadows)
        if undefined is not None and not undefined.any():
            undefined = None
        for leaf, kind, result in zip(leaves, kinds, results):
            if undefined is None:
                leaf.write(lanes, result, None)
            else:
                leaf.write(lanes, result, undefined if undefined.dtype == kind else spread(undefined, kind))

    return run


def _cancels(site: Site) -> bool:
    """Whether it makes zero of a register whatever that holds."""
    operands = site.instruction.operands
    whole = site.instruction.form.modifiers[-1][1:2] in ("b", "u", "s")
    return site.opcode in ("xor", "sub") and whole and len(operands) == 3 and operands[1] == operands[2]


def _read_all(sources: list[Source], lanes: Lanes) -> tuple[list[Bits | tuple[Bits, ...]], list[Shadow]]:
    values: list[Bits | tuple[Bits, ...]] = []
    shadows: list[Shadow] = []
    for source in sources:
        if isinstance(source, tuple):
            found = [read(lanes) for read in source]
            values.append(tuple(value for value, _ in found))
            shadows.extend(shadow for _, shadow in found)
        else:
            value, shadow = source(lanes)
            values.append(value)
            shadows.append(shadow)
    return values, shadows


def _flatten(outcome: object) -> Iterator[Bits]:
    if isinstance(outcome, tuple):
        for part in outcome:
            yield from _flatten(part)
    else:
        assert isinstance(outcome, np.ndarray)
        yield outcome
