"""What was assembled to be measured: cases, batches, and the folder that holds them.

A prepared folder has, for each batch, `batch-000.json` (its cases and what was skipped) and `batch-000.cubin.xz`. It
can be made on one machine and timed on another.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

__all__ = ["Batch", "Case", "Launch", "Point", "Rate", "batches", "image_of", "load", "store"]


@dataclass(frozen=True, slots=True)
class Rate:
    """Two kernels that differ in their number of steps: their names, and what separates them.

    steps   steps of each chain that the longer has more, a turn of the loop
    chains  independent chains a thread
    trips   turns of the loop
    sass    SASS mnemonics of one step, and how many of each: the proof
    least   steps of the shorter one's turn, of a scenario
    grid    blocks that run at once, 0 for one on each SM: where memory lies at different distances from SMs
    """

    short: str
    long: str
    steps: int
    chains: int
    trips: int
    sass: Mapping[str, float]
    least: int = 0
    grid: int = 1


@dataclass(frozen=True, slots=True)
class Launch:
    """How the kernels of a scenario are launched.

    grid     blocks; 0 for one on each SM
    block    threads of a block
    cluster  blocks of a cluster
    shared   bytes of dynamic shared memory
    field    bytes of global memory for each block
    common   bytes of global memory for all blocks together, where they have none each
    tensor   rows, columns, box rows, box columns of the tensor map over the field, in 4-byte elements; () for none
    """

    grid: int
    block: int
    cluster: int = 1
    shared: int = 0
    field: int = 0
    common: int = 0
    tensor: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Point:
    """What a scenario measures, and at which point of its axis.

    scenario  "memory.latency.global.ca"
    form      the spelling that is timed
    axis, at  what the points differ in, and this one's value: "bytes", 4096
    unit      "cycles" for a latency; else what a rate is of: "B" a clock and SM
    amount    units that a step gives a block; of a latency, instructions in a step
    whole     for a rate of what all SMs share: "slowest" or "mean", the blocks' whole time in the longer kernel, which
              that fills from end to end; "" for one that is of the difference of two kernels
    """

    scenario: str
    form: str
    axis: str
    at: float
    unit: str
    amount: float
    whole: Literal["", "mean", "slowest"] = ""


@dataclass(frozen=True, slots=True)
class Case:
    """One spelling, or one point of a scenario, ready to be timed.

    chain       a step of the chain in PTX
    references  spellings or links whose latency the chain adds to the instruction's; "declared" where none can be named
    dependent   kernels with one chain; independent: with several (None with the reason in `note`)
    launch, point  of a scenario, which has `dependent` for a latency and `independent` for a rate
    """

    spelling: str
    family: str
    way: str
    chain: tuple[str, ...]
    references: tuple[str, ...]
    dependent: Rate | None
    independent: Rate | None
    note: str = ""
    launch: Launch | None = None
    point: Point | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """Cases of one cubin, and the spellings that were left out, with the reason."""

    name: str
    target: str
    assembler: str
    asked: tuple[str, ...]
    cases: tuple[Case, ...]
    skipped: Mapping[str, str] = field(default_factory=dict)


def store(batch: Batch, cubin: bytes, folder: Path) -> None:
    """Write a batch; its description last, so that what is there is whole."""
    folder.mkdir(parents=True, exist_ok=True)
    if cubin:
        (folder / f"{batch.name}.cubin.xz").write_bytes(lzma.compress(cubin))
    (folder / f"{batch.name}.json").write_text(json.dumps(asdict(batch), indent=1) + "\n")


def load(path: Path) -> Batch:
    """Read the description of a batch."""
    raw = json.loads(path.read_text())
    cases = tuple(_case(each) for each in raw["cases"])
    return Batch(**{**raw, "asked": tuple(raw["asked"]), "cases": cases})


def _case(raw: dict[str, Any]) -> Case:
    launch, point = raw.get("launch"), raw.get("point")
    return Case(
        **{
            **raw,
            "chain": tuple(raw["chain"]),
            "references": tuple(raw["references"]),
            "dependent": Rate(**raw["dependent"]) if raw["dependent"] else None,
            "independent": Rate(**raw["independent"]) if raw["independent"] else None,
            "launch": Launch(**{**launch, "tensor": tuple(launch["tensor"])}) if launch else None,
            "point": Point(**point) if point else None,
        }
    )


def batches(folder: Path) -> Iterator[Batch]:
    """The batches of a prepared folder, in order."""
    for path in sorted(folder.glob("batch-*.json")):
        yield load(path)


def image_of(batch: Batch, folder: Path) -> bytes:
    """The cubin of a batch."""
    return lzma.decompress((folder / f"{batch.name}.cubin.xz").read_bytes())
