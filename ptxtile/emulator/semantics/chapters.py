"""The modules whose functions make up the table of `semantics`; importing them registers the functions."""

from __future__ import annotations

import importlib

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
