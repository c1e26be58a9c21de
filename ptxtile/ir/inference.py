"""The target and version of a module: the broadest target that all its parts allow, and the lowest version for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Optional

from ptxtile import isa
from ptxtile.errors import TargetError
from ptxtile.ir import module as m
from ptxtile.ir.demand import Demand, demands
from ptxtile.location import resolve

_BREADTH = {"": 0, "f": 1, "a": 2}


@lru_cache(maxsize=1)
def candidates() -> tuple[str, ...]:
    """Targets the newest assembler makes code for: plain, then family, then exact ones; in each the lowest first."""
    found = [each for each in isa.target_facts().targets.values() if each.supported]
    return tuple(each.name for each in sorted(found, key=lambda each: (_BREADTH[each.suffix], each.number)))


def infer(
    items: Iterable[m.Item], target: Optional[str] = None, version: Optional[str] = None
) -> tuple[str, str]:
    """(target, version) for a module of these items.

    A `target` or `version` given is kept. TargetError, naming what is in the way, if no target has everything, or the
    given target or version lacks something.
    """
    asked = demands(items)
    if target is not None:
        return target, _version(asked, target, version)
    for name in candidates():
        if all(_has(each, name, version) for each in asked):
            return name, _version(asked, name, version)
    raise TargetError(_conflict(asked, version))


def _ordinal(version: str) -> int:
    ordinal = isa.target_facts().ordinal
    if version not in ordinal:
        known = isa.target_facts().versions
        raise TargetError(
            f"unknown PTX ISA version {version!r}; versions are {known[0]} to {known[-1]}, written as text"
        )
    return ordinal[version]


def _has(demand: Demand, target: str, version: Optional[str] = None) -> bool:
    first = demand.targets.get(target)
    if first is None:
        return False
    removed = demand.removed.get(target)
    if version is None:
        return removed is None or _ordinal(first) < _ordinal(removed)
    known = isa.target_facts().targets[target]
    if _ordinal(version) < max(_ordinal(first), _ordinal(known.since)):
        return False
    return removed is None or _ordinal(version) < _ordinal(removed)


def _version(asked: Sequence[Demand], target: str, version: Optional[str]) -> str:
    """The version for `target`: the one given, or the lowest. TargetError if something is missing there."""
    known = isa.find_target(target)
    for each in asked:
        if target not in each.targets:
            raise TargetError(f"{_named(each)} is not available on {target}: it needs {needs(each)}")
    floor = max([_ordinal(known.since), *(_ordinal(each.targets[target]) for each in asked)])
    if version is not None:
        _check_version(asked, target, version, known.since)
        return version
    chosen = isa.target_facts().versions[floor]
    for each in asked:
        removed = each.removed.get(target)
        if removed is not None and floor >= _ordinal(removed):
            asker = next((one for one in asked if _ordinal(one.targets[target]) == floor), None)
            reason = _named(asker) if asker is not None else target
            raise TargetError(
                f"{_named(each)} was removed from {target} in PTX ISA {removed}, and {reason} needs PTX ISA {chosen}"
            )
    return chosen


def _check_version(asked: Sequence[Demand], target: str, version: str, since: str) -> None:
    place = _ordinal(version)
    if place < _ordinal(since):
        raise TargetError(f"{target} needs PTX ISA {since}, not {version}")
    for each in asked:
        first, removed = each.targets[target], each.removed.get(target)
        if place < _ordinal(first):
            raise TargetError(f"{_named(each)} needs PTX ISA {first} on {target}, not {version}")
        if removed is not None and place >= _ordinal(removed):
            raise TargetError(
                f"{_named(each)} was removed from {target} in PTX ISA {removed}; the version is {version}"
            )


def _conflict(asked: Sequence[Demand], version: Optional[str]) -> str:
    """Which demands have no target in common: two if two are enough."""
    sets = [frozenset(name for name in candidates() if _has(each, name, version)) for each in asked]
    suffix = "" if version is None else f" in PTX ISA {version}"
    for one, allowed in zip(asked, sets):
        if not allowed:
            return f"no target has {_named(one)}{suffix}: it needs {needs(one)}"
    for i, first in enumerate(asked):
        for j in range(i):
            if not sets[i] & sets[j]:
                return _no_common([asked[j], first], suffix)
    left, needed = frozenset(candidates()), []
    for each, allowed in zip(asked, sets):
        if not left <= allowed:
            needed.append(each)
            left &= allowed
        if not left:
            break
    return _no_common(needed, suffix)


def _no_common(found: Sequence[Demand], suffix: str) -> str:
    names = [_named(each) for each in found]
    head = f"no target has {', '.join(names[:-1])} and {names[-1]} together{suffix}:"
    return "\n".join([head, *(f"  {each.what} needs {needs(each)}" for each in found)])


def _named(demand: Demand) -> str:
    where = resolve(demand.mark)
    return f"{demand.what} ({where})" if where is not None else demand.what


def needs(demand: Demand) -> str:
    """Which targets a demand allows, in words: "sm_90 or later", "sm_90a", "sm_100a, sm_103a"."""
    known = isa.target_facts().targets
    allowed = [known[name] for name in demand.targets if name in known]
    plain = sorted((each for each in allowed if not each.suffix), key=lambda each: each.number)
    parts: list[str] = []
    if plain:
        later = [each for each in known.values() if not each.suffix and each.number >= plain[0].number]
        if len(later) == len(plain):
            return f"{plain[0].name} or later"
        parts = [each.name for each in plain]
    rest = [each for each in allowed if each.suffix and not any(each.number == one.number for one in plain)]
    parts += [each.name for each in sorted(rest, key=lambda each: (each.number, _BREADTH[each.suffix]))]
    return ", ".join(parts) if parts else "a target that does not exist yet"


def explain(module: m.Module) -> str:
    """What asked for the module's target and version, a line each, with the Python line where it is known."""
    asked = demands(module.items)
    lowest = candidates()[0]
    lines = [f".target {module.target}"]
    asking = [each for each in asked if lowest not in each.targets]
    lines += [f"  {_named(each)} needs {needs(each)}" for each in asking]
    if not asking:
        lines.append(f"  nothing needs more than {lowest}")
    lines.append(f".version {module.version}")
    known = isa.target_facts().targets.get(module.target)
    versions = [each for each in asked if each.targets.get(module.target) == module.version]
    if known is not None and known.since == module.version:
        lines.append(f"  {module.target} needs PTX ISA {known.since}")
    else:
        lines += [f"  {_named(each)} needs PTX ISA {module.version} on {module.target}" for each in versions]
        if not versions:
            lines.append("  nothing in the module needs that much: it was asked for")
    return "\n".join(lines)
