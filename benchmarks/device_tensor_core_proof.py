"""Prove on 10^6 random results a form that the emulator's tensor core is the hardware's, bit for bit.

    python benchmarks/device_tensor_core_proof.py [--seed 1] [--match WORD] [--blocks 32] [--json FILE]
    python benchmarks/device_tensor_core_proof.py --against benchmarks/results/h200/tensor_core_proof.json

Every dense mma.sync and wgmma of f16, bf16, tf32, e4m3 and e5m2. A, B and C are drawn independently, warp by warp, from
nine regimes: random bits, wide exponents, cancelling values, subnormals, numbers at the top of the range, infinities
and NaNs among ordinary numbers, short mantissas that make halfway cases. Operands come in blocks of 256 warps or 8 CTAs
from the seed, and each block's results are hashed: --against compares the emulator with a GPU's hashes where there is
no GPU, --blocks only the first ones.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from device_tensor_core import compare, on_device, on_emulator, show
from device_tensor_core_cases import FORMATS, Array, Case, mma_case, wgmma_case

from ptxtile import driver
from ptxtile.errors import DriverError, EmulatorError

BLOCKS = 32
WARPS, TILES = 256, 8
"""Of one block: warps of mma.sync, CTAs of wgmma; 32,768 results of either."""
REGIMES = 9
Make = Callable[[int], Case]
Row = dict[str, Any]


def draw(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> Array:
    """Bit patterns of a type; each index of the first axis has a regime of its own."""
    bits, wide, mantissa = FORMATS[kind]
    raw = rng.integers(0, 1 << bits, shape, np.int64)
    top, bias = (1 << wide) - 1, (1 << (wide - 1)) - 1
    finite = top if kind == "e4m3" else top - 1
    exponents = [
        raw >> mantissa & top,
        rng.integers(0, finite + 1, shape),
        rng.integers(max(bias - 4, 0), min(bias + 5, finite), shape),
        rng.integers(bias - 1, bias + 1, shape),
        rng.integers(0, 3, shape),
        rng.integers(max(bias - 28, 0), min(bias + 28, finite), shape),
        rng.integers(finite - 2, finite + 1, shape),
        np.where(rng.random(shape) < 0.02, top, rng.integers(max(bias - 3, 0), bias + 3, shape)),
        rng.integers(max(bias - 12, 0), min(bias + 4, finite), shape),
    ]
    regime = rng.integers(0, REGIMES, shape[0]).reshape(-1, *(1,) * (len(shape) - 1))
    exponent = np.select([regime == i for i in range(REGIMES)], exponents)
    fraction = raw & ((1 << mantissa) - 1)
    few = rng.choice(np.array([0, 0, 1, (1 << mantissa) - 1]), shape)
    short = fraction & ~((1 << max(mantissa - 2, 0)) - 1)
    fraction = np.select([(regime == 3) | (regime == 7), regime == 8], [few, short], fraction)
    found = raw & 1 << (bits - 1) | exponent << mantissa | fraction
    zero = (regime > 0) & (rng.random(shape) < 0.03)
    return np.where(zero, found & 1 << (bits - 1), found).astype(f"u{bits // 8}")


def forms() -> Iterator[tuple[str, Make]]:
    """Every form by name, and what makes one block of it from a seed."""
    for kind in ("f16", "bf16", "tf32"):
        for k in (4, 8) if kind == "tf32" else (8, 16):
            for c in ("f32", "f16") if kind == "f16" else ("f32",):
                yield _mma(k, (c, kind, kind))
    for a in ("e4m3", "e5m2"):
        for b in ("e4m3", "e5m2"):
            for k in (16, 32):
                for c in ("f32", "f16"):
                    yield _mma(k, (c, a, b))
    for kind in ("f16", "bf16", "tf32"):
        for source in ("shared", "registers"):
            tail = ", 1, 1" + ("" if kind == "tf32" else ", 0, 0" if source == "shared" else ", 0")
            for d in ("f32", "f16") if kind == "f16" else ("f32",):
                yield _wgmma((d, kind, kind), source, tail)
    for a in ("e4m3", "e5m2"):
        for b in ("e4m3", "e5m2"):
            for source in ("shared", "registers"):
                for d in ("f32", "f16"):
                    yield _wgmma((d, a, b), source, ", 1, 1")


def _mma(k: int, types: tuple[str, str, str]) -> tuple[str, Make]:
    c, a, b = types
    bits = FORMATS[a][0]
    name = f"mma.sync.aligned.m16n8k{k}.row.col.{c}.{a}.{b}.{c}"
    n = 4 if c == "f32" else 2
    counts = (n, k * bits // 64, k * bits // 128, n)
    return name, lambda seed: mma_case(name, (c, a, b, c), counts, WARPS, seed, draw)


def _wgmma(types: tuple[str, str, str], source: str, tail: str) -> tuple[str, Make]:
    name = f"wgmma.mma_async.sync.aligned.m64n64k{256 // FORMATS[types[1]][0]}.{'.'.join(types)} A {source}"
    return name, lambda seed: wgmma_case(types, 64, TILES, seed, source=source, tail=tail, draw=draw)


def joined(name: str, make: Make, seed: int, blocks: int) -> Case:
    """So many blocks as one launch."""
    parts = [make(seed * 1000 + block) for block in range(blocks)]
    arrays = [np.concatenate(arrays) for arrays in zip(*(part.arrays for part in parts))]
    return Case(name, parts[0].text, sum(part.grid for part in parts), arrays, parts[0].kind)


def hashes(results: Array, blocks: int) -> list[str]:
    """Of each block's results, the first 16 hexadecimal digits of SHA-256."""
    return [hashlib.sha256(part.tobytes()).hexdigest()[:16] for part in np.split(results, blocks)]


def judge(case: Case, blocks: int, device: int | None, known: list[str] | None) -> Row:
    """One form on both machines, or on the emulator beside what a GPU said."""
    started = time.perf_counter()
    try:
        ours = on_emulator(case)
        seconds = time.perf_counter() - started
        if device is not None:
            theirs = on_device(case, device)
            row: Row = dict(compare(case, theirs, ours)) | {"blocks": hashes(theirs, blocks)}
        else:
            found = hashes(ours, blocks)
            wrong = [i for i, mine in enumerate(found) if known is not None and known[i] != mine]
            size = int(ours.size)
            row = {"case": case.name, "elements": size, "agree": size - len(wrong) * (size // blocks)}
            row |= {"blocks": found, "wrong": wrong}
    except (DriverError, EmulatorError) as error:
        return {"case": case.name, "error": str(error)}
    halves = case.kind == "f16"
    row["results"] = int(ours.size) * (2 if halves else 1)
    return row | {"emulator_seconds": round(seconds, 2)}


def ask(asked: tuple[str, int, int, int | None, list[str] | None]) -> Row:
    """`judge` by name, so that it can be done in another process."""
    name, seed, blocks, device, known = asked
    return judge(joined(name, dict(forms())[name], seed, blocks), blocks, device, known)


def main() -> int:
    """Parse the command line, run the forms, report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--match", default="", help="only forms whose name contains this")
    parser.add_argument("--blocks", type=int, default=BLOCKS)
    parser.add_argument("--device", default="0", help="a CUDA ordinal, or emulator to run that alone")
    parser.add_argument("--jobs", type=int, default=1, help="processes that work side by side")
    parser.add_argument("--json", type=Path)
    parser.add_argument(
        "--against", type=Path, help="an earlier --json: compare the emulator with its hashes"
    )
    options = parser.parse_args()
    known: dict[str, list[str]] = {}
    device = None if options.device == "emulator" or options.against else int(options.device)
    if options.against:
        record = json.loads(options.against.read_text())
        options.seed = record["seed"]
        known = {row["case"]: row["blocks"] for row in record["cases"] if "blocks" in row}
    report: Row = {"command": " ".join(sys.argv), "seed": options.seed, "numpy": np.__version__}
    if device is not None:
        report["device"] = driver.device(device).name
    started = time.perf_counter()
    asked = [
        (name, options.seed, options.blocks, device, known.get(name))
        for name, _ in forms()
        if options.match in name
    ]
    if options.jobs > 1:
        with ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as pool:
            rows = list(pool.map(ask, asked))
    else:
        rows = [ask(each) for each in asked]
    show(rows)
    report |= {"seconds": round(time.perf_counter() - started, 1), "cases": rows}
    print(f"{sum(row.get('results', 0) for row in rows)} results of {len(rows)} forms, {report['seconds']} s")
    if options.json:
        text = ",\n".join(json.dumps(row) for row in rows)
        head = json.dumps({name: value for name, value in report.items() if name != "cases"})
        options.json.write_text(f'{head[:-1]}, "cases": [\n{text}\n]}}\n')
    return 0 if all("error" not in row and row["agree"] == row["elements"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
