"""Scalar video instructions (PTX ISA 9.7.18.1): parts of registers in, a whole word or a part of one out."""

from __future__ import annotations

import numpy as np

from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.operands import Read, reader, writer
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.registers import undefined
from ptxtile.emulator.semantics.video import Part, Scalar
from ptxtile.emulator.step import Run, action
from ptxtile.emulator.widths import Bits
from ptxtile.ir.operand import Minus, Operand, Selected


def _selected(operand: Operand) -> tuple[Operand, Part]:
    if isinstance(operand, Minus):
        operand = operand.operand
    if isinstance(operand, Selected):
        return operand.register, Part.named(operand.part)
    return operand, Part()


@action("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vmad", "vset")
def scalar(program: Program, site: Site) -> Run:
    """With a third operand the result is combined with it, or merged into it."""
    form = site.instruction.form
    d, a, b, *rest = site.instruction.operands
    target, part = _selected(d)
    (a_word, a_part), (b_word, b_part) = _selected(a), _selected(b)
    third = [_selected(operand)[0] for operand in rest]
    reads: list[Read] = [reader(program, site, operand, ".b32") for operand in (a_word, b_word, *third)]
    write = writer(site, target, ".b32")
    minus = [isinstance(operand, Minus) for operand in (a, b, *rest)]
    work = Scalar.of(form.opcode, form.modifiers, part, (minus[0] != minus[1], any(minus[2:])))
    _, a_signed, b_signed = work.signed

    def run(lanes: Lanes) -> None:
        found = [read(lanes) for read in reads]
        left = a_part.take(found[0][0], a_signed)
        right = b_part.take(found[1][0], b_signed)
        c = np.ascontiguousarray(found[2][0]) if rest else np.zeros(lanes.count, np.uint32)
        shadow: Bits | None = None
        for _, mark in found:
            if mark is not None:
                lost = np.where(mark != 0, undefined(np.dtype(np.uint32)), 0).astype(np.uint32)
                shadow = lost if shadow is None else shadow | lost
        write(lanes, work.compute(left, right, c), shadow)

    return run
