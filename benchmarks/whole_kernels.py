"""Whole kernels on the GPU and on the emulator with the same bytes: python benchmarks/whole_kernels.py --ptx FOLDER.

Runs kernels that compilers made of benchmarks/corpora (CUDA C++ as MODULE.O3.ptx and MODULE.G.ptx, Triton as
triton_NN_NAME.sm_90.ptx) and every example of this repository. Results that go through no `.approx` must have the same
bytes; the others differ by no more than the case allows. `--emulator` leaves the GPU out, and only keeps hashes.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import re
import struct
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from whole_kernels_cases import CUDA, TRITON, Case

import ptxtile as pt
from ptxtile import driver, launchable

ROOT = Path(__file__).resolve().parents[1]
MOST_VERSION = "9.0"
CODES = {"f32": "f", "f64": "d"}
SKIPPED = ("blackwell_tile", "gather_rows", "maximum3", "multimem_sum", "tensor_memory_round_trip")
"""Examples of what no H200 runs."""
BOUNDS = {"activation": 1e-5}
"""Examples whose results go through `.approx`."""
OWN = {"changed_map": (2,)}
"""By example: arguments that hold what each machine encodes in its own way."""
KEPT = 4096
"""Bytes of a device's answer that are kept where it differs."""
Outcome = dict[str, Any]


def module_of(text: str, entry: str) -> str:
    """The module with one entry alone, in a version that the driver knows."""
    module = pt.parse(text)
    kept = [item for item in module.items if not getattr(item, "entry", False) or item.name == entry]
    found = str(replace(module, items=tuple(kept)))
    version = re.search(r"\.version (\d+)\.(\d+)", found)
    if version and (int(version[1]), int(version[2])) > (9, 0):
        found = found.replace(version[0], f".version {MOST_VERSION}", 1)
    return re.sub(r"(?m)^\.extern \.global .*\belsewhere\b.*$", "", found)


def parameter_bytes(parameter: Any, value: Any) -> bytes:
    """A scalar or a struct as it lies in parameter space."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, np.ndarray) or parameter.shape:
        return bytes(value.tobytes())
    if isinstance(value, np.generic):
        return value.tobytes()
    width = int(re.sub(r"\D", "", parameter.type)) // 8
    if parameter.type in CODES:
        return struct.pack(f"<{CODES[parameter.type]}", value)
    return (int(value) & (1 << 8 * width) - 1).to_bytes(width, "little")


def on_device(text: str, case: Case, arguments: list[Any]) -> list[bytes]:
    """Run it on the GPU: the bytes of every array afterwards."""
    entry = next(f for f in pt.parse(text).functions if f.name == case.entry)
    buffers: list[tuple[Any, Any]] = []
    slots, values, offset = [], [], 0
    for parameter, value in zip(entry.parameters, arguments):
        if is_array(parameter, value):
            buffer = driver.DeviceBuffer(max(value.nbytes, 16), 0)
            driver.copy_to_device(buffer.address, value.ctypes.data, value.nbytes, ordinal=0)
            buffers.append((buffer, value))
            raw = struct.pack("<Q", buffer.address)
        else:
            raw = parameter_bytes(parameter, value)
        offset = -(-offset // max(len(raw), 1)) * max(len(raw), 1) if len(raw) <= 8 else -(-offset // 16) * 16
        slots.append(driver.Slot(f"{len(raw)}s", offset, len(raw)))
        values.append(raw)
        offset += len(raw)
    driver.synchronize(0)
    module = driver.load(text, 0)
    geometry = driver.Geometry(case.grid, case.block, case.cluster, case.shared)
    driver.Launcher(module.function(case.entry), geometry, slots)(values)
    driver.synchronize(0)
    results = []
    for buffer, value in buffers:
        held = np.empty_like(value)
        driver.copy_from_device(held.ctypes.data, buffer.address, held.nbytes, ordinal=0)
        driver.synchronize(0)
        results.append(held.tobytes())
    return results


def is_array(parameter: Any, value: Any) -> bool:
    return isinstance(value, np.ndarray) and not parameter.shape and parameter.type in ("u64", "b64")


def on_emulator(text: str, case: Case, arguments: list[Any]) -> list[bytes]:
    """Run it here: the bytes of every array afterwards."""
    entry = next(f for f in pt.parse(text).functions if f.name == case.entry)
    held = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    given = [
        h
        if is_array(p, h)
        else (
            h.tobytes()
            if isinstance(h, np.ndarray) and p.shape
            else h[0]
            if isinstance(h, np.ndarray) and h.size == 1
            else as_scalar(p, h)
        )
        for p, h in zip(entry.parameters, held)
    ]
    pt.emulator.launch(
        text,
        case.entry,
        case.grid,
        case.block,
        given,
        cluster=case.cluster,
        dynamic_shared=case.shared,
        sanitize=case.sanitize,
    )
    return [h.tobytes() for p, h in zip(entry.parameters, held) if is_array(p, h)]


def as_scalar(parameter: Any, value: Any) -> Any:
    """A number in the parameter's range."""
    if isinstance(value, int) and not isinstance(value, bool) and parameter.type[0] in "ub":
        return value & (1 << int(re.sub(r"\D", "", parameter.type))) - 1
    return value


def differences(
    case: Case, arguments: list[Any], ours: list[bytes], theirs: list[bytes]
) -> tuple[int, float]:
    """Bytes that differ in the arrays of a case, and the largest difference."""
    arrays = [a for a in arguments if isinstance(a, np.ndarray)]
    return compared(arrays[-len(ours) :] if len(arrays) != len(ours) else arrays, ours, theirs)


def compared(arrays: list[Any], ours: list[bytes], theirs: list[bytes]) -> tuple[int, float]:
    """Bytes that differ, and the largest difference relative to the larger value; infinite if they are no floats."""
    count, worst = 0, 0.0
    for array, a, b in zip(arrays, ours, theirs):
        count += sum(x != y for x, y in zip(a, b))
        if a != b and array.dtype.kind in "fV":
            x, y = (np.frombuffer(raw, array.dtype).astype(np.float64) for raw in (a, b))
            with np.errstate(invalid="ignore", divide="ignore"):
                off = np.abs(x - y) / np.maximum(np.maximum(np.abs(x), np.abs(y)), 1e-30)
            off = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0, off)
            worst = max(worst, float("inf") if np.isnan(off).any() else float(off.max()))
        elif a != b:
            worst = float("inf")
    return count, worst


def texts(folder: Path) -> Iterator[tuple[str, Case, str]]:
    """Each case with its module's text."""
    for case in CUDA:
        for mode in case.modes:
            path = folder / f"{case.stem}.{mode}.ptx"
            if path.exists():
                yield f"{case.stem}.{mode}.{case.entry}", case, path.read_text(encoding="utf-8")
    for case in TRITON:
        for path in folder.glob(f"{case.stem}.sm_90.ptx"):
            text = path.read_text(encoding="utf-8")
            block = re.search(r"\.reqntid (\d+)", text)
            extra = len(next(f for f in pt.parse(text).functions if f.entry).parameters) - len(case.arguments)
            scratch = tuple([lambda chance: np.zeros(64, np.uint8)] * extra)
            whole = replace(
                case, block=(int(block[1]) if block else 128, 1, 1), arguments=case.arguments + scratch
            )
            yield case.stem, whole, text


def run(name: str, case: Case, whole: str, seed: int, gpu: bool) -> Outcome:
    chance = np.random.default_rng(seed)
    arguments = [make(chance) for make in case.arguments]
    found: Outcome = {"name": name}
    try:
        text = module_of(whole, case.entry)
        began = time.process_time()
        ours = on_emulator(text, case, arguments)
        found |= {
            "seconds": round(time.process_time() - began, 3),
            "sha256": hashlib.sha256(b"".join(ours)).hexdigest()[:16],
        }
        if gpu:
            theirs = on_device(text, case, arguments)
            count, worst = differences(case, arguments, ours, theirs)
            found |= {
                "bytes": sum(map(len, ours)),
                "differ": count,
                "worst": worst,
                "right": count == 0 or worst <= case.bound,
            }
            if count and sum(map(len, theirs)) <= KEPT:
                found["device"] = b"".join(theirs).hex()
    except pt.PtxtileError as error:
        found |= {"error": f"{type(error).__name__}: {error}"[:600], "right": False}
    return found


class Recorder:
    """Keeps a copy of every array that a kernel object was launched with, after each launch."""

    def __init__(self, without: tuple[int, ...]) -> None:
        self.seen: list[Any] = []
        self.without = without
        self.kernel: Any = launchable.Kernel
        self.original = self.kernel.launch

    def __enter__(self) -> Recorder:
        recorder = self

        def launch(kernel: Any, *args: Any, **options: Any) -> None:
            recorder.original(kernel, *args, **options)
            kept = [a for place, a in enumerate(args) if place not in recorder.without]
            recorder.seen.extend(a.copy() for a in kept if isinstance(a, np.ndarray))

        self.kernel.launch = launch
        return self

    def __exit__(self, *_: object) -> None:
        self.kernel.launch = self.original


def examples(gpu: bool) -> Iterator[Outcome]:
    """Every example's main, on both machines: the arrays after each launch."""
    sys.path.insert(0, str(ROOT))
    for path in sorted((ROOT / "examples").glob("*.py")):
        if path.stem not in SKIPPED and not path.stem.startswith("_"):
            yield example(path.stem, gpu)


def example(name: str, gpu: bool) -> Outcome:
    from importlib import import_module

    found: Outcome = {"name": f"example.{name}"}
    seen: dict[str, list[Any]] = {}
    try:
        for device in ["emulator", *(["0"] if gpu else [])]:
            os.environ["PTXTILE_DEVICE"] = device
            with Recorder(OWN.get(name, ())) as recorder, contextlib.redirect_stdout(io.StringIO()):
                import_module(f"examples.{name}").main()
            seen[device] = recorder.seen
        ours = [array.tobytes() for array in seen["emulator"]]
        found["sha256"] = hashlib.sha256(b"".join(ours)).hexdigest()[:16]
        if gpu:
            theirs = [array.tobytes() for array in seen["0"]]
            count, worst = compared(seen["0"], ours, theirs)
            right = count == 0 or worst <= BOUNDS.get(name, 0.0)
            found |= {"bytes": sum(map(len, theirs)), "differ": count, "worst": worst, "right": right}
    except Exception as error:
        found |= {"error": f"{type(error).__name__}: {error}"[:600], "right": False}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ptx", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--emulator", action="store_true", help="leave the GPU out")
    parser.add_argument("--only", default="", help="names that hold this")
    asked = parser.parse_args()
    gpu = not asked.emulator
    rows = [run(n, case, text, asked.seed, gpu) for n, case, text in texts(asked.ptx) if asked.only in n]
    rows += [] if asked.only else list(examples(gpu))
    head: Outcome = {"command": " ".join(sys.argv), "seed": asked.seed, "ptxtile": pt.__version__}
    if gpu:
        head |= {"device": driver.device(0).name, "driver": str(driver.driver_version())}
    if asked.json:
        asked.json.write_text(json.dumps({**head, "kernels": rows}, indent=1) + "\n", encoding="utf-8")
    for row in rows:
        if not row.get("right", True) or "error" in row:
            print(row["name"], row.get("differ"), row.get("worst"), row.get("error", ""))
    print(f"{len(rows)} kernels, {sum(bool(row.get('right')) for row in rows)} as on the device")


if __name__ == "__main__":
    main()
