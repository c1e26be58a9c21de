"""Pictures of layouts: what every cell says, which lanes are marked, and that both backgrounds can be read on."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

import ptxtile as pt
from ptxtile import ComposeLayout, LayoutError, R, S, TCol, TileLayout, TLane, laneid, warpid
from ptxtile.layout import draw
from ptxtile.layout.banks import bank_conflicts
from ptxtile.layout.picture import MOST_CELLS, Cell, Picture, picture

FRAGMENT = S[(8, 2, 4, 2) : (4 @ laneid, 1 @ warpid, 1 @ laneid, 1)] + R[2 : 4 @ warpid] + 5 @ warpid
SWIZZLED = ComposeLayout(3, 3, 3, S[8, 64])
SVG = "{http://www.w3.org/2000/svg}"


def cells(seen: Picture) -> list[Cell]:
    return [cell for _, rows in seen.panels for row in rows for cell in row if cell is not None]


def luminance(colour: str) -> float:
    """WCAG's relative luminance of #rrggbb."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_extents_of_one_make_no_slices():
    layout = pt.shared_layout((8, 64), pt.float16, 128)
    assert layout.svg() == layout.svg((8, 64))
    assert S[8, 1, 4].svg() == S[8, 1, 4].svg((8, 4))
    assert S[1, 8].svg() != S[1, 8].svg((8,))


def test_a_cell_says_who_owns_it_and_where_it_lies() -> None:
    seen = picture(FRAGMENT, (8, 16))
    rows = seen.panels[0][1]
    assert (len(rows), {len(row) for row in rows}) == (8, {16})
    first, last = rows[0][8], rows[7][15]
    assert first is not None and last is not None
    assert first.labels == ("w6,10", "L0", "r0")
    assert first.title == "(0, 8) → warpid 6, laneid 0, m 0 | warpid 10, laneid 0, m 0"
    assert last.labels == ("w6,10", "L31", "r1")
    assert seen.legend == (
        "w: warpid, L: laneid, r: register",
        "each element has 2 places: 2 at steps of 4 on warpid",
    )


@pytest.mark.parametrize("layout", [FRAGMENT, S[4, 8], SWIZZLED, S[(4, 8) : (1 @ TLane, 1 @ TCol)]])
def test_titles_are_what_owners_says(layout: TileLayout | ComposeLayout) -> None:
    for index, cell in enumerate(cells(picture(layout))):
        places = [
            {name: int(value) for name, value in re.findall(r"(\w+) (\d+)", part) if name != "bank"}
            for part in cell.title.split(" → ")[1].split(" | ")
        ]
        found = [dict(place) for place in layout.owners(index)]
        kept = [{name: place[name] for name in places[0]} for place in found]
        assert places == kept


def test_memory_shows_its_place_and_is_coloured_by_bank() -> None:
    seen = cells(picture(S[2, 64], bits=16))
    assert [cell.labels for cell in seen[:3]] == [("0",), ("1",), ("2",)]
    assert seen[2].title == "(0, 2) → m 2, bank 1"
    assert seen[0].hue == seen[64].hue and seen[0].shade == seen[64].shade  # 128 bytes on: the same bank
    assert len({(cell.hue, cell.shade) for cell in seen}) == 32


def test_a_line_is_folded_and_leading_dimensions_are_panels() -> None:
    folded = picture(S[70])
    assert [len([cell for cell in row if cell]) for row in folded.panels[0][1]] == [32, 32, 6]
    assert folded.row_labels == ("0", "32", "64")
    assert [name for name, _ in picture(S[2, 3, 4, 5]).panels] == [
        f"({i}, {j}, :, :)" for i in range(2) for j in range(3)
    ]


@pytest.mark.parametrize(("layout", "servings"), [(S[8, 64], 32), (SWIZZLED, 4)])
def test_lanes_that_collide_are_marked(layout: TileLayout | ComposeLayout, servings: int) -> None:
    """Lane i takes 16 bytes of row i % 8, as ldmatrix does."""
    seen = picture(layout, bits=16, access=16)
    lanes = {cell.lane: cell for cell in cells(seen) if cell.lane is not None}
    coords = [(i % 8, i // 8 * 8) for i in range(32)]
    report = bank_conflicts(layout, coords, width_bytes=16, element_bits=16)
    assert report.servings == servings
    assert sorted(lanes) == list(range(32))
    assert [lanes[i].title.split(" → ")[0] for i in range(32)] == [str(coord) for coord in coords]
    assert all(cell.conflict == (servings > 4) for cell in lanes.values())
    ringed = draw.svg(seen).count('stroke="#e5182d"')
    assert ringed == (32 if servings > 4 else 0)
    verdict = "ringed red lanes collide" if servings > 4 else "free of conflicts"
    assert seen.legend[-1] == (
        f"one access, lanes along dimension 0, 16 bytes a lane: {servings} servings where 4 would do; {verdict}"
    )


@pytest.mark.parametrize("layout", [FRAGMENT, S[100], SWIZZLED, S[2, 3, 4, 5], S[64, 64], TileLayout(S[1])])
def test_svg_is_one_well_formed_document_with_every_cell(layout: TileLayout | ComposeLayout) -> None:
    text = layout.svg()
    assert text == layout.svg() == layout._repr_svg_()
    root = ElementTree.fromstring(text)
    titles = [title.text for title in root.iter(f"{SVG}title")]
    assert titles == [cell.title for cell in cells(picture(layout))]
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for box in root.iter(f"{SVG}rect"):
        assert 0 <= float(box.attrib["x"]) <= width - float(box.attrib["width"])
        assert 0 <= float(box.attrib["y"]) <= height - float(box.attrib["height"])
    assert repr(layout) in [words.text for words in root.iter(f"{SVG}text")]


def test_everything_can_be_read_on_white_and_on_black() -> None:
    text = picture(S[(32, 4) : (1 @ laneid, 1)] + R[2 : 1 @ warpid], (8, 16))
    drawn = draw.svg(text)
    fills = set(re.findall(r'<rect [^>]*fill="(#[0-9a-f]{6})"', drawn))
    assert len(fills) == 32
    assert min(contrast(fill, "#14171c") for fill in fills) > 5.5
    outside = {
        words.attrib["fill"]
        for words in ElementTree.fromstring(drawn).findall(f"{SVG}text")  # those outside a cell's group
    }
    assert outside == {"#7b8088"}
    assert contrast("#7b8088", "#ffffff") > 3.9
    assert contrast("#7b8088", "#0d1117") > 4.5


def test_text_of_a_fragment() -> None:
    assert draw.text(picture(S[(2, 2, 2) : (2 @ laneid, 1 @ laneid, 1)], (2, 4))) == (
        "TileLayout(S[(2, 2, 2) : (2 @ laneid, 1 @ laneid, 1)])\n"
        "\n"
        "    0    1    2    3\n"
        "0  L0r0 L0r1 L1r0 L1r1\n"
        "1  L2r0 L2r1 L3r0 L3r1\n"
        "\n"
        "L: laneid, r: register\n"
    )


def test_a_layout_too_large_for_a_notebook_shows_its_text() -> None:
    large = S[MOST_CELLS + 1]
    assert large._repr_svg_() is None
    assert ComposeLayout(0, 0, 0, large)._repr_svg_() is None
    with pytest.raises(LayoutError) as caught:
        large.svg()
    assert str(caught.value) == (
        f"a picture has at most {MOST_CELLS} elements, not {MOST_CELLS + 1}; draw a slice() of the layout"
    )


REFUSED = {
    "an access is shown of a layout in memory, one that names no axis but m": {"access": 4},
    "bits must be 1 to 128, not 0": {"bits": 0},
    "shape (3, 3) has 9 elements, the layout has 128": {"shape": (3, 3)},
}


@pytest.mark.parametrize("message", REFUSED)
def test_refusals(message: str) -> None:
    with pytest.raises(LayoutError) as caught:
        picture(FRAGMENT, **REFUSED[message])
    assert str(caught.value) == message


def test_refusals_of_an_access() -> None:
    with pytest.raises(LayoutError) as caught:
        picture(S[4, 8], access=4, along=2)
    assert str(caught.value) == "along must be a dimension of (4, 8), 0 to 1, not 2"
    with pytest.raises(LayoutError) as caught:
        picture(S[4, 8], access=5)
    assert str(caught.value) == "an access is 1, 2, 4, 8 or 16 bytes wide, not 5"
