"""SIMD video instructions (PTX ISA 9.7.18.2): two halves or four bytes at once, chosen freely from two registers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.operands import reader, writer
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.registers import undefined
from ptxtile.emulator.step import Run, action
from ptxtile.emulator.widths import Bits
from ptxtile.ir.operand import Operand, Selected

Ints = NDArray[np.int64]
Work = Callable[[Ints, Ints], Ints]


def _average(a: Ints, b: Ints) -> Ints:
    """Halves are rounded up where the sum is not negative, else down."""
    total = a + b
    found: Ints = np.where(total >= 0, total + 1, total) >> 1
    return found


WORK: dict[str, Work] = {
    "vadd": np.add,
    "vsub": np.subtract,
    "vavrg": _average,
    "vabsdiff": lambda a, b: np.abs(a - b),
    "vmin": np.minimum,
    "vmax": np.maximum,
}
COMPARE: dict[str, Callable[[Ints, Ints], NDArray[np.bool_]]] = {
    ".eq": np.equal,
    ".ne": np.not_equal,
    ".lt": np.less,
    ".le": np.less_equal,
    ".gt": np.greater,
    ".ge": np.greater_equal,
}


def _whole(operand: Operand, default: str) -> tuple[Operand, tuple[int, ...]]:
    """An operand's register, and which parts of it are meant, lowest first."""
    if isinstance(operand, Selected):
        return operand.register, tuple(int(digit) for digit in reversed(operand.part[1:]))
    return operand, tuple(int(digit) for digit in reversed(default))


def _lanes_of(words: list[Bits], chosen: tuple[int, ...], bits: int, signed: bool) -> Ints:
    """(threads, lanes): the chosen parts of the words laid end to end, lowest first."""
    count = 32 // bits
    parts = [
        (words[which // count].astype(np.int64) >> which % count * bits) & ((1 << bits) - 1)
        for which in chosen
    ]
    value: Ints = np.stack(parts, axis=1)
    return np.where(value >> (bits - 1) & 1, value - (1 << bits), value) if signed else value


def _work(opcode: str, modifiers: tuple[str, ...], bits: int) -> Work:
    name = opcode[:-1]
    if name == "vset":
        compare = COMPARE[modifiers[2]]
        return lambda a, b: compare(a, b).astype(np.int64)
    work = WORK[name]
    if ".sat" not in modifiers:
        return work
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if modifiers[0] == ".s32" else (0, (1 << bits) - 1)
    return lambda a, b: np.clip(work(a, b), low, high)


@action(*(f"{name}{count}" for name in (*WORK, "vset") for count in (2, 4)))
def simd(program: Program, site: Site) -> Run:
    """d = the results merged into c, or with .add their sum and c."""
    count = int(site.opcode[-1])
    bits, modifiers = 32 // count, site.instruction.form.modifiers
    digits = "3210"[4 - count :]
    d, a, b, c = site.instruction.operands
    target, mask = _whole(d, digits)
    a_register, a_parts = _whole(a, digits)
    b_register, b_parts = _whole(b, {2: "32", 4: "7654"}[count])
    reads = [reader(program, site, operand, ".b32") for operand in (a_register, b_register, c)]
    write = writer(site, target, ".b32")
    work, (a_type, b_type) = (
        _work(site.opcode, modifiers, bits),
        [m for m in modifiers if m[1:] in ("u32", "s32")][-2:],
    )
    adds, chosen = ".add" in modifiers, np.isin(np.arange(count), mask)

    def run(lanes: Lanes) -> None:
        found = [read(lanes) for read in reads]
        words = [found[0][0], found[1][0]]
        left = _lanes_of(words, a_parts, bits, a_type == ".s32")
        right = _lanes_of(words, b_parts, bits, b_type == ".s32")
        result = work(left, right)
        before = found[2][0].astype(np.int64)
        if adds:
            value = before + np.where(chosen, result, 0).sum(axis=1)
        else:
            kept = _lanes_of([found[2][0]], tuple(range(count)), bits, False)
            merged = np.where(chosen, result & ((1 << bits) - 1), kept)
            value = (merged << (np.arange(count) * bits)).sum(axis=1)
        shadow: Bits | None = None
        for _, mark in found:
            if mark is not None:
                lost = np.where(mark != 0, undefined(np.dtype(np.uint32)), 0).astype(np.uint32)
                shadow = lost if shadow is None else shadow | lost
        write(lanes, value.astype(np.uint32), shadow)

    return run
