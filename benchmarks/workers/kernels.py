"""One round: the kernels of an example, made anew from Python, to text or (argv[2] names a target) to machine code."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from pathlib import Path

from worker import serve

import ptxtile as pt

EXAMPLE = Path(sys.argv[1])
TARGET = sys.argv[2] if len(sys.argv) > 2 else None


def kernels() -> list[pt.Kernel]:
    """The example's kernels, with nothing traced yet."""
    return [value for value in runpy.run_path(str(EXAMPLE)).values() if isinstance(value, pt.Kernel)]


def prepare() -> Callable[[], object]:
    made = kernels()
    if TARGET is None:
        return lambda: [kernel.ptx() for kernel in made]
    return lambda: [kernel.cubin(target) for kernel, target in zip(made, targets)]


def _target(kernel: pt.Kernel) -> str:
    """The target that was asked for, or the kernel's own where that has not its instructions."""
    assert TARGET is not None
    try:
        kernel.ptx(TARGET)
    except pt.PtxtileError:
        return kernel.module().target
    return TARGET


targets = [_target(kernel) for kernel in kernels()] if TARGET else []
prepare()()
found = kernels()
serve(
    prepare,
    {
        "ptxtile": pt.__version__,
        "kernels": [kernel.name for kernel in found],
        "instructions": sum(kernel.ptx().count(";") for kernel in found),
    },
)
