"""Which operand is to blame where operands fit no signature of a form."""

from __future__ import annotations

from typing import Optional

from ptxtile.isa.bind import fits
from ptxtile.isa.form import Form, Shape


def misfit(form: Form, shapes: tuple[Shape, ...]) -> Optional[int]:
    """The place, from 0, of the one operand that keeps these shapes from fitting; None if there is no such operand.

    That is the only one that does not fit a signature of so many operands, the same in all that come that near.
    """
    found: set[int] = set()
    for signature in form.signatures:
        if len(signature.operands) != len(shapes):
            continue
        misses = [
            i
            for i, (operand, shape) in enumerate(zip(signature.operands, shapes))
            if not fits(operand, shape)
        ]
        if len(misses) == 1:
            found.add(misses[0])
    return found.pop() if len(found) == 1 else None
