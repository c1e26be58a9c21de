"""The control-flow graph: post-dominators, ranks, loops."""

from __future__ import annotations

from hypothesis import given, strategies as st

from ptxtile.emulator.flow import analyse


def _reach(successors, start, avoid):
    """Instructions that can be reached from `start` without going through `avoid`; the end is -1."""
    seen, stack = set(), [start]
    while stack:
        node = stack.pop()
        if node in seen or node == avoid:
            continue
        seen.add(node)
        stack.extend(successors[node] or (-1,)) if node != -1 else None
    return seen


def test_a_diamond_joins_at_its_post_dominator():
    # 0: branch to 1 or 3; 1, 2: one side, to 4; 3: the other side; 4: end
    flow = analyse([(1, 3), (2,), (4,), (4,), ()], frozenset())
    assert flow.immediate_post_dominator[flow.block[0]] == 4
    assert flow.joins == (False, False, False, False, True)
    assert flow.rank[4] > max(flow.rank[1], flow.rank[2], flow.rank[3])


def test_a_loop_comes_before_what_follows_it():
    # 0; 1: head, to 2 or 4; 2: body, to 3 or 1; 3: to 1; 4: end
    flow = analyse([(1,), (2, 4), (3, 1), (1,), ()], frozenset())
    assert flow.rank[4] == max(flow.rank)
    assert flow.loops[1] == flow.loops[2] == flow.loops[3] != 0
    assert flow.loops[0] == flow.loops[4] == 0


def test_an_endless_loop_has_ranks_too():
    flow = analyse([(1,), (2, 3), (1,), (1,)], frozenset())
    assert flow.rank[1] > max(flow.rank[2], flow.rank[3])


@given(st.data())
def test_no_thread_passes_a_post_dominator_while_another_is_before_it(data):
    """In any graph, what lies between a branch and its immediate post-dominator has a smaller rank than that."""
    count = data.draw(st.integers(2, 12))
    nodes = st.integers(0, count - 1)
    successors = [tuple(data.draw(st.lists(nodes, max_size=2, unique=True))) for _ in range(count - 1)] + [()]
    flow = analyse(successors, frozenset())
    for node, targets in enumerate(successors):
        join = flow.immediate_post_dominator[flow.block[node]]
        if len(targets) < 2 or join is None:
            continue
        for target in targets:
            between = _reach(successors, target, join)
            for other in between - {-1}:
                assert flow.rank[other] < flow.rank[join]
