"""From a signature to chains: which operand the result goes back into, and how.

A *way* says how one step of a chain leads to the next:

    direct     the destination is the next step's source
    fibonacci  zₙ₊₁ = op(zₙ, zₙ₋₁): every result is read twice, so that two steps cannot be merged into one
    linked     through a link (`links`) of another type, or one that the assembler cannot look through
    chase      what a load returns is the next one's address (`memory`)

`candidates` lists the ways of a form in the order in which they are tried; the first whose SASS proves itself is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import ptxtile as pt
from ptxtile.measure.links import bits, opaque, path
from ptxtile.measure.memory import SPACES
from ptxtile.measure.values import immediate
from ptxtile.measure.work import is_matrix

if TYPE_CHECKING:
    from ptxtile.isa import Form, Operand, Signature

__all__ = ["Way", "candidates", "find", "refusal", "usable"]

_WHAT = {
    "address": "it reads or writes memory, and chains of registers do not",
    "label": "it branches",
    "labels": "it branches",
    "function": "it calls",
    "list": "it calls",
    "prototype": "it calls",
    "symbol": "it names a variable",
    "sink": "it has no result",
}


@dataclass(frozen=True, slots=True)
class Way:
    """How a form is chained: which of its signatures, through which source, and by what.

    `position` is the index of the operand that the result goes back into, `second` that of fibonacci's other one.
    `feed` is that of a matrix whose first register the result's first one becomes as well: without it a product that
    does not depend on the sum would be computed once.
    """

    signature: int
    position: int
    kind: Literal["direct", "fibonacci", "linked", "link", "chase"]
    second: int = -1
    feed: int = -1


def find(spelling: str) -> Form:
    """The form of a spelling; FormError as from `ptxtile.validate`."""
    return pt.validate(spelling)


def usable(form: Form, target: str) -> list[int]:
    """The signatures that a target has and that are of values alone, those of fewest operands first."""
    found = [
        index
        for index, each in enumerate(form.signatures)
        if target in each.targets and target not in each.removed and _plain(each)
    ]
    return sorted(found, key=lambda index: len(form.signatures[index].operands))


def _plain(signature: Signature) -> bool:
    return all(_value(operand) or _cell(operand) for operand in signature.operands)


def _value(operand: Operand) -> bool:
    carriers = {operand.carrier, *(each.carrier for each in operand.elements)}
    return operand.kind in ("value", "vector") and len(carriers) == 1 and bits(operand.carrier or "") > 0


def _cell(operand: Operand) -> bool:
    return operand.kind == "address" and operand.space in SPACES and not operand.elements


def _of_shared(signature: Signature) -> bool:
    return any(operand.space and _cell(operand) for operand in signature.operands)


def refusal(form: Form, target: str) -> str:
    """Why no chain can be made of a form."""
    here = [each for each in form.signatures if target in each.targets]
    if not here:
        return f"{target} does not have it"
    here = [each for each in here if target not in each.removed]
    if not here:
        return f"it was removed from {target}"
    if form.opcode == "mbarrier":
        return "it works on a barrier: the scenarios barriers.* have it"
    if form.opcode == "ldmatrix" and not any(_of_shared(each) for each in here):
        return "its generic address must be one of shared memory: measure it with .shared"
    for operand in here[0].operands:
        if operand.kind in _WHAT:
            return _WHAT[operand.kind]
    if not any(operand.role == "out" for operand in here[0].operands):
        return "it has no result"
    if not any(operand.role == "in" and operand.register for operand in here[0].operands):
        return "it has no source that a result could go back into"
    return "no result of it can be carried back into a source"


def _sources(signature: Signature, opcode: str) -> list[int]:
    return [
        index
        for index, each in enumerate(signature.operands)
        if each.role == "in" and each.kind != "address" and each.register and immediate(each, opcode) is None
        if each.name != "cache_policy"
    ]


def _same(one: Operand, other: Operand) -> bool:
    return one.carrier == other.carrier and one.length == other.length


def candidates(form: Form, target: str) -> Iterator[Way]:
    """Ways to chain a form, best first: direct, then fibonacci, then linked."""
    for number in usable(form, target):
        signature = form.signatures[number]
        outs = [each for each in signature.operands if each.role == "out"]
        if len(outs) != 1:
            continue
        result = outs[0]
        places = _sources(signature, form.opcode)
        if form.opcode == "mbarrier" or (form.opcode == "ldmatrix" and not _of_shared(signature)):
            continue
        if form.opcode in ("ld", "ldu", "ldmatrix"):
            yield Way(number, next(i for i, each in enumerate(signature.operands) if _cell(each)), "chase")
            continue
        same = [place for place in places if _same(signature.operands[place], result)]
        for place in same:
            yield Way(number, place, "direct")
            if is_matrix(form.spelling):
                yield from _fed(signature, number, place)
        for one in same:
            for other in same:
                if one != other:
                    yield Way(number, one, "fibonacci", other)
        if result.length == 1:
            yield from _linked(signature, number, result, places)


def _fed(signature: Signature, number: int, place: int) -> Iterator[Way]:
    """Ways in which the product depends on the sum as well."""
    for feed, operand in enumerate(signature.operands):
        if operand.role == "in" and feed != place and operand.kind == "vector" and operand.carrier == "b32":
            yield Way(number, place, "direct", feed=feed)
            return


def _linked(signature: Signature, number: int, result: Operand, places: list[int]) -> Iterator[Way]:
    carrier = result.carrier or ""
    reached: list[tuple[int, int]] = []
    for place in places:
        operand = signature.operands[place]
        into = operand.carrier or ""
        if operand.length != 1:
            continue
        link = opaque(carrier) if into == carrier else path(carrier, into)
        if link is not None:
            reached.append((len(link.references) + (abs(bits(into) - bits(carrier)) > 0), place))
    for _, place in sorted(reached):
        yield Way(number, place, "linked")
