"""Use the installed wheel: run with the checkout's path, from a folder that is not in it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import ptxtile as pt
from ptxtile import ptx


@pt.kernel(grid=1, block=32)
def double(A: pt.Tensor((32,), pt.float32), Out: pt.Tensor((32,), pt.float32)) -> None:  # type: ignore[valid-type]
    i = pt.thread_idx("x")
    Out[i] = ptx.mul.rn.f32(A[i], 2.0)


def main() -> None:
    where = Path(pt.__file__).resolve().parent
    assert not where.is_relative_to(Path(sys.argv[1]).resolve()), f"the checkout was imported: {where}"
    assert (where / "grammar" / "types.isa").is_file(), f"{where} has no grammar/"
    assert not (where.parent / "grammar").exists(), f"a stray grammar/ in {where.parent}"
    assert pt.validate("fma.rn.f32").spelling == "fma.rn.f32"
    assert not pt.is_valid("add.rn.f32x2", "sm_90")
    x = np.arange(32, dtype=np.float32)
    out = np.zeros_like(x)
    double.launch(x, out, device="emulator")
    assert (out == 2 * x).all(), out
    print(f"ptxtile {pt.__version__} from {where}: forms validate, a kernel runs on the emulator")


main()
