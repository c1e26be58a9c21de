"""Ask a GPU what the emulator's value functions claim, bit for bit.

    python benchmarks/device_semantics.py [--chapter float …] [--match add] [--seed 1] [--json FILE] [--emit FILE]

For each spelling a kernel applies the instruction to thousands of special and random operands; the results are compared
with `ptxtile.emulator.semantics`. Prints a table of what differs and, with --json, writes all of it. Needs a CUDA device
of compute capability 9.0 or later and the `cuda-python` package; with --emit it only writes the PTX and needs neither.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import device_semantics_cases as table
import device_semantics_text as text
from device_semantics_cases import Case

if TYPE_CHECKING:
    from cuda.bindings import driver as cuda

PTX_VERSION = "8.6"
BATCH = 100
SHOWN = 24
BYTES = 8 * 65536


class Device:
    """One context, and buffers for the operands and results of a case."""

    def __init__(self, ordinal: int) -> None:
        from cuda.bindings import driver

        self._driver = driver
        self._check(driver.cuInit(0))
        device = self._check(driver.cuDeviceGet(ordinal))
        self._check(driver.cuCtxSetCurrent(self._check(driver.cuDevicePrimaryCtxRetain(device))))
        attribute = driver.CUdevice_attribute
        major, minor = (
            self._check(driver.cuDeviceGetAttribute(kind, device))
            for kind in (
                attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
            )
        )
        self.target = f"sm_{major}{minor}"
        self.name = self._check(driver.cuDeviceGetName(128, device)).decode().rstrip("\0")
        self.version = int(self._check(driver.cuDriverGetVersion()))
        self.outputs = [int(self._check(driver.cuMemAlloc(BYTES))) for _ in range(text.TARGETS)]
        self.inputs = [int(self._check(driver.cuMemAlloc(BYTES))) for _ in range(text.SOURCES)]

    def _check(self, result: tuple[object, ...]) -> object:
        status, *values = result
        if int(status) != 0:  # type: ignore[call-overload]
            _, name = self._driver.cuGetErrorName(status)
            raise RuntimeError(f"CUDA driver: {name.decode() if name else status}")
        return values[0] if values else None

    def load(self, ptx: str) -> cuda.CUmodule:
        """A module from text; the driver's own assembler makes the code."""
        return self._check(self._driver.cuModuleLoadData(ptx.encode() + b"\0"))  # type: ignore[return-value]

    def unload(self, module: cuda.CUmodule) -> None:
        """Free a module."""
        self._check(self._driver.cuModuleUnload(module))

    def run(
        self, module: cuda.CUmodule, name: str, case: Case, arrays: Sequence[text.Words]
    ) -> list[text.Words]:
        """Launch one entry on these operands; its targets' arrays, and the flag after a case with carry."""
        driver, count = self._driver, len(arrays[0])
        function = self._check(driver.cuModuleGetFunction(module, name.encode()))
        for pointer, array in zip(self.inputs, arrays):
            held = np.ascontiguousarray(array.astype(np.uint8) if array.dtype == np.bool_ else array)
            self._check(driver.cuMemcpyHtoD(pointer, held.ctypes.data, held.nbytes))
        values = (*self.outputs, *self.inputs, count)
        kinds = (ctypes.c_uint64,) * (text.TARGETS + text.SOURCES) + (ctypes.c_uint32,)
        blocks = (count + 255) // 256
        self._check(driver.cuLaunchKernel(function, blocks, 1, 1, 256, 1, 1, 0, 0, (values, kinds), 0))
        self._check(driver.cuCtxSynchronize())
        results = []
        widths = [text.width(target) for target in case.targets] + ([32] if case.carry else [])
        for pointer, bits in zip(self.outputs, widths):
            held = np.empty(count, f"u{max(bits, 8) // 8}")
            self._check(driver.cuMemcpyDtoH(held.ctypes.data, pointer, held.nbytes))
            results.append(held.astype(np.bool_) if bits == 1 else held)
        return results


def judge(case: Case, arrays: Sequence[text.Words], got: Sequence[text.Words]) -> dict[str, object]:
    """One row of the report."""
    started = time.perf_counter()
    want = text.expected(case, arrays)
    seconds = time.perf_counter() - started
    good = np.ones(len(arrays[0]), np.bool_)
    worst = 0.0
    for name, device, emulator in zip((*case.targets, "b32"), got, want):
        agrees, error = text.agreement(case, name, device, emulator)
        good &= agrees
        worst = max(worst, error)
    differences = [
        {
            "operands": [hex(int(array[i])) for array in arrays],
            "device": [hex(int(array[i])) for array in got],
            "emulator": [hex(int(array[i])) for array in want],
        }
        for i in np.flatnonzero(~good)[:SHOWN]
    ]
    row: dict[str, object] = {"spelling": case.spelling, "sources": case.sources, "elements": len(good)}
    row |= {"agree": int(good.sum()), "emulator_seconds": round(seconds, 5), "differences": differences}
    if case.ulp is not None:
        row["worst_ulp"] = worst if np.isfinite(worst) else "inf"
    return row


def _batch(device: Device, cases: Sequence[Case], seed: int) -> list[dict[str, object]]:
    try:
        module = device.load(text.module(cases, PTX_VERSION, device.target))
    except RuntimeError as error:
        if len(cases) == 1:
            return [{"spelling": cases[0].spelling, "error": str(error)}]
        middle = len(cases) // 2
        return _batch(device, cases[:middle], seed) + _batch(device, cases[middle:], seed)
    rows = []
    for index, case in enumerate(cases):
        arrays = text.operands(case, seed)
        rows.append(judge(case, arrays, device.run(module, f"case{index}", case, arrays)))
    device.unload(module)
    return rows


def _print(rows: Sequence[dict[str, object]]) -> None:
    for row in rows:
        if "error" in row:
            print(f"{row['spelling']:44s} {row['error']}")
        elif row["agree"] != row["elements"]:
            print(f"{row['spelling']:44s} {row['agree']}/{row['elements']}")
            for difference in row["differences"][:3]:  # type: ignore[index]
                print(f"    {difference}")
        elif "worst_ulp" in row:
            print(f"{row['spelling']:44s} within its bound, worst {row['worst_ulp']} ulp")
    whole = sum("error" not in row and row["agree"] == row["elements"] for row in rows)
    print(f"{whole} of {len(rows)} spellings agree in every element")


def main() -> int:
    """Parse the command line, run the cases, report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--chapter", nargs="*", choices=sorted(table.CHAPTERS), default=list(table.CHAPTERS))
    parser.add_argument("--match", default="", help="only spellings that contain this")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--emit", type=Path, help="write the PTX of all cases here and stop")
    options = parser.parse_args()
    cases = [case for name in options.chapter for case in table.cases(name) if options.match in case.spelling]
    if options.emit:
        options.emit.write_text(text.module(cases, PTX_VERSION, "sm_90"))
        return 0
    started = time.perf_counter()
    try:
        device = Device(options.device)
    except (ImportError, RuntimeError) as error:
        print(f"no CUDA device to ask: {error}", file=sys.stderr)
        return 2
    rows: list[dict[str, object]] = []
    for start in range(0, len(cases), BATCH):
        rows += _batch(device, cases[start : start + BATCH], options.seed)
    _print(rows)
    report = {"device": device.name, "target": device.target, "driver": device.version, "seed": options.seed}
    report |= {
        "command": " ".join(sys.argv),
        "seconds": round(time.perf_counter() - started, 1),
        "cases": rows,
    }
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    return 0 if all("error" not in row and row["agree"] == row["elements"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
