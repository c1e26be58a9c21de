"""Short PTX programs for the emulator's tests: a body becomes a kernel `k`, with registers enough for any of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ptxtile.emulator import EmulatorError, launch

HEAD = """.version 8.0
.target sm_90a
.address_size 64
"""
REGISTERS = ".reg .pred %p<16>; .reg .b16 %h<16>; .reg .b32 %r<64>; .reg .f32 %f<16>; .reg .b64 %rd<32>;"


def kernel(body: str, parameters: str = ".param .u64 A, .param .u64 B", module: str = "") -> str:
    """A module whose entry `k` has this body, which begins on line 8 where `module` is empty."""
    before = f"{module.strip()}\n" if module else ""
    return f"{HEAD}{before}.visible .entry k({parameters})\n{{\n{REGISTERS}\n{body.strip()}\nret;\n}}\n"


Run = Callable[..., None]
Fail = Callable[..., EmulatorError]


@pytest.fixture
def run() -> Run:
    """`run(body, args, grid=1, block=32, …)` runs a kernel with that body."""

    def runs(body: str, args: list[Any], grid: Any = 1, block: Any = 32, **options: Any) -> None:
        text = kernel(body, options.pop("parameters", _parameters(args)), options.pop("module", ""))
        launch(text, "k", grid, block, args, **options)

    return runs


@pytest.fixture
def fail(run: Run) -> Fail:
    """Like `run`, for a program that is stopped: returns the error."""

    def fails(body: str, args: list[Any], grid: Any = 1, block: Any = 32, **options: Any) -> EmulatorError:
        with pytest.raises(EmulatorError) as caught:
            run(body, args, grid, block, **options)
        return caught.value

    return fails


def _parameters(args: list[Any]) -> str:
    return ", ".join(f".param .u64 {'ABCDEFGH'[i]}" for i in range(len(args)))
