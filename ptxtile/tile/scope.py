"""Which threads execute a tile operation, and the group axes they give its operands.

The active set comes from the block's shape, narrowed by the enclosing `if_`s as far as they speak of thread, lane and
warp indices alone. Group coordinates count the active warps and lanes from 0; layouts carry the absolute owners.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ptxtile.builder import ranges, scalars
from ptxtile.builder.ranges import Extent
from ptxtile.builder.trace import Trace
from ptxtile.errors import TileError

SCOPES = ("thread", "warp", "warpgroup", "cta", "cluster")
WARP = 32
_THREAD_AXES = ("laneid", "warpid", "tx", "wid_in_wg", "tid_in_wg", "wgid")


@dataclass(frozen=True, slots=True)
class Steps:
    """The values first, first + step, … (count of them)."""

    first: int
    step: int
    count: int

    def __getitem__(self, index: int) -> int:
        return self.first + index * self.step


@dataclass(frozen=True, slots=True)
class Group:
    """The group axes of a scope.

    extents  of the group axes, outermost first
    warps, lanes   the absolute indices that the warp and lane axes stand for; None where the scope has no such axis
    cluster  the CTA extents of the cluster axes (z, y, x), leading unused ones left out
    """

    scope: str
    extents: tuple[int, ...]
    warps: Steps | None
    lanes: Steps | None
    cluster: tuple[int, ...] = ()

    def owners(self, coordinate: Sequence[int]) -> dict[str, int]:
        """The owner axes' values of the thread at a group coordinate; an axis the scope leaves free is absent."""
        found: dict[str, int] = {}
        names = ("cbz", "cby", "cbx")[3 - len(self.cluster) :]
        found.update(zip(names, coordinate))
        rest = coordinate[len(self.cluster) :]
        lane = self.lanes[rest[-1]] if self.lanes is not None else None
        warp = self.warps[rest[0]] if self.warps is not None else None
        if lane is not None:
            found["laneid"] = lane
        if warp is not None:
            found["wid_in_wg"] = warp % 4
            if lane is not None:
                found["tid_in_wg"] = warp % 4 * WARP + lane
            if self.scope in ("cta", "cluster"):
                found |= {"warpid": warp, "wgid": warp // 4}
                if lane is not None:
                    found["tx"] = warp * WARP + lane
        return found


def group(trace: Trace, scope: str, what: str) -> Group:
    """The group axes of `scope` here. TileError where the active threads do not form them."""
    if scope not in SCOPES:
        raise TileError(f"{what}: scope= is one of {', '.join(SCOPES)}, not {scope!r}")
    if scope == "thread":
        return Group("thread", (), None, None)
    threads = trace.launch.threads
    if threads is None:
        raise TileError(f"{what}: {scope} scope needs a block whose shape is known while tracing")
    warps, lanes = _active(trace, threads, scope, what)
    if scope == "warp":
        return Group(scope, (lanes.count,), warps if warps.count == 1 else None, lanes)
    if scope == "warpgroup":
        inside = _warpgroup(warps, what)
        return Group(scope, (inside.count, lanes.count), inside, lanes)
    if scope == "cta":
        return Group(scope, (warps.count, lanes.count), warps, lanes)
    if trace.launch.cluster is None:
        raise TileError(f"{what}: cluster scope needs cluster= on the kernel")
    ctas = list(reversed(trace.launch.cluster))
    while len(ctas) > 1 and ctas[0] == 1:
        ctas.pop(0)
    return Group(scope, (*ctas, warps.count, lanes.count), warps, lanes, tuple(ctas))


def _warpgroup(warps: Steps, what: str) -> Steps:
    if warps.step == 1 and warps.first % 4 == 0 and warps.count % 4 == 0:
        return Steps(0, 1, 4)
    if warps.step == 1 and warps.first // 4 == (warps.first + warps.count - 1) // 4:
        return Steps(warps.first % 4, 1, warps.count)
    raise TileError(
        f"{what}: warpgroup scope needs whole warpgroups (warps 4i to 4i+3), or warps of one; active here are "
        f"{warps.count} warps from {warps.first}"
    )


def _active(trace: Trace, threads: int, scope: str, what: str) -> tuple[Steps, Steps]:
    mask = _mask(trace, threads)
    by_warp: dict[int, list[int]] = {}
    for thread, active in enumerate(mask):
        if active:
            by_warp.setdefault(thread // WARP, []).append(thread % WARP)
    if not by_warp:
        raise TileError(f"{what}: the enclosing conditions leave no thread active")
    lanes = set(map(tuple, by_warp.values()))
    if len(lanes) != 1:
        partial = next(warp for warp, held in by_warp.items() if len(held) < WARP)
        raise TileError(
            f"{what}: at {scope} scope every active warp needs the same lanes, and warp {partial} has "
            f"{len(by_warp[partial])} of them; guard the partial warp by itself (pt.if_ on pt.warp_id()), use a block "
            "that is a multiple of 32, or thread scope"
        )
    return _steps(list(by_warp), "warps", what), _steps(list(lanes.pop()), "lanes", what)


def _steps(values: list[int], name: str, what: str) -> Steps:
    step = values[1] - values[0] if len(values) > 1 else 1
    if values != list(range(values[0], values[0] + step * len(values), step)):
        raise TileError(
            f"{what}: the active {name} {values} are not evenly spaced, so they form no group axis"
        )
    return Steps(values[0], step, len(values))


def _mask(trace: Trace, threads: int) -> tuple[bool, ...]:
    facts = trace.facts()
    special = trace.special
    relevant = {name: found.extent for name, found in special.items() if isinstance(found.extent, Extent)}
    key = (tuple(facts), tuple(relevant.items()), trace.launch.block)
    return _evaluate(key)


@lru_cache(maxsize=256)
def _evaluate(
    key: tuple[tuple[object, ...], tuple[tuple[str, Extent], ...], tuple[int, int, int]],
) -> tuple[bool, ...]:
    facts, special, (x, y, z) = key
    mask: list[bool] = []
    for thread in range(x * y * z):
        known = {
            "%tid.x": thread % x,
            "%tid.y": thread // x % y,
            "%tid.z": thread // x // y,
            "%laneid": thread % WARP,
        }
        values = {}
        for name, extent in special:
            if name in known:
                for (member,) in extent.terms:
                    values[member] = known[name]
        mask.append(all(ranges.holds(fact, values) is not False for fact in facts))
    return tuple(mask)


def coordinate(made: Group) -> list[Extent]:
    """The executing thread's group coordinate, as extents for addresses."""
    found: list[Extent] = []
    for axis, extent in zip(("z", "y", "x")[3 - len(made.cluster) :], made.cluster):
        found.append(_known(scalars.cluster_idx(axis).extent, extent))
    if made.scope in ("cta", "cluster", "warpgroup"):
        assert made.warps is not None
        warp = _warp(made)
        found.append(_rebased(warp, made.warps))
    if made.lanes is not None:
        found.append(_rebased(_lane(made), made.lanes))
    return found


def _rank() -> Extent:
    rank = ranges.of_value(scalars.thread_rank())
    assert rank is not None
    return rank


def _warp(made: Group) -> Extent:
    """The warp as a quotient of the thread's rank, the lane as its remainder: the prover relates both, and where a
    layout puts them together again (32 * warp + lane) the address needs neither."""
    assert made.warps is not None
    if made.warps.count == 1:
        return ranges.constant(made.warps.first)
    warp = ranges.quotient(_rank(), WARP)
    return ranges.remainder(warp, 4) if made.scope == "warpgroup" else warp


def _lane(made: Group) -> Extent:
    assert made.lanes is not None
    return ranges.constant(made.lanes.first) if made.lanes.count == 1 else ranges.remainder(_rank(), WARP)


def _known(extent: object, count: int) -> Extent:
    if count == 1:
        return ranges.constant(0)
    assert isinstance(extent, Extent)
    return extent


def _rebased(value: Extent, steps: Steps) -> Extent:
    if steps.count == 1:
        return ranges.constant(0)
    # The value is first + step * index, as the enclosing conditions say; dividing first keeps the dividend from being
    # negative where the value's own range is wider than theirs.
    return ranges.quotient(value, steps.step).plus(-(steps.first // steps.step))
