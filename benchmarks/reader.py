"""Lines a second of `parse` and `check_text`, beside openptxas and pyptx in the same run; and spellings a second.

    python benchmarks/reader.py [--lines 20000] [--rounds 7] [--openptxas FOLDER] [--spellings FILE]

Also whether the time is in proportion to the lines, up to 500,000, and what a new module of 1,000 lines costs in a warm
process. pyptx comes from PyPI; openptxas is not there: FOLDER is a checkout of it, and it is left out without one.
FILE has one JSON object a line, with a "form": its spellings are asked of `is_valid` by a fresh process.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import ExitStack
from pathlib import Path

import harness
import peers

WORKERS = harness.ROOT / "benchmarks" / "workers"


def ours(name: str, *argv: object) -> harness.Served:
    """A worker of this checkout."""
    return harness.Served(name, [sys.executable, str(WORKERS / "reader_ptxtile.py"), *map(str, argv)])


def run(contenders: list[harness.Served], rounds: int) -> harness.Times:
    """All of them, in turn."""
    with ExitStack() as open_:
        for contender in contenders:
            open_.enter_context(contender)
        return harness.measure(contenders, rounds)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--lines", type=int, default=20_000)
    arguments.add_argument("--rounds", type=int, default=7)
    arguments.add_argument("--long", type=int, nargs="*", default=[100_000, 500_000])
    arguments.add_argument("--openptxas", type=Path)
    arguments.add_argument("--spellings", type=Path)
    given = arguments.parse_args()
    harness.pin()
    lines, rivals = given.lines, []
    if given.openptxas:
        argv = [sys.executable, str(WORKERS / "reader_openptxas.py"), str(given.openptxas), str(lines)]
        rivals.append(harness.Served("openptxas", argv))
    pyptx = [peers.python("pyptx"), str(WORKERS / "reader_pyptx.py"), str(lines)]
    rivals.append(harness.Served("pyptx", pyptx))
    contenders = [ours("parse", "parse", lines), ours("check_text", "check", lines), *rivals]
    times = run(contenders, given.rounds)
    results: harness.Facts = {"lines": lines, "load before": os.getloadavg()}
    for contender in contenders:
        _speed(results, contender.name, times, lines)
    for rival in rivals:
        for name in ("parse", "check_text"):
            ratio = harness.ratios(times, rival.name, name)
            results[f"{rival.name} / {name}"] = ratio
            print(f"{rival.name} / {name}: {harness.text(ratio, 1, ' times')}")
    for count in given.long:
        long = [
            ours(f"{name} of {count:,}", way, count)
            for name, way in (("parse", "parse"), ("check_text", "check"))
        ]
        more = run(long, 3)
        for contender in long:
            _speed(results, contender.name, more, count)
            contenders.append(contender)
            for clock, taken in more.items():
                times[clock][contender.name] = taken[contender.name]
    fresh = [ours("a new module of 1,000", "check", 1000, "new")]
    more = run(fresh, 15)
    results["a new module of 1,000"] = harness.spreads(more, fresh[0].name)
    print(
        f"check_text of a new module of 1,000 lines: {harness.text(results['a new module of 1,000'], 1e3, ' ms')}"
    )
    if given.spellings:
        _spellings(results, given.spellings, given.rounds)
    results["load after"] = os.getloadavg()
    print("kept in", harness.write("reader", contenders, times, results).relative_to(harness.ROOT))


def _speed(results: harness.Facts, name: str, times: harness.Times, lines: int) -> None:
    spread = harness.spreads(times, name)
    results[name] = spread
    print(
        f"{name:22} {harness.text(spread, 1e3, ' ms')}; {lines / spread['cpu'].median:,.0f} lines a second of CPU"
    )


SPELLINGS = """
import json, sys, time
import ptxtile
spellings = list(dict.fromkeys(json.loads(line)["form"] for line in open(sys.argv[1], encoding="utf-8")))
clock = time.process_time
start = clock()
ptxtile.is_valid("fma.rn.f32")
loaded = clock() - start
ask = ptxtile.is_valid
start = clock()
for each in spellings: ask(each)
first = clock() - start
start = clock()
for each in spellings: ask(each)
again = clock() - start
parts = [each.split(".") for each in spellings if each.count(".") > 2]
moved = [".".join([a, c, b, *rest]) for a, b, c, *rest in parts]
moved = [each for each in dict.fromkeys(moved) if each not in set(spellings)]
start = clock()
for each in moved: ask(each)
more = clock() - start
count = len(spellings)
print(json.dumps([count / (loaded + first), count / first, len(moved) / more, count / again]))
"""


def _spellings(results: harness.Facts, path: Path, rounds: int) -> None:
    import json
    import statistics
    import subprocess

    known = harness.environment({"PYTHONPATH": str(harness.ROOT)})
    argv = [sys.executable, "-c", SPELLINGS, str(path)]
    said = [
        json.loads(subprocess.run(argv, env=known, capture_output=True, text=True, check=True).stdout)
        for _ in range(rounds)
    ]
    names = ("new, first import included", "new, the table being read", "new, the table read", "seen before")
    for name, rates in zip(names, zip(*said)):
        results[f"spellings a second, {name}"] = {"median": statistics.median(rates), "all": rates}
        print(
            f"spellings a second, {name}: {statistics.median(rates):,.0f} ({min(rates):,.0f} to {max(rates):,.0f})"
        )


if __name__ == "__main__":
    main()
