"""The control-flow graph of one function: where warps that split come together again, and who goes first.

Threads that took different sides of a branch reconverge at its immediate post-dominator. The machine gets that from one
number a block: its rank. A block's rank is smaller than that of every block that post-dominates it (the
post-dominator tree, deepest first), and the machine always runs the ready threads of least rank. So nobody passes a
post-dominator while a thread of the region before it can still run. Post-dominance is a partial order, hence such
ranks exist for every graph, irreducible ones too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WITHIN_BLOCK = 1 << 24
"""Ranks of blocks are multiples of this, so that instructions of one block can be told apart."""


@dataclass(frozen=True, slots=True)
class Flow:
    """What the machine asks of a control-flow graph; every tuple is indexed by instruction number.

    rank      order of execution among ready threads: least first
    joins     whether control can come here from more than one place: running threads stop here for the others
    block     the number of the basic block
    immediate_post_dominator   by block: the first instruction of that block, or None where it is the function's end
    loops     by instruction: whether it lies on a cycle
    """

    rank: tuple[int, ...]
    joins: tuple[bool, ...]
    block: tuple[int, ...]
    immediate_post_dominator: tuple[int | None, ...]
    loops: tuple[int, ...]


def analyse(successors: Sequence[tuple[int, ...]], splits: frozenset[int]) -> Flow:
    """The flow of a function of `len(successors)` instructions.

    `successors[i]` are the instructions that may follow i (none for one that ends the function); `splits` are those
    after which a block ends though control only falls through (calls, barriers).
    """
    starts = _leaders(successors, splits)
    block = _block_numbers(starts, len(successors))
    edges = _block_edges(starts, successors, block)
    parent, depth = _post_dominators(edges)
    order = sorted(range(len(starts)), key=lambda b: (-depth[b], b))
    rank_of = {b: position * WITHIN_BLOCK for position, b in enumerate(order)}
    predecessors: dict[int, int] = {}
    for targets in edges:
        for target in targets:
            predecessors[target] = predecessors.get(target, 0) + 1
    component = cycles(edges)
    return Flow(
        rank=tuple(rank_of[b] + i - starts[b] for i, b in enumerate(block)),
        joins=tuple(i == starts[b] and predecessors.get(b, 0) > 1 for i, b in enumerate(block)),
        block=block,
        immediate_post_dominator=tuple(None if p is None else starts[p] for p in parent),
        loops=tuple(component[b] for b in block),
    )


def _leaders(successors: Sequence[tuple[int, ...]], splits: frozenset[int]) -> list[int]:
    leaders = {0}
    for i, targets in enumerate(successors):
        if targets != (i + 1,) or i in splits:
            leaders.update(targets)
            if i + 1 < len(successors):
                leaders.add(i + 1)
    return sorted(leaders)


def _block_numbers(starts: list[int], count: int) -> tuple[int, ...]:
    numbers: list[int] = []
    for b, start in enumerate(starts):
        stop = starts[b + 1] if b + 1 < len(starts) else count
        numbers.extend([b] * (stop - start))
    return tuple(numbers)


def _block_edges(
    starts: list[int], successors: Sequence[tuple[int, ...]], block: tuple[int, ...]
) -> list[tuple[int, ...]]:
    edges = []
    for b in range(len(starts)):
        last = starts[b + 1] - 1 if b + 1 < len(starts) else len(successors) - 1
        edges.append(tuple(dict.fromkeys(block[t] for t in successors[last])))
    return edges


def _post_dominators(edges: Sequence[tuple[int, ...]]) -> tuple[list[int | None], list[int]]:
    """Immediate post-dominator and depth in that tree of every block (Cooper, Harvey and Kennedy's iteration)."""
    count = len(edges)
    end = count
    forward: list[list[int]] = [list(targets) or [end] for targets in edges] + [[]]
    for b in _cannot_end(forward, end):
        forward[b].append(end)
    order = _reverse_postorder(_reversed(forward), end)
    position = {node: i for i, node in enumerate(order)}
    parent: dict[int, int] = {end: end}

    def meet(a: int, b: int) -> int:
        while a != b:
            while position[a] > position[b]:
                a = parent[a]
            while position[b] > position[a]:
                b = parent[b]
        return a

    changed = True
    while changed:
        changed = False
        for node in order[1:]:
            known = [target for target in forward[node] if target in parent]
            best = known[0]
            for other in known[1:]:
                best = meet(best, other)
            if parent.get(node) != best:
                parent[node] = best
                changed = True
    depth = {end: 0}
    for node in order[1:]:
        depth[node] = depth[parent[node]] + 1
    return [None if parent[b] == end else parent[b] for b in range(count)], [depth[b] for b in range(count)]


def _cannot_end(forward: list[list[int]], end: int) -> list[int]:
    """Blocks to give an edge to the end, so that every block reaches it: the first block of each endless loop."""
    backward = _reversed(forward)
    reached = set(_reverse_postorder(backward, end))
    on_cycle = cycles([*forward[:end], []]) if len(reached) <= end else []
    extra: list[int] = []
    for b in range(end):
        if b not in reached and on_cycle[b]:
            extra.append(b)
            reached.update(_reverse_postorder(backward, b))
    return extra


def _reversed(forward: list[list[int]]) -> list[list[int]]:
    backward: list[list[int]] = [[] for _ in forward]
    for node, targets in enumerate(forward):
        for target in targets:
            backward[target].append(node)
    return backward


def _reverse_postorder(edges: list[list[int]], root: int) -> list[int]:
    seen = {root}
    finished: list[int] = []
    stack: list[tuple[int, int]] = [(root, 0)]
    while stack:
        node, position = stack.pop()
        if position < len(edges[node]):
            stack.append((node, position + 1))
            target = edges[node][position]
            if target not in seen:
                seen.add(target)
                stack.append((target, 0))
        else:
            finished.append(node)
    return finished[::-1]


def cycles(edges: Sequence[Sequence[int]]) -> list[int]:
    """For every block the number (from 1) of the strongly connected component whose cycles it is on, else 0."""
    forward = [list(targets) for targets in edges]
    backward = _reversed(forward)
    finished: list[int] = []
    seen: set[int] = set()
    for root in range(len(edges)):
        if root not in seen:
            fresh = [node for node in _reverse_postorder(forward, root) if node not in seen]
            seen.update(fresh)
            finished.extend(reversed(fresh))
    component = [0] * len(edges)
    taken: set[int] = set()
    number = 0
    for root in reversed(finished):
        if root in taken:
            continue
        members = _collect(backward, root, taken)
        if len(members) > 1 or root in forward[root]:
            number += 1
            for node in members:
                component[node] = number
    return component


def _collect(edges: Mapping[int, list[int]] | list[list[int]], root: int, taken: set[int]) -> list[int]:
    members = [root]
    taken.add(root)
    for node in members:
        for target in edges[node]:
            if target not in taken:
                taken.add(target)
                members.append(target)
    return members
