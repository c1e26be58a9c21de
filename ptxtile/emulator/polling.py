"""Which instructions a loop may wait with: those that look at what other threads do, and calls of functions that do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ptxtile.ir.instruction import Instruction
from ptxtile.ir.module import Block, Function, Module
from ptxtile.ir.operand import Arguments, Label, Symbol

POLLS = frozenset({"atom", "mbarrier", "nanosleep", "clusterlaunchcontrol", "red"})
STRONG = frozenset({".volatile", ".relaxed", ".acquire", ".mmio"})
UNCOUNTED = frozenset(
    {"ld", "setp", "bra", "mov", "and", "or", "not", "cvt", "cvta", "selp", "fence", "membar", "bar"}
)
"""What a loop is made of that goes on until memory changes: nothing here counts."""
OWN = frozenset({".param", ".const", ".local"})


def looks(instruction: Instruction) -> bool:
    """Whether an instruction by itself may show that another thread has done something."""
    opcode = instruction.form.spelling.partition(".")[0]
    return opcode in POLLS or (opcode == "ld" and not STRONG.isdisjoint(instruction.form.modifiers))


def spins(body: Sequence[Instruction]) -> bool:
    """Whether a loop of these instructions waits for what an ordinary load shows: a mistake that is to be found."""
    opcodes = [instruction.form.spelling.partition(".")[0] for instruction in body]
    return UNCOUNTED.issuperset(opcodes) and any(
        code == "ld" and OWN.isdisjoint(instruction.form.modifiers)
        for code, instruction in zip(opcodes, body)
    )


def calls(instruction: Instruction) -> str | None:
    """The function that a call names; "" where it names none."""
    if not instruction.form.spelling.startswith("call"):
        return None
    callee = next((operand for operand in instruction.operands if not isinstance(operand, Arguments)), None)
    return callee.name if isinstance(callee, (Symbol, Label)) else ""


def looking(module: Module) -> frozenset[str]:
    """The functions that look at what others do, or call one that does; "" stands for a function that is not named."""
    edges: dict[str, set[str]] = {}
    found: set[str] = set()
    for function in module.functions:
        edges[function.name] = set()
        for instruction in _instructions(function):
            if looks(instruction):
                found.add(function.name)
            callee = calls(instruction)
            if callee is not None:
                edges[function.name].add(callee)
    if found:
        found.add("")
    size = -1
    while size != len(found):
        size = len(found)
        found.update(name for name, callees in edges.items() if not found.isdisjoint(callees))
    return frozenset(found)


def _instructions(function: Function) -> Iterator[Instruction]:
    stack = [iter(function.body or ())]
    while stack:
        for statement in stack[-1]:
            if isinstance(statement, Instruction):
                yield statement
            elif isinstance(statement, Block):
                stack.append(iter(statement.body))
                break
        else:
            stack.pop()
