"""What a module's parts ask of its target and version.

Forms and special registers say it themselves. The rest, below, was asked of NVIDIA's assembler; what every target
that it still makes code for has in its own first version is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Optional, Union

from ptxtile import isa
from ptxtile.ir import module as m
from ptxtile.ir.instruction import Instruction
from ptxtile.ir.operand import Special

if TYPE_CHECKING:
    from ptxtile.location import Mark


class Demand(NamedTuple):
    """`what` exists on the targets that are keys, there from the PTX version that is the value, until `removed`."""

    what: str
    targets: Mapping[str, str]
    removed: Mapping[str, str]
    mark: Optional[Mark]
    source: object


Keyed = tuple[object, Demand]

# Name: first PTX version, first target.
_DIRECTIVES = {
    "reqnctapercluster": ("7.8", "sm_90"),
    "explicitcluster": ("7.8", "sm_90"),
    "maxclusterrank": ("7.8", "sm_90"),
    "blocksareclusters": ("9.0", "sm_90"),
    "noreturn": ("6.4", "sm_30"),
    "abi_preserve": ("9.0", "sm_80"),
    "abi_preserve_control": ("9.0", "sm_80"),
}
_ATTRIBUTES = {".managed": ("4.0", "sm_30"), ".unified": ("9.0", "sm_90")}
_TYPES = {"b128": ("8.3", "sm_70")}
# Kernel parameters above the first need the version; above the second no target has them.
FEW_BYTES, MOST_BYTES = 4352, 32764
_MANY_BYTES = ("8.1", "sm_70")
_NONE: Mapping[str, str] = {}


@lru_cache(maxsize=256)
def availability(version: str, target: str) -> Mapping[str, str]:
    """Each target that `target` or later is, to the later of `version` and its own first version."""
    facts = isa.target_facts()
    first = facts.ordinal[version]
    found: dict[str, str] = {}
    for name in isa.runs_on(target):
        known = facts.targets.get(name)
        if known is not None:
            found[name] = known.since if facts.ordinal[known.since] > first else version
    return found


def demands(items: Iterable[m.Item]) -> list[Demand]:
    """One Demand for each different thing, at its first use, in order."""
    found: dict[object, Demand] = {}
    settled: set[object] = set()  # signatures that were seen and take no special register
    seen: set[object] = set()  # those that were seen and take one
    for item in items:
        if isinstance(item, (m.Function, m.Variable)):
            _keep(found, item_demands(item))
        if isinstance(item, m.Function):
            for statement in statements(item.body or ()):
                if type(statement) is Instruction:
                    signature = statement.signature
                    if id(signature) in settled:
                        continue
                    if id(signature) in seen:
                        _keep(found, _specials(statement))
                    else:
                        _keep(found, instruction_demands(statement))
                        if signature is not None:
                            special = any(slot.special for slot in signature.operands)
                            (seen if special else settled).add(id(signature))
                elif isinstance(statement, (m.Variable, m.RegisterDeclaration, m.Loc)):
                    _keep(found, item_demands(statement))
    return list(found.values())


def _keep(found: dict[object, Demand], more: Iterable[Keyed]) -> None:
    for key, demand in more:
        found.setdefault(key, demand)


def instruction_demands(instruction: Instruction) -> Iterator[Keyed]:
    """What an instruction asks for, each with a key that is equal for the same demand."""
    signature = instruction.signature
    yield id(instruction.form if signature is None else signature), _instruction(instruction)
    yield from _specials(instruction)


def _specials(instruction: Instruction) -> Iterator[Keyed]:
    for operand in instruction.operands:  # none but a plain operand can be a special register
        if type(operand) is Special:
            yield operand.name, _special(operand.name, instruction)


def _instruction(instruction: Instruction) -> Demand:
    form, signature = instruction.form, instruction.signature
    if signature is None:
        return Demand(form.spelling, form.targets, _NONE, instruction.mark, instruction)
    what = form.spelling
    if len(form.signatures) > 1 and dict(signature.targets) != dict(form.targets):
        what += " with these operands"
    return Demand(what, signature.targets, signature.removed, instruction.mark, instruction)


def _special(name: str, instruction: Instruction) -> Demand:
    known = isa.special_register(name)
    targets = _NONE if known is None else known.targets
    return Demand(f"the special register {name}", targets, _NONE, instruction.mark, instruction)


def statements(body: Iterable[m.Statement]) -> Iterator[m.Statement]:
    """Every statement of a body but blocks, whose statements take their place."""
    body = tuple(body)
    return _opened(body) if m.Block in set(map(type, body)) else iter(body)


def _opened(body: Iterable[m.Statement]) -> Iterator[m.Statement]:
    stack = [iter(body)]
    while stack:
        for statement in stack[-1]:
            if isinstance(statement, m.Block):
                stack.append(iter(statement.body))
                break
            yield statement
        else:
            stack.pop()


def _plain(what: str, floor: tuple[str, str], source: object, mark: Optional[Mark] = None) -> Keyed:
    return what, Demand(what, availability(*floor), _NONE, mark, source)


def _function(function: m.Function) -> Iterator[Keyed]:
    for directive in function.directives:
        if directive.name in _DIRECTIVES:
            yield _plain(f".{directive.name}", _DIRECTIVES[directive.name], function, function.mark)
    if function.entry:
        size = parameter_bytes(function.parameters)
        if size > FEW_BYTES:
            what = f"the {size:,} bytes of parameters of {function.name}"
            yield _plain(what, _MANY_BYTES, function, function.mark)


def item_demands(item: Union[m.Function, m.Variable, m.RegisterDeclaration, m.Loc]) -> Iterator[Keyed]:
    """What a declaration or directive asks for by itself, without the body of a function."""
    if isinstance(item, m.Function):
        yield from _function(item)
        for parameter in (*item.parameters, *item.returns):
            yield from _type(parameter.type, item)
        yield from _attributes(item.attributes, item)
    elif isinstance(item, m.Loc):
        if item.function_name is not None:
            yield _plain(".loc with function_name", ("7.0", "sm_10"), item)
    else:
        yield from _type(item.type, item)
        if isinstance(item, m.Variable):
            yield from _attributes(item.attributes, item)
            if _masked(item.initial):
                yield _plain("a byte of an address in an initialiser", ("7.1", "sm_10"), item)


def _type(name: str, source: object) -> Iterator[Keyed]:
    if name in _TYPES:
        yield _plain(f"the type .{name}", _TYPES[name], source)


def _attributes(attributes: Sequence[str], source: object) -> Iterator[Keyed]:
    for text in attributes:
        name = text.partition("(")[0]
        if name in _ATTRIBUTES:
            yield _plain(f".attribute({name})", _ATTRIBUTES[name], source)


def _masked(initial: Optional[m.Initial]) -> bool:
    if isinstance(initial, tuple):
        return any(map(_masked, initial))
    return isinstance(initial, m.MaskedSymbol)


def parameter_bytes(parameters: Sequence[m.Parameter]) -> int:
    """The size of a kernel's parameters, each at its alignment."""
    types, end = isa.all_types(), 0
    for each in parameters:
        known = types.get("." + each.type)
        size = (known.bits // 8 if known is not None else 8) * each.vector
        align = max(size, each.align or 1)
        for extent in each.shape:
            size *= extent
        end = -(-end // align) * align + size
    return end
