"""What `ir` asks of the spelling table, in one place; the table is loaded with the first question."""

from __future__ import annotations

from functools import lru_cache
from typing import Optional

from ptxtile import isa
from ptxtile.errors import FormError, OperandError
from ptxtile.ir.operand import Address, Arguments, Float, Integer, Operand, Symbol, Vector
from ptxtile.isa.form import Form, Signature

# What a text may spell is without end; a memo of it is not.
_LIMIT = 1 << 16


class Forms(dict[str, Form]):
    """Memo from a spelling, canonical or tolerated, to its form, whatever the target; FormError if there is none."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: dict[str, FormError] = {}

    def __missing__(self, spelling: str) -> Form:
        known = self.wrong.get(spelling)
        if known is not None:
            raise FormError(str(known), spelling=spelling, reasons=known.reasons)
        form = isa.verdict(spelling).form  # kept if some target had it once, though none has it today
        if form is None:
            try:
                form = isa.validate(spelling)
            except FormError as error:
                if len(self.wrong) >= _LIMIT:
                    self.wrong.clear()
                self.wrong[spelling] = error.with_traceback(None)
                raise
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
    if is_limited(signature):
        check_literals(form, signature, operands)
    return signature


def is_limited(signature: Signature) -> bool:
    """Whether a signature limits its literals."""
    limited = _limited.get(id(signature))
    if limited is None:
        limited = _limited[id(signature)] = any(
            each.limited or any(one.limited for one in each.elements) for each in signature.operands
        )
    return limited


def check_literals(form: Form, signature: Signature, operands: tuple[Operand, ...]) -> None:
    """Hold integer literals against the limits of a signature; OperandError for one outside."""
    isa.check_literals(form, signature, list(map(_value, operands)))


def _value(operand: Operand) -> object:
    """An integer literal's value, those of a vector's elements, or None."""
    if type(operand) is Integer:
        return operand.value
    return tuple(map(_value, operand.elements)) if type(operand) is Vector else None


def out_of_range(form: Form, operands: tuple[Operand, ...]) -> Optional[int]:
    """The place, from 0, of the first literal outside the limits of the signature that the operands fit, or None."""
    try:
        signature = isa.bind(form, tuple([each.shape for each in operands]))
    except OperandError:
        return None
    for place in range(len(operands)):
        try:
            check_literals(form, signature, operands[: place + 1])
        except OperandError:
            return place
    return None


_SUBSCRIPTED = frozenset(["ld", "ldu", "st"])
# Signatures are made once and never dropped: their identity stands for them.
_limited: dict[int, bool] = {}


def indexed(form: Form, operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
    """`array[3]` where a load or store has its address is the address [array+12], without the outer brackets."""
    if form.opcode not in _SUBSCRIPTED or form.spelling.startswith(("st.async", "st.bulk")):
        return operands
    found = list(operands)
    for place, operand in enumerate(operands):
        if isinstance(operand, Symbol) and any(
            len(each.operands) == len(operands) and each.operands[place].kind == "address"
            for each in form.signatures
        ):
            found[place] = Address(Symbol(operand.name, operand.space), operand.offset)
    return tuple(found)


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
    """Whether `.name` is a type that a register, variable or parameter may have."""
    return name in isa.REGISTER_BITS
