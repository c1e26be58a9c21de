"""The `ptx` object: `ptx["fma.rn.f32"]`, `ptx.fma.rn.f32`.

In an attribute chain `::` is written `__`, a Python keyword gets a trailing `_`, and a modifier that begins
with a digit a leading `_`: `ptx.ld.shared__cta.u32`, `ptx.and_.b32`, `ptx.tex._2d`. A chain that spells a
whole form *is* that Form. Every step is remembered, so that a chain seen before costs attribute look-ups and
nothing else.
"""

from __future__ import annotations

import keyword
from typing import cast

from ptxtile.errors import FormAttributeError, FormError
from ptxtile.isa import match, table
from ptxtile.isa.form import Form
from ptxtile.isa.validate import validate


def attribute(word: str) -> str:
    """A modifier (with its dot) or an opcode as an attribute name: ".shared::cta" → "shared__cta"."""
    name = word.lstrip(".").replace("::", "__")
    if keyword.iskeyword(name):
        return name + "_"
    return "_" + name if name[:1].isdigit() else name


def word(name: str) -> str:
    """The reverse, without a dot: "shared__cta" → "shared::cta", "and_" → "and", "_1d" → "1d"."""
    if name[:1] == "_" and name[1:2].isdigit():
        name = name[1:]
    if name.endswith("_") and keyword.iskeyword(name[:-1]):
        name = name[:-1]
    return name.replace("__", "::")


class Chain:
    """The beginning of a spelling, such as `ptx.fma.rn`: its attributes are the modifiers that may follow."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __getattr__(self, name: str) -> Form:
        found = step(self._text, name)
        self.__dict__[name] = found
        return found

    def __dir__(self) -> list[str]:
        return following(self._text)

    def __call__(self, *operands: object, pred: object = None) -> object:
        from ptxtile.isa import explain

        fault = explain.no_form(self._text)
        raise FormError(fault.message, spelling=self._text, reasons=fault.reasons)

    def __repr__(self) -> str:
        return f"ptx[{self._text!r}] …"


class Namespace:
    """All PTX forms. `ptx[spelling]` is `validate(spelling)`: it reads leniently and raises FormError."""

    def __getitem__(self, spelling: str) -> Form:
        return validate(spelling)

    def __getattr__(self, name: str) -> Form:
        found = step("", name)
        self.__dict__[name] = found
        return found

    def __dir__(self) -> list[str]:
        return sorted(map(attribute, table.chapters()))

    def __repr__(self) -> str:
        return "ptx"


_steps: dict[tuple[str, str], Form] = {}


def step(text: str, name: str) -> Form:
    """What `name` leads to after the modifiers `text`: the Form, if that is a whole spelling, else a Chain.

    (Typed as Form so that type checkers follow a chain to its end.) Raises FormAttributeError where nothing
    goes on so.
    """
    known = _steps.get((text, name))
    if known is None:
        known = _steps[text, name] = _step(text, name)
    return known


def _step(text: str, name: str) -> Form:
    if name.startswith("_") and not name[1:2].isdigit():
        raise FormAttributeError(f"{name!r} is no modifier", spelling=text)
    spelling = f"{text}.{word(name)}" if text else word(name)
    found = _reach(spelling)
    for shorter in _without_defaults(text) if found is None else ():
        found = found or _reach(f"{shorter}.{word(name)}")
    if found is not None:
        return found
    from ptxtile.isa import explain

    fault = explain.no_form(spelling)
    raise FormAttributeError(fault.message, spelling=spelling, reasons=fault.reasons)


def _reach(spelling: str) -> Form | None:
    """The Form of a whole spelling, a Chain where more modifiers make one, None where nothing does."""
    whole = table.find(spelling)
    if whole is not None:
        return whole
    opcode, words = table.split(spelling)
    known = table.opcode(opcode)
    if known is None:
        return None
    begun = any(match.fillings(line, words, complete=False) for line in known.candidates(words))
    return cast(Form, Chain(spelling)) if begun else None


def _without_defaults(text: str) -> list[str]:
    """A form's spelling without one of the modifiers that may be left out.

    `ptx.wgmma.fence.sync` is a whole form already, since `.aligned` may be left out, and its spelling has it: an
    `.aligned` written next is that one, not a second.
    """
    whole = table.find(text) if text else None
    if whole is None:
        return []
    found = []
    for at in range(len(whole.modifiers)):
        shorter = whole.opcode + "".join(whole.modifiers[:at] + whole.modifiers[at + 1 :])
        if table.find(shorter) is whole:
            found.append(shorter)
    return found


def following(text: str) -> list[str]:
    """The attribute names that may follow a spelling's beginning."""
    from ptxtile.isa import explain

    opcode, words = table.split(text)
    known = table.opcode(opcode)
    return sorted({attribute(each) for each in explain.may_follow(known, words)}) if known is not None else []


ptx = Namespace()
