"""What instructions do that touch memory, control, or other threads: one module a subject, registered by opcode."""

from __future__ import annotations

import importlib

MODULES = ("access", "move", "control", "calls", "barriers", "fences", "collective")


def load() -> None:
    """Import every module once; importing registers."""
    for name in MODULES:
        importlib.import_module(f"ptxtile.emulator.actions.{name}")
