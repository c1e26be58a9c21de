"""Reads instructions: by the plan of an earlier one of the same shape, or by the grammar."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ptxtile.errors import FormError, OperandError
from ptxtile.ir import syntax, table
from ptxtile.ir.constant import Fault
from ptxtile.ir.instruction import Guard, Instruction
from ptxtile.ir.operand import Arguments, Operand, Register
from ptxtile.ir.plan import Plan, Planner
from ptxtile.ir.scan import Scanner
from ptxtile.ir.scope import Mismatch, Scope

# No instruction of PTX comes near: the longest, a wgmma with 128 registers, has about 2,000 characters.
_LONGEST = 1 << 16
_MEMO_LENGTH = 4096
_MEMO_SIZE = 1 << 16


@dataclass(slots=True)
class Context:
    """What readings share: the scanner, the grammar's statement parser, and the plans made so far.

    `quick` lets labels, plain `.loc` lines, declarations that differ from an earlier one only in their name, and long
    lists of numbers be read without the grammar. `prefixes` are the qualifiers of declarations met so far.
    """

    scanner: Scanner
    statement: Callable[[str], object]
    plans: dict[str, Plan] = field(default_factory=dict)
    prefixes: dict[str, tuple[syntax.Prefix, ...]] = field(default_factory=dict)
    quick: bool = True


def parse(context: Context, text: str, start: int) -> object:
    """The node of one statement, by the grammar; Faults are moved to where it starts."""
    try:
        return context.statement(text)
    except Fault as fault:
        raise Fault(fault.message, start + fault.position, fault.hint) from None


def read(context: Context, text: str, start: int, end: int, scope: Scope) -> Instruction:
    """The instruction in `text` from start to end, without its semicolon; Faults are at offsets of `text`."""
    if end - start > _LONGEST:
        raise Fault(f"a statement of {end - start:,} characters is longer than any instruction", start)
    statement = text[start:end]
    parts = context.scanner.atoms.split(statement)
    key = "\0".join(parts[::2])
    plan = context.plans.get(key)
    if plan is not None:
        try:
            return _build(plan, parts[1::2], scope)
        except (Fault, Mismatch, FormError, OperandError):
            pass  # the grammar says what is wrong, and where
    return _new(context, statement, start, key, scope)


def _new(context: Context, text: str, start: int, key: str, scope: Scope) -> Instruction:
    """An instruction of a shape not met before, or one with something wrong in it."""
    node = parse(context, text + ";", start)
    if not isinstance(node, syntax.InstructionNode):
        raise Fault("an instruction belongs here", start)
    planner = Planner(text)
    at = start + node.start
    try:
        plan = planner.plan(node)
        leaves = [leaf.text for leaf in planner.leaves]
        _check_leaves(planner, plan, scope, start)
        if node.guard is not None:
            _guard(plan, node.guard.text, scope, start + node.guard.start)
        instruction = _build(plan, leaves, scope)
    except Fault as fault:
        raise Fault(fault.message, fault.position or at, fault.hint) from None
    except Mismatch:
        raise Fault("WARP_SZ is a number, where a name belongs", at) from None
    except FormError as error:
        raise Fault(str(error), at) from error
    except OperandError as error:
        raise Fault(str(error), at) from error
    if planner.exact and len(text) <= _MEMO_LENGTH and _covers(context, planner, text):
        if len(context.plans) >= _MEMO_SIZE:
            context.plans.clear()
        context.plans[key] = plan
    return instruction


def _check_leaves(planner: Planner, plan: Plan, scope: Scope, start: int) -> None:
    """Look every word up, so that a Fault has the place of its word."""
    for i, leaf in enumerate(planner.leaves):
        if i != plan.spelling:
            try:
                scope.words[leaf.text]
            except Fault as fault:
                raise Fault(fault.message, start + leaf.start, fault.hint) from None


def _covers(context: Context, planner: Planner, text: str) -> bool:
    """Whether leaves are exactly the words and numbers the scanner sees."""
    atoms = context.scanner.atoms.finditer(text)
    return [(each.start(), each[0]) for each in atoms] == [(leaf.start, leaf.text) for leaf in planner.leaves]


def _build(plan: Plan, leaves: list[str], scope: Scope) -> Instruction:
    """The instruction of a plan; raises Fault, Mismatch, FormError, OperandError."""
    words, at = scope.words, plan.spelling
    if plan.builds is None:
        operands: tuple[Operand, ...] = tuple([words[leaf] for leaf in leaves[at + 1 :]])
    else:
        operands = tuple([build(leaves, words) for build in plan.builds])
    form = table.FORMS[leaves[at]]
    for operand in operands:
        if type(operand) is Arguments and len(operand.elements) == 1 and not table.takes_lists(form):
            operands = tuple([table.unwrapped(each) for each in operands])
            break
    signature = table.bind(form, operands)
    guard = _guard(plan, leaves[0], scope, 0) if plan.guarded else None
    return Instruction(form, operands, guard, signature)


def _guard(plan: Plan, name: str, scope: Scope, start: int) -> Guard:
    register = scope.words[name]
    if not isinstance(register, Register) or register.type != "pred":
        raise Fault(f"a guard is a predicate register; {name} is none", start)
    return Guard(register, plan.negated)
