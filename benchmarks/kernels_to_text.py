"""Every example kernel from its Python function to PTX text, and to machine code, in a process that has done it before.

    python benchmarks/kernels_to_text.py [--rounds 15] [--target sm_90a]

Each round makes the kernel anew from its source (not timed), so nothing is left of the last trace; tables of forms are
warm. The cache of machine code is off. Machine code needs `pip install 'ptxtile[assemble]'`; without it, text only.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack

import harness

LIMITS = {"text": 0.005, "cubin": 0.030}  # seconds


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rounds", type=int, default=15)
    arguments.add_argument(
        "--target", default="sm_90a", help="the target of the machine code; '' for text only"
    )
    arguments.add_argument("examples", nargs="*", help="names such as saxpy; all by default")
    given = arguments.parse_args()
    worker = str(harness.ROOT / "benchmarks" / "workers" / "kernels.py")
    paths = sorted(
        path
        for path in (harness.ROOT / "examples").glob("*.py")
        if not given.examples or path.stem in given.examples
    )
    contenders = []
    for path in paths:
        contenders.append(harness.Served(f"{path.stem}, text", [sys.executable, worker, str(path)]))
        if given.target:
            off = {"PTXTILE_CACHE": "off"}
            line = [sys.executable, worker, str(path), given.target]
            contenders.append(harness.Served(f"{path.stem}, cubin", line, off))
    harness.pin(None)
    with ExitStack() as open_:
        for contender in contenders:
            open_.enter_context(contender)
        times = harness.measure(contenders, given.rounds)
    results: harness.Facts = {}
    for contender in contenders:
        limit = LIMITS[contender.name.rpartition(" ")[2]]
        spread = harness.Spread.of(times[contender.name])
        results[contender.name] = {
            "spread": spread,
            "limit": limit,
            "number of kernels": len(contender.facts["kernels"]),
        }
        print(
            f"{contender.name:24} {spread.text(1e3, ' ms')} (limit {limit * 1e3:.0f} ms), {contender.facts['kernels']}"
        )
    print("kept in", harness.write("kernels_to_text", contenders, times, results).relative_to(harness.ROOT))


if __name__ == "__main__":
    main()
