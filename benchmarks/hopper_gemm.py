"""The GEMM of examples/hopper_gemm.py beside cuBLAS (torch.matmul), in one run on a Hopper GPU.

    python benchmarks/hopper_gemm.py [--size 8192 …] [--seconds 3] [--band 4 16 …] [--json FILE] [--cubin FILE]

First it is checked against float32 products for sizes that are and are not multiples of its tile. Then both multiply
random bfloat16 matrices of --size: a burst is 10 products after a rest of a second, sustained is --seconds of products
one after the other, ours and theirs in turn. --cubin loads that file in place of the text (made with --emit on a
machine that has ptxas, to see whether the driver's assembler is as good).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]

import hopper_gemm as example  # noqa: E402

import ptxtile as pt  # noqa: E402

SIZES = (
    (256, 256, 64),
    (256, 256, 256),
    (128, 256, 1024),
    (512, 512, 512),
    (300, 520, 200),
    (1, 8, 8),
    (1000, 1000, 1000),
    (2049, 4104, 1032),
    (4096, 4096, 4096),
)

Matmul = Callable[[Any, Any, Any], None]


def ours(cubin: str | None) -> Matmul:
    """The example as a function of three CUDA tensors; from a cubin if one is given."""
    if cubin is None:
        return example.hopper_gemm
    from ptxtile import driver
    from ptxtile.execute.entry import Entry
    from ptxtile.execute.tensor_maps import encode

    entry = Entry(example.hopper_gemm.module(), "hopper_gemm")
    traced = example.hopper_gemm._specialize({"ctas": example.CTAS}, None, (384, 1, 1), None)
    shape = driver.Geometry((example.CTAS, 1, 1), (384, 1, 1), None, traced.dynamic_shared)
    slots = [driver.Slot(place.code, place.offset, place.size) for place in entry.places]
    loaded = driver.load(Path(cubin).read_bytes(), 0)
    launcher = driver.Launcher(loaded.function("hopper_gemm"), shape, slots)
    maps = dict(zip("ABC", example.hopper_gemm._plan.descriptions))

    def run(a: Any, b: Any, c: Any) -> None:
        encoded = [
            encode(name, maps[name].of(tuple(each.shape)), each.data_ptr(), 0)
            for name, each in (("A", a), ("B", b), ("C", c))
        ]
        launcher([*encoded, a.shape[0], a.shape[1], b.shape[0]], 0)

    return run


def check(torch: Any, matmul: Matmul) -> list[dict[str, object]]:
    """The largest error of each size, in units of what rounding to bfloat16 alone may make."""
    rows: list[dict[str, object]] = []
    for m, n, k in SIZES:
        torch.manual_seed(m)
        a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
        b = torch.randn(n, k, device="cuda", dtype=torch.bfloat16)
        guarded = torch.full((m + 2, n), 7.0, device="cuda", dtype=torch.bfloat16)
        c = guarded[1 : m + 1]
        matmul(a, b, c)
        torch.cuda.synchronize()
        due = a.float() @ b.float().T
        gap = (c.float() - due).abs() / (due.abs() * 2**-8 + k**0.5 * 2**-13)
        untouched = bool((guarded[0] == 7).all() and (guarded[-1] == 7).all())
        row = {"size": [m, n, k], "worst": float(gap.max()), "untouched": untouched}
        row["right"] = bool(gap.max() <= 1.01) and untouched
        rows.append(row)
        print(
            f"  {m:5} x {n:5} x {k:5}  worst {row['worst']:8.4f}  {'right' if row['right'] else 'WRONG'}",
            flush=True,
        )
        if not row["right"]:
            bad = (gap > 1.01).nonzero()
            print(f"    {len(bad)} of {m * n} wrong, first {bad[:6].tolist()}; c {c.flatten()[:6].tolist()}")
            print(f"    due {due.flatten()[:6].tolist()}", flush=True)
    return rows


def timed(torch: Any, call: Callable[[], None], count: int) -> float:
    """Seconds a call, of `count` calls."""
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(count):
        call()
    stop.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(stop)) / 1e3 / count


def measure(torch: Any, matmul: Matmul, size: int, seconds: float, rounds: int = 5) -> dict[str, object]:
    """TFLOP/s of both, in turn, and their ratio."""
    torch.manual_seed(0)
    a, b = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    c, d = (torch.empty(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    calls = {"ptxtile": lambda: matmul(a, b, c), "cublas": lambda: torch.matmul(a, b.T, out=d)}
    for call in calls.values():
        timed(torch, call, 3)
    work = 2 * size**3 / 1e12
    burst: dict[str, list[float]] = {name: [] for name in calls}
    sustained: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            time.sleep(1)
            burst[name].append(work / timed(torch, call, 10))
    count = max(int(seconds * 700 / work), 10)
    for _ in range(2):
        for name, call in calls.items():
            sustained[name].append(work / timed(torch, call, count))
    found: dict[str, object] = {"size": size}
    for word, rates in (("burst", burst), ("sustained", sustained)):
        best = {name: sorted(values)[len(values) // 2] for name, values in rates.items()}
        ratio = best["ptxtile"] / best["cublas"]
        found[word] = {"rates": rates, "ratio": ratio}
        print(
            f"  {size}³ {word:9}  ptxtile {best['ptxtile']:6.1f}  cuBLAS {best['cublas']:6.1f} TFLOP/s  "
            f"ratio {ratio:.3f}"
        )
        print(f"    {'  '.join(f'{n} ' + ' '.join(f'{v:.0f}' for v in rates[n]) for n in rates)}", flush=True)
    return found


def host(torch: Any, matmul: Matmul, count: int = 300) -> dict[str, float]:
    """Microseconds of the host for a call, of both: what a product must last for the GPU not to wait."""
    a, b, c, d = (torch.zeros(64, 64, device="cuda", dtype=torch.bfloat16) for _ in range(4))
    found = {}
    calls = {"ptxtile": lambda: matmul(a, b, c), "cublas": lambda: torch.matmul(a, b.T, out=d)}
    for name, call in calls.items():
        call()
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(count):
            call()
        found[name] = (time.perf_counter() - began) / count * 1e6
        torch.cuda.synchronize()
    print(f"  host: ptxtile {found['ptxtile']:.1f} us a call, torch {found['cublas']:.1f} us", flush=True)
    return found


def tune(torch: Any, size: int, bands: list[int]) -> list[dict[str, object]]:
    """Bursts of ours for each height of a band of tiles."""
    torch.manual_seed(0)
    a, b = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    c = torch.empty(size, size, device="cuda", dtype=torch.bfloat16)
    rows: list[dict[str, object]] = []
    before = example.BAND
    for band in bands:
        example.BAND = band
        kernel = pt.kernel(grid=example.CTAS, block=384, cluster=(example.CLUSTER, 1, 1))(
            example.hopper_gemm.__wrapped__
        )
        timed(torch, partial(kernel, a, b, c), 3)
        time.sleep(1)
        rate = 2 * size**3 / 1e12 / timed(torch, partial(kernel, a, b, c), 20)
        rows.append({"band": band, "rate": rate})
        print(f"  {size}³ bands of {band:2}  {rate:6.1f} TFLOP/s", flush=True)
    example.BAND = before
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, nargs="*", default=[8192])
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--band", type=int, nargs="*", help="also try these heights of a band of tiles")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--cubin")
    parser.add_argument("--emit", type=Path, help="write the PTX there and end")
    chosen = parser.parse_args()
    if chosen.emit is not None:
        chosen.emit.write_text(example.hopper_gemm.ptx())
        return
    import torch

    began = time.perf_counter()
    text = example.hopper_gemm.ptx()
    print(
        f"traced and written in {time.perf_counter() - began:.3f} s, {len(text.splitlines())} lines",
        flush=True,
    )
    matmul = ours(chosen.cubin)
    record: dict[str, object] = {
        "command": sys.argv,
        "device": torch.cuda.get_device_name(),
        "version": pt.__version__,
        "torch": torch.__version__,
        "checks": check(torch, matmul),
    }
    if all(row["right"] for row in record["checks"]):  # type: ignore[attr-defined]
        record["host"] = host(torch, matmul)
        record["measured"] = [measure(torch, matmul, size, chosen.seconds) for size in chosen.size]
        if chosen.band:
            record["bands"] = tune(torch, chosen.size[0], chosen.band)
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
