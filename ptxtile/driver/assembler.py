"""PTX text to a cubin without a GPU: NVIDIA's assembler in nvJitLink, called through ctypes.

The library comes with the wheel `nvidia-nvjitlink` (CUDA 13) or `nvidia-nvjitlink-cu12`. nvJitLink assembles as
for linking with other units, so it ignores `setmaxnreg` (its log then says C7504); the driver, given the text,
does not.
"""

from __future__ import annotations

import ctypes
import re
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ptxtile.driver.toolkit import candidates
from ptxtile.errors import AssemblerError, TargetError

__all__ = ["Assembler", "Assembly", "assemble", "assemble_with_log", "find_assembler"]

_INPUT_PTX = 2  # nvJitLinkInputType
_VARIABLE = "PTXTILE_NVJITLINK"
_WINDOWS = sys.platform == "win32"
_NAMES = (
    ("nvJitLink_130_0.dll", "nvJitLink_120_0.dll")
    if _WINDOWS
    else ("libnvJitLink.so.13", "libnvJitLink.so.12")
)
_FOLDERS = ("bin/x86_64", "bin") if _WINDOWS else ("lib", "lib64")

# The library ends the process on names that are not of this shape ("sm_7"), so they never reach it.
_TARGET = re.compile(r"sm_[1-9][0-9]{1,2}[af]?")


@dataclass(frozen=True, slots=True)
class Assembly:
    """A cubin and what the assembler said about it: registers and spills of each entry, and lines with a code."""

    cubin: bytes
    log: str


@dataclass(frozen=True, slots=True)
class Assembler:
    """A loaded nvJitLink: where it is and its (major, minor) version."""

    library: Any
    path: str
    version: tuple[int, int]

    def entry(self, name: str) -> Any:
        """The function `nvJitLink<name>`; early 12.x libraries export only names with a version in them."""
        plain = getattr(self.library, f"nvJitLink{name}", None)
        if plain is not None:
            return plain
        for minor in range(15, -1, -1):
            for major in (13, 12):
                found = getattr(self.library, f"__nvJitLink{name}_{major}_{minor}", None)
                if found is not None:
                    return found
        raise AssemblerError(
            f"{self.path} has no nvJitLink{name}: it is no nvJitLink library of CUDA 12 or 13"
        )


def _version(library: Any) -> tuple[int, int]:
    ask = getattr(library, "nvJitLinkVersion", None)
    if ask is None:
        return 12, 0
    major, minor = ctypes.c_uint(), ctypes.c_uint()
    ask(ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value


@lru_cache(maxsize=1)
def find_assembler() -> Assembler:
    """NVIDIA's nvJitLink, found once.

    Tried in order: the file named by PTXTILE_NVJITLINK; the wheels in site-packages; CUDA_HOME and CUDA_PATH;
    /usr/local/cuda; the loader's own path.

    Raises:
        AssemblerError: none can be loaded; the message lists what was tried.
    """
    tried: list[str] = []
    for path in (*candidates(_VARIABLE, "nvjitlink", _FOLDERS, _NAMES), *_NAMES):
        try:
            library = ctypes.CDLL(str(path))
        except OSError as error:
            tried.append(f"  {path}: {error}")
            continue
        return Assembler(library, str(path), _version(library))
    listing = "\n".join(tried)
    raise AssemblerError(
        "NVIDIA's assembler library nvJitLink cannot be loaded\n"
        f"{listing}\n"
        "  what to do: pip install 'ptxtile[assemble]', or name the library in PTXTILE_NVJITLINK"
    )


# Whether two threads may assemble at once is not documented for every version of the library.
_lock = threading.Lock()


def _log(assembler: Assembler, handle: ctypes.c_void_p, kind: str) -> str:
    size = ctypes.c_size_t()
    if assembler.entry(f"Get{kind}LogSize")(handle, ctypes.byref(size)) or not size.value:
        return ""
    buffer = ctypes.create_string_buffer(size.value + 1)
    if assembler.entry(f"Get{kind}Log")(handle, buffer):
        return ""
    return buffer.value.decode(errors="replace").strip()


def _cubin(assembler: Assembler, handle: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    if assembler.entry("GetLinkedCubinSize")(handle, ctypes.byref(size)):
        return b""
    buffer = ctypes.create_string_buffer(size.value)
    return b"" if assembler.entry("GetLinkedCubin")(handle, buffer) else buffer.raw


def _refusal(assembler: Assembler, target: str, log: str) -> AssemblerError:
    major, minor = assembler.version
    shown = "\n".join(f"    {line}" for line in log.splitlines()) or "    (it gave no reason)"
    return AssemblerError(
        f"nvJitLink {major}.{minor} refused the module for {target}\n  log:\n{shown}", log=log
    )


def assemble_with_log(text: str, target: str, *, options: Sequence[str] = ()) -> Assembly:
    """Assemble a PTX module for one target.

    Args:
        text: the module.
        target: "sm_90a"; the module's own .target must be one that it can run.
        options: further options of nvJitLink, such as "-O1" or "-lineinfo".

    Raises:
        TargetError: `target` is not of the form sm_NN, with a or f behind it.
        AssemblerError: no library, or it refused the module; `.log` is what it said.
    """
    if not _TARGET.fullmatch(target):
        raise TargetError(
            f"{target!r} is no target: a target is sm_ and two or three digits, then a or f or nothing"
        )
    assembler = find_assembler()
    chosen = [f"-arch={target}", "-verbose", *options]
    array = (ctypes.c_char_p * len(chosen))(*[option.encode() for option in chosen])
    data = text.encode() + b"\0"
    handle = ctypes.c_void_p()
    with _lock:
        failed = assembler.entry("Create")(ctypes.byref(handle), ctypes.c_uint32(len(chosen)), array)
        try:
            if not failed:
                add = assembler.entry("AddData")
                failed = add(handle, _INPUT_PTX, data, ctypes.c_size_t(len(data)), b"ptxtile")
            failed = failed or assembler.entry("Complete")(handle)
            if failed:
                raise _refusal(assembler, target, _log(assembler, handle, "Error"))
            cubin, log = _cubin(assembler, handle), _log(assembler, handle, "Info")
        finally:
            assembler.entry("Destroy")(ctypes.byref(handle))
    if not cubin:
        raise AssemblerError(f"nvJitLink gave no cubin for {target}", log=log)
    return Assembly(cubin, log)


def assemble(text: str, target: str) -> bytes:
    """The cubin of a PTX module for one target; raises like `assemble_with_log`."""
    return assemble_with_log(text, target).cubin
