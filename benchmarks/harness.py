"""Measures contenders in turn: round by round, on one core, in one process group, with ratios and their spread.

A contender is a process that stays (`Served`: it runs `worker.serve` and times each round itself) or a command that is
started anew each round (`Fresh`: from start to exit). Round r asks every contender once, in an order that rotates with
r, so that a busy machine slows all of them alike; a ratio is taken within a round, never between runs. Two clocks run:
"wall", and "cpu", the time that the process itself used, which is the one to trust where a machine is shared.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

if sys.platform != "win32":
    import resource

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
CLOCKS = ("wall", "cpu")
Facts = dict[str, object]
Pair = tuple[float, float]
"""Seconds of a round by the two clocks, in the order of CLOCKS."""
Times = dict[str, dict[str, list[float]]]
"""Clock → contender → seconds, round by round."""


def environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a measured process: this checkout importable, byte code cached, nothing read from the user."""
    left_out = ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "PYTHONSTARTUP")
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    return {**kept, "PTXTILE_DEVICE": "emulator", **(changes or {})}


@dataclass
class Served:
    """A process of its own that stays for all rounds. `argv` starts a script that calls `worker.serve`."""

    name: str
    argv: Sequence[str]
    changes: Mapping[str, str] = field(default_factory=dict)
    facts: Facts = field(default_factory=dict)

    def __enter__(self) -> Served:
        paths = os.pathsep.join([str(ROOT / "benchmarks"), *([str(ROOT)] if self._is_ours() else [])])
        self._process = subprocess.Popen(
            self.argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment({"PYTHONPATH": paths, **self.changes}),
        )
        self.facts = json.loads(self._answer())
        return self

    def __exit__(self, *error: object) -> None:
        self._process.communicate()

    def _is_ours(self) -> bool:
        return self.argv[0] == sys.executable

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended: {shlex.join(self.argv)} (status {self._process.wait()})")
        return line

    def round(self) -> Pair:
        """One round, as the process measured it."""
        assert self._process.stdin is not None
        self._process.stdin.write("round\n")
        self._process.stdin.flush()
        wall, cpu = json.loads(self._answer())
        return wall, cpu


@dataclass
class Fresh:
    """A command that is started anew for every round."""

    name: str
    argv: Sequence[str]
    changes: Mapping[str, str] = field(default_factory=dict)
    facts: Facts = field(default_factory=dict)

    def __enter__(self) -> Fresh:
        self.round()  # fills caches of byte code and files
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def round(self) -> Pair:
        """One round, from start to exit."""
        known = environment({"PYTHONPATH": str(ROOT), **self.changes})
        start, used = time.perf_counter(), _used_by_children()
        subprocess.run(self.argv, env=known, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - start, _used_by_children() - used


def _used_by_children() -> float:
    """CPU seconds of the processes that were started and have ended; 0 where the system does not say."""
    if sys.platform == "win32":
        return 0.0
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


Contender = Served | Fresh


@dataclass(frozen=True)
class Spread:
    """Median, quartiles and extremes of a list of numbers."""

    median: float
    low: float
    high: float
    least: float
    most: float

    @staticmethod
    def of(values: Sequence[float]) -> Spread:
        ordered = sorted(values)
        if len(ordered) == 1:
            return Spread(*(ordered * 5))
        low, middle, high = statistics.quantiles(ordered, n=4, method="inclusive")
        return Spread(middle, low, high, ordered[0], ordered[-1])

    def text(self, scale: float, unit: str) -> str:
        """ "12.1 ms (quartiles 11.8 to 12.9, least 11.5)" with the unit given; scale from seconds."""
        shown = [f"{value * scale:.3g}" for value in (self.median, self.low, self.high, self.least)]
        return f"{shown[0]}{unit} (quartiles {shown[1]} to {shown[2]}, least {shown[3]})"


def measure(contenders: Sequence[Contender], rounds: int) -> Times:
    """Seconds of every contender, round by round, by both clocks."""
    times: Times = {clock: {contender.name: [] for contender in contenders} for clock in CLOCKS}
    for turn in range(rounds):
        start = turn % len(contenders)
        for contender in [*contenders[start:], *contenders[:start]]:
            for clock, seconds in zip(CLOCKS, contender.round(), strict=True):
                times[clock][contender.name].append(seconds)
    return times


def pin(core: int | None = None) -> None:
    """Keep this process, and those it starts from now on, on one core (Linux)."""
    if hasattr(os, "sched_setaffinity"):
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {allowed[-1] if core is None else core})


def spreads(times: Times, name: str) -> dict[str, Spread]:
    """The spread of a contender's seconds, by each clock."""
    return {clock: Spread.of(times[clock][name]) for clock in CLOCKS}


def ratios(times: Times, over: str, under: str) -> dict[str, Spread]:
    """How many times longer `over` took than `under`, round by round, by each clock."""
    return {
        clock: Spread.of([slow / fast for slow, fast in zip(taken[over], taken[under], strict=True)])
        for clock, taken in times.items()
    }


def differences(times: Times, more: str, less: str) -> dict[str, Spread]:
    """How many seconds longer `more` took than `less`, round by round, by each clock."""
    return {
        clock: Spread.of([long - short for long, short in zip(taken[more], taken[less], strict=True)])
        for clock, taken in times.items()
    }


def text(spread: Mapping[str, Spread], scale: float, unit: str) -> str:
    """Both clocks on one line; `scale` from seconds to `unit`."""
    return "; ".join(f"{clock} {spread[clock].text(scale, unit)}" for clock in reversed(CLOCKS))


def machine() -> Facts:
    """What a number was measured on."""
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load before": [round(value, 2) for value in os.getloadavg()] if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "commit": _said("git", "-C", str(ROOT), "describe", "--always", "--dirty"),
        "driver": _said("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")


def _said(*argv: str) -> str | None:
    try:
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip() or None
    except (OSError, subprocess.CalledProcessError):
        return None


def write(name: str, contenders: Sequence[Contender], times: Times, results: Facts) -> Path:
    """Keep a run under benchmarks/results/, with what is needed to judge and repeat it."""
    RESULTS.mkdir(exist_ok=True)
    said = {
        "benchmark": name,
        "command": shlex.join(["python", *sys.argv]),
        "machine": machine(),
        "contenders": {contender.name: contender.facts for contender in contenders},
        "results": results,
        "seconds": {
            clock: {name: [round(value, 7) for value in values] for name, values in taken.items()}
            for clock, taken in times.items()
        },
    }
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(said, indent=1, default=vars) + "\n", encoding="utf-8")
    return path
