"""Instructions that only compute: operands to arrays, the chapter's function, arrays to registers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Union

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.operands import Read, Write, reader, spread, writer
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.registers import Shadow
from ptxtile.emulator.report import stop
from ptxtile.emulator.semantics import Call, Value, WithCarry
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
    combine = _shadow_rule(site.opcode)
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
        undefined = combine(values, shadows) if any(shadow is not None for shadow in shadows) else None
        if undefined is not None and not undefined.any():
            undefined = None
        for leaf, kind, result in zip(leaves, kinds, results):
            if undefined is None:
                leaf.write(lanes, result, None)
            else:
                leaf.write(lanes, result, undefined if undefined.dtype == kind else spread(undefined, kind))

    return run


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


Combine = Callable[[list[Union[Bits, tuple[Bits, ...]]], list[Shadow]], Bits]


def _any_thread(values: list[Bits | tuple[Bits, ...]], shadows: list[Shadow]) -> Bits:
    """A result depends on every bit of its sources: in threads with an undefined one, no bit is defined."""
    marked: NDArray[np.bool_] | None = None
    for shadow in shadows:
        if shadow is not None:
            own = shadow != 0 if shadow.ndim == 1 else (shadow != 0).any(axis=1)
            marked = own if marked is None else marked | own
    assert marked is not None
    return marked


def _and(values: list[Bits | tuple[Bits, ...]], shadows: list[Shadow]) -> Bits:
    """A bit of `a & b` is defined where both are, or where either is a defined 0."""
    (a, b), (sa, sb) = _two(values), _two_shadows(values, shadows)
    found: Bits = (sa | sb) & (a | sa) & (b | sb)
    return found


def _or(values: list[Bits | tuple[Bits, ...]], shadows: list[Shadow]) -> Bits:
    """A bit of `a | b` is defined where both are, or where either is a defined 1."""
    (a, b), (sa, sb) = _two(values), _two_shadows(values, shadows)
    found: Bits = (sa | sb) & (~a | sa) & (~b | sb)
    return found


def _xor(values: list[Bits | tuple[Bits, ...]], shadows: list[Shadow]) -> Bits:
    """A bit is defined where all of its sources' are."""
    present = [shadow for shadow in shadows if shadow is not None]
    found = present[0]
    for shadow in present[1:]:
        found = found | shadow
    return found


def _select(values: list[Bits | tuple[Bits, ...]], shadows: list[Shadow]) -> Bits:
    """Of selp, the chosen source's bits; none where the predicate is undefined."""
    a, b, c = values[0], values[1], values[2]
    assert not isinstance(a, tuple) and not isinstance(b, tuple) and not isinstance(c, tuple)
    sa, sb = _two_shadows(values, shadows)
    found = np.where(c, sa, sb)
    if shadows[2] is not None:
        found = np.where(shadows[2], np.array(-1).astype(found.dtype), found)
    return found


def _two(values: list[Bits | tuple[Bits, ...]]) -> tuple[Bits, Bits]:
    a, b = values[0], values[1]
    assert not isinstance(a, tuple) and not isinstance(b, tuple)
    return a, b


def _two_shadows(values: list[Bits | tuple[Bits, ...]], shadows: list[Shadow]) -> tuple[Bits, Bits]:
    a, b = _two(values)
    first = np.zeros_like(a) if shadows[0] is None else shadows[0]
    second = np.zeros_like(b) if shadows[1] is None else shadows[1]
    return first, second


_RULES: dict[str, Combine] = {"and": _and, "or": _or, "xor": _xor, "not": _xor, "selp": _select}


def _shadow_rule(opcode: str) -> Combine:
    return _RULES.get(opcode, _any_thread)
