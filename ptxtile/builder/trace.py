"""The trace of one function: instructions as they are written, registers, blocks, and what is known at each point.

Values belong to the block that made them: using one after its block was closed is a TraceError, since the path that
computed it may not have run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ptxtile import location
from ptxtile.builder import convert, seen
from ptxtile.builder.shared import SharedMemory
from ptxtile.dtypes import DType, Scalar
from ptxtile.errors import TraceError
from ptxtile.ir.instruction import Guard, Instruction
from ptxtile.ir.module import (
    Directive,
    Function,
    LabelMark,
    Parameter,
    RegisterDeclaration,
    Statement,
    Variable,
)
from ptxtile.ir.operand import Operand, Register, Special
from ptxtile.isa import bind, find
from ptxtile.isa.form import Form, Shape, Signature
from ptxtile.location import Mark

PREFIX = {
    "pred": "%p",
    "b16": "%rs",
    "b32": "%r",
    "b64": "%rd",
    "f32": "%f",
    "f64": "%fd",
    "b128": "%rq",
    "b8": "%rb",
}

# An Instruction is a tuple; its own constructor, in Python, would cost as much as all the rest of a trace's step.
_new = tuple.__new__


@dataclass(slots=True, eq=False)
class Block:
    """A structured stretch of the trace. `facts` are conditions known to hold inside (`builder.ranges`); `labels` of a
    loop are where `continue_` and `break_` go."""

    kind: str
    parent: Block | None
    mark: Mark | None = None
    open: bool = True
    facts: list[object] = field(default_factory=list)
    labels: tuple[str, str] | None = None
    computed: dict[object, Register] = field(default_factory=dict)

    def within(self, kind: str) -> Block | None:
        """This block or the nearest around it of that kind."""
        block: Block | None = self
        while block is not None and block.kind != kind:
            block = block.parent
        return block


@dataclass(frozen=True, slots=True)
class Launch:
    """What is known of a launch while tracing. None or a name where it is known at run time only.

    grid, block, cluster   extents (x, y, z); cluster None if there is none
    """

    grid: tuple[int | None, int | None, int | None] = (None, None, None)
    block: tuple[int | None, int | None, int | None] = (None, None, None)
    cluster: tuple[int, int, int] | None = None

    @property
    def threads(self) -> int | None:
        """Threads of a block, if known."""
        x, y, z = self.block
        return None if x is None or y is None or z is None else x * y * z


@dataclass(slots=True)
class _Plan:
    """How the form was last called on run-time values alone: so it need not be bound again."""

    count: int
    types: tuple[type, ...]
    take: Callable[[tuple[type, ...], tuple[object, ...]], tuple[Operand, ...] | None]
    signature: Signature
    writes: bool


@dataclass(frozen=True, slots=True)
class Traced:
    """A finished entry, what the module declares for it, and the dynamic shared memory a launch must add (bytes)."""

    function: Function
    variables: tuple[Variable | Function, ...]
    dynamic_shared: int


class Trace:
    """Receives what user code writes between the start and the end of one entry or function."""

    def __init__(self, name: str, launch: Launch | None = None) -> None:
        self.name = name
        self.launch = launch or Launch()
        self.records: list[Statement] = []
        self.variables: list[Variable] = []
        self.shared = SharedMemory(name)
        self.block = Block("body", None)
        self.body = self.block
        self.counts: dict[str, int] = {}
        self.labels = 0
        self.placed: set[str] = set()
        self.prologue: list[Statement] = []
        self.special: dict[str, Scalar] = {}
        self.sizes: dict[str, Scalar] = {}
        self.source: Mark | None = None
        """The line of the @pt.function that is being inlined; its instructions are marked with it."""
        self.ended_if: object = None
        """The `if_` block that has just ended (`builder.control`), for an `else_` directly after it."""
        self.waiting: dict[int, tuple[object, str, Mark]] = {}
        """Blocks made and not entered yet, by id: the object (so that its id stays its own), its kind, its line."""
        self.broken: Block | None = None
        """The first block that an exception left."""
        self.assumptions: list[object] = []
        """The conditions that `pt.assume` took for granted."""
        self.globals: list[Variable | Function] = []
        """What the module must declare before this entry: texts, functions of the driver's."""
        self.directives: list[Directive] = []
        """What `pt.directive` said to the assembler about this entry."""
        self._plans: dict[Form, _Plan] = {}

    # --- registers and values -------------------------------------------------------------------------------------
    def register(self, kind: str) -> Register:
        """A new register of a register type such as "b32"."""
        number = self.counts.get(kind, 0)
        self.counts[kind] = number + 1
        return Register(f"{PREFIX[kind]}{number}", kind)

    def value(
        self, dtype: DType, operand: Operand | None = None, *, extent: object = None, mutable: bool = False
    ) -> Scalar:
        """A run-time value of `dtype` that belongs to the current block; in a new register unless one is given."""
        made: Scalar = object.__new__(dtype)  # type: ignore[arg-type]
        made.value = None
        made.operand = self.register(dtype.register) if operand is None else operand
        made.block = self.block
        made.extent = extent
        made.mutable = mutable
        return made

    # --- instructions ---------------------------------------------------------------------------------------------
    def emit(self, form: Form, operands: tuple[object, ...], pred: object) -> object:
        """A raw instruction as the user wrote it: operands in PTX order, the destination perhaps left out.

        Returns the destination. OperandError if the operands fit no signature, or two.
        """
        plan = self._plans.get(form)
        if plan is not None and pred is None and len(operands) == plan.count:
            try:
                words = plan.take(plan.types, operands)
                # A destination must be a variable: otherwise the long way, which says so.
                if words is not None and plan.writes and not operands[0].mutable:  # type: ignore[attr-defined]
                    words = None
            except AttributeError:  # a constant
                words = None
            if words is not None:
                # `location.mark(3)`, without the call where the caller's caller is the user's.
                frame = sys._getframe(2)
                place = location.known.get(id(frame.f_code))
                users = place is not None and not place[1]
                noted = (frame.f_code, frame.f_lasti) if users else location.mark(3)
                self.records.append(_new(Instruction, (form, words, None, plan.signature, noted)))
                return operands[0] if plan.writes else None
        return convert.emit(self, form, operands, pred)

    def remember(self, form: Form, types: tuple[type, ...], signature: Signature) -> None:
        """Let the next instruction of `form` on run-time values of these dtypes skip the conversion."""
        outs = sum(operand.role != "in" for operand in signature.operands)
        if outs <= 1:
            self._plans[form] = _Plan(len(types), types, seen.taker(len(types)), signature, outs == 1)

    def append(
        self,
        form: Form,
        signature: Signature,
        operands: Sequence[Operand],
        guard: Guard | None = None,
        mark: Mark | None = None,
    ) -> None:
        """Append a bound instruction. The location is the nearest user frame unless `mark` gives one."""
        noted = mark or self.source or location.mark(2)
        self.records.append(_new(Instruction, (form, tuple(operands), guard, signature, noted)))

    def append_rows(
        self,
        form: Form,
        signature: Signature,
        rows: Sequence[tuple[Operand, ...]],
        guards: Sequence[Guard | None],
        mark: Mark,
    ) -> None:
        """Append one bound instruction a row: what `append` does, thousands of times."""
        self.records += [
            _new(Instruction, (form, row, guard, signature, mark)) for row, guard in zip(rows, guards)
        ]

    def repeated(self, form: Form, shapes: tuple[Shape, ...]) -> Callable[[tuple[Operand, ...]], None]:
        """What appends one instruction of `form` on operands of these shapes, at the user's line of now: for sequences
        that are written again and again."""
        signature, mark = bind(form, shapes), self.source or location.mark(2)
        records = self.records

        def append(operands: tuple[Operand, ...]) -> None:
            records.append(_new(Instruction, (form, operands, None, signature, mark)))

        return append

    def instruction(self, spelling: str, *operands: Operand, guard: Guard | None = None) -> None:
        """Append an instruction by its spelling and IR operands: how the documented sequences are written."""
        form = find(spelling)
        signature = bind(form, tuple(operand.shape for operand in operands))
        self.append(form, signature, operands, guard, self.source or location.mark(2))

    def statement(self, statement: Statement) -> None:
        """Append a label, directive or declaration."""
        self.records.append(statement)

    def operate(self, name: str, operands: tuple[object, ...]) -> Scalar:
        """The documented sequence of a Python operator (docs/operators.md)."""
        from ptxtile.builder import operators

        return operators.operate(self, name, operands)

    def assign(self, target: Scalar, value: object) -> None:
        """Write `value` into a `pt.reg` variable in place."""
        from ptxtile.builder import operators

        operators.assign(self, target, value)

    def update(self, name: str, target: Scalar, value: object) -> None:
        """`target op= value` on a `pt.reg` variable, in place."""
        from ptxtile.builder import operators

        operators.update(self, name, target, value)

    # --- labels and blocks ----------------------------------------------------------------------------------------
    def label(self, purpose: str) -> str:
        """A new label name, `$purpose_3`; place it with `place`."""
        self.labels += 1
        return f"${purpose}_{self.labels}"

    def place(self, name: str) -> None:
        """Put a label here."""
        self.placed.add(name)
        self.records.append(LabelMark(name))

    def enter(self, kind: str, facts: Sequence[object] = ()) -> Block:
        """Open a block inside the current one."""
        self.block = Block(kind, self.block, location.mark(2), True, list(facts))
        return self.block

    def leave(self, block: Block) -> None:
        """Close `block`, which must be the innermost."""
        if self.block is not block or block.parent is None:
            raise TraceError(f"a {block.kind} block was closed while another was open inside it")
        block.open = False
        self.block = block.parent

    def computed(self, key: object) -> Register | None:
        """A register that an open block already holds for `key`."""
        block: Block | None = self.block
        while block is not None:
            if key in block.computed:
                return block.computed[key]
            block = block.parent
        return None

    def remember_value(self, key: object, register: Register) -> None:
        """Let `computed` find `register` for `key` until the current block ends."""
        self.block.computed[key] = register

    def facts(self) -> list[object]:
        """Every Comparison known here, the innermost block's first."""
        found: list[object] = []
        block: Block | None = self.block
        while block is not None:
            found.extend(block.facts)
            block = block.parent
        return found

    def live(self, value: Scalar, use: str) -> None:
        """TraceError if a run-time value is used after its block was closed."""
        block = value.block
        if isinstance(block, Block) and not block.open:
            where = location.quote(location.resolve(block.mark))
            raise TraceError(
                f"{use}: this {type(value).name} was made inside a {block.kind} block that has ended, so it may never "
                f"have been computed; declare a variable with pt.reg({type(value)!r}) before the block and write it "
                f"inside with .set(…){where}"
            )

    # --- the prologue ---------------------------------------------------------------------------------------------
    def first(self, spelling: str, *operands: Operand) -> None:
        """Append an instruction to the prologue, which runs before everything else: parameters, special registers."""
        form = find(spelling)
        signature = bind(form, tuple(operand.shape for operand in operands))
        self.prologue.append(Instruction(form, operands, None, signature, location.mark(2)))

    def read_special(self, name: str, dtype: DType, extent: object = None) -> Scalar:
        """The value of a special register, read once in the prologue."""
        found = self.special.get(name)
        if found is None:
            found = self.value(dtype, extent=extent)
            found.block = self.body
            self.special[name] = found
            self.first(f"mov.u{dtype.bits}", found.operand, Special(name))  # type: ignore[arg-type]
        return found

    def forget(self) -> None:
        """Compute addresses anew from here on: a label or a raw branch may lead around what was computed."""
        block: Block | None = self.block
        while block is not None:
            block.computed.clear()
            block = block.parent

    # --- the end --------------------------------------------------------------------------------------------------
    def finish(
        self, parameters: Sequence[Parameter], directives: Sequence[Directive] = (), mark: Mark | None = None
    ) -> Traced:
        """The traced entry: declarations, prologue, instructions, ret."""
        self._check_blocks()
        for parameter in parameters:
            if parameter.name in self.placed:
                raise TraceError(f"{self.name}: the label {parameter.name!r} has the name of a parameter")
        self.instruction("ret")
        inside, outside = self.shared.variables()
        body: list[Statement] = [
            RegisterDeclaration(kind, (PREFIX[kind],), count) for kind, count in sorted(self.counts.items())
        ]
        body.extend(inside)
        body.extend(self.variables)
        body += self.prologue
        body += self.records
        if self.shared.dynamic:
            resolve = self.shared.resolver()
            body = [
                each._replace(operands=resolve(each.operands)) if isinstance(each, Instruction) else each
                for each in body
            ]
        function = Function(
            self.name,
            True,
            tuple(parameters),
            (),
            (*directives, *self.directives),
            "visible",
            tuple(body),
            (),
            mark,
        )
        return Traced(function, (*outside, *self.globals), self.shared.dynamic)

    def _check_blocks(self) -> None:
        if self.block is not self.body:
            raise TraceError(f"{self.name}: a {self.block.kind} block is still open at the end")
        if self.broken is not None:
            quote = location.quote(location.resolve(self.broken.mark))
            raise TraceError(
                f"{self.name}: an exception left a {self.broken.kind} block and was caught, so the block has no end; "
                f"let it pass, or catch it inside the block{quote}"
            )
        for _, kind, mark in self.waiting.values():
            quote = location.quote(location.resolve(mark))
            raise TraceError(
                f"{self.name}: {kind} was called without with, so no block is under it: write with {kind}(…):{quote}"
            )
