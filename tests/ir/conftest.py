"""Programs of our own that cover the syntax of PTX modules, and NVIDIA's assembler where it is installed."""

from __future__ import annotations

import shutil
import sysconfig
from pathlib import Path

import pytest

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.ptx"))


@pytest.fixture(params=PROGRAMS, ids=lambda path: path.stem)
def program(request: pytest.FixtureRequest) -> str:
    """The text of each program in turn."""
    path: Path = request.param
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def ptxas() -> str:
    """The path of ptxas; the test is skipped where there is none."""
    wheels = Path(sysconfig.get_paths()["purelib"]) / "nvidia"
    found = [str(path) for path in sorted(wheels.glob("*/bin/ptxas"))] or [shutil.which("ptxas") or ""]
    if not found[0]:
        pytest.skip("no ptxas: pip install nvidia-cuda-nvcc")
    return found[0]
