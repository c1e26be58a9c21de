"""10,000 raw instructions of ten forms on distinct registers, from a Python function to a module's text, against pyptx.

    python benchmarks/emission.py [--count 10000] [--rounds 15]

ptxtile traces, checks every spelling, operand and target, and writes; pyptx 0.1.1 traces and writes, by its two normal
paths. The faster of the two is the one to compare with.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack

import harness
import peers


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--count", type=int, default=10_000, help="instructions of a kernel")
    arguments.add_argument("--rounds", type=int, default=15)
    arguments.add_argument("--python", default=None, help="an interpreter that has pyptx; else one is made")
    given = arguments.parse_args()
    workers = harness.ROOT / "benchmarks" / "workers"
    peer = given.python or peers.python("pyptx")
    count = str(given.count)
    contenders = [
        harness.Served("ptxtile", [sys.executable, str(workers / "emission_ptxtile.py"), count]),
        harness.Served("pyptx hoisted", [peer, str(workers / "emission_pyptx.py"), count, "hoisted"]),
        harness.Served("pyptx chain", [peer, str(workers / "emission_pyptx.py"), count, "chain"]),
    ]
    harness.pin()
    with ExitStack() as open_:
        for contender in contenders:
            open_.enter_context(contender)
        times = harness.measure(contenders, given.rounds)
    results: harness.Facts = {}
    for contender in contenders:
        spread = harness.spreads(times, contender.name)
        results[contender.name] = spread
        print(f"{contender.name:14} {harness.text(spread, 1e3, ' ms')}")
        print(f"{'':14} {given.count / spread['cpu'].median:,.0f} instructions a second of CPU")
    for contender in contenders[1:]:
        ratio = harness.ratios(times, contender.name, "ptxtile")
        results[f"{contender.name} / ptxtile"] = ratio
        print(f"{contender.name} / ptxtile: {harness.text(ratio, 1, ' times')}")
    print("kept in", harness.write("emission", contenders, times, results).relative_to(harness.ROOT))


if __name__ == "__main__":
    main()
