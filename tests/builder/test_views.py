"""Views against NumPy's: the place of every element is where NumPy's view of the same storage has it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, strategies as st

import ptxtile as pt
from ptxtile import ComposeLayout, LayoutError, S, tracing
from ptxtile.builder import ranges
from ptxtile.builder.storage import Memory
from ptxtile.builder.tensors import default_layout
from ptxtile.builder.trace import Launch, Trace
from ptxtile.ir.operand import Register

BASE = Memory("global", Register("%rd0", "b64"), 16, None)


def tensor(*shape: int, dtype: pt.DType = pt.uint32, layout: object = None) -> pt.Tensor:
    made = pt.Tensor(shape, dtype, layout)
    held = made.layout or default_layout(shape)
    return pt.Tensor.bind(
        shape, dtype, Memory("global", BASE.base, 16, held.span("m") * dtype.itemsize), held
    )


def storage(*shape: int) -> np.ndarray:
    """An array whose every element is its own place."""
    return np.arange(math.prod(shape)).reshape(shape)


def places(view: pt.Tensor) -> np.ndarray:
    """The place of every element of a view, in elements."""
    found = []
    for coordinate in itertools.product(*map(range, view.shape)):
        place = view.place([ranges.constant(at) for at in coordinate]).known
        assert place is not None
        found.append(view.layout.swizzle.apply(place) if isinstance(view.layout, ComposeLayout) else place)
    return np.array(found).reshape(view.shape)


VIEWS: dict[str, tuple[tuple[int, ...], Callable[[pt.Tensor], pt.Tensor], Callable[[np.ndarray], np.ndarray]]] = {
    "shape": ((4, 6), lambda t: t.view(2, 3, 4), lambda a: a.reshape(2, 3, 4)),
    "a tuple": ((4, 6), lambda t: t.view((2, 12)), lambda a: a.reshape(2, 12)),
    "minus one": ((4, 6), lambda t: t.view(8, -1), lambda a: a.reshape(8, -1)),
    "numpy integers": ((4, 6), lambda t: t.view(np.int64(24)), lambda a: a.ravel()),
    "permuted": ((2, 3, 4), lambda t: t.permute(2, 0, 1), lambda a: a.transpose(2, 0, 1)),
    "permuted twice": ((2, 3, 4), lambda t: t.permute(2, 0, 1).permute([1, 0, 2]), lambda a: a.transpose(0, 2, 1)),
    "permuted, then joined": ((2, 3, 4), lambda t: t.permute(2, 0, 1).view(4, 6), lambda a: a.transpose(2, 0, 1).reshape(4, 6)),
    "row": ((4, 6), lambda t: t[2], lambda a: a[2]),
    "column": ((4, 6), lambda t: t[:, 3], lambda a: a[:, 3]),
    "block": ((4, 6), lambda t: t[1:3, 2:5], lambda a: a[1:3, 2:5]),
    "block of a block": ((8, 6), lambda t: t[2:8, 1:5][1:3, 0:2], lambda a: a[2:8, 1:5][1:3, 0:2]),
    "block, then row": ((8, 6), lambda t: t[2:8][3], lambda a: a[2:8][3]),
    "block of a permuted": ((4, 6), lambda t: t.permute(1, 0)[1:4, 2:4], lambda a: a.T[1:4, 2:4]),
    "row of a reshaped": ((4, 6), lambda t: t.view(2, 2, 6)[1], lambda a: a.reshape(2, 2, 6)[1]),
    "rearranged": ((4, 6), lambda t: t.rearrange("a (b c) -> b a c", c=2), lambda a: a.reshape(4, 3, 2).transpose(1, 0, 2)),
    "rearranged and joined": (
        (4, 6), lambda t: t.rearrange("(a b) c -> (c a) b", b=2), lambda a: a.reshape(2, 2, 6).transpose(2, 0, 1).reshape(12, 2),
    ),
    "with a one": ((4, 6), lambda t: t.rearrange("a b -> b 1 a"), lambda a: a.T[:, None, :]),
    "layout": ((4, 6), lambda t: t.view(3, 2, layout=S[(3, 2) : (5, 2)]), lambda a: np.array([[0, 2], [5, 7], [10, 12]])),
    "broadcast": ((4, 6), lambda t: t.view(3, 6, layout=S[(3, 6) : (0, 1)]), lambda a: np.broadcast_to(a[0], (3, 6))),
    "backwards": ((4, 6), lambda t: t.view(24, layout=S[(24,) : (-1,)] + 23), lambda a: a.ravel()[::-1]),
}  # fmt: skip


@pytest.mark.parametrize("name", VIEWS)
def test_views_are_numpys(name):
    shape, ours, theirs = VIEWS[name]
    np.testing.assert_array_equal(places(ours(tensor(*shape))), theirs(storage(*shape)))


@pytest.mark.parametrize(
    "name", [name for name in VIEWS if name not in ("shape", "layout", "broadcast", "backwards")]
)
def test_views_of_a_tensor_with_gaps(name):
    """The same over a storage whose rows are padded."""
    shape, ours, theirs = VIEWS[name]
    strides = [math.prod(shape[d + 1 :]) * 3 + 2 * (d == 0) for d in range(len(shape))]
    grid = sum(
        np.arange(n).reshape([-1 if e == d else 1 for e in range(len(shape))]) * s
        for d, (n, s) in enumerate(zip(shape, strides))
    )
    made = ours(tensor(*shape, layout=S[shape : tuple(strides)]))
    np.testing.assert_array_equal(places(made), theirs(grid))


def test_what_no_layout_can_say_is_refused_at_the_view():
    with pytest.raises(LayoutError) as caught:
        tensor(4, 6, layout=S[(4, 6) : (20, 3)]).view(2, 3, 4)
    assert str(caught.value) == (
        "S[(4, 6) : (20, 3)] cannot be grouped by shape (2, 3, 4), dimension 2: 4 does not divide the extent 6, nor the "
        "other way round"
    )


@given(st.data())
def test_rearrange_against_a_reference(data):
    """Random splits, orders and joins, against reshape and transpose."""
    factors = data.draw(st.lists(st.integers(1, 3), min_size=2, max_size=5))
    names = "abcde"[: len(factors)]
    cut = data.draw(st.integers(1, len(factors)))
    left = [names[:cut], names[cut:]] if cut < len(factors) else [names]
    order = data.draw(st.permutations(list(names)))
    join = data.draw(st.integers(1, len(order)))
    right = [order[:join], order[join:]] if join < len(order) else [order]
    pattern = " -> ".join(" ".join(f"({' '.join(group)})" for group in side) for side in (left, right))
    sizes = dict(zip(names, factors))
    shape = [math.prod(sizes[n] for n in group) for group in left]
    made = tensor(*shape).rearrange(pattern, **sizes)
    split = storage(*shape).reshape(factors).transpose([names.index(n) for n in order])
    np.testing.assert_array_equal(
        places(made), split.reshape([math.prod(sizes[n] for n in group) for group in right])
    )


@pytest.mark.parametrize("swizzle", [(2, 2, 3), (0, 3, 4), (3, 3, 3)])
def test_views_of_a_swizzled_tensor(swizzle):
    layout = ComposeLayout(*swizzle, S[16, 64])
    whole = tensor(16, 64, layout=layout)
    table = layout.swizzle.apply(storage(16, 64))
    np.testing.assert_array_equal(places(whole[5]), table[5])
    np.testing.assert_array_equal(places(whole[4:8, 8:24]), table[4:8, 8:24])
    np.testing.assert_array_equal(places(whole.view(4, 4, 64)[2]), table.reshape(4, 4, 64)[2])
    np.testing.assert_array_equal(places(whole.permute(1, 0)[3]), table.T[3])


# --- dtypes ---------------------------------------------------------------------------------------------------------
def test_wider_and_narrower_views():
    bytes_ = tensor(4, 16, dtype=pt.uint8)
    words = bytes_.view(pt.uint32)
    assert words.shape == (4, 4) and words.dtype is pt.uint32
    np.testing.assert_array_equal(places(words), storage(4, 4))
    np.testing.assert_array_equal(places(words.view("float16")), storage(4, 8))
    np.testing.assert_array_equal(places(bytes_[1:3, 8:16].view(pt.uint64)), [[3], [5]])
    assert tensor(4, dtype=pt.float32).view(np.int32).dtype is pt.int32


@pytest.mark.parametrize("start", [1, 2, 6])
def test_a_wider_view_needs_its_alignment(start):
    with pytest.raises(LayoutError, match="needs a last extent and a start that 4 divides"):
        tensor(64, dtype=pt.uint8)[:].view(64)[start : start + 8]._like(
            (8,), origin=ranges.constant(start)
        ).view(pt.uint32)


# --- run-time starts ------------------------------------------------------------------------------------------------
def dynamic(
    view: Callable[[pt.Tensor, pt.Scalar], pt.Tensor], shape: tuple[int, ...], layout: object = None
) -> tuple[pt.Tensor, ranges.Atom]:
    """A view whose start is a run-time uint32 `i`, and i's atom."""
    trace = Trace("k", Launch())
    with tracing.use(trace):
        i = trace.value(pt.uint32)
        i.extent = ranges.atom("i", 0, 63, scalar=i)
        made = view(tensor(*shape, layout=layout), i)
    (atom,) = i.extent.atoms()
    return made, atom


@pytest.mark.parametrize(
    ("view", "reference"),
    [
        (lambda t, i: t[i], lambda a, i: a[i]),
        (lambda t, i: t[i : i + 2], lambda a, i: a[i : i + 2]),
        (lambda t, i: t[1:3, i * 2 : i * 2 + 2], lambda a, i: a[1:3, 2 * i : 2 * i + 2]),
        (lambda t, i: t.permute(1, 0)[i, 0:4], lambda a, i: a.T[i, 0:4]),
        (lambda t, i: t[i].view(2, 4), lambda a, i: a[i].reshape(2, 4)),
        (lambda t, i: t[i].view(4, 3, layout=S[(4, 3) : (1, 0)]), lambda a, i: np.stack([a[i, :4]] * 3, 1)),
        (lambda t, i: t.view(2, 4, 8)[1][i], lambda a, i: a.reshape(2, 4, 8)[1][i]),
    ],
)
@pytest.mark.parametrize("i", [0, 1, 3])
def test_regions_that_start_at_run_time(view, reference, i):
    made, atom = dynamic(view, (8, 8))
    due = reference(storage(8, 8), i)
    found = [
        ranges.evaluate(made.place([ranges.constant(at) for at in c]), {atom: i})
        for c in itertools.product(*map(range, due.shape))
    ]
    assert made.shape == due.shape
    np.testing.assert_array_equal(np.array(found).reshape(due.shape), due)


def test_the_claims_of_a_region_are_what_must_be_proven():
    made, atom = dynamic(lambda t, i: t[i : i + 3].view(3, 8, layout=S[(3, 8) : (8, 1)] + 8), (8, 8))
    holds = [all(ranges.evaluate(claim, {atom: i}) >= 0 for claim in made.claims) for i in range(10)]
    assert holds == [i + 3 <= 8 and 8 * i + 8 + 24 <= 64 for i in range(10)]


def test_a_region_whose_start_is_written_out_twice():
    """x * 16 may wrap, and is another value each time; the ends are 16 apart all the same."""

    def body(k):
        s = pt.alloc_shared((256,), pt.float32)
        x, w = k.x, k.w
        for made in (
            s[x * 16 : x * 16 + 16],
            s[(x + 1) * 16 : x * 16 + 32],
            s[x * w * 2 : 2 * (x * w) + 16],
        ):
            assert made.static_shape == (16,)
        for start, stop in ((x * 16, x * 16 + w), (x * 16, x * 8 + 16), (x * 16, k.i * 16 + 16)):
            with pytest.raises(LayoutError, match="no length known"):
                s[start:stop]

    builder = pt.ModuleBuilder()
    with builder.entry("k", {"x": pt.uint32, "w": pt.uint32, "i": pt.int32}, block=32) as k:
        body(k)


@pytest.mark.parametrize("count", [0, 3])
def test_values_of_a_region_whose_start_is_written_out_twice(count):
    @pt.kernel(grid=4, block=1)
    def copy(A: pt.Tensor((64,), pt.uint32), B: pt.Tensor((64,), pt.uint32), n: pt.uint32):
        r, i = pt.alloc_local((16, 1), pt.uint32), pt.block_idx("x")
        with pt.if_(i < n):
            pt.tile.apply("ld.global.b32", r, A[i * 16 : i * 16 + 16].view(16, 1))
            pt.tile.apply("st.global.b32", B[i * 16 : i * 16 + 16].view(16, 1), r)

    a, b = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    copy.launch(a, b, count, device="emulator")
    assert (b[: 16 * count] == a[: 16 * count]).all() and (b[16 * count :] == 0).all()


# --- what is refused ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("view", "text"),
    [
        (lambda t: t.view(5, 5), "view(5, 5) has 25 elements and the tensor has 24"),
        (lambda t: t.view(-1, -1), "the -1 in view(-1, -1) cannot be filled: 24 elements over 1"),
        (lambda t: t.view(-1, 5), "the -1 in view(-1, 5) cannot be filled: 24 elements over 5"),
        (lambda t: t.view(0, 24), "a view's shape holds positive integers and at most one -1, not 0"),
        (lambda t: t.view(True, 24), "a view's shape holds positive integers and at most one -1, not True"),
        (lambda t: t.view(2, 3, layout=S[2, 2]), "the layout has 4 elements and the shape (2, 3) has 6"),
        (
            lambda t: t.view(2, 2, layout=S[(2, 2) : (12, 12)]),
            "the layout reaches element 24 of a storage that holds 24 of uint32",
        ),
        (
            lambda t: t[3].view(7, layout=S[7]),
            "the layout reaches element 24 of a storage that holds 24 of uint32",
        ),
        (
            lambda t: t.view(pt.uint16, layout=S[4]),
            "view(dtype) keeps the layout: change one thing at a time",
        ),
        (lambda t: t.permute(0, 0), "permute needs each of the dimensions 0 to 1 once, not (0, 0)"),
        (lambda t: t.permute(0, "b"), "permute needs each of the dimensions 0 to 1 once, not (0, 'b')"),
        (lambda t: t.rearrange("a b"), "a pattern is 'a (b c) -> b a c'; 'a b' has no ->"),
        (
            lambda t: t.rearrange("a b -> a"),
            "both sides of 'a b -> a' must name the same dimensions, each once",
        ),
        (
            lambda t: t.rearrange("a b c -> c b a"),
            "'a b c -> c b a' describes 3 dimensions and the tensor has 2",
        ),
        (lambda t: t.rearrange("a (b c -> a b c"), "'a (b c -> a b c': a parenthesis is not closed"),
        (
            lambda t: t.rearrange("a (b c) -> a b c"),
            "'a (b c) -> a b c': 6 elements do not split into (b c) with {}",
        ),
        (
            lambda t: t.rearrange("a (b c) -> a b c", b=0),
            "'a (b c) -> a b c': 6 elements do not split into (b c) with {'b': 0}",
        ),
        (lambda t: t.rearrange("a (b c) -> a b c", d=2), "'a (b c) -> a b c' has no dimension 'd'"),
        (lambda t: t.rearrange("a b? -> a b?"), "'a b? -> a b?': 'b?' is no name of a dimension"),
        (
            lambda t: t[4],
            "index 4 is out of range for dimension 0 of pt.Tensor((4, 6), pt.uint32, TileLayout(S[4, 6]))",
        ),
        (
            lambda t: t[-1],
            "index -1 is out of range for dimension 0 of pt.Tensor((4, 6), pt.uint32, TileLayout(S[4, 6]))",
        ),
        (
            lambda t: t[0, 4:8],
            "the region 4:8 is out of range for dimension 1 of pt.Tensor((4, 6), pt.uint32, TileLayout(S[4, 6]))",
        ),
        (lambda t: t[2:2], "a region of 0 elements of a dimension of 4"),
        (lambda t: t[0:8], "a region of 8 elements of a dimension of 4"),
        (lambda t: t[::2], "a region has no step: 2 was given; use rearrange or a layout"),
        (
            lambda t: t[0, 0, 0],
            "3 indices for pt.Tensor((4, 6), pt.uint32, TileLayout(S[4, 6])), which has 2 dimensions",
        ),
        (lambda t: t[1.5], "an index is an integer, a run-time integer or a slice, not 1.5"),
        (lambda t: t[True], "an index is an integer, a run-time integer or a slice, not True"),
    ],
)
def test_refused(view, text):
    with pytest.raises(LayoutError) as caught:
        view(tensor(4, 6))
    assert str(caught.value).partition("\n  /")[0] == text


def test_a_wider_view_needs_an_aligned_base():
    narrow = pt.Tensor.bind((16,), pt.uint8, Memory("global", BASE.base, 2, 16), default_layout((16,)))
    assert narrow.view(pt.uint16).shape == (8,)
    with pytest.raises(LayoutError) as caught:
        narrow.view(pt.uint32)
    assert str(caught.value) == (
        "pt.Tensor((16,), pt.uint8, TileLayout(S[16])) read as uint32 needs a base aligned to 4 bytes, and this one's is "
        "aligned to 2 (align=)"
    )


def test_a_swizzle_over_a_region_keeps_to_the_storage():
    layout = ComposeLayout(0, 2, 2, S[16])
    assert places(tensor(32)[16:32].view(16, layout=layout)).max() == 31
    with pytest.raises(LayoutError) as caught:
        tensor(28)[8:24].view(16, layout=layout)
    assert str(caught.value) == "the layout reaches element 31 of a storage that holds 28 of uint32"
