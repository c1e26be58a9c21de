"""How far the math library is from the truth on a GPU: the largest error of each function, in ulp.

    python benchmarks/device_math.py [--count 4194304] [--json FILE] [--ptx FILE]
    python benchmarks/device_math.py --emit FILE

Every function is applied to numbers of any exponent and to numbers of the interval where it does its work; the exact
result is computed in float64 (of float64 functions in extended precision). --emit writes the PTX of all kernels and
ends; --ptx runs such a file, which needs nothing but the driver and NumPy. Without --ptx the text is made here.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from ptxtile import driver

Array = np.ndarray[Any, np.dtype[Any]]
BLOCK = 256


@dataclass(frozen=True)
class Case:
    """A function of `pt`, the interval that it is tried on, and what it should compute."""

    name: str
    low: float
    high: float
    exact: Callable[..., Array]
    dtype: str = "float32"
    operands: int = 1
    anywhere: bool = True

    @property
    def entry(self) -> str:
        return f"{self.name}_{self.dtype}"


_erf = np.vectorize(math.erf, otypes=[np.float64])
CASES = (
    Case("exp", -104, 90, np.exp),
    Case("exp2", -150, 129, np.exp2),
    Case("exp10", -46, 39, lambda x: np.power(10.0, x)),
    Case("sigmoid", -87, 90, lambda x: 1 / (1 + np.exp(-x)), anywhere=False),
    Case("tanh", -10, 10, np.tanh),
    Case("sinh", -90, 90, np.sinh),
    Case("cosh", -90, 90, np.cosh),
    Case("log", 0.5, 2, np.log),
    Case("log2", 0.5, 2, np.log2),
    Case("log10", 0.5, 2, np.log10),
    Case("sqrt", 0, 100, np.sqrt),
    Case("rsqrt", 0, 100, lambda x: 1 / np.sqrt(x)),
    Case("sin", -100, 100, np.sin),
    Case("cos", -100, 100, np.cos),
    Case("tan", -100, 100, np.tan),
    Case("atan", -10, 10, np.arctan),
    Case("erf", -4, 4, _erf),
    Case("atan2", -4, 4, np.arctan2, operands=2),
    Case("hypot", -4, 4, np.hypot, operands=2),
    Case("fmod", -4, 4, np.fmod, operands=2),
    Case("pow", 0, 10, np.power, operands=2),
    Case("exp", -745, 710, np.exp, "float64", anywhere=False),
    Case("exp2", -1075, 1024, np.exp2, "float64", anywhere=False),
    Case("log", 0.5, 2, np.log, "float64", anywhere=False),
    Case("log2", 0.5, 2, np.log2, "float64", anywhere=False),
    Case("log10", 0.5, 2, np.log10, "float64", anywhere=False),
    Case("rsqrt", 0, 100, lambda x: 1 / np.sqrt(x), "float64", anywhere=False),
)


def text(count: int) -> str:
    """The module with one entry a case: `Out[i] = f(A0[i], A1[i])`."""
    import ptxtile as pt

    builder = pt.ModuleBuilder()
    for case in CASES:
        dtype = getattr(pt, case.dtype)
        params = {f"A{n}": pt.Tensor((count,), dtype) for n in range(case.operands)}
        entry = builder.entry(
            case.entry, {**params, "Out": pt.Tensor((count,), dtype)}, block=BLOCK, grid=count // BLOCK
        )
        with entry as k:
            i = pt.block_idx("x") * BLOCK + pt.thread_idx("x")
            k.Out[i] = getattr(pt, case.name)(*(k[f"A{n}"][i] for n in range(case.operands)))
    return str(builder.module())


def inputs(case: Case, count: int) -> list[Array]:
    """The operands of a case: half from its interval, half of any exponent (or all from the interval)."""
    arrays = []
    for n in range(case.operands):
        rng = np.random.default_rng(100 + n)
        near = rng.uniform(case.low, case.high, count).astype(case.dtype)
        if case.anywhere:
            bits = rng.integers(0, 1 << 32, count // 2, np.uint64).astype(np.uint32)
            near[: count // 2] = bits.view(np.float32)
        arrays.append(near)
    return arrays


def worst(case: Case, arrays: list[Array], got: Array) -> dict[str, object]:
    """The largest error, where it is, and how many results are of the wrong kind (NaN, infinity)."""
    wide = np.longdouble if case.dtype == "float64" else np.float64
    with np.errstate(all="ignore"):
        exact = case.exact(*(array.astype(wide) for array in arrays))
        rounded = exact.astype(got.dtype)
        error = np.abs(got.astype(wide) - exact) / np.spacing(np.abs(rounded)).astype(wide)
    settled = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    error = np.where(settled & ~(error <= 1), 0, error)
    wrong = ~settled & ~np.isfinite(error)
    error = np.where(wrong, 0, error)
    at = int(np.argmax(error))
    where = [float(array[at]) for array in arrays]
    return {
        "function": case.name,
        "dtype": case.dtype,
        "ulp": round(float(error[at]), 3),
        "at": where,
        "wrong": int(wrong.sum()),
        "wrong_at": [[float(array[i]) for array in arrays] for i in np.flatnonzero(wrong)[:4]],
    }


class Device:
    """Runs entries of a loaded module on buffers of one size."""

    def __init__(self, image: str, count: int) -> None:
        self.count = count
        self.module = driver.load(image, 0)
        self.buffers = [driver.DeviceBuffer(8 * count, 0) for _ in range(3)]

    def run(self, case: Case, arrays: list[Array]) -> Array:
        used = [*self.buffers[: len(arrays)], self.buffers[2]]
        for buffer, array in zip(used, arrays):
            driver.copy_to_device(buffer.address, array.ctypes.data, array.nbytes, ordinal=0)
        driver.synchronize(0)
        slots = [driver.Slot("Q", 8 * n, 8) for n in range(len(used))]
        geometry = driver.Geometry((self.count // BLOCK, 1, 1), (BLOCK, 1, 1))
        driver.Launcher(self.module.function(case.entry), geometry, slots)(
            [buffer.address for buffer in used]
        )
        out = np.empty_like(arrays[0])
        driver.copy_from_device(out.ctypes.data, used[-1].address, out.nbytes, ordinal=0)
        driver.synchronize(0)
        return out


def main() -> int:
    """Parse the command line; emit, or run and report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=1 << 22, help="numbers per function")
    parser.add_argument("--json", type=Path, help="write the report here")
    parser.add_argument("--ptx", type=Path, help="run this text instead of making it")
    parser.add_argument("--emit", type=Path, help="write the text here and end")
    given = parser.parse_args()
    count = given.count // BLOCK * BLOCK
    if given.emit is not None:
        given.emit.write_text(text(count))
        return 0
    device = Device(given.ptx.read_text() if given.ptx else text(count), count)
    rows = []
    for case in CASES:
        arrays = inputs(case, count)
        row = worst(case, arrays, device.run(case, arrays))
        rows.append(row)
        where = f"at {row['at']}, wrong: {row['wrong']} {row['wrong_at']}"
        print(f"{case.name:8s} {case.dtype} {row['ulp']:8.3f} ulp {where}")
    if given.json is not None:
        facts = {
            "device": driver.device(0).name,
            "driver": str(driver.driver_version()),
            "count": count,
            "rows": rows,
        }
        given.json.write_text(json.dumps(facts, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
