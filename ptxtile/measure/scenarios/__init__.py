"""What cannot be read off one spelling's chain: caches, bandwidth, contention, barriers, copies, wgmma, issue.

A *scenario* ("memory.latency.global") has points along an axis ("bytes"): "memory.latency.global/64KiB" is one. Each
point is a kernel of its own, proven by its SASS and timed like a spelling, and gives one record.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import lru_cache

from ptxtile.measure.scenarios import atomics, bandwidth, barriers, bulk, issue, latency, matrices
from ptxtile.measure.scenarios.recipe import Recipe

__all__ = ["Recipe", "find", "is_scenario", "names"]


@lru_cache(maxsize=1)
def _all() -> dict[str, Recipe]:
    sources = (latency, bandwidth, atomics, barriers, bulk, matrices, issue)
    return {recipe.name: recipe for source in sources for recipe in source.recipes()}


def is_scenario(name: str) -> bool:
    """Whether a name is of a point of a scenario: no spelling has a slash."""
    return "/" in name


def find(name: str) -> Recipe | None:
    """The point of this name."""
    return _all().get(name)


def names(pattern: str = "*") -> Iterator[str]:
    """The points whose names, or whose scenarios' names, match a glob."""
    for name in _all():
        if fnmatchcase(name, pattern) or fnmatchcase(name.partition("/")[0], pattern):
            yield name
