"""What `ir` asks of the spelling table, in one place; the table is loaded with the first question."""

from __future__ import annotations

from functools import lru_cache

from ptxtile import isa
from ptxtile.errors import OperandError
from ptxtile.ir.operand import Arguments, Float, Integer, Operand
from ptxtile.isa.form import Form, Signature

# What a text may spell is without end; a memo of it is not.
_LIMIT = 1 << 16


class Forms(dict[str, Form]):
    """Memo from a spelling, canonical or tolerated, to its form, whatever the target; FormError if there is none."""

    __slots__ = ()

    def __missing__(self, spelling: str) -> Form:
        verdict = isa.verdict(spelling)
        form = verdict.form
        if form is None or verdict.kind == "rejected":
            form = isa.validate(spelling)
        if len(self) >= _LIMIT:
            self.clear()
        self[spelling] = form
        return form


FORMS = Forms()


def bind(form: Form, operands: tuple[Operand, ...]) -> Signature:
    """The one signature that the operands fit, with immediates in range; OperandError if there is none."""
    shapes = tuple([operand.shape for operand in operands])
    signature = form.bound.get(shapes)
    if signature is None:
        signature = isa.bind(form, shapes)
    bounded = _bounded.get(id(signature))
    if bounded is None:
        bounded = any(each.bounds is not None for each in signature.operands)
        _bounded[id(signature)] = bounded
    if bounded:
        _check_bounds(form, signature, operands)
    return signature


# Signatures are made once and never dropped, so their identity stands for them.
_bounded: dict[int, bool] = {}


def _check_bounds(form: Form, signature: Signature, operands: tuple[Operand, ...]) -> None:
    for declared, given in zip(signature.operands, operands, strict=True):
        if declared.bounds is not None and isinstance(given, Integer):
            low, high = declared.bounds
            if not low <= given.value <= high:
                raise OperandError(f"{form.spelling}: {declared.name} is {low} to {high}, not {given.value}")


def takes_lists(form: Form) -> bool:
    """Whether an operand of the form may be a list in parentheses."""
    return any(operand.kind == "list" for signature in form.signatures for operand in signature.operands)


def unwrapped(operand: Operand) -> Operand:
    """`(5)` is the number 5 where no list is taken."""
    if isinstance(operand, Arguments) and len(operand.elements) == 1:
        (inner,) = operand.elements
        return inner if isinstance(inner, (Integer, Float)) else operand
    return operand


@lru_cache(maxsize=4096)
def is_special(name: str) -> bool:
    """Whether a name is that of a special register."""
    return isa.special_register(name) is not None


def is_type(name: str) -> bool:
    """Whether `.name` is a type that a declaration may have."""
    from ptxtile.isa import types

    return "." + name in types.all_types()
