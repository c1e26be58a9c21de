"""Multiply and add operations of matrix instructions, in PTX and in SASS."""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["is_matrix", "operations", "performed"]

_SHAPE = re.compile(r"\.m(\d+)n(\d+)k(\d+)")
_SASS = re.compile(r"^[DHIB]MMA(?:\.SP)?\.(?:(16|8)(8)(\d+)|(\d+)x(\d+)x(\d+))\b")


def is_matrix(spelling: str) -> bool:
    """Whether a form multiplies matrices of registers."""
    return spelling.startswith(("mma.", "wmma.mma."))


def operations(spelling: str) -> int:
    """Operations of a warp's matrix instruction, 2·m·n·k, the zeros of sparse ones too; 0 for any other."""
    shape = _SHAPE.search(spelling) if is_matrix(spelling) else None
    if not shape:
        return 0
    m, n, k = map(int, shape.groups())
    quarters = (
        4 if (m, k) == (8, 4) and ".f64" not in spelling else 1
    )  # of a warp, each with matrices of its own
    return 2 * m * n * k * quarters


def performed(counts: Mapping[str, float]) -> float:
    """Operations of the matrix instructions among these mnemonics."""
    total = 0.0
    for name, count in counts.items():
        shape = _SASS.match(name)
        if shape:
            m, n, k = (int(each) for each in shape.groups() if each is not None)
            total += 2 * m * n * k * count
    return total
