"""A module made ready to run: numbered steps, numbered registers, placed variables, flow.

A Program owns no state of a run; one Program serves any number of launches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ptxtile.emulator import windows
from ptxtile.emulator.flow import Flow, analyse
from ptxtile.emulator.placement import Place, SharedLayout, align_up, alignment_of, numbered, size_of
from ptxtile.emulator.polling import calls, looking, looks, spins
from ptxtile.errors import EmulatorError
from ptxtile.ir.instruction import Instruction
from ptxtile.ir.module import (
    Block,
    Directive,
    Function,
    LabelMark,
    Module,
    Parameter,
    Prototype,
    RegisterDeclaration,
    Targets,
    Variable,
)
from ptxtile.ir.operand import Address, Label, Operand, Register, Symbol, Vector

ENDS = frozenset({"ret", "exit", "trap"})
BRANCHES = frozenset({"bra", "brx"})
ASSUMES = "$assume_"


@dataclass(slots=True)
class Scope:
    """Names of one `{ … }`."""

    parent: Scope | None
    registers: dict[str, int] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    lists: dict[str, Targets] = field(default_factory=dict)
    prototypes: dict[str, Prototype] = field(default_factory=dict)

    def chain(self) -> Iterable[Scope]:
        """This scope and those around it, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent


@dataclass(frozen=True, slots=True)
class Site:
    """One instruction in its place: number, scope, and line of the PTX text (0: unknown)."""

    number: int
    instruction: Instruction
    scope: Scope
    line: int = 0

    @property
    def opcode(self) -> str:
        """The first word of the spelling: "ld", "bar", "mbarrier"."""
        return opcode(self.instruction)

    def register(self, register: Register) -> int:
        """The number of a register in this function's register file."""
        for scope in self.scope.chain():
            if register.name in scope.registers:
                return scope.registers[register.name]
        raise EmulatorError(
            f"{self.instruction} uses register {register.name}, which is not declared",
            kind="undeclared",
            line=self.line,
        )

    def label(self, label: Label) -> int:
        """The instruction number that a label stands for."""
        for scope in self.scope.chain():
            if label.name in scope.labels:
                return scope.labels[label.name]
        raise EmulatorError(
            f"{self.instruction} names label {label.name}, which this function does not have",
            kind="undeclared",
            line=self.line,
        )


@dataclass(slots=True)
class Code:
    """A function made ready: its sites by number, register types by number, places of parameters, and flow.

    frame   bytes of per-thread memory for .local variables and .param variables of its body and signature
    polls   by instruction number: the loop it is on, if that loop may wait for other threads, else 0
    assumes by instruction number: predicates that `pt.assume` says are true before it
    """

    function: Function
    sites: list[Site]
    register_types: list[str]
    register_names: list[str]
    scope: Scope
    frame: int
    flow: Flow
    polls: tuple[int, ...]
    entry_bytes: int = 0
    assumes: dict[int, list[int]] = field(default_factory=dict)


@dataclass(slots=True)
class Program:
    """A module made ready to run.

    static_shared   bytes from windows.SHARED_START to where dynamic shared memory begins
    static_bytes    those of them that .shared variables with a size take, as a device counts them
    shared_places   .shared variables with a size, by address; bytes between them belong to nobody
    variables       .global and .const variables of the module, to be placed when it is loaded
    """

    module: Module
    codes: dict[str, Code]
    static_shared: int
    places: dict[str, Place]
    variables: tuple[Variable, ...]
    functions: dict[str, int]
    static_bytes: int = 0
    shared_places: tuple[Place, ...] = ()

    def code(self, name: str) -> Code:
        """The function of that name, or an EmulatorError that lists the names there are."""
        found = self.codes.get(name)
        if found is None:
            have = ", ".join(sorted(self.codes)) or "none"
            raise EmulatorError(
                f"the module has no function {name!r} with a body; it has {have}", kind="launch"
            )
        return found


def opcode(instruction: Instruction) -> str:
    """The first word of an instruction's spelling."""
    return instruction.form.spelling.partition(".")[0]


def prepare(module: Module, lines: Sequence[int] = ()) -> Program:
    """Make a module ready. `lines` are those of its instructions in the PTX text, in order (0 where unknown)."""
    program = Program(module, {}, 0, {}, (), {})
    line = iter(lines)
    look = looking(module)
    shared = SharedLayout(program.places)
    variables: list[Variable] = []
    for item in module.items:
        if isinstance(item, Variable):
            if item.space == "shared":
                shared.add(item)
            elif item.space in ("global", "const"):
                variables.append(item)
    program.variables = tuple(variables)
    for number, function in enumerate(module.functions):
        program.functions.setdefault(function.name, windows.FUNCTION_BASE + number * windows.FUNCTION_STEP)
    for function in module.functions:
        if function.body is not None:
            program.codes[function.name] = _Flattener(function, shared, line, look).run()
    shared.close()
    program.shared_places = tuple(shared.placed)
    program.static_shared = shared.end - windows.SHARED_START
    program.static_bytes = shared.packed - windows.SHARED_START
    return program


class _Flattener:
    """Turns one function's body into numbered sites, without recursion, so that nesting has no limit."""

    def __init__(
        self, function: Function, shared: SharedLayout, lines: Iterator[int], looking: frozenset[str]
    ) -> None:
        self.lines = lines
        self.looking = looking
        self.function = function
        self.shared = shared
        self.types: list[str] = []
        self.names: list[str] = []
        self.sites: list[Site] = []
        self.assumes: dict[int, list[int]] = {}
        self.frame = windows.LOCAL_START
        self.root = Scope(None)

    def run(self) -> Code:
        entry_bytes = self._parameters()
        self._walk()
        flow, polls = self._flow()
        return Code(
            self.function,
            self.sites,
            self.types,
            self.names,
            self.root,
            self.frame - windows.LOCAL_START,
            flow,
            polls,
            entry_bytes,
            self.assumes,
        )

    def _parameters(self) -> int:
        if not self.function.entry:
            for parameter in (*self.function.returns, *self.function.parameters):
                if parameter.space == "reg":
                    self._register(self.root, parameter.name, parameter.type)
                else:
                    self._place_local(self.root, parameter, "local")
            return 0
        end = 0
        for parameter in self.function.parameters:
            address = align_up(end, alignment_of(parameter))
            end = address + size_of(parameter)
            place = Place("param", windows.PARAM_START + address, size_of(parameter), parameter.name)
            self.root.places[parameter.name] = place
        return end

    def _register(self, scope: Scope, name: str, kind: str) -> None:
        scope.registers[name] = len(self.types)
        self.types.append(kind)
        self.names.append(name)

    def _place_local(self, scope: Scope, variable: Variable | Parameter, space: str) -> None:
        count = variable.count if isinstance(variable, Variable) else None
        for name in numbered(variable.name, count):
            address = align_up(self.frame, alignment_of(variable))
            self.frame = address + size_of(variable)
            scope.places[name] = Place(space, address, size_of(variable), name)

    def _walk(self) -> None:
        stack = [(iter(self.function.body or ()), self.root)]
        while stack:
            statements, scope = stack[-1]
            statement = next(statements, None)
            if statement is None:
                stack.pop()
            elif isinstance(statement, Block):
                stack.append((iter(statement.body), Scope(scope)))
            elif isinstance(statement, Instruction):
                self.sites.append(Site(len(self.sites), statement, scope, next(self.lines, 0)))
            else:
                self._declare(statement, scope)

    def _declare(self, statement: object, scope: Scope) -> None:
        if isinstance(statement, RegisterDeclaration):
            for written in statement.names:
                for name in numbered(written, statement.count):
                    self._register(scope, name, statement.type)
                    if statement.vector > 1:
                        for part in "xyzw"[: statement.vector]:
                            self._register(scope, f"{name}.{part}", statement.type)
        elif isinstance(statement, Variable):
            if statement.space == "shared":
                self.shared.add(statement, scope.places)
            elif statement.space in ("local", "param"):
                self._place_local(scope, statement, "local")
        elif isinstance(statement, LabelMark):
            scope.labels[statement.name] = len(self.sites)
            if statement.name.startswith(ASSUMES):
                self._assume(statement.name, scope)
        elif isinstance(statement, Targets):
            scope.lists[statement.name] = statement
        elif isinstance(statement, Prototype):
            scope.prototypes[statement.name] = statement
        elif isinstance(statement, Directive):
            return

    def _assume(self, name: str, scope: Scope) -> None:
        """A label that says "this predicate is true here": `$assume_4_p3` of `%p3`, after what computes it."""
        register = "%" + name[len(ASSUMES) :].partition("_")[2]
        for around in scope.chain():
            if register in around.registers:
                self.assumes.setdefault(len(self.sites), []).append(around.registers[register])
                return

    def _flow(self) -> tuple[Flow, tuple[int, ...]]:
        count = len(self.sites) + 1
        successors = [_successors(site) for site in self.sites] + [()]
        splits = frozenset(site.number for site in self.sites if _waits(site))
        flow = analyse(successors, splits)
        looked = self.looking
        polling = {
            flow.loops[site.number]
            for site in self.sites
            if looks(site.instruction) or calls(site.instruction) in looked
        }
        polling |= {flow.loops[site.number] for site in self.sites if self._spins(site, successors)}
        polling -= {0}
        return flow, tuple(loop if loop in polling else 0 for loop in flow.loops[:count])

    def _spins(self, site: Site, successors: list[tuple[int, ...]]) -> bool:
        """Whether this is the backward branch of a loop that waits with ordinary loads."""
        if site.opcode != "bra":
            return False
        first = min(successors[site.number], default=site.number + 1)
        body = [each.instruction for each in self.sites[first : site.number + 1]]
        return bool(body) and spins(body)


def branch_targets(site: Site) -> tuple[int, ...]:
    """Where a bra or brx.idx may go, in the order of its list."""
    last = site.instruction.operands[-1]
    if isinstance(last, Label):
        for scope in site.scope.chain():
            if last.name in scope.lists:
                return tuple(site.label(Label(name)) for name in scope.lists[last.name].labels)
        return (site.label(last),)
    if isinstance(last, Symbol):
        return branch_targets_named(site, last.name)
    raise EmulatorError(f"{site.instruction} has no target label", kind="unsupported", line=site.line)


def branch_targets_named(site: Site, name: str) -> tuple[int, ...]:
    """The targets of the .branchtargets list called `name`."""
    for scope in site.scope.chain():
        if name in scope.lists:
            return tuple(site.label(Label(label)) for label in scope.lists[name].labels)
    return (site.label(Label(name)),)


def _successors(site: Site) -> tuple[int, ...]:
    following = (site.number + 1,)
    guarded = site.instruction.guard is not None
    if site.opcode in BRANCHES:
        targets = branch_targets(site)
        return tuple(dict.fromkeys(targets + following)) if guarded else tuple(dict.fromkeys(targets))
    if site.opcode in ENDS:
        return following if guarded else ()
    return following


def _waits(site: Site) -> bool:
    return site.opcode in ("call", "bar", "barrier")


def registers_of(operand: Operand) -> Iterable[Register]:
    """Every register that an operand mentions at its first level or inside a vector or an address."""
    if isinstance(operand, Register):
        yield operand
    elif isinstance(operand, Vector):
        for element in operand.elements:
            yield from registers_of(element)
    elif isinstance(operand, Address) and isinstance(operand.base, Register):
        yield operand.base
