"""The kernels of examples/, loaded as modules."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).resolve().parents[2] / "examples"
HOPPER = ("hopper_gemm",)  # of sm_90a alone: tests in test_hopper_gemm.py
NAMES = tuple(sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in HOPPER))


def load(name: str) -> ModuleType:
    """The example as a module; its main() has not run."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
