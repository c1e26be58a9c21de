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


def covers(opcode: str, modifiers: tuple[str, ...]) -> bool:
    """Whether the chapters model a form with these modifiers, given that they have its opcode.

    They do not model stochastic rounding and scaled conversions, conversions of formats that `kinds` does not know,
    arithmetic on packed 8, 6 and 4 bit floats, and packed arithmetic of mixed precision.
    """
    if ".rs" in modifiers or any(modifier.startswith(".scaled") for modifier in modifiers):
        return False
    named = [kind for kind in map(kinds.kind_of, modifiers) if kind is not None]
    if opcode == "cvt":
        return len(named) >= 2
    if opcode in ("add", "sub", "mul", "fma") and named[0].floating:
        packed = any(kind.lanes > 1 for kind in named)
        return not (packed and len(named) > 1) and all(kind.bits >= 16 for kind in named)
    return True
