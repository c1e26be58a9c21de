"""Where NVIDIA's libraries and tools are, outside the driver: wheels first, then an installed toolkit."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

__all__ = ["candidates"]

# Folders of the wheels under site-packages/nvidia: CUDA 13 wheels share one, CUDA 12 has one a component.
_CUDA_13 = "cu13"


def _wheel_roots() -> Iterator[Path]:
    spec = importlib.util.find_spec("nvidia")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        yield Path(place)


def candidates(variable: str, component: str, folders: Sequence[str], names: Sequence[str]) -> Iterator[Path]:
    """Existing files that might be the tool, in the order in which they are tried.

    1. the file that the environment variable `variable` names, and nothing else if it is set;
    2. NVIDIA's wheels in this Python's site-packages: nvidia/cu13/<folder>, then nvidia/<component>/<folder>;
    3. the toolkit that CUDA_HOME or CUDA_PATH names;
    4. /usr/local/cuda.

    What the system itself finds by bare name (the loader's path, PATH) is left to the caller.
    """
    named = os.environ.get(variable)
    if named:
        yield Path(named)
        return
    roots = [root / part for root in _wheel_roots() for part in (_CUDA_13, component)]
    roots += [Path(os.environ[key]) for key in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(key)]
    roots.append(Path("/usr/local/cuda"))
    for root in roots:
        for folder in folders:
            for name in names:
                path = root / folder / name
                if path.is_file():
                    yield path
