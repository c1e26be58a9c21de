"""What a CUresult means and what to do about it; which driver takes which PTX version.

Nothing here talks to the driver: `failure` is given the binding that names results.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import SupportsInt

from ptxtile.errors import DriverError

__all__ = ["PTX_RELEASES", "PtxRelease", "failure", "highest_ptx", "no_gpu", "release_for_ptx", "result_name"]


@dataclass(frozen=True, slots=True)
class PtxRelease:
    """One row of the PTX release history (PTX ISA section 13).

    `driver` is the branch that came with that toolkit, 0 where we have no record of it; `cuda` is the CUDA
    version as `cuDriverGetVersion` counts, 1000 * major + 10 * minor; `ptx` the highest version it takes.
    """

    driver: int
    cuda: int
    ptx: str

    @property
    def cuda_text(self) -> str:
        """`12080` as "12.8"."""
        return cuda_text(self.cuda)


# Data, not arithmetic: CUDA 12.5 and 12.6 both stop at PTX 8.5.
PTX_RELEASES: tuple[PtxRelease, ...] = (
    PtxRelease(450, 11000, "7.0"),
    PtxRelease(455, 11010, "7.1"),
    PtxRelease(460, 11020, "7.2"),
    PtxRelease(465, 11030, "7.3"),
    PtxRelease(470, 11040, "7.4"),
    PtxRelease(495, 11050, "7.5"),
    PtxRelease(510, 11060, "7.6"),
    PtxRelease(515, 11070, "7.7"),
    PtxRelease(520, 11080, "7.8"),
    PtxRelease(525, 12000, "8.0"),
    PtxRelease(530, 12010, "8.1"),
    PtxRelease(535, 12020, "8.2"),
    PtxRelease(545, 12030, "8.3"),
    PtxRelease(550, 12040, "8.4"),
    PtxRelease(555, 12050, "8.5"),
    PtxRelease(560, 12060, "8.5"),
    PtxRelease(565, 12070, "8.6"),
    PtxRelease(570, 12080, "8.7"),
    PtxRelease(575, 12090, "8.8"),
    PtxRelease(580, 13000, "9.0"),
    PtxRelease(590, 13010, "9.1"),
    PtxRelease(0, 13020, "9.2"),
    PtxRelease(0, 13030, "9.3"),
    PtxRelease(0, 13040, "9.4"),
    PtxRelease(0, 13050, "9.5"),
)

_HINTS = {
    "CUDA_ERROR_OUT_OF_MEMORY": "free device arrays, or run on a device with more memory",
    "CUDA_ERROR_NO_DEVICE": 'no GPU is visible: look at CUDA_VISIBLE_DEVICES, or run with device="emulator"',
    "CUDA_ERROR_INVALID_DEVICE": "look at the ordinals that `ptxtile.driver.device_count()` allows",
    "CUDA_ERROR_DEINITIALIZED": "the process is exiting: launch before that",
    "CUDA_ERROR_INVALID_PTX": "the driver's assembler refused the text: its log says which line",
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": "the module's .version is newer than the driver: pin a lower "
    "ptx_version, update the driver, or load a cubin from `ptxtile.assemble`",
    "CUDA_ERROR_NO_BINARY_FOR_GPU": "the module's .target is not one this GPU can run",
    "CUDA_ERROR_INVALID_SOURCE": "the image is neither PTX nor a cubin",
    "CUDA_ERROR_JIT_COMPILER_NOT_FOUND": "libnvidia-ptxjitcompiler is missing beside libcuda: install the whole "
    "driver, or load a cubin from `ptxtile.assemble`",
    "CUDA_ERROR_NOT_FOUND": "no such name in the module: an entry must be .visible .entry",
    "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES": "the block needs more registers or shared memory than an SM has: use "
    "fewer threads, fewer registers or less shared memory",
    "CUDA_ERROR_ILLEGAL_ADDRESS": 'a kernel touched memory that is not its own; run it with device="emulator" to '
    "see where. This CUDA context is lost: start a new process",
    "CUDA_ERROR_MISALIGNED_ADDRESS": 'a kernel used a misaligned address; run it with device="emulator" to see '
    "where. This CUDA context is lost: start a new process",
    "CUDA_ERROR_ILLEGAL_INSTRUCTION": "a kernel met an instruction that this GPU lacks. This CUDA context is lost: "
    "start a new process",
    "CUDA_ERROR_LAUNCH_FAILED": 'a kernel faulted; run it with device="emulator" to see where. This CUDA context '
    "is lost: start a new process",
    "CUDA_ERROR_LAUNCH_TIMEOUT": "a kernel ran longer than the display driver allows",
    "CUDA_ERROR_INVALID_CLUSTER_SIZE": "use a cluster of at most 8 blocks, or one the device can hold",
    "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED": "this call cannot be captured into a graph: keep NumPy arguments and "
    "allocations outside the capture",
}


def cuda_text(version: int) -> str:
    """1000 * major + 10 * minor as "major.minor"."""
    return f"{version // 1000}.{version % 1000 // 10}"


def _order(ptx: str) -> tuple[int, int]:
    major, _, minor = ptx.partition(".")
    return int(major), int(minor)


def highest_ptx(cuda: int) -> str | None:
    """The highest PTX version that a driver of CUDA version `cuda` is known to take; None below CUDA 11."""
    found = None
    for release in PTX_RELEASES:
        if release.cuda <= cuda:
            found = release.ptx
    return found


def release_for_ptx(ptx: str) -> PtxRelease | None:
    """The first release that takes PTX version `ptx` ("8.7"); None where it is newer than the table."""
    wanted = _order(ptx)
    for release in PTX_RELEASES:
        if _order(release.ptx) >= wanted:
            return release
    return None


def result_name(binding: ModuleType, result: SupportsInt) -> str:
    """`CUDA_ERROR_…` for a CUresult; "CUresult 4711" for a number that the binding does not know."""
    try:
        return str(binding.CUresult(int(result)).name)
    except ValueError:
        return f"CUresult {int(result)}"


def _description(binding: ModuleType, result: SupportsInt) -> str:
    """The driver's own words for a result; empty where it has none."""
    try:
        answer = binding.cuGetErrorString(result)
    except (RuntimeError, ValueError, TypeError):
        return ""
    text = answer[1]
    return text.decode(errors="replace") if isinstance(text, bytes) else ""


def failure(
    binding: ModuleType, result: SupportsInt, what: str, *, hint: str = "", log: str = "", notes: str = ""
) -> DriverError:
    """The DriverError for a CUresult that is not success.

    `what` completes "could not …"; `hint` replaces the usual advice for that result; `notes` are further lines;
    `log` is the JIT's log, shown last.
    """
    name = result_name(binding, result)
    description = _description(binding, result)
    lines = [f"could not {what}: {name} ({int(result)})" + (f", {description}" if description else "")]
    lines += [f"  {line}" for line in notes.splitlines()]
    advice = hint or _HINTS.get(name, "")
    if advice:
        lines.append(f"  what to do: {advice}")
    if log.strip():
        lines.append("  log:")
        lines += [f"    {line}" for line in log.strip().splitlines()]
    return DriverError("\n".join(lines), code=int(result), name=name, log=log)


def no_gpu(reason: str) -> DriverError:
    """The DriverError for a machine on which nothing can be launched."""
    return DriverError(
        f'no CUDA device can be used: {reason}\n  what to do: run with device="emulator" or PTXTILE_DEVICE=emulator'
    )
