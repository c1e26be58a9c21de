"""Targets, families, PTX ISA versions and driver branches: `targets.isa`, read once.

Floors: for each target the first PTX version that has a thing there. Inside `isa` a version is its place in
the list of versions and floors are a tuple over all targets in table order, NEVER where the target has it
not; outside both are text.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ptxtile import resources
from ptxtile.errors import TargetError
from ptxtile.isa import cache

NEVER = 1 << 20
"""Later than every version."""

Floors = tuple[int, ...]
Alternatives = Sequence[tuple["str | None", "str | None"]]


@dataclass(frozen=True, slots=True)
class Target:
    """One target: "sm_90a", its number 90, suffix "a", first PTX version, and whether the newest assembler
    still makes code.
    """

    name: str
    number: int
    suffix: str
    since: str
    supported: bool


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything in `targets.isa`. `base` are the targets' own floors; `index` a target's place in a Floors
    tuple.
    """

    versions: tuple[str, ...]
    ordinal: Mapping[str, int]
    targets: Mapping[str, Target]
    index: Mapping[str, int]
    families: Mapping[str, frozenset[str]]
    drivers: Mapping[int, str]
    base: Floors


@functools.lru_cache(maxsize=1)
def facts() -> Facts:
    """The table, read at first use."""
    versions: tuple[str, ...] = ()
    targets: dict[str, Target] = {}
    families: dict[str, frozenset[str]] = {}
    drivers: dict[int, str] = {}
    for record in cache.load(resources.grammar() / "targets.isa", "targets"):
        kind, *rest = record
        if kind == "versions":
            versions = tuple(rest)
        elif kind == "target":
            names, since, old = rest
            for name in names:
                number, suffix = split(name)
                targets[name] = Target(name, number, suffix, since, not old)
        elif kind == "family":
            families[rest[0]] = frozenset(rest[1])
        else:
            drivers[rest[0]] = rest[1]
    ordinal = {version: place for place, version in enumerate(versions)}
    index = {name: place for place, name in enumerate(targets)}
    base = tuple(ordinal[target.since] for target in targets.values())
    return Facts(versions, ordinal, targets, index, families, drivers, base)


def split(name: str) -> tuple[int, str]:
    """("sm_90a") → (90, "a")."""
    match = re.fullmatch(r"sm_(\d+)([af]?)", name)
    if match is None:
        raise TargetError(f"{name!r} is not a target: targets are written like sm_75, sm_90a, sm_100f")
    return int(match[1]), match[2]


def target(name: str) -> Target:
    """The target of that name; TargetError if there is none."""
    found = facts().targets.get(name)
    if found is None:
        known = ", ".join(n for n, t in facts().targets.items() if t.supported)
        raise TargetError(f"unknown target {name!r}; targets are {known}, and older ones down to sm_10")
    return found


def version(text: str) -> int:
    """The place of PTX ISA version `text` ("8.6") in the list of versions; TargetError if there is no such
    version.
    """
    found = facts().ordinal.get(text)
    if found is None:
        versions = facts().versions
        raise TargetError(
            f"unknown PTX ISA version {text!r}; versions are {versions[0]} to {versions[-1]}, written as text"
        )
    return found


@functools.lru_cache(maxsize=1)
def newest() -> int:
    """The place of the newest version."""
    return len(facts().versions) - 1


def runs_on(name: str) -> frozenset[str]:
    """The targets that a clause naming `name` means: sm_80 and later; sm_90a itself; the family of sm_100f."""
    return _runs_on(name)


@functools.cache
def _runs_on(name: str) -> frozenset[str]:
    number, suffix = split(name)
    known = facts()
    if suffix == "a":
        return frozenset([name])
    if suffix == "f":
        return known.families.get(name, frozenset([name]))
    return frozenset(t.name for t in known.targets.values() if t.number >= number)


def floors(alternatives: Alternatives) -> Floors:
    """For each target the lowest version that any alternative gives it (not counting the target's own floor)."""
    known = facts()
    found = [NEVER] * len(known.targets)
    for text, name in alternatives:
        low = 0 if text is None else known.ordinal[text]
        where: Iterable[str] = known.targets if name is None else runs_on(name)
        for each in where:
            place = known.index.get(each)
            if place is not None and low < found[place]:
                found[place] = low
    return tuple(found)


def as_mapping(values: Floors) -> Mapping[str, str]:
    """Floors → {"sm_90": "7.8", …}, the targets that have it alone."""
    known = facts()
    return MappingProxyType(
        {name: known.versions[values[place]] for name, place in known.index.items() if values[place] < NEVER}
    )


def describe(alternatives: Alternatives) -> str:
    """Words for a message: "sm_100 or later (PTX ISA 8.6)", "the sm_100f family (PTX ISA 8.6) or sm_120a (PTX
    ISA 8.7)".
    """
    parts: list[str] = []
    for text, name in alternatives:
        if name is None:
            parts.append(f"PTX ISA {text} or later")
            continue
        suffix = split(name)[1]
        words = {"": f"{name} or later", "a": f"exactly {name}", "f": f"the {name} family"}[suffix]
        parts.append(words if text is None else f"{words} (PTX ISA {text})")
    return " or ".join(parts)


def driver_version(driver: int) -> str | None:
    """The newest PTX ISA version that a driver branch (580) takes; None for one older than the table."""
    below = [branch for branch in facts().drivers if branch <= driver]
    return facts().drivers[max(below)] if below else None


@functools.lru_cache(maxsize=1)
def supported() -> tuple[int, ...]:
    """The places, in a Floors tuple, of the targets that the newest assembler still makes code for."""
    known = facts()
    return tuple(known.index[name] for name, each in known.targets.items() if each.supported)
