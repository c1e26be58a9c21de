"""Runs a scalar expression over arrays on the emulator, one element a thread; assembles its module where PTX can be."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import ptxtile as pt
from ptxtile import tracing
from ptxtile.builder.trace import Launch, Trace
from ptxtile.errors import PtxtileError
from ptxtile.ir.instruction import Instruction
from ptxtile.ir.module import LabelMark, Module

BLOCK = 256


def module_of(
    body: Callable[..., object], dtypes: list[pt.DType], result: pt.DType, size: int = BLOCK, name: str = "k"
) -> Module:
    """A module whose entry computes `Out[i] = body(A0[i], A1[i], …)`."""
    builder = pt.ModuleBuilder()
    params = {f"A{i}": pt.Tensor((size,), dtype) for i, dtype in enumerate(dtypes)}
    params["Out"] = pt.Tensor((size,), result)
    with builder.entry(name, params, block=BLOCK, grid=size // BLOCK) as k:
        i = pt.block_idx("x") * BLOCK + pt.thread_idx("x")
        k.Out[i] = body(*(k[f"A{n}"][i] for n in range(len(dtypes))))
    return builder.module()


def run(body: Callable[..., object], *arrays: np.ndarray, result: pt.DType | None = None) -> np.ndarray:
    """`body` at every element of the arrays (one dtype each), on the emulator with its sanitizer."""
    count = len(arrays[0])
    size = -(-count // BLOCK) * BLOCK
    padded = [np.resize(array, size) for array in arrays]
    dtypes = [pt.dtypes.dtype_of(array) for array in arrays]
    result = result or dtypes[0]
    out = np.zeros(size, result.numpy)
    module = module_of(body, dtypes, result, size)
    pt.emulator.launch(module, "k", size // BLOCK, BLOCK, [*padded, out])
    return out[:count]


def instructions(body: Callable[..., object], *dtypes: pt.DType) -> list[str]:
    """The instructions and labels of `body` on run-time values of these dtypes, registers numbered as they come."""
    trace = Trace("k", Launch())
    with tracing.use(trace):
        body(*(trace.value(dtype) for dtype in dtypes))
    lines = []
    for record in trace.records:
        if isinstance(record, LabelMark):
            lines.append(f"{record.name}:")
        else:
            assert isinstance(record, Instruction)
            lines.append(str(record).rstrip(";"))
    return lines


def spellings(body: Callable[..., object], *dtypes: pt.DType) -> list[str]:
    """The spellings of the instructions of `body`, in order."""
    return [line.split(" ")[1 if line.startswith("@") else 0] for line in instructions(body, *dtypes)]


def failure(body: Callable[..., object], *dtypes: pt.DType) -> PtxtileError:
    """The error of tracing `body` on run-time values of these dtypes."""
    trace = Trace("k", Launch())
    with tracing.use(trace), pytest.raises(PtxtileError) as caught:
        body(*(trace.value(dtype) for dtype in dtypes))
    assert trace.block is trace.body
    return caught.value


def text(error: BaseException) -> str:
    """An error's message, with this machine's path and line numbers replaced."""
    return re.sub(r"(?m)[^\s]*/([\w.]+\.py):\d+", r"\1:N", str(error))
