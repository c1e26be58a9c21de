"""What instructions do that touch memory, control, or other threads: one module a subject, registered by opcode."""

from __future__ import annotations

import importlib
from functools import cache

MODULES = (
    "access",
    "move",
    "control",
    "calls",
    "barriers",
    "fences",
    "collective",
    "atomic",
    "multimem",
    "mbarrier",
    "copies",
    "cluster_launch",
    "tensor_maps",
    "mma",
    "matrices",
    "wgmma",
    "tcgen05",
    "wmma",
    "textures",
    "surfaces",
    "video",
    "video_scalar",
)


@cache
def load() -> None:
    """Import every module once; importing registers."""
    for name in MODULES:
        importlib.import_module(f"ptxtile.emulator.actions.{name}")
