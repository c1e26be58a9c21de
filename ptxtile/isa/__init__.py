"""What PTX allows: the spelling table of `grammar/`, and the questions one may ask of it.

`validate`, `is_valid`, `verdict` and `forms` answer for spellings; `bind` for operands; `special_register`,
`target_facts` and `all_types` give the other tables.
"""

from __future__ import annotations

from ptxtile.isa.bind import bind, check_literals
from ptxtile.isa.form import Form, Operand, Shape, Signature, Verdict
from ptxtile.isa.listing import forms
from ptxtile.isa.namespace import ptx
from ptxtile.isa.registers import SpecialRegister, all_registers, special_register
from ptxtile.isa.targets import (
    Facts,
    Target,
    driver_version,
    facts as target_facts,
    runs_on,
    target as find_target,
)
from ptxtile.isa.types import REGISTER_BITS, Type, all_types, type_bits
from ptxtile.isa.validate import find, is_valid, validate, verdict

__all__ = [
    "REGISTER_BITS",
    "Facts",
    "Form",
    "Operand",
    "Shape",
    "Signature",
    "SpecialRegister",
    "Target",
    "Type",
    "Verdict",
    "all_registers",
    "all_types",
    "bind",
    "check_literals",
    "driver_version",
    "find",
    "find_target",
    "forms",
    "is_valid",
    "ptx",
    "runs_on",
    "special_register",
    "target_facts",
    "type_bits",
    "validate",
    "verdict",
]
