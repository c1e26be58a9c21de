"""Ask a GPU about video instructions, warp collectives, atomics: the same kernels on it and on the emulator.

    python benchmarks/device_lanes.py [--chapter warp …] [--match vadd] [--seed 1] [--json FILE] [--raw FILE]
    python benchmarks/device_lanes.py --against benchmarks/results/h200/lanes.json

Each kernel applies one instruction, with parts of registers chosen by the seed, in 10,240 threads, half of whose words
lie at boundaries. --json keeps a hash of every answer, so that --against reruns the comparison without a GPU; --raw
keeps the answers of the first threads as a compressed NumPy archive.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import device_lanes_cases as table
from device_lanes_cases import THREADS, Kernel

from ptxtile import driver, emulator
from ptxtile.errors import DriverError, EmulatorError

BATCH = 100
BLOCK = 256
SHOWN = 3
RAW = 1024
"""Threads whose answers --raw keeps."""
DIGITS = 16
Words = NDArray[np.uint32]
Row = dict[str, object]


class Asked:
    """One device, with buffers for the words and the results."""

    def __init__(self, ordinal: int) -> None:
        self.ordinal = ordinal
        self.device = driver.device(ordinal)
        self.outputs, self.inputs = (driver.DeviceBuffer(16 * THREADS, ordinal) for _ in range(2))

    def run(self, module: driver.LoadedModule, name: str, words: Words) -> Words:
        """The results of one kernel: (threads, 2)."""
        driver.copy_to_device(self.inputs.address, words.ctypes.data, words.nbytes, ordinal=self.ordinal)
        slots = [driver.Slot("Q", 0, 8), driver.Slot("Q", 8, 8)]
        geometry = driver.Geometry((THREADS // BLOCK, 1, 1), (BLOCK, 1, 1))
        driver.Launcher(module.function(name), geometry, slots)([self.outputs.address, self.inputs.address])
        found = np.empty((THREADS, 2), np.uint32)
        driver.copy_from_device(found.ctypes.data, self.outputs.address, found.nbytes, ordinal=self.ordinal)
        driver.synchronize(self.ordinal)
        return found


def emulated(kernels: Sequence[Kernel], seed: int) -> list[Words | str]:
    """What the emulator computes for each kernel, or why it does not."""
    loaded = emulator.Loaded(table.module(list(kernels)))
    source = loaded.memory.allocate(16 * THREADS, name="words", written=True)
    target = loaded.memory.allocate(8 * THREADS, name="results", written=True)
    found: list[Words | str] = []
    for number, kernel in enumerate(kernels):
        loaded.memory.write(source, table.words(kernel.draw, seed))
        packed = np.array([target, source], np.uint64).tobytes()
        try:
            loaded.launch(f"k{number}", THREADS // BLOCK, BLOCK, packed, sanitize=False)
        except EmulatorError as error:
            found.append(str(error))
            continue
        found.append(np.frombuffer(loaded.memory.read(target, 8 * THREADS), np.uint32).reshape(-1, 2).copy())
    return found


def misassembled(name: str) -> bool:
    """Whether the assembler of CUDA 13.0, which is in drivers of release 580, gets an instruction wrong.

    It merges the upper half of a scalar video result into `.h1`, where the manual and the assembler of CUDA 13.5, and
    so the emulator, take the lower one.
    """
    opcode, _, rest = name.partition(".")
    return opcode in table.SCALAR and rest.partition(" ")[2].startswith("r5.h1,")


def digest(results: Words) -> str:
    """The first digits of the SHA-256 of a kernel's results."""
    return hashlib.sha256(np.ascontiguousarray(results).tobytes()).hexdigest()[:DIGITS]


def _name(kernel: Kernel) -> str:
    return kernel.text.replace("\n", " ")


def judge(kernel: Kernel, words: Words, got: Words, want: Words | str) -> Row:
    """One row of the report."""
    row: Row = {"case": _name(kernel), "elements": THREADS, "sha256": digest(got)}
    if isinstance(want, str):
        return {**row, "agree": None, "error": want}
    good = (got == want).all(axis=1)
    rows = np.flatnonzero(~good)[:SHOWN]
    tables = {"operands": words, "device": got, "emulator": want}
    shown = [{name: [hex(int(x)) for x in array[i]] for name, array in tables.items()} for i in rows]
    return {**row, "agree": int(good.sum()), "differences": shown}


def ask(asked: Asked, kernels: Sequence[Kernel], seed: int, raw: dict[str, Words]) -> list[Row]:
    """Ask the device about some kernels; its answers go into `raw`."""
    try:
        module = driver.load(table.module(list(kernels)), asked.ordinal)
    except DriverError as error:
        if len(kernels) == 1:
            return [{"case": _name(kernels[0]), "error": str(error)}]
        middle = len(kernels) // 2
        return ask(asked, kernels[:middle], seed, raw) + ask(asked, kernels[middle:], seed, raw)
    rows = []
    with module:
        wanted = emulated(kernels, seed)
        for number, kernel in enumerate(kernels):
            words = table.words(kernel.draw, seed)
            got = asked.run(module, f"k{number}", words)
            raw[_name(kernel)] = got
            rows.append(judge(kernel, words, got, wanted[number]))
    return rows


def recheck(kernels: Sequence[Kernel], kept: dict[str, object]) -> int:
    """Compare the emulator with the answers that are kept; needs no GPU."""
    hashes = {row[0]: row[2] for row in kept["cases"]}  # type: ignore[attr-defined]
    known = [kernel for kernel in kernels if _name(kernel) in hashes]
    asked = [kernel for kernel in known if not misassembled(_name(kernel))]
    bad = 0
    for start in range(0, len(asked), BATCH):
        some = asked[start : start + BATCH]
        for kernel, want in zip(some, emulated(some, int(str(kept["seed"])))):
            if isinstance(want, str) or digest(want) != hashes[_name(kernel)]:
                bad += 1
                print(f"{_name(kernel):60s} the emulator differs from the device")
    print(f"{len(asked) - bad} of {len(asked)} kernels agree with {kept['device']} (seed {kept['seed']})")
    print(
        f"{len(known) - len(asked)} merges into .h1 are not compared: its driver's assembler gets them wrong"
    )
    return 1 if bad else 0


def _print(rows: Sequence[Row]) -> None:
    counted = [row for row in rows if not misassembled(str(row["case"]))]
    for row in counted:
        if row.get("agree") != row.get("elements") or "error" in row:
            print(f"{row['case']:60s} {row.get('error') or row.get('agree')}")
            for difference in row.get("differences", [])[:1]:  # type: ignore[index]
                print(f"    {difference}")
    whole = sum(row.get("agree") == THREADS for row in counted)
    print(f"{whole} of {len(counted)} kernels agree in every thread; {len(rows) - len(counted)} not counted")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--chapter", nargs="*", choices=sorted(table.CHAPTERS), default=list(table.CHAPTERS))
    parser.add_argument("--match", default="", help="only instructions that contain this")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--json", type=Path, help="keep hashes and differences here")
    parser.add_argument("--raw", type=Path, help="keep the device's answers here")
    parser.add_argument("--against", type=Path, help="compare with the answers kept there, without a GPU")
    return parser.parse_args()


def _save(asked: Asked, rows: Sequence[Row], seed: int, seconds: float, path: Path) -> None:
    head = {"command": "python " + " ".join(sys.argv), "device": asked.device.name, "target": table.TARGET}
    head |= {"driver": driver.driver_version(), "seed": str(seed), "seconds": f"{seconds:.1f}"}
    columns = ("case", "elements", "sha256", "agree")
    body = [[row.get(column) for column in columns] for row in rows]
    differences = {row["case"]: row["differences"] for row in rows if row.get("differences")}
    errors = {row["case"]: row["error"] for row in rows if "error" in row}
    kept = {**head, "columns": columns, "cases": body, "differences": differences, "errors": errors}
    path.write_text(json.dumps(kept, separators=(",", ":")) + "\n")


def main() -> int:
    """Run the kernels on a device and on the emulator, or compare with what a device answered before."""
    options = _options()
    kept = json.loads(options.against.read_text()) if options.against else None
    seed = options.seed if kept is None else int(kept["seed"])
    every = [kernel for name in options.chapter for kernel in table.CHAPTERS[name](seed)]
    kernels = list({_name(kernel): kernel for kernel in every if options.match in kernel.text}.values())
    if kept is not None:
        return recheck(kernels, kept)
    started = time.perf_counter()
    try:
        asked = Asked(options.device)
    except DriverError as error:
        print(f"no CUDA device to ask: {error}", file=sys.stderr)
        return 2
    rows: list[Row] = []
    raw: dict[str, Words] = {}
    for start in range(0, len(kernels), BATCH):
        rows += ask(asked, kernels[start : start + BATCH], seed, raw)
    _print(rows)
    if options.json:
        _save(asked, rows, seed, time.perf_counter() - started, options.json)
    if options.raw:
        np.savez_compressed(options.raw, **{name: found[:RAW, 0] for name, found in raw.items()})
    return 0 if all(row.get("agree") == THREADS for row in rows if not misassembled(str(row["case"]))) else 1


if __name__ == "__main__":
    sys.exit(main())
