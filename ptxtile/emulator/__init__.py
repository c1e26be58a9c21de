"""Runs a module on NumPy: the reference in tests, the device where there is no GPU, and a debugger.

`launch` runs one kernel on host arrays. `Memory` and `Loaded` are the parts of it for those who keep device memory
between launches: allocate and copy with `Memory`, give a module its place there with `Loaded(module, memory)`, and run
with `Loaded.launch(name, grid, block, parameters)`, `parameters` being the bytes that `pack` makes. `tracing` is the
debugger: it shows a `Moment` before each instruction, or at breakpoints. `texture`, `surface` and `sampler` make
handles of arrays, which launches take as arguments.
"""

from __future__ import annotations

from ptxtile.emulator.arguments import pack
from ptxtile.emulator.debugger import tracing
from ptxtile.emulator.launch import Loaded, launch
from ptxtile.emulator.memory import Memory
from ptxtile.emulator.moment import Moment
from ptxtile.emulator.opaque import Handle, sampler, surface, texture
from ptxtile.errors import EmulatorError

__all__ = [
    "EmulatorError",
    "Handle",
    "Loaded",
    "Memory",
    "Moment",
    "launch",
    "pack",
    "sampler",
    "surface",
    "texture",
    "tracing",
]
