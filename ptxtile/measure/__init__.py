"""What an instruction costs: latency and throughput of a spelling, proven by its SASS, measured on the GPU here.

    record = pt.measure.measure("fma.rn.f32")
    record.latency, record.rate                      4.0 cycles, 128 results per clock per SM

`prepare` needs no GPU, `run` no assembler: they may be done on two machines. `docs/measure.md` explains the method.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import ptxtile as pt
from ptxtile import driver
from ptxtile.measure.batching import prepare
from ptxtile.measure.chain import find
from ptxtile.measure.preparation import source
from ptxtile.measure.records import Record, read
from ptxtile.measure.report import report
from ptxtile.measure.scenarios import is_scenario, names as scenario_names
from ptxtile.measure.supervision import rebuild, run
from ptxtile.measure.text import compare, table

__all__ = [
    "Record",
    "compare",
    "default_target",
    "measure",
    "prepare",
    "read",
    "rebuild",
    "report",
    "run",
    "scenario_names",
    "source",
    "table",
]


_ELSEWHERE = "sm_90a"  # what is prepared where there is no GPU


def default_target(device: int = 0) -> str:
    """What to assemble for: the device's own target, with `a` where it has one; sm_90a where there is no GPU."""
    if not driver.available():
        return _ELSEWHERE
    plain = driver.device(device).target
    return f"{plain}a" if f"{plain}a" in pt.isa.target_facts().targets else plain


def measure(spelling: str, *, target: str | None = None, device: int = 0) -> Record:
    """Measure one spelling, or one point of a scenario, on the GPU.

    Args:
        spelling: "fma.rn.f32", or "memory.latency.global/64KiB" (`scenario_names` lists them).
        target: what to assemble for; by default the device's own target, with `a` where it has one.
        device: the CUDA ordinal.

    Raises:
        FormError: there is no such spelling.
        AssemblerError: nvJitLink or nvdisasm is missing.
        DriverError: there is no GPU.
    """
    name = spelling if is_scenario(spelling) else find(spelling).spelling
    target = target or default_target(device)
    with tempfile.TemporaryDirectory() as folder:
        prepare([name], target, Path(folder), workers=1)
        records = run(Path(folder), Path(folder) / "out.jsonl", device=device)
    return next(each for each in records if each.spelling == name)
