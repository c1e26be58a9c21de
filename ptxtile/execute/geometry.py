"""How many threads a launch has, checked before either machine sees it (PTX ISA 2.2, limits of sm_30 and later)."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Union

from ptxtile.driver import Dim3, Geometry
from ptxtile.errors import OperandError
from ptxtile.ir.module import Function

__all__ = ["Extents", "geometry"]

Extents = Union[int, Sequence[int]]
"""One to three extents, x first; an int is (x, 1, 1)."""

_LIMITS: dict[str, Dim3] = {
    "grid": (2**31 - 1, 65535, 65535),
    "block": (1024, 1024, 64),
    "cluster": (16, 16, 16),
}
_THREADS = 1024
_CLUSTER = 16  # the largest that any GPU holds; 8 is portable


def _dim3(what: str, given: Extents) -> Dim3:
    try:
        raw = (
            tuple(map(operator.index, given))
            if type(given) is tuple or isinstance(given, Sequence)
            else (operator.index(given),)
        )
    except TypeError:
        raise OperandError(f"{what} is one to three integers, not {given!r}") from None
    if not 1 <= len(raw) <= 3:
        raise OperandError(f"{what} is one to three integers, not {given!r}")
    x, y, z = (*raw, 1, 1)[:3]
    for axis, extent, limit in zip("xyz", (x, y, z), _LIMITS[what]):
        if not 1 <= extent <= limit:
            raise OperandError(f"{what} {(x, y, z)}: {what}.{axis} must be 1 to {limit}, not {extent}")
    return x, y, z


def _fixed(function: Function, directive: str) -> Dim3 | None:
    """The extents of `.reqntid`, `.maxntid` or `.reqnctapercluster`; None where the entry has none."""
    for found in function.directives:
        if found.name == directive and found.values:
            x, y, z = (*(int(value) for value in found.values if isinstance(value, int)), 1, 1)[:3]
            return x, y, z
    return None


def _check_directives(function: Function, shape: Geometry) -> None:
    required = _fixed(function, "reqntid")
    if required is not None and required != shape.block:
        raise OperandError(
            f"{function.name} runs with blocks of {required} alone (.reqntid), not {shape.block}"
        )
    most = _fixed(function, "maxntid")
    threads = shape.block[0] * shape.block[1] * shape.block[2]
    if most is not None and threads > most[0] * most[1] * most[2]:
        raise OperandError(
            f"{function.name} runs with at most {most[0] * most[1] * most[2]} threads a block (.maxntid), not {threads}"
        )


def _cluster(function: Function, blocks: Dim3, cluster: Extents | None) -> Dim3 | None:
    """The cluster's shape: given, or the one the entry fixes; it divides the grid."""
    fixed = _fixed(function, "reqnctapercluster")
    group = _dim3("cluster", cluster) if cluster is not None else fixed
    if fixed is not None and group != fixed:
        raise OperandError(
            f"{function.name} runs in clusters of {fixed} alone (.reqnctapercluster), not {group}"
        )
    if group is not None:
        if group[0] * group[1] * group[2] > _CLUSTER:
            raise OperandError(
                f"cluster {group} has {group[0] * group[1] * group[2]} blocks: {_CLUSTER} is the most"
            )
        for axis, whole, part in zip("xyz", blocks, group):
            if whole % part:
                raise OperandError(
                    f"cluster {group} does not divide grid {blocks}: {whole} % {part} along {axis}"
                )
    return group


def geometry(
    function: Function,
    grid: Extents | None,
    block: Extents | None,
    cluster: Extents | None = None,
    dynamic_shared: int = 0,
    *,
    programmatic: bool = False,
    cooperative: bool = False,
) -> Geometry:
    """The geometry of a launch of `function`.

    Args:
        function: the entry, whose `.reqntid`, `.maxntid` and `.reqnctapercluster` count; the first and the last
            also stand in for a `block` or `cluster` that is None.
        grid: blocks in the grid.
        block: threads in a block.
        cluster: blocks in a cluster; it divides the grid along every axis.
        dynamic_shared: bytes of dynamic shared memory a block.
        programmatic, cooperative: see `driver.Geometry`.

    Raises:
        OperandError: a fact is missing, out of range, or against a directive of the entry.
    """
    if grid is None:
        raise OperandError(f"{function.name} needs a grid: how many blocks to launch")
    threads = block if block is not None else _fixed(function, "reqntid")
    if threads is None:
        raise OperandError(f"{function.name} needs a block: how many threads a block has")
    blocks = _dim3("grid", grid)
    shape = _dim3("block", threads)
    if shape[0] * shape[1] * shape[2] > _THREADS:
        raise OperandError(
            f"block {shape} has {shape[0] * shape[1] * shape[2]} threads: {_THREADS} is the most"
        )
    group = _cluster(function, blocks, cluster)
    if isinstance(dynamic_shared, bool) or not isinstance(dynamic_shared, int) or dynamic_shared < 0:
        raise OperandError(f"dynamic_shared is a count of bytes, not {dynamic_shared!r}")
    for word, flag in (("programmatic", programmatic), ("cooperative", cooperative)):
        if not isinstance(flag, bool):
            raise OperandError(f"{word} is True or False, not {flag!r}")
    made = Geometry(blocks, shape, group, dynamic_shared, programmatic, cooperative)
    _check_directives(function, made)
    return made
