"""What was found: one record a spelling, as JSON lines with a stable schema, and its reader.

A line is one object:

    schema       1
    spelling     "fma.rn.f32"
    family       the chapter of the spelling table, "float"
    sass         mnemonics of one step of the dependent chain, and how many of each
    chain        one step of the chain, in PTX
    way          how it is chained (see `chain`)
    latency      cycles of the instruction, links subtracted; null if the links' part cannot be told (see `step`)
    step         cycles of a whole step of the chain
    spread       (greatest - least) / median of the repeats of `step`
    subtracted   links in the step, and the cycles subtracted for each
    rate         results of threads per clock per SM, at `best_warps`; of a matrix form, instructions · 32
    rate_spread  as above
    at_least     whether `rate` is a lower bound: links are issued too, or there was one chain a thread
    rates        warps per SM → results per clock per SM
    saturates    the fewest warps that reach 95% of `rate`
    independent  chains a thread in `rates`
    rate_sass    mnemonics of one step of an independent chain
    issue        instructions of warps per clock per SM at `rate`, links included; null where `rate_sass` branches, as
                 not all that is listed is then run
    flop         floating point (or integer) operations per clock per SM, of matrix forms
    scenario, form, axis, at    of a point of a scenario: its scenario, the spelling that is timed, the axis, the place
    unit         what `rate` is of: "results", or a scenario's own ("B", "FLOP", "atomics", "instructions")
    blocks       blocks that ran, of a scenario
    skipped      why there is no number; null if there is one
    device, driver, assembler, target, mhz    where and with what
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from ptxtile.measure.links import DECLARED
from ptxtile.measure.plan import Case, Point, Rate
from ptxtile.measure.work import operations

__all__ = ["SCHEMA", "SPREAD_LIMIT", "Conditions", "Record", "build", "read", "skipped", "write"]

SCHEMA = 1
SPREAD_LIMIT = 0.02
"""Repeats that differ by more than this share of their median give no number."""

_SATURATED = 0.95
_REST = 0.1
"""Share of a kernel's time outside its steps that is worth a note."""
_LEAST = 1.0
"""Cycles that an instruction takes at least; less is left where links do not lie on the chain's path."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """Where and with what a record was made; `mhz` is the SM clock seen beside it."""

    device: str
    driver: str
    assembler: str
    target: str
    mhz: float | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """One line; the module's docstring says what the fields are."""

    spelling: str
    family: str
    device: str
    driver: str
    assembler: str
    target: str
    mhz: float | None = None
    sass: Mapping[str, float] = field(default_factory=dict)
    chain: Sequence[str] = ()
    way: str = ""
    latency: float | None = None
    step: float | None = None
    spread: float | None = None
    subtracted: Mapping[str, float] = field(default_factory=dict)
    rate: float | None = None
    rate_spread: float | None = None
    at_least: bool = False
    best_warps: int | None = None
    rates: Mapping[str, float] = field(default_factory=dict)
    saturates: int | None = None
    independent: int | None = None
    rate_sass: Mapping[str, float] = field(default_factory=dict)
    flop: float | None = None
    issue: float | None = None
    scenario: str = ""
    form: str = ""
    axis: str = ""
    at: float | None = None
    unit: str = "results"
    blocks: int | None = None
    skipped: str | None = None
    note: str = ""
    schema: int = SCHEMA


def skipped(spelling: str, family: str, reason: str, where: Conditions) -> Record:
    """The record of a spelling that could not be measured."""
    return Record(spelling, family, **asdict(where), skipped=reason)


def _slope(rate: Rate, times: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Cycles that one step of all chains of a thread adds, and the spread of the repeats."""
    steps = rate.steps * rate.trips
    return _middle([(long - short) / steps for short, long in zip(*times)])


def _whole(rate: Rate, times: Sequence[float]) -> tuple[float, float]:
    """Cycles of one step of the longer kernel, all of its time counted, and the spread of the repeats."""
    return _middle([each / ((rate.least + rate.steps) * rate.trips) for each in times])


def _middle(values: Sequence[float]) -> tuple[float, float]:
    """The median and the spread; one repeat in four may be an outlier (an interrupt, a clock change)."""
    middle = statistics.median(values)
    kept = sorted(values, key=lambda value: abs(value - middle))[: max(len(values) * 3 // 4, 2)]
    return middle, (max(kept) - min(kept)) / middle if middle > 0 else float("inf")


def _throughput(case: Case, times: Mapping[str, Sequence[Sequence[int]]], limit: float) -> dict[str, object]:
    assert case.independent is not None
    rates: dict[str, float] = {}
    spreads: dict[str, float] = {}
    for warps, pair in times.items():
        cycles, spread = _slope(case.independent, pair)
        if cycles > 0 and spread <= limit:
            rates[warps] = round(32 * int(warps) * case.independent.chains / cycles, 3)
            spreads[warps] = round(spread, 5)
    if not rates:
        return {"note": f"throughput: repeats differ by more than {limit:.0%}"}
    best = max(rates, key=lambda warps: rates[warps])
    enough = min(int(warps) for warps in rates if rates[warps] >= _SATURATED * rates[best])
    work = operations(case.spelling)
    branches = any(name.startswith(("BRA", "CALL")) for name in case.independent.sass)
    return {
        "rate": rates[best],
        "rate_spread": spreads[best],
        "at_least": bool(case.references) or case.way == "linked" or case.independent.chains == 1,
        "best_warps": int(best),
        "rates": rates,
        "saturates": enough,
        "independent": case.independent.chains,
        "rate_sass": case.independent.sass,
        "issue": None if branches else round(sum(case.independent.sass.values()) * rates[best] / 32, 3),
        "flop": round(rates[best] / 32 * work, 1) if work else None,
    }


def _alone(step: float, taken: Mapping[str, float]) -> dict[str, object]:
    """The instruction's own cycles, links subtracted."""
    rest = round(step - sum(taken.values()), 3)
    if rest < _LEAST:
        listing = ", ".join(f"{name} {cycles:g}" for name, cycles in taken.items())
        return {
            "note": f"latency: the links ({listing} cycles) do not all lie on the path of a step of {step:g}"
        }
    return {"subtracted": taken, "latency": rest}


def _place(point: Point, rate: Rate, raw: Mapping[str, object], limit: float) -> dict[str, object]:
    """What a point of a scenario comes to."""
    values: dict[str, object] = {
        "scenario": point.scenario,
        "form": point.form,
        "axis": point.axis,
        "at": point.at,
    }
    if "point" not in raw:
        return values
    times: Sequence[Sequence[float]] = raw["point"]  # type: ignore[assignment]
    step, spread = _whole(rate, times[1]) if point.whole else _slope(rate, times)
    values |= {"blocks": raw["blocks"]}
    if spread > limit:
        return {**values, "note": f"repeats differ by {spread:.1%}, more than {limit:.0%}"}
    values |= {"step": round(step, 3)}
    if point.unit == "cycles":
        return {
            **values,
            "spread": round(spread, 5),
            "latency": round(step / point.amount, 3),
            "sass": rate.sass,
        }
    found = float(f"{point.amount / step:.6g}")
    values |= {"rate": found, "rate_spread": round(spread, 5), "rate_sass": rate.sass, "unit": point.unit}
    rest = 1 - step * (rate.least + rate.steps) * rate.trips / statistics.median(times[1])
    if rest > _REST:
        values["note"] = f"{rest:.0%} of the longer kernel's time is not its steps'"
    return {**values, "flop": found if point.unit == "FLOP" else None}


def build(
    case: Case,
    raw: Mapping[str, object],
    known: Mapping[str, float],
    where: Conditions,
    limit: float = SPREAD_LIMIT,
) -> Record:
    """The record of a case from its times; `known` has the latencies that links refer to."""
    values: dict[str, object] = {"note": case.note}
    if case.point is not None:
        rate = case.dependent or case.independent
        assert rate is not None
        values |= {"chain": case.chain, "way": case.way, **_place(case.point, rate, raw, limit)}
    elif case.dependent is not None and "dependent" in raw:
        step, spread = _slope(case.dependent, raw["dependent"])  # type: ignore[arg-type]
        values |= {"sass": case.dependent.sass, "chain": case.chain, "way": case.way}
        if spread <= limit:
            values |= {"step": round(step, 3), "spread": round(spread, 5)}
            missing = [name for name in case.references if name == DECLARED or name not in known]
            if not missing:
                values |= _alone(step, {name: known[name] for name in case.references})
        else:
            values["note"] = f"latency: repeats differ by {spread:.1%}, more than {limit:.0%}"
    if case.point is None and case.independent is not None and "independent" in raw:
        values |= _throughput(case, raw["independent"], limit)  # type: ignore[arg-type]
    if values.get("step") is None and values.get("rate") is None:
        values["skipped"] = values["note"] or "it was not timed"
    return Record(case.spelling, case.family, **asdict(where), **values)  # type: ignore[arg-type]


def write(records: Iterable[Record], path: Path) -> None:
    """Write records as JSON lines."""
    path.write_text("".join(json.dumps(asdict(each), ensure_ascii=False) + "\n" for each in records))


def read(path: Path) -> Iterator[Record]:
    """Read records; fields that a later release has added are left out.

    Raises:
        ValueError: a line is no record of a schema that this release knows.
    """
    names = {each.name for each in fields(Record)}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        try:
            raw = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}:{number}: no JSON: {error}") from None
        if not isinstance(raw, dict) or raw.get("schema") != SCHEMA:
            raise ValueError(f"{path}:{number}: no record of schema {SCHEMA}")
        try:
            yield Record(**{name: value for name, value in raw.items() if name in names})
        except TypeError as error:
            raise ValueError(f"{path}:{number}: no record: {error}") from None
