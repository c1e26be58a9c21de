"""Arguments of calls, held against what the called function or the prototype declares (PTX ISA 9.7.12.5).

The rules were asked of NVIDIA's assembler: as many as there are parameters; scalars of one width, whose types agree as
those of an instruction's operands do; arrays of one size, whatever their elements; one alignment in both.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from typing import Optional, Union

from ptxtile import isa
from ptxtile.ir import module as m
from ptxtile.ir.instruction import Instruction
from ptxtile.ir.operand import Arguments, Float, Integer, Label, Operand, Register, Sink, Symbol, Vector

Declared = Union[m.Parameter, m.Variable]
Side = tuple[m.Parameter, ...]
# Names of a scope to variables in .param, and to what may be called: its kind, returns, parameters.
Variables = MutableMapping[str, Declared]
Called = tuple[str, Side, Side]
Callables = MutableMapping[str, Called]
Interface = tuple[object, ...]


def mismatches(module: m.Module) -> Iterator[tuple[Instruction, str]]:
    """The calls whose arguments do not fit, each with words for the first that does not."""
    functions: dict[str, Called] = {}
    for item in module.items:
        if isinstance(item, m.Alias) and item.aliasee in functions:
            functions[item.name] = functions[item.aliasee]
        elif isinstance(item, m.Function):
            functions[item.name] = "function", item.returns, item.parameters
            own: Variables = {
                each.name: each for each in (*item.parameters, *item.returns) if each.space == "param"
            }
            yield from _body(item.body or (), own, functions)


def _body(
    body: Iterable[m.Statement], outer: Variables, callable_: Callables
) -> Iterator[tuple[Instruction, str]]:
    variables, known = (
        ChainMap({}, outer),
        ChainMap({}, callable_),
    )  # a copy of what a module has would be dear
    for statement in body:
        if isinstance(statement, m.Variable):
            variables[statement.name] = statement
        elif isinstance(statement, m.Prototype):
            known[statement.name] = "prototype", statement.returns, statement.parameters
        elif isinstance(statement, m.Targets):
            targets = [known[name] for name in statement.labels if name in known]
            if targets and statement.kind == "calltargets":
                known[statement.name] = "list of targets", *targets[0][1:]
        elif isinstance(statement, m.Block):
            yield from _body(statement.body, variables, known)
        elif isinstance(statement, Instruction) and statement.form.opcode == "call":
            message = _call(statement, variables, known)
            if message:
                yield statement, message


def _call(call: Instruction, variables: Variables, known: Callables) -> str:
    """What is wrong with a call; "" if nothing is, or if nobody says what it calls."""
    given: list[Sequence[Operand]] = []
    names: list[str] = []
    results: Sequence[Operand] = ()
    for place, operand in enumerate(call.operands):
        if isinstance(operand, Arguments):
            if place == 0:
                results = operand.elements
            else:
                given.append(operand.elements)
        elif isinstance(operand, (Symbol, Label)):
            names.append(operand.name)
    found = known.get(names[-1]) if names else None
    if found is None:
        return ""
    name, (kind, returns, parameters) = names[-1], found
    through = any(isinstance(operand, Register) for operand in call.operands)
    if through and kind == "function":
        return f"{name} is a function; what follows a pointer to one is a prototype or a list of targets"
    if not through and kind != "function":
        return f"{name} is a {kind}, and no function"
    arguments = given[0] if given else ()
    return _side(name, "result", returns, results, variables) or _side(
        name, "argument", parameters, arguments, variables
    )


def _side(name: str, what: str, wanted: Side, given: Sequence[Operand], variables: Variables) -> str:
    # the array of no size at the end of a parameter list stands for more arguments, or none
    open_ = bool(wanted) and wanted[-1].shape[:1] == (0,)
    if len(given) != len(wanted) and not (open_ and len(given) == len(wanted) - 1):
        several = "" if len(wanted) == 1 else "s"
        return f"{name} has {len(wanted)} {_PLACES[what]}{several}, but {len(given)} given here"
    for number, (parameter, operand) in enumerate(zip(wanted, given), 1):
        if not _fits(parameter, operand, what == "result", variables):
            return (
                f"{what} {number} of this call of {name} is {_given(operand, variables)}; "
                f"{name} declares {_declared(parameter)}"
            )
    return ""


_PLACES = {"result": "return value", "argument": "parameter"}


def _fits(wanted: m.Parameter, given: Operand, result: bool, variables: Variables) -> bool:
    scalar = not wanted.shape and wanted.vector == 1
    if isinstance(given, Register):
        return scalar and agree(wanted.type, given.type) and _alignment(wanted) == _size(wanted)
    if isinstance(given, Integer):
        return scalar and _kind(wanted.type) in ("b", "u", "s")
    if isinstance(given, Float):
        # a packed half takes a literal of 32 bits, which is its bits
        return scalar and (_kind(wanted.type) in ("b", "f") and (wanted.type != "f16x2" or given.width == 32))
    if isinstance(given, Sink):
        return result
    if isinstance(given, Symbol):
        found = variables.get(given.name)
        return found is not None and _same(wanted, found)
    return isinstance(given, Vector) and wanted.vector == len(given.elements)


def _same(wanted: Declared, given: Declared) -> bool:
    if wanted.shape[:1] == (0,):
        return bool(given.shape) and _alignment(wanted) == _alignment(given)
    if wanted.vector > 1 or given.vector > 1:
        return _size(wanted) == _size(given)
    if bool(wanted.shape) != bool(given.shape) or _alignment(wanted) != _alignment(given):
        return False
    return _size(wanted) == _size(given) if wanted.shape else agree(wanted.type, given.type)


def agree(wanted: str, given: str) -> bool:
    """Whether a value of register type `given` may be passed for `wanted`: of one width, and either has no more than
    bits, or both are integers, or both floats."""
    if _bits(wanted) != _bits(given):
        return False
    if "f16x2" in (wanted, given):
        return True
    kinds = {_kind(wanted), _kind(given)}
    return "b" in kinds or len(kinds) == 1 or kinds == {"u", "s"}


def _kind(type_: str) -> str:
    return type_.rstrip("0123456789x")


def _bits(type_: str) -> int:
    known = isa.all_types().get("." + type_)
    return 0 if known is None else known.bits


def _size(declared: Declared) -> int:
    """Bytes."""
    size = max(1, _bits(declared.type) // 8) * declared.vector
    for extent in declared.shape:
        size *= extent
    return size


def interface(function: m.Function) -> Interface:
    """What has to be the same in all declarations of a function."""
    return (
        function.entry,
        *(
            tuple([(each.space, each.type, each.shape, each.vector, _alignment(each)) for each in side])
            for side in (function.returns, function.parameters)
        ),
    )


def _alignment(declared: Declared) -> int:
    return max(declared.align or 1, max(1, _bits(declared.type) // 8) * declared.vector)


def _declared(declared: Declared) -> str:
    align = f".align {declared.align} " if declared.align else ""
    vector = f".v{declared.vector} " if declared.vector > 1 else ""
    shape = "".join(f"[{extent or ''}]" for extent in declared.shape)
    return f".{declared.space} {align}{vector}.{declared.type}{shape}"


def _given(operand: Operand, variables: Variables) -> str:
    found: Optional[Declared] = variables.get(operand.name) if isinstance(operand, Symbol) else None
    if found is not None:
        return _declared(found)
    return f"a .{operand.type} register" if isinstance(operand, Register) else f"{operand}"
