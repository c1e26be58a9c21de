"""Ask a GPU what the emulator's value functions claim, bit for bit.

    python benchmarks/device_semantics.py [--chapter float …] [--match add] [--seed 1] [--json FILE]
    python benchmarks/device_semantics.py --against benchmarks/results/h200/semantics.json

For each spelling a kernel applies the instruction to 10,240 special and random operands (all of them, where there are
65,536 or fewer); the results are compared with `ptxtile.emulator.semantics`. Prints what differs and, with --json,
keeps it, and a hash of every answer, so that --against reruns the comparison without a GPU. Asking needs a CUDA device
of compute capability 9.0 and PTX 9.0; with --emit FILE it only writes the PTX of all kernels.
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
import device_semantics_record as record
import device_semantics_rest as rest
import device_semantics_text as text
from device_semantics_cases import Case

from ptxtile import driver
from ptxtile.errors import DriverError

PTX_VERSION = rest.PTX_VERSION
CHAPTERS = {**table.CHAPTERS, "rest": rest.rest}
BATCH = 100
SHOWN = 24
BYTES = 8 * 65536
Row = dict[str, object]


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


def judge(case: Case, arrays: Sequence[text.Words], got: Sequence[text.Words]) -> Row:
    """One row of the report."""
    want = text.expected(case, arrays)
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
    row: Row = {"case": record.key(case), "elements": len(good), "agree": int(good.sum())}
    row |= {"sha256": record.digest(case, got), "differences": differences}
    if case.ulp is not None:
        row["worst_ulp"] = worst if np.isfinite(worst) else "inf"
        row["offsets"] = record.pack_offsets(got[0], want[0])
    return row


def _batch(asked: Asked, cases: Sequence[Case], seed: int) -> list[Row]:
    try:
        module = driver.load(text.module(cases, PTX_VERSION, asked.device.target), asked.ordinal)
    except DriverError as error:
        if len(cases) == 1:
            return [{"case": record.key(cases[0]), "error": str(error)}]
        middle = len(cases) // 2
        return _batch(asked, cases[:middle], seed) + _batch(asked, cases[middle:], seed)
    rows = []
    with module:
        for index, case in enumerate(cases):
            arrays = text.operands(case, seed)
            rows.append(judge(case, arrays, asked.run(module, f"case{index}", case, arrays)))
    return rows


def _print(rows: Sequence[Row]) -> None:
    for row in rows:
        if "error" in row:
            print(f"{row['case']:44s} {row['error']}")
        elif row["agree"] != row["elements"]:
            print(f"{row['case']:44s} {row['agree']}/{row['elements']}")
            for difference in row["differences"][:3]:  # type: ignore[index]
                print(f"    {difference}")
        elif "worst_ulp" in row:
            print(f"{row['case']:44s} within its bound, worst {row['worst_ulp']} ulp")
    whole = sum("error" not in row and row["agree"] == row["elements"] for row in rows)
    print(f"{whole} of {len(rows)} cases agree in every element")


def report(asked: Asked, rows: Sequence[Row], seed: int, seconds: float) -> dict[str, object]:
    """What --json writes: a line a case, then what differs, and the distances of approximations."""
    head = {
        "command": "python " + " ".join(sys.argv),
        "device": asked.device.name,
        "target": asked.device.target,
    }
    head |= {"driver": driver.driver_version(), "ptx": PTX_VERSION, "seed": seed}
    body = [[row.get(column) for column in record.COLUMNS] for row in rows]
    differences = {row["case"]: row["differences"] for row in rows if row.get("differences")}
    offsets = {row["case"]: row["offsets"] for row in rows if "offsets" in row}
    errors = {row["case"]: row["error"] for row in rows if "error" in row}
    kept = {
        "columns": record.COLUMNS,
        "cases": body,
        "differences": differences,
        "errors": errors,
        "offsets": offsets,
    }
    return {**head, "seconds": round(seconds, 1), **kept}


def recheck(cases: Sequence[Case], path: Path) -> int:
    """Compare the emulator with the answers that are kept in a file; needs no GPU."""
    kept = json.loads(path.read_text())
    rows = {row[0]: dict(zip(kept["columns"], row)) for row in kept["cases"]}
    asked = [case for case in cases if record.key(case) in rows]
    bad = []
    for case in asked:
        name = record.key(case)
        if not record.recheck(case, kept["seed"], rows[name]["sha256"], kept["offsets"].get(name)):
            bad.append(name)
            print(f"{name:44s} the emulator differs from the device")
    print(f"{len(asked) - len(bad)} of {len(asked)} cases agree with {kept['device']} (seed {kept['seed']})")
    return 1 if bad else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--chapter", nargs="*", choices=sorted(CHAPTERS), default=list(CHAPTERS))
    parser.add_argument("--match", default="", help="only spellings that contain this")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--json", type=Path, help="keep the answers here")
    parser.add_argument("--against", type=Path, help="compare with the answers kept there, without a GPU")
    parser.add_argument("--emit", type=Path, help="write the PTX of all cases here and stop")
    return parser.parse_args()


def main() -> int:
    """Run the cases on a device, or compare with what one answered before."""
    options = _options()
    cases = [case for name in options.chapter for case in CHAPTERS[name]() if options.match in case.spelling]
    if options.emit:
        options.emit.write_text(text.module(cases, PTX_VERSION, "sm_90a"))
        return 0
    if options.against:
        return recheck(cases, options.against)
    started = time.perf_counter()
    try:
        asked = Asked(options.device)
    except DriverError as error:
        print(f"no CUDA device to ask: {error}", file=sys.stderr)
        return 2
    rows: list[Row] = []
    for start in range(0, len(cases), BATCH):
        rows += _batch(asked, cases[start : start + BATCH], options.seed)
    _print(rows)
    if options.json:
        kept = report(asked, rows, options.seed, time.perf_counter() - started)
        options.json.write_text(json.dumps(kept, separators=(",", ":")) + "\n")
    return 0 if all("error" not in row and row["agree"] == row["elements"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
