"""The kernels of examples/, loaded as modules."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).resolve().parents[2] / "examples"
NAMES = tuple(sorted(path.stem for path in FOLDER.glob("*.py")))


def load(name: str) -> ModuleType:
    """The example as a module; its main() has not run."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
