"""`examples/activation.py` as type checkers like it: parameters are `Annotated`, so that `A` is a `pt.Tensor` for them.

mypy --strict and basedpyright check this file with the package; `tests/test_typed.py` runs it.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

import ptxtile as pt
from ptxtile import S, TileLayout, laneid, ptx, tile, warpid

REGISTERS = TileLayout(S[(2, 32, 4) : (1 @ warpid, 1 @ laneid, 1)])
Operand = Annotated[pt.Tensor, pt.Tensor((2, 32, 4), pt.float32)]


@pt.function
def silu_affine(x: pt.float32, scale: pt.float32, bias: pt.float32) -> pt.float32:
    y = x / (pt.float32(1) + pt.exp(-x))
    return y * scale + bias


@pt.kernel(grid=1, block=64)
def activation(A: Operand, Out: Operand) -> None:
    r = pt.alloc_local((2, 32, 4), pt.float32, layout=REGISTERS)
    tile.apply(ptx["ld.global.v4.b32"], r, A, scope="cta")
    tile.ewise(silu_affine, r, r, pt.float32(2), pt.float32(1), scope="cta")
    tile.apply(ptx["st.global.v4.b32"], Out, r, scope="cta")


def run(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """The kernel on the emulator; `x` has shape (2, 32, 4)."""
    out = np.zeros_like(x)
    activation.launch(x, out, device="emulator")
    return out
