"""Every example kernel from its Python function to PTX text, and to machine code, in a process that has done it before.

    python benchmarks/kernels_to_text.py [--rounds 15] [--target sm_90a] [--tirx] [example …]

Each round makes the kernel anew from its source (not timed), so nothing is left of the last trace; tables of forms are
warm. The cache of machine code is off. Machine code needs `pip install 'ptxtile[assemble]'`; `--target ''` leaves
it out.

With --tirx, apache-tvm-tirx 0.1.0a4 compiles two of the kernels in turn, from its parsed function to CUDA C++ source
(and the launching code around it), where it stops without nvcc.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack

import harness
import peers

SEED = {"activation", "affine_fma", "mul_forms", "packed_add", "saxpy", "shared_affine", "sub_left"}
LIMITS = {"text": 0.005, "cubin": 0.030}  # seconds, for a kernel of SEED
TIRX = ("affine_fma", "activation")
WORKERS = harness.ROOT / "benchmarks" / "workers"


def ours(wanted: list[str], target: str) -> list[harness.Contender]:
    """Text, and machine code if a target is given, of every example (or those wanted)."""
    found: list[harness.Contender] = []
    for path in sorted((harness.ROOT / "examples").glob("*.py")):
        if wanted and path.stem not in wanted:
            continue
        line = [sys.executable, str(WORKERS / "kernels.py"), str(path)]
        found.append(harness.Served(f"{path.stem}, text", line))
        if target:
            found.append(harness.Served(f"{path.stem}, cubin", [*line, target], {"PTXTILE_CACHE": "off"}))
    return found


def theirs(wanted: list[str]) -> list[harness.Contender]:
    """The peer's worker for each kernel that it has."""
    python = peers.python("tirx")
    return [
        harness.Served(f"{name}, tirx source", [python, str(WORKERS / "kernels_tirx.py"), name])
        for name in TIRX
        if not wanted or name in wanted
    ]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rounds", type=int, default=15)
    arguments.add_argument(
        "--target", default="sm_90a", help="the target of the machine code; '' for text only"
    )
    arguments.add_argument("--tirx", action="store_true", help="compare with apache-tvm-tirx")
    arguments.add_argument("examples", nargs="*", help="names such as saxpy; all by default")
    given = arguments.parse_args()
    contenders = ours(given.examples, given.target)
    if given.tirx:
        contenders += theirs(given.examples)
    harness.pin()
    with ExitStack() as open_:
        for contender in contenders:
            open_.enter_context(contender)
        times = harness.measure(contenders, given.rounds)
    results: harness.Facts = {}
    for contender in contenders:
        kernel, _, what = contender.name.partition(", ")
        limit = LIMITS.get(what) if kernel in SEED else None
        spread = harness.spreads(times, contender.name)
        results[contender.name] = {"spread": spread, "limit": limit}
        due = f" (limit {limit * 1e3:.0f} ms)" if limit else ""
        print(f"{contender.name:24} {harness.text(spread, 1e3, ' ms')}{due}")
    for name in TIRX:
        if f"{name}, tirx source" in times["cpu"]:
            ratio = harness.ratios(times, f"{name}, tirx source", f"{name}, text")
            results[f"{name}: tirx source / text"] = ratio
            print(f"{name}, tirx to CUDA C++ / ptxtile to PTX: {harness.text(ratio, 1, ' times')}")
    print("kept in", harness.write("kernels_to_text", contenders, times, results).relative_to(harness.ROOT))


if __name__ == "__main__":
    main()
