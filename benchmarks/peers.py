"""Environments for the peers that benchmarks compare with: made on demand, never among ptxtile's dependencies."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

HOME = Path(__file__).resolve().parent / ".venvs"
PEERS = {
    "pyptx": ("pyptx==0.1.1",),
    "tirx": ("apache-tvm-tirx==0.1.0a4", "numpy"),
    "cuda": (
        "nvidia-cuda-nvcc==13.5.37",
        "nvidia-cuda-runtime==13.5.37",
        "nvidia-cuda-crt==13.5.37",
        "nvidia-nvvm==13.5.37",
        "nvidia-cuda-cccl==13.3.5.0.6",
    ),
    "triton": ("triton==3.9.0", "numpy"),
}


def python(peer: str) -> str:
    """The interpreter of a peer's environment (of this interpreter's version), installed from PyPI the first time."""
    folder = HOME / f"{peer}-{sys.version_info.major}.{sys.version_info.minor}"
    inside = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    done = folder / "installed"
    if not done.exists():
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([str(inside), "-m", "pip", "install", "-q", *PEERS[peer]], check=True)
        done.write_text("\n".join(PEERS[peer]) + "\n", encoding="utf-8")
    return str(inside)
