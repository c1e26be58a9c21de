"""Samplers beside textures, or not: what the texturing mode that `.target` names asks for (PTX ISA 5.3, 11.1.2)."""

from __future__ import annotations

from typing import Optional

from ptxtile.ir import module as m
from ptxtile.ir.instruction import Instruction
from ptxtile.ir.operand import Address

INDEPENDENT = "texmode_independent"
READS = frozenset(["tex", "tld4"])


def misplaced(record: object, independent: bool) -> Optional[tuple[str, str]]:
    """Words, and a hint, for a read of a texture or a declaration that the mode forbids; None for all else."""
    if isinstance(record, m.Variable):
        if record.type == "samplerref" and not independent:
            return f"{record.name} is a sampler, which the texturing mode of this module does not have", _HINT
        return None
    if not isinstance(record, Instruction) or record.form.opcode not in READS:
        return None
    address = next((each for each in record.operands if isinstance(each, Address)), None)
    if address is None or (len(address.rest) == 2) == independent:
        return None
    if independent:
        return (
            f"{record.form.spelling} reads without a sampler, which a module in {INDEPENDENT} must name",
            "write [texture, sampler, coordinates]",
        )
    return (
        f"{record.form.spelling} names a sampler, which the texturing mode of this module does not have",
        _HINT,
    )


_HINT = f"write .target …, {INDEPENDENT}; without it a texture has a sampler of its own"
