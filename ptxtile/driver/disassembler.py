"""A cubin to SASS text, with NVIDIA's nvdisasm."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ptxtile.driver.toolkit import candidates
from ptxtile.errors import AssemblerError

__all__ = ["disassemble", "find_disassembler"]

_VARIABLE = "PTXTILE_NVDISASM"
_NAME = "nvdisasm.exe" if sys.platform == "win32" else "nvdisasm"


def find_disassembler() -> Path | None:
    """nvdisasm, or None.

    Tried in order: the file named by PTXTILE_NVDISASM; the wheel nvidia-cuda-nvdisasm in site-packages;
    CUDA_HOME and CUDA_PATH; /usr/local/cuda; PATH.
    """
    for path in candidates(_VARIABLE, "cuda_nvdisasm", ("bin",), (_NAME,)):
        return path
    found = shutil.which(_NAME)
    return Path(found) if found else None


def disassemble(cubin: bytes, *, options: Sequence[str] = ("-c",)) -> str:
    """The SASS of a cubin, as nvdisasm prints it.

    Args:
        cubin: the image that `assemble` gave.
        options: of nvdisasm; `-c` prints code alone.

    Raises:
        AssemblerError: there is no nvdisasm, or it refused the image.
    """
    tool = find_disassembler()
    if tool is None:
        raise AssemblerError(
            "nvdisasm was not found\n"
            "  what to do: pip install nvidia-cuda-nvdisasm, or name the program in PTXTILE_NVDISASM"
        )
    handle, name = tempfile.mkstemp(suffix=".cubin")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(cubin)
        try:
            done = subprocess.run([str(tool), *options, name], capture_output=True, text=True, check=False)
        except OSError as error:
            raise AssemblerError(f"{tool} cannot be run: {error}") from error
    finally:
        os.unlink(name)
    if done.returncode:
        said = done.stderr.replace(name, "the cubin").strip()
        raise AssemblerError(f"nvdisasm refused the cubin: {said or done.returncode}", log=said)
    return done.stdout
