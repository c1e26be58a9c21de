"""Layouts from text: the notation and nothing else, no evaluation, messages with a caret."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, strategies as st

from ptxtile import ComposeLayout, LayoutError, R, S, TileLayout, laneid, m, warpid
from ptxtile.layout import AXES, Iter, Layout, parse_layout
from ptxtile.layout.reading import MOST_CHARACTERS

READ: dict[str, Layout] = {
    "S[8]": S[8],
    "S[4,8]": S[4, 8],
    "S[8:2]": S[8:2],
    "S[(8,2,4,2):(4@laneid,1@warpid,1@laneid,1)]": S[(8, 2, 4, 2) : (4 @ laneid, 1 @ warpid, 1 @ laneid, 1)],
    "S[(8, 3) : (laneid, (2, m))]": S[(8, 3) : (1 @ laneid, 2 @ m)],
    "S[8 : laneid @ 4] + R[2:4@warpid] + 5@warpid": S[8 : 4 @ laneid] + R[2 : 4 @ warpid] + 5 @ warpid,
    "S[8]+(R[2:8] + 1)": S[8] + R[2:8] + 1,
    "2 + S[8 : -1] + 5": S[8:-1] + 7,
    "TileLayout(S[2*4, 2+6])": S[8, 8],
    "ComposeLayout(3, 3, 3, S[8, 64])": ComposeLayout(3, 3, 3, S[8, 64]),
    "ComposeLayout(0, 2, 3,\n tile=S[8, 8], swizzle_inner=False)": ComposeLayout(0, 2, 3, S[8, 8], False),
}


@pytest.mark.parametrize("text", READ)
def test_reads(text: str) -> None:
    assert parse_layout(text) == READ[text]


iters = st.builds(Iter, st.integers(1, 9), st.integers(0, 9), st.sampled_from(AXES))


@given(st.lists(iters, min_size=1, max_size=5), st.lists(iters, max_size=2), st.integers(0, 9))
def test_reads_what_repr_writes(shard: list[Iter], replica: list[Iter], offset: int) -> None:
    layout = TileLayout.from_iters(shard, replica, [offset] if offset else [])
    assert parse_layout(repr(layout)) == layout


WRONG = {
    "S[4,8": "this is no layout: a sign or a bracket is wrong\n  S[4,8\n   ^",
    "": "this is no layout: a sign or a bracket is wrong\n  \n  ^",
    "S[8: 4@lan]": (
        "unknown axis 'lan'; did you mean 'laneid'?; the axes are m bx by bz cbx cby cbz tx warpid laneid wgid"
        " tid_in_wg wid_in_wg TLane TCol\n  S[8: 4@lan]\n         ^"
    ),
    "__import__('os').system('true')": (
        "only TileLayout(…) and ComposeLayout(…) are called\n  __import__('os').system('true')\n  ^"
    ),
    "S[8].svg": (
        "a layout is made of whole numbers, axes, S[…], R[…], +, @, TileLayout and ComposeLayout\n  S[8].svg\n  ^"
    ),
    "S[8] + 'x'": (
        "a layout is made of whole numbers, axes, S[…], R[…], +, @, TileLayout and ComposeLayout\n"
        "  S[8] + 'x'\n         ^"
    ),
    "S": "S alone is no layout; write S[…]\n  S\n  ^",
    "ComposeLayout": "ComposeLayout alone is no layout; write ComposeLayout(…)\n  ComposeLayout\n  ^",
    "5": "a tile layout is due, not 5; a layout starts from S[…]",
    "1 + 2": "a tile layout is due, not 3; a layout starts from S[…]",
    "warpid + 1": "a sum starts from S[…]\n  warpid + 1\n  ^",
    "S[2 ** 9]": "between parts of a layout stand only +, and @ before an axis\n  S[2 ** 9]\n    ^",
    "S[8 : 2 @ 3]": "an axis is due after @, as in 4 @ laneid\n  S[8 : 2 @ 3]\n            ^",
    "T[8]": "only S and R take brackets\n  T[8]\n  ^",
    "S[9999999999 * 9999999999 * 9]": ("this number is too large\n  S[9999999999 * 9999999999 * 9]\n    ^"),
    "S[8:4:2]": "S[extents : strides] takes no step; 2 stands after a second colon",
    "S[(8,4):4]": "2 extents (8, 4) but 1 stride (4,)\n  give one stride for each extent",
    "S[8 : -1]": "S[8 : -1] reaches -7 on m; values start at 0: add 7 as an offset",
    "ComposeLayout(1, 2)": (
        "ComposeLayout() missing 2 required positional arguments: 'atom_len' and 'tile'\n"
        "  ComposeLayout(1, 2)\n  ^"
    ),
    "ComposeLayout(*S[8])": (
        "a layout is made of whole numbers, axes, S[…], R[…], +, @, TileLayout and ComposeLayout\n"
        "  ComposeLayout(*S[8])\n                ^"
    ),
    "TileLayout(**1)": "a layout takes no **\n  TileLayout(**1)\n  ^",
    "S[" + "-" * 90 + "8]": "this is nested too deeply\n  " + "-" * 60 + "-" * 30 + "8]\n  " + " " * 60 + "^",
}


@pytest.mark.parametrize("text", WRONG)
def test_refuses(text: str) -> None:
    with pytest.raises(LayoutError) as caught:
        parse_layout(text)
    assert str(caught.value) == WRONG[text]


@pytest.mark.parametrize("text", ["(" * 5000, "S[\0]", "-" * 9000, "1" * 9000, "S[" * 900, "𝟠 @", "\ud800"])
def test_hostile_text_is_a_layout_error(text: str) -> None:
    with pytest.raises(LayoutError):
        parse_layout(text)


def test_a_text_without_end_is_not_parsed() -> None:
    with pytest.raises(LayoutError) as caught:
        parse_layout("S[8]" + " " * MOST_CHARACTERS)
    assert (
        str(caught.value)
        == f"a layout's text has at most {MOST_CHARACTERS} characters, not {MOST_CHARACTERS + 4}"
    )


@given(
    st.lists(st.sampled_from([*"SR[]():,@+-*.=", "8", "laneid", "TileLayout", " "]), max_size=14).map("".join)
)
def test_any_text_is_a_layout_or_a_layout_error(text: str) -> None:
    with contextlib.suppress(LayoutError):
        assert repr(parse_layout(text))
