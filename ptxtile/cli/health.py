"""`ptxtile doctor`: the facts of this installation, as `ptxtile.doctor` finds them."""

from __future__ import annotations

from ptxtile import doctor
from ptxtile.cli import Answer

__all__ = ["answer"]


def answer() -> Answer:
    """Always good: what is missing is a fact, with what to do about it."""
    found = doctor.facts()
    width = max(map(len, found))
    lines = [f"{name:<{width}}  {text}" for name, text in found.items()]
    return Answer(True, "\n".join(lines), dict(found))
