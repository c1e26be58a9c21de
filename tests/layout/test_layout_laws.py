"""The laws of the layout algebra, over generated layouts."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import event, given, settings, strategies as st

import ptxtile.layout as namespace
from ptxtile.errors import LayoutError
from ptxtile.layout import AXES, ComposeLayout, Iter, S, Step, TileLayout, laneid, m, warpid

Place = dict[str, int]

_extents = st.lists(st.sampled_from((1, 2, 3, 4, 8)), min_size=1, max_size=4)


def table(layout: object) -> list[Place]:
    """The value of `apply` at every linear index."""
    return [layout.apply(i) for i in range(layout.size())]  # type: ignore[attr-defined]


@st.composite
def shapes(draw: st.DrawFn, size: int) -> tuple[int, ...]:
    """A shape with `size` elements, of up to three dimensions."""
    first = draw(st.sampled_from([d for d in range(1, size + 1) if size % d == 0]))
    rest = size // first
    second = draw(st.sampled_from([d for d in range(1, rest + 1) if rest % d == 0]))
    return (first, second, rest // second)


@st.composite
def layouts(draw: st.DrawFn, axes: tuple = (m, laneid, warpid), replicas: bool = True) -> TileLayout:
    """Any well-formed layout: every sign of stride, gaps, overlaps, replicas, offsets."""
    axis, stride = st.sampled_from(axes), st.integers(-5, 9)
    shard = [Iter(extent, draw(stride), draw(axis)) for extent in draw(_extents)]
    copies = [
        Iter(draw(st.integers(1, 3)), draw(stride), draw(axis))
        for _ in range(draw(st.integers(0, replicas * 2)))
    ]
    offset = [Step(draw(st.integers(0, 6)), draw(axis)) for _ in range(draw(st.integers(0, 2)))]
    lift = [Step(-sum(min(0, it.reach) for it in (*shard, *copies) if it.axis == one), one) for one in AXES]
    return TileLayout.from_iters(shard, copies, [*offset, *(step for step in lift if step.amount)])


@st.composite
def bijections(draw: st.DrawFn) -> TileLayout:
    """A layout whose values fill a box on m, laneid and warpid, in any order of iters."""
    extents = draw(_extents)
    reach = {m: 1, laneid: 1, warpid: 1}
    iters = []
    for extent in extents:
        axis = draw(st.sampled_from((m, laneid, warpid)))
        iters.append(Iter(extent, reach[axis], axis))
        reach[axis] *= extent
    return TileLayout.from_iters(draw(st.permutations(iters)))


few = settings(max_examples=50, deadline=None, derandomize=True)


def naive(layout: TileLayout, index: int) -> dict[str, int]:
    """The definition, digit by digit."""
    values = {axis.name: 0 for axis in (*layout.axes, m)}
    for step in layout.offset:
        values[step.axis.name] += step.amount
    for it in reversed(layout.shard):
        index, digit = divmod(index, it.extent)
        values[it.axis.name] += digit * it.stride
    return values


def places(owners) -> set[frozenset[tuple[str, int]]]:
    return {frozenset(owner.items()) for owner in owners}


@few
@given(layouts())
def test_apply_is_the_definition(layout):
    assert table(layout) == [naive(layout, i) for i in range(layout.size())]


@few
@given(layouts())
def test_repr_evaluates_to_itself(layout):
    names = {name: getattr(namespace, name) for name in namespace.__all__}
    again = eval(repr(layout), names)
    assert again == layout and hash(again) == hash(layout) and repr(again) == repr(layout)


@few
@given(layouts(), st.data())
def test_coordinates_in_any_shape_are_the_linear_index(layout, data):
    shape = data.draw(shapes(layout.size()))
    for index, coord in enumerate(itertools.product(*map(range, shape))):
        assert layout.apply(*coord, shape=shape) == layout.apply(index)
    for index, coord in enumerate(itertools.product(*map(range, layout.extents))):
        assert layout.apply(*coord) == layout.apply(index)


@few
@given(layouts())
def test_arrays_give_what_ints_give(layout):
    values = layout.apply(np.arange(layout.size(), dtype=np.uint16))
    assert {name: list(column) for name, column in values.items()} == {
        name: [row[name] for row in table(layout)] for name in table(layout)[0]
    }
    assert all(column.dtype == np.int64 for column in values.values())


@few
@given(layouts(), st.data())
def test_canonicalize_keeps_the_map_and_is_the_same_however_iters_are_split(layout, data):
    plain = layout.canonicalize()
    assert table(plain) == table(layout)
    assert plain.canonicalize() == plain
    for i in range(layout.size()):
        assert places(plain.owners(i)) == places(layout.owners(i))
    try:
        split, _ = layout.group(data.draw(shapes(layout.size())))
    except LayoutError:
        event("refused")
        return
    assert split.canonicalize() == plain


@few
@given(layouts(), st.data())
def test_group_puts_whole_iters_in_every_dimension(layout, data):
    shape = data.draw(shapes(layout.size()))
    try:
        split, marks = layout.group(shape)
    except LayoutError:
        with pytest.raises(LayoutError):
            layout.plan(shape)
        return
    assert table(split) == table(layout)
    for dim, extent in enumerate(shape):
        assert math.prod(split.extents[marks[dim] : marks[dim + 1]]) == extent
    assert (marks[0], marks[-1]) == (0, len(split.shard))


@few
@given(layouts(), st.data())
def test_plan_is_the_map(layout, data):
    shape = data.draw(shapes(layout.size()))
    try:
        plan = layout.plan(shape)
    except LayoutError:
        event("refused")
        return
    for coord in itertools.product(*map(range, shape)):
        values = {axis.name: layout.parts.offset_on(axis) for axis in (*layout.axes, m)}
        for term in plan:
            digit = coord[term.dim] // term.div
            digit = digit if term.mod is None else digit % term.mod
            assert 0 <= digit < term.extent
            values[term.axis.name] += digit * term.stride
        assert values == layout.apply(*coord, shape=shape)


@few
@given(layouts(), st.data())
def test_slice_is_the_map_from_its_start(layout, data):
    shape = data.draw(shapes(layout.size()))
    starts = tuple(data.draw(st.integers(0, extent - 1)) for extent in shape)
    sizes = tuple(data.draw(st.integers(1, e - s)) for e, s in zip(shape, starts, strict=True))
    try:
        part = layout.slice(shape, starts, sizes)
    except LayoutError:
        event("refused")
        return
    for coord in itertools.product(*map(range, sizes)):
        there = tuple(s + c for s, c in zip(starts, coord, strict=True))
        assert part.apply(*coord, shape=sizes) == layout.apply(*there, shape=shape)
        assert part.owners(*coord, shape=sizes) == layout.owners(*there, shape=shape)


@few
@given(layouts(), st.data())
def test_window_adds_to_the_terms_of_any_start(layout, data):
    shape = data.draw(shapes(layout.size()))
    sizes = tuple(data.draw(st.integers(1, extent)) for extent in shape)
    multiples = tuple(data.draw(st.sampled_from((1, 2, 3, 4))) for _ in shape)
    try:
        part, plan = layout.window(shape, sizes, multiples), layout.plan(shape)
    except LayoutError:
        event("refused")
        return
    ranges = [range(0, e - s + 1, k) for e, s, k in zip(shape, sizes, multiples, strict=True)]
    for starts in itertools.product(*ranges):
        for coord in itertools.product(*map(range, sizes)):
            values = part.apply(*coord, shape=sizes)
            for term in plan:
                digit = starts[term.dim] // term.div
                values[term.axis.name] += (digit % term.mod if term.mod else digit) * term.stride
            there = tuple(s + c for s, c in zip(starts, coord, strict=True))
            assert values == layout.apply(*there, shape=shape)


@few
@given(layouts(replicas=False), layouts(replicas=False), st.data())
def test_tile_steps_by_the_width(inner, outer, data):
    inner_shape, outer_shape = data.draw(shapes(inner.size())), data.draw(shapes(outer.size()))
    try:
        both = inner.tile(outer, outer_shape, inner_shape)
    except LayoutError:
        event("refused")
        return
    shape = tuple(o * i for o, i in zip(outer_shape, inner_shape, strict=True))
    corner = {axis.name: inner.parts.width(axis) for axis in inner.axes}
    for o in itertools.islice(itertools.product(*map(range, outer_shape)), 12):
        for i in itertools.islice(itertools.product(*map(range, inner_shape)), 12):
            coord = tuple(a * n + b for a, n, b in zip(o, inner_shape, i, strict=True))
            due = inner.apply(*i, shape=inner_shape)
            for name, value in outer.apply(*o, shape=outer_shape).items():
                due[name] = due.get(name, 0) + value * corner.get(name, 1)
            assert both.apply(*coord, shape=shape) == due


@few
@given(bijections())
def test_inverse_undoes_apply(layout):
    back = layout.inverse()
    spans = [layout.span(axis) for axis in layout.axes]
    for index in range(layout.size()):
        values = [layout.apply(index)[axis.name] for axis in layout.axes]
        assert back.apply(*values, shape=spans)["m"] == index


@few
@given(layouts(), layouts(axes=(m,), replicas=False))
def test_compose_is_one_after_the_other(outer, inner):
    try:
        both = outer.compose(inner)
    except LayoutError:
        event("refused")
        return
    for index in range(inner.size()):
        assert both.apply(index) == outer.apply(inner.apply(index)["m"])


@few
@given(bijections(), st.permutations(range(3)), st.data())
def test_compose_with_row_major_reads_in_another_order(layout, order, data):
    """Cases that always compose: a permutation of dimensions."""
    shape = data.draw(shapes(layout.size()))
    inner = S[shape].permute_dims(order)
    try:
        layout.plan(shape)
    except LayoutError:
        event("refused")
        return
    both = layout.compose(inner)
    for index in range(inner.size()):
        assert both.apply(index) == layout.apply(inner.apply(index)["m"])


@few
@given(layouts(), st.sampled_from((1, 2, 3, 4)))
def test_unpack_then_pack_is_the_same_map(layout, count):
    wide = table(layout)
    narrow = layout.unpack(count)
    for i, k in itertools.product(range(layout.size()), range(count)):
        due = {**wide[i], "m": wide[i]["m"] * count + k}
        assert narrow.apply(i * count + k) == due
    assert table(narrow.pack(count)) == wide


@few
@given(layouts(), st.sampled_from((2, 4)))
def test_pack_joins_neighbours(layout, count):
    try:
        wide = layout.pack(count)
    except LayoutError:
        event("refused")
        return
    for i in range(wide.size()):
        for k in range(count):
            near = layout.apply(i * count + k)
            assert {**near, "m": near["m"] - k} == {**wide.apply(i), "m": wide.apply(i)["m"] * count}


@few
@given(layouts())
def test_span_is_one_past_the_greatest_value(layout):
    for axis in (*layout.axes, m):
        greatest = max(place[axis.name] for i in range(layout.size()) for place in layout.owners(i))
        assert layout.span(axis) == greatest + 1


@few
@given(layouts(replicas=False))
def test_predicates_agree_with_the_table(layout):
    rows = table(layout)
    assert layout.is_injective() == (len(places(rows)) == len(rows))
    lanes = math.prod(it.extent for it in layout.shard if it.axis == laneid)
    assert layout.is_injective(laneid) == (
        len({row["laneid"] for row in rows if "laneid" in row} or {0}) == lanes
    )
    assert layout.is_trivial() == (rows == [{"m": i} for i in range(len(rows))])


@few
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(-9, 14)), min_size=1, max_size=5))
def test_injectivity_is_exact(pairs):
    layout = TileLayout.from_iters([Iter(extent, stride) for extent, stride in pairs])
    reaches = [range(extent) for extent, _ in pairs]
    sums = [
        sum(c * s for c, (_, s) in zip(coord, pairs, strict=True)) for coord in itertools.product(*reaches)
    ]
    assert layout.is_injective(m) == (len(set(sums)) == len(sums))


@few
@given(layouts(axes=(m,), replicas=False), st.data())
def test_runs_are_neighbours_at_the_stated_alignment(layout, data):
    shape = data.draw(shapes(layout.size()))
    count = data.draw(st.integers(0, 3))
    swizzled = ComposeLayout(data.draw(st.integers(0, 2)), 1, data.draw(st.integers(1, 2)), layout)
    for one in (layout, swizzled):
        try:
            said, alignment = one.is_run(shape, count), one.run_alignment(shape, count)
        except LayoutError:
            event("refused")
            return
        places = [row["m"] for row in table(one)]
        run = math.prod(shape[3 - count :])
        seen = all(places[i] == places[i - i % run] + i % run for i in range(len(places)))
        assert said <= seen if one is swizzled else said == seen
        firsts = math.gcd(*places[::run])
        assert firsts == alignment or (one is swizzled and firsts % alignment == 0)


@few
@given(layouts(axes=(m,)), st.integers(0, 2), st.integers(0, 2), st.integers(0, 2), st.booleans())
def test_swizzle_laws(layout, per_element, swizzle_len, more, inner):
    swizzled = ComposeLayout(per_element, swizzle_len, swizzle_len + more, layout, swizzle_inner=inner)
    names = {name: getattr(namespace, name) for name in namespace.__all__}
    assert eval(repr(swizzled), names) == swizzled
    move = swizzled.swizzle.apply
    block = [move(i) for i in range(swizzled.swizzle.period)]
    assert sorted(block) == list(range(len(block))) and [move(i) for i in block] == list(range(len(block)))
    assert swizzled.span() == 1 + max(
        place["m"] for i in range(layout.size()) for place in swizzled.owners(i)
    )
    identity = [row["m"] for row in table(swizzled)] == list(range(layout.size()))
    assert swizzled.is_trivial() == (identity and layout.is_trivial())
    narrow = swizzled.unpack(2)
    assert [row["m"] for row in table(narrow)] == [
        2 * row["m"] + k for row in table(swizzled) for k in (0, 1)
    ]
    assert table(narrow.pack(2)) == table(swizzled)
