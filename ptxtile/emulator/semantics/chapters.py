"""The modules whose functions make up the table of `semantics`; importing them registers the functions."""

from __future__ import annotations

import importlib

from ptxtile.emulator.semantics import kinds

MODULES = (
    "arithmetic",
    "integer",
    "bits",
    "carry",
    "floating",
    "approximate",
    "compare",
    "logic",
    "conversion",
)


def load() -> None:
    """Import every chapter. Called once, by `semantics.find`."""
    for name in MODULES:
        importlib.import_module(f"ptxtile.emulator.semantics.{name}")


def covers(modifiers: tuple[str, ...]) -> bool:
    """Whether the chapters model a form with these modifiers, given that they have its opcode.

    They do not model stochastic rounding, scaled conversions and arithmetic on packed 8, 6 and 4 bit floats.
    """
    if ".rs" in modifiers or any(modifier.startswith(".scaled") for modifier in modifiers):
        return False
    named = [kind for kind in map(kinds.kind_of, modifiers) if kind is not None]
    narrow = [kind for kind in named if kind.floating and kind.bits < 16]
    return len(narrow) < max(len(named), 2) and not any(kind.lanes == 4 and kind in narrow for kind in named)
