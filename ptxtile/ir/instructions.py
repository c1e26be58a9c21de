"""Reads instructions: by the plan of an earlier one of the same shape, or by the grammar."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Optional

from ptxtile.errors import FormError, OperandError
from ptxtile.ir import syntax, table
from ptxtile.ir.constant import Fault
from ptxtile.ir.instruction import Guard, Instruction
from ptxtile.ir.operand import Operand, Register
from ptxtile.ir.plan import Bound, Plan, Planner, start_of
from ptxtile.ir.scan import Scanner
from ptxtile.ir.scope import Scope
from ptxtile.ir.words import Mismatch
from ptxtile.isa.form import Form, Shape
from ptxtile.isa.misfit import misfit

# No instruction of PTX comes near: the longest, a wgmma with 128 registers, has about 2,000 characters.
_LONGEST = 1 << 16
_MEMO_LENGTH = 4096
_MEMO_SIZE = 1 << 16


@dataclass(slots=True)
class Context:
    """What readings share: the scanner, the grammar's statement parser, and the plans made so far.

    `quick` lets labels, plain `.loc` lines, declarations that differ from an earlier one only in their name, and long
    lists of numbers be read without the grammar. `prefixes` are the qualifiers of declarations met so far, `registers`
    the type and vector length of those that declare registers, `headers` the functions met, by all but their names,
    `heads` what spellings and the shapes of their operands were bound to.
    """

    scanner: Scanner
    statement: Callable[[str], object]
    plans: dict[str, Plan] = field(default_factory=dict)
    prefixes: dict[str, tuple[syntax.Prefix, ...]] = field(default_factory=dict)
    registers: dict[str, tuple[str, int]] = field(default_factory=dict)
    headers: dict[str, syntax.HeaderNode] = field(default_factory=dict)
    heads: dict[str, dict[tuple[Shape, ...], Bound]] = field(default_factory=dict)
    quick: bool = True


def parse(context: Context, text: str, start: int) -> object:
    """The node of one statement, by the grammar; Faults are moved to where it starts."""
    try:
        return context.statement(text)
    except Fault as fault:
        raise Fault(fault.message, start + fault.position, fault.hint) from None


class Refused(Fault):
    """An instruction with something wrong, in words, operands or both; `form` is what it spells, if that is a form.

    `start` is the offset of its spelling, `more` are the other things wrong with it.
    """

    def __init__(self, faults: list[Fault], form: Optional[Form], start: int) -> None:
        first, *more = sorted(faults, key=lambda each: each.position)
        super().__init__(first.message, first.position, first.hint)
        self.__cause__ = first.__cause__
        self.more = more
        self.form = form
        self.start = start


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
            return _build(context, plan, parts[1::2], scope)
        except (Fault, Mismatch, FormError, OperandError):
            pass  # the grammar says what is wrong, and where
    return _new(context, statement, start, key, scope)


def _new(context: Context, text: str, start: int, key: str, scope: Scope) -> Instruction:
    """An instruction of a shape not met before, or one with something wrong in it."""
    node = parse(context, text + ";", start)
    if not isinstance(node, syntax.InstructionNode):
        raise Fault("an instruction belongs here", start)
    planner = Planner(text)
    try:
        plan = planner.plan(node)
    except Fault as fault:
        raise Fault(fault.message, start + fault.position, fault.hint) from None
    at = start + node.start
    _check_words(planner, plan, scope, node, start)
    leaves = [leaf.text for leaf in planner.leaves]
    try:
        if node.guard is not None:
            _guard(plan, node.guard.text, scope, start + node.guard.start)
        instruction = _build(context, plan, leaves, scope)
    except Fault as fault:
        raise Fault(fault.message, fault.position or at, fault.hint) from None
    except Mismatch:
        raise Fault("WARP_SZ is a number, where a name belongs", at) from None
    except OperandError as error:
        blamed = _blamed(plan, node, leaves, scope)
        place = at if blamed < 0 else start + _opening(text, blamed)
        raise Refused([Fault(str(error), place)], table.FORMS[node.spelling], at) from error
    if planner.exact and len(text) <= _MEMO_LENGTH and _covers(context, planner, text):
        if len(context.plans) >= _MEMO_SIZE:
            context.plans.clear()
        context.plans[key] = plan
    return instruction


def _check_words(
    planner: Planner, plan: Plan, scope: Scope, node: syntax.InstructionNode, start: int
) -> None:
    """Look the spelling and every word up, so that a Fault has the place of its word, and all are told."""
    faults: dict[str, Fault] = {}
    form: Optional[Form] = None
    for i, leaf in enumerate(planner.leaves):
        try:
            if i == plan.spelling:
                form = table.FORMS[leaf.text]
            else:
                scope.words[leaf.text]
        except FormError as error:
            faults[leaf.text] = Fault(str(error), start + leaf.start)
            error.__traceback__ = None  # it leads to this frame, which leads to the error
            faults[leaf.text].__cause__ = error
        except Fault as fault:
            faults.setdefault(leaf.text, Fault(fault.message, start + leaf.start, fault.hint))
    if faults:
        raise Refused(list(faults.values()), form, start + node.start)


def _blamed(plan: Plan, node: syntax.InstructionNode, leaves: list[str], scope: Scope) -> int:
    """The offset of the one operand that does not fit; -1 if there is not just one."""
    form = table.FORMS[node.spelling]
    operands = _operands(plan, leaves, scope, form)
    place = misfit(form, tuple([each.shape for each in operands]))
    if place is None:
        place = table.out_of_range(form, operands)
    return -1 if place is None else start_of(node.operands[place])


def _opening(text: str, place: int) -> int:
    """Back over the brackets and signs before a word."""
    while place and (text[place - 1] in "[{(!-" or text[place - 1].isspace()):
        place -= 1
    return place + len(text[place:]) - len(text[place:].lstrip())


def _covers(context: Context, planner: Planner, text: str) -> bool:
    """Whether leaves are exactly the words and numbers the scanner sees."""
    atoms = context.scanner.atoms.finditer(text)
    return [(each.start(), each[0]) for each in atoms] == [(leaf.start, leaf.text) for leaf in planner.leaves]


def _build(context: Context, plan: Plan, leaves: list[str], scope: Scope) -> Instruction:
    """The instruction of a plan; raises Fault, Mismatch, FormError, OperandError."""
    at, builds, words = plan.spelling, plan.builds, scope.words
    spelling, rest = leaves[at], leaves[at + 1 :]
    operands: tuple[Operand, ...]
    if builds is None:
        operands = tuple(map(words.__getitem__, rest))
    elif plan.lists:
        operands = _operands(plan, leaves, scope, table.FORMS[spelling])
    else:
        operands = tuple([build(leaves, words) for build in builds])
    shapes = tuple(map(scope.shapes.__getitem__, rest))
    known = plan.known.get(spelling)
    bound = None if known is None else known.get(shapes)
    if bound is None:
        bound = _bind(context, plan, spelling, shapes, operands)
    if bound.limited:
        table.check_literals(bound.form, bound.signature, operands)
    guard = _guard(plan, leaves[0], scope, 0) if plan.guarded else None
    return Instruction(bound.form, operands, guard, bound.signature)


def _operands(plan: Plan, leaves: list[str], scope: Scope, form: Form) -> tuple[Operand, ...]:
    """The operands of a plan, however they are written."""
    words = scope.words
    if plan.builds is None:
        return tuple(map(words.__getitem__, leaves[plan.spelling + 1 :]))
    operands = tuple([build(leaves, words) for build in plan.builds])
    if plan.lists and not table.takes_lists(form):
        operands = tuple(map(table.unwrapped, operands))
    return table.indexed(form, operands) if plan.subscripts else operands


def _bind(
    context: Context, plan: Plan, spelling: str, shapes: tuple[Shape, ...], operands: tuple[Operand, ...]
) -> Bound:
    """Operands with leaves of these shapes for the first time."""
    form = table.FORMS[spelling]
    signature = table.bind(form, operands)
    bound = Bound(form, signature, table.is_limited(signature))
    if len(plan.known) >= _MEMO_LENGTH:
        plan.known.clear()
    known = plan.known.setdefault(spelling, {})
    if len(known) >= _MEMO_LENGTH:
        known.clear()
    known[shapes] = bound
    if not plan.lists or (not plan.subscripts and table.takes_lists(form)):
        if len(context.heads) >= _MEMO_SIZE:
            context.heads.clear()
        context.heads.setdefault(spelling, {})[tuple([each.shape for each in operands])] = bound
    return bound


def _guard(plan: Plan, name: str, scope: Scope, start: int) -> Guard:
    register = scope.words[name]
    if not isinstance(register, Register) or register.type != "pred":
        raise Fault(f"a guard is a predicate register; {name} is none", start)
    return Guard(register, plan.negated)
