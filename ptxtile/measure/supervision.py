"""A prepared folder on the GPU: a process that times, watched from here, and its times as records.

Times are kept as they come, beside the records (`out.jsonl.raw`): a run that was stopped goes on where it was. A
kernel that hangs is ended with its process after a time limit; one that faults ends its process; either way the case
is skipped with its reason and the rest goes on in a new process.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import ptxtile as pt
from ptxtile.measure.links import ANCHORS
from ptxtile.measure.plan import Batch, batches
from ptxtile.measure.records import SPREAD_LIMIT, Conditions, Record, build, skipped, write

__all__ = ["HANG_SECONDS", "rebuild", "run"]

HANG_SECONDS = 30.0


@dataclass(slots=True)
class _Raw:
    """What the timing process has said so far."""

    device: dict[str, object] = field(default_factory=dict)
    times: dict[str, dict[str, object]] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    clocks: dict[str, float] = field(default_factory=dict)

    def take(self, event: Mapping[str, object]) -> None:
        kind = event["event"]
        if kind == "device":
            self.device = dict(event)
        elif kind == "batch":
            self.clocks[str(event["batch"])] = float(str(event["mhz"]))
        elif kind == "end":
            self.times[str(event["spelling"])] = dict(event)
        elif kind == "fault":
            self.faults[str(event["spelling"])] = str(event["reason"])


def _lines(process: subprocess.Popen[str], limit: float) -> Iterator[str]:
    """Lines of a process's output; ends, and ends the process, when none comes for `limit` seconds."""
    waiting: queue.Queue[str | None] = queue.Queue()

    def pump() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            waiting.put(line)
        waiting.put(None)

    threading.Thread(target=pump, daemon=True).start()
    while True:
        try:
            line = waiting.get(timeout=limit)
        except queue.Empty:
            process.kill()
            raise TimeoutError from None
        if line is None:
            return
        yield line


def _start(folder: Path, device: int, complaints: IO[str]) -> subprocess.Popen[str]:
    """The timing process."""
    path = os.pathsep.join(
        [str(Path(pt.__file__).parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    return subprocess.Popen(
        [sys.executable, "-m", "ptxtile.measure.device", str(folder), str(device)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints, text=True,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip


def _said(errors: Path, status: int) -> str:
    """What a process that ended said last: the line of its exception, without the lines indented below."""
    lines = [line for line in errors.read_text().splitlines() if line.strip() and not line[0].isspace()]
    return lines[-1].removeprefix("ptxtile.errors.") if lines else f"exit status {status}"


def _once(
    folder: Path, device: int, raw: _Raw, log: Path, limit: float, progress: Callable[[str], None]
) -> str | None:
    """One process, until it is done (None), or ends on a case: the reason, which is kept with the case."""
    errors = log.with_suffix(log.suffix + ".err")
    current, reason = "", ""
    with (
        errors.open("w") as complaints,
        log.open("a", buffering=1) as kept,
        _start(folder, device, complaints) as process,
    ):
        assert process.stdin is not None
        process.stdin.write("\n".join([*raw.times, *raw.faults]))
        process.stdin.close()
        try:
            for line in _lines(process, limit):
                event = json.loads(line)
                raw.take(event)
                if event["event"] == "begin":
                    current = event["spelling"]
                    progress(current)
                else:
                    kept.write(line)
                    current = "" if event["event"] == "end" else current
        except TimeoutError:
            reason = f"the kernel did not end within {limit:.0f} s and was stopped"
        status = process.wait()
        if status == 0 and not reason:
            return None
        said = reason or _said(errors, status)
        if not current:
            raise pt.DriverError(f"the timing process ended outside a measurement: {said}")
        reason = reason or f"the kernel faulted: {said}"
        event = {"event": "fault", "spelling": current, "reason": reason}
        raw.take(event)
        kept.write(json.dumps(event) + "\n")
    return reason


def _taken(out: Path) -> tuple[_Raw, Path]:
    """The times that an earlier run has left beside its records, and where. A torn last line is no time."""
    log = out.with_suffix(out.suffix + ".raw")
    raw = _Raw()
    for line in log.read_text().splitlines(keepends=True) if log.exists() else ():
        if line.endswith("\n"):
            raw.take(json.loads(line))
    return raw, log


def rebuild(folder: Path, out: Path, spread: float = SPREAD_LIMIT) -> list[Record]:
    """Write the records anew from the times in `out`'s `.raw`, which may be of a run that was stopped. Needs no GPU.

    Raises:
        ValueError: there are no times.
    """
    raw, log = _taken(out)
    if not raw.times:
        raise ValueError(f"{log}: no times")
    found = _records(folder, raw, spread)
    write(found, out)
    return found


def run(
    folder: Path,
    out: Path,
    *,
    device: int = 0,
    limit: float = HANG_SECONDS,
    spread: float = SPREAD_LIMIT,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Record]:
    """Time every case of a prepared folder and write the records.

    Args:
        folder: what `prepare` made.
        out: the JSON lines; beside it `.raw` keeps the times for going on.
        device: the CUDA ordinal.
        limit: seconds without a result after which a kernel counts as hung.
        spread: repeats that differ by more than this share give no number.
        progress: called with each spelling as it begins.

    Raises:
        DriverError: there is no GPU, or the timing process ended outside a measurement.
    """
    raw, log = _taken(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    if log.exists():
        log.write_text(
            "".join(line for line in log.read_text().splitlines(keepends=True) if line.endswith("\n"))
        )
    while _once(folder, device, raw, log, limit, progress) is not None:
        pass
    found = _records(folder, raw, spread)
    write(found, out)
    return found


def _records(folder: Path, raw: _Raw, spread: float) -> list[Record]:
    """The records of all batches; those that links refer to first, since the others need them."""
    known: dict[str, float] = {}
    found: list[Record] = []
    for batch in batches(folder):
        where = _conditions(batch, raw)
        for case in batch.cases:
            if case.spelling in raw.faults:
                found.append(skipped(case.spelling, case.family, raw.faults[case.spelling], where))
                continue
            record = build(case, raw.times.get(case.spelling, {}), known, where, spread)
            found.append(record)
            if record.latency is not None and (case.family == "link" or case.spelling in ANCHORS):
                known[case.spelling] = record.latency
        found += [skipped(spelling, "", reason, where) for spelling, reason in batch.skipped.items()]
    return found


def _conditions(batch: Batch, raw: _Raw) -> Conditions:
    return Conditions(
        device=str(raw.device.get("name", "")),
        driver=str(raw.device.get("driver", "")),
        assembler=batch.assembler,
        target=batch.target,
        mhz=raw.clocks.get(batch.name),
    )
