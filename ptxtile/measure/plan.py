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

__all__ = ["Batch", "Case", "Rate", "batches", "image_of", "load", "store"]


@dataclass(frozen=True, slots=True)
class Rate:
    """Two kernels that differ in their number of steps: their names, and what separates them.

    steps   steps of each chain that the longer has more, a turn of the loop
    chains  independent chains a thread
    trips   turns of the loop
    sass    SASS mnemonics of one step, and how many of each: the proof
    """

    short: str
    long: str
    steps: int
    chains: int
    trips: int
    sass: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Case:
    """One spelling, ready to be timed.

    chain       a step of the chain in PTX
    references  spellings or links whose latency the chain adds to the instruction's; "declared" where none can be named
    dependent   kernels with one chain; independent: with several (None with the reason in `note`)
    """

    spelling: str
    family: str
    way: str
    chain: tuple[str, ...]
    references: tuple[str, ...]
    dependent: Rate | None
    independent: Rate | None
    note: str = ""


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
    cases = tuple(
        Case(
            **{
                **each,
                "chain": tuple(each["chain"]),
                "references": tuple(each["references"]),
                "dependent": Rate(**each["dependent"]) if each["dependent"] else None,
                "independent": Rate(**each["independent"]) if each["independent"] else None,
            }
        )
        for each in raw["cases"]
    )
    return Batch(**{**raw, "asked": tuple(raw["asked"]), "cases": cases})


def batches(folder: Path) -> Iterator[Batch]:
    """The batches of a prepared folder, in order."""
    for path in sorted(folder.glob("batch-*.json")):
        yield load(path)


def image_of(batch: Batch, folder: Path) -> bytes:
    """The cubin of a batch."""
    return lzma.decompress((folder / f"{batch.name}.cubin.xz").read_bytes())
