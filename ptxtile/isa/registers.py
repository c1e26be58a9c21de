"""Special registers: `registers.isa`, read once."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ptxtile import resources
from ptxtile.isa import cache, targets


@dataclass(frozen=True, slots=True)
class SpecialRegister:
    """One special register.

    name      "%tid.x", or "%tid" for the whole vector
    type      its type, ".u32"
    narrow    a second type it may be read as (".u16", PTX 1.x), or None
    elements  ("x", "y", "z", "w") of a whole vector, else ()
    targets   each target that has it, to the first PTX version that has it there
    """

    name: str
    type: str
    narrow: str | None
    elements: tuple[str, ...]
    targets: Mapping[str, str]


@functools.lru_cache(maxsize=1)
def all_registers() -> dict[str, SpecialRegister]:
    """Every special register by its name; the elements of vectors too ("%tid.x")."""
    found: dict[str, SpecialRegister] = {}
    for names, kind, narrow, elements, alternatives in cache.load(
        resources.grammar() / "registers.isa", "registers"
    ):
        floors = targets.facts().base
        if alternatives is not None:
            floors = tuple(map(max, floors, targets.floors(alternatives)))
        available = targets.as_mapping(floors)
        for name in (each for text in names for each in _expand(text)):
            found[name] = SpecialRegister(name, kind, narrow, tuple(elements), available)
            for element in elements:
                whole = f"{name}.{element}"
                found[whole] = SpecialRegister(whole, kind, narrow, (), available)
    return found


def _expand(name: str) -> list[str]:
    match = re.fullmatch(r"(%\w+)<(\d+)>", name)
    return [name] if match is None else [f"{match[1]}{number}" for number in range(int(match[2]))]


def special_register(name: str) -> SpecialRegister | None:
    """The special register of that name ("%tid.x", "%laneid"), or None."""
    return all_registers().get(name)
