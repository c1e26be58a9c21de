"""What an installation has, and where: for `ptxtile doctor` and for bug reports.

It looks into parts that the facade keeps to itself (driver, caches), and so has a level of its own.
"""

from __future__ import annotations

import platform
import sys
from importlib import metadata
from pathlib import Path

import ptxtile
from ptxtile import driver, errors, execute, isa, resources
from ptxtile.execute import cache as cubins
from ptxtile.isa import cache as tables

__all__ = ["facts"]

_PACKAGES = ("numpy", "ml_dtypes", "lark", "cuda-python", "nvidia-nvjitlink")


def facts() -> dict[str, str]:
    """Names and texts, in the order in which a person asks; what is missing says what to do."""
    known = isa.target_facts()
    now = [name for name, target in known.targets.items() if target.supported]
    kept = cubins.folder()
    return {
        "ptxtile": f"{ptxtile.__version__}, {Path(ptxtile.__file__).parent}",
        "python": f"{platform.python_version()}, {sys.executable}",
        "platform": f"{platform.system()} {platform.machine()}",
        "packages": ", ".join(f"{name} {_version(name)}" for name in _PACKAGES),
        "table": f"PTX ISA {known.versions[0]} to {known.versions[-1]}, {now[0]} to {now[-1]}, {resources.grammar()}",
        "runs on": _default_device(),
        "driver": _driver(),
        "assembler": _assembler(),
        "disassembler": str(driver.find_disassembler() or "none: pip install nvidia-cuda-nvdisasm"),
        "cache of the table": str(tables.folder()),
        "cache of cubins": "off" if kept is None else str(kept),
    }


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "(missing)"


def _default_device() -> str:
    try:
        return execute.default_device()
    except errors.DriverError as error:
        return str(error)


def _driver() -> str:
    try:
        found = driver.driver_version()
    except errors.DriverError as error:
        return f"none: {str(error).splitlines()[0]}"
    return f"CUDA {found}, takes PTX ISA up to {driver.driver_ptx() or 'an old version'}"


def _assembler() -> str:
    try:
        found = driver.find_assembler()
    except errors.AssemblerError:
        return "none: pip install 'ptxtile[assemble]'"
    return f"nvJitLink {'.'.join(map(str, found.version))}, {found.path}"
