"""Ask a GPU what the emulator says of matrix instructions, bit for bit.

    python benchmarks/device_tensor_core.py [--match WORD] [--warps 2048] [--seed 1] [--json FILE] [--device emulator]

Each case is one kernel that applies an instruction to random and adversarial operands. The emulator and the GPU run the
same text on the same arrays. Prints what differs, with how far; --json writes all of it, with a hash of each case's
results so that the comparison can be rerun without a GPU (--against FILE).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import device_tensor_core_cases as table
from device_tensor_core_cases import BLOCK, Case

from ptxtile import driver, emulator
from ptxtile.errors import DriverError, EmulatorError

Array = np.ndarray[Any, np.dtype[Any]]
Row = dict[str, object]
SHOWN = 6


def on_device(case: Case, ordinal: int) -> Array:
    """The last array after the kernel has run on a GPU."""
    buffers = [driver.DeviceBuffer(max(array.nbytes, 16), ordinal) for array in case.arrays]
    for buffer, array in zip(buffers, case.arrays):
        held = np.ascontiguousarray(array)
        driver.copy_to_device(buffer.address, held.ctypes.data, held.nbytes, ordinal=ordinal)
        driver.synchronize(ordinal)
    slots = [driver.Slot("Q", 8 * i, 8) for i in range(len(buffers))]
    with driver.load(case.text, ordinal) as module:
        geometry = driver.Geometry((case.grid, 1, 1), (BLOCK, 1, 1))
        driver.Launcher(module.function("k"), geometry, slots)([buffer.address for buffer in buffers])
        found = np.empty_like(case.arrays[-1])
        driver.copy_from_device(found.ctypes.data, buffers[-1].address, found.nbytes, ordinal=ordinal)
        driver.synchronize(ordinal)
    return found


def on_emulator(case: Case) -> Array:
    """The same on the emulator."""
    arrays = [array.copy() for array in case.arrays]
    emulator.launch(case.text, "k", case.grid, BLOCK, arrays, sanitize=False)
    return arrays[-1]


def split(found: Array, kind: str) -> Array:
    """Registers as the elements that they hold."""
    return np.ascontiguousarray(found).view({"f16": "u2", "bf16": "u2", "f64": "u8"}.get(kind, "u4"))


def compare(case: Case, device: Array, ours: Array) -> Row:
    """One row of the report; the classes of what differs show which part of a model is wrong."""
    a, b = split(device, case.kind), split(ours, case.kind)
    different = a != b
    row: Row = {"case": case.name, "elements": int(a.size), "agree": int((~different).sum())}
    row["sha256"] = hashlib.sha256(device.tobytes()).hexdigest()
    if not different.any():
        return row
    warp = np.indices(a.shape)[0] // 32
    row["by_regime"] = [int(different[warp % 5 == i].sum()) for i in range(5)]
    sign = np.array(1 << (a.dtype.itemsize * 8 - 1), a.dtype)
    row["zeros"] = int((different & ((a | b) == sign)).sum())
    near = np.abs(a.astype(np.int64) - b.astype(np.int64))
    row["by_one"] = int((different & (near == 1)).sum())
    row["largest"] = int(near[different].max())
    row["differences"] = [
        {
            "place": [int(x) for x in place],
            "device": hex(int(a[tuple(place)])),
            "emulator": hex(int(b[tuple(place)])),
        }
        for place in np.argwhere(different)[:SHOWN]
    ]
    return row


def judge(case: Case, device: int | None, hashes: dict[str, str]) -> Row:
    """Run a case on both, or compare the emulator with a stored hash."""
    started = time.perf_counter()
    try:
        ours = on_emulator(case)
        seconds = time.perf_counter() - started
        if device is None:
            digest = hashlib.sha256(ours.tobytes()).hexdigest()
            agree = case.arrays[-1].size if hashes.get(case.name, digest) == digest else 0
            row: Row = {"case": case.name, "elements": int(ours.size), "agree": int(agree), "sha256": digest}
        else:
            row = compare(case, on_device(case, device), ours)
    except (DriverError, EmulatorError) as error:
        return {"case": case.name, "error": str(error)}
    row["emulator_seconds"] = round(seconds, 3)
    return row


def show(rows: Sequence[Row]) -> None:
    """What differs, and how many cases agree."""
    for row in rows:
        if "error" in row:
            print(f"{row['case']}\n    {str(row['error'])[:600]}")
        elif row["agree"] != row["elements"]:
            facts = {name: row[name] for name in ("by_regime", "zeros", "by_one", "largest") if name in row}
            print(f"{row['case']}  {row['agree']}/{row['elements']}  {facts}")
            for difference in list(row.get("differences", []))[:3]:  # type: ignore[call-overload]
                print(f"    {difference}")
    whole = sum("error" not in row and row["agree"] == row["elements"] for row in rows)
    print(f"{whole} of {len(rows)} cases agree in every bit")


def cases(options: argparse.Namespace) -> Iterator[Case]:
    """All cases, or those that --match names."""
    everything = (
        table.mma_cases(options.warps, options.seed),
        table.move_cases(options.seed),
        table.wgmma_cases(max(options.warps // 32, 1), options.seed),
        table.reduction_cases(options.seed),
    )
    for group in everything:
        yield from (case for case in group if options.match in case.name)


def main() -> int:
    """Parse the command line, run the cases, report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--match", default="", help="only cases whose name contains this")
    parser.add_argument("--warps", type=int, default=2048, help="warps of an mma case; a multiple of 32")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="0", help="a CUDA ordinal, or emulator to run that alone")
    parser.add_argument("--json", type=Path)
    parser.add_argument(
        "--against", type=Path, help="an earlier --json: compare the emulator with its hashes"
    )
    options = parser.parse_args()
    device = None if options.device == "emulator" or options.against else int(options.device)
    report: dict[str, object] = {"command": " ".join(sys.argv), "seed": options.seed, "warps": options.warps}
    hashes: dict[str, str] = {}
    if options.against:
        hashes = {
            row["case"]: row["sha256"]
            for row in json.loads(options.against.read_text())["cases"]
            if "sha256" in row
        }
    if device is not None:
        try:
            report["device"] = driver.device(device).name
        except DriverError as error:
            print(f"no CUDA device to ask: {error}", file=sys.stderr)
            return 2
    started = time.perf_counter()
    rows = [judge(case, device, hashes) for case in cases(options)]
    show(rows)
    report |= {"seconds": round(time.perf_counter() - started, 1), "cases": rows}
    print(f"{report['seconds']} s")
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    return 0 if all("error" not in row and row["agree"] == row["elements"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
