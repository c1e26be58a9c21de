"""Tile operations: one exact instruction, or one scalar function, over every element of tensors.

`apply` issues a form once a repeat; `ewise` inlines a scalar function at every coordinate. Operand axes are
(*group, *repeat, *atom): the scope and the threads active here give the group, the form the atom; repeats are unrolled
in row-major order. Nothing is chosen: no width, packing, conversion or barrier is added.
"""

from __future__ import annotations

from ptxtile.tile.apply import apply
from ptxtile.tile.ewise import ewise

__all__ = ["apply", "ewise"]
