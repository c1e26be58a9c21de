"""Ask a GPU what the emulator's value functions claim, bit for bit.

    python benchmarks/device_semantics.py [--chapter float …] [--match add] [--seed 1] [--json FILE]

For each spelling a kernel applies the instruction to thousands of special and random operands; the results are
compared with `ptxtile.emulator.semantics`. Prints a table of what differs and, with --json, writes all of it. Needs
a CUDA device of compute capability 9.0 or later; with --emit FILE it only writes the PTX of all kernels.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import device_semantics_cases as table
import device_semantics_text as text
from device_semantics_cases import Case

from ptxtile import driver
from ptxtile.errors import DriverError

PTX_VERSION = "8.6"
BATCH = 100
SHOWN = 24
BYTES = 8 * 65536


class Asked:
    """One device, and buffers on it for the operands and results of a case."""

    def __init__(self, ordinal: int) -> None:
        self.ordinal = ordinal
        self.device = driver.device(ordinal)
        self.outputs = [driver.DeviceBuffer(BYTES, ordinal) for _ in range(text.TARGETS)]
        self.inputs = [driver.DeviceBuffer(BYTES, ordinal) for _ in range(text.SOURCES)]
        pointers = [driver.Slot("Q", 8 * i, 8) for i in range(text.TARGETS + text.SOURCES)]
        self._slots = [*pointers, driver.Slot("I", 8 * len(pointers), 4)]

    def run(
        self, module: driver.LoadedModule, name: str, case: Case, arrays: Sequence[text.Words]
    ) -> list[text.Words]:
        """Launch one entry on these operands; its targets' arrays, and the flag after a case with carry."""
        count = len(arrays[0])
        for buffer, array in zip(self.inputs, arrays):
            held = np.ascontiguousarray(array.astype(np.uint8) if array.dtype == np.bool_ else array)
            driver.copy_to_device(buffer.address, held.ctypes.data, held.nbytes, ordinal=self.ordinal)
            driver.synchronize(self.ordinal)
        geometry = driver.Geometry(((count + 255) // 256, 1, 1), (256, 1, 1))
        addresses = [buffer.address for buffer in (*self.outputs, *self.inputs)]
        driver.Launcher(module.function(name), geometry, self._slots)([*addresses, count])
        results = []
        widths = [text.width(target) for target in case.targets] + ([32] if case.carry else [])
        for buffer, bits in zip(self.outputs, widths):
            held = np.empty(count, f"u{max(bits, 8) // 8}")
            driver.copy_from_device(held.ctypes.data, buffer.address, held.nbytes, ordinal=self.ordinal)
            driver.synchronize(self.ordinal)
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


def _batch(asked: Asked, cases: Sequence[Case], seed: int) -> list[dict[str, object]]:
    try:
        module = driver.load(text.module(cases, PTX_VERSION, asked.device.target), asked.ordinal)
    except DriverError as error:
        if len(cases) == 1:
            return [{"spelling": cases[0].spelling, "error": str(error)}]
        middle = len(cases) // 2
        return _batch(asked, cases[:middle], seed) + _batch(asked, cases[middle:], seed)
    rows = []
    with module:
        for index, case in enumerate(cases):
            arrays = text.operands(case, seed)
            rows.append(judge(case, arrays, asked.run(module, f"case{index}", case, arrays)))
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
        asked = Asked(options.device)
    except DriverError as error:
        print(f"no CUDA device to ask: {error}", file=sys.stderr)
        return 2
    rows: list[dict[str, object]] = []
    for start in range(0, len(cases), BATCH):
        rows += _batch(asked, cases[start : start + BATCH], options.seed)
    _print(rows)
    report = {"device": asked.device.name, "target": asked.device.target, "seed": options.seed}
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
