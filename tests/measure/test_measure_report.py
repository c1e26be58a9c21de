"""The table in the terminal, the comparison, the page."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from ptxtile import measure
from ptxtile.measure.published import TABLE_90, against
from ptxtile.measure.records import Record

TABLE = """\
spelling                   latency   step  results/clk/SM  warps  FLOP/clk/SM  SASS of a step
fma.rn.f32                    4.00   4.00          128.00      4            -  FFMA
abs.f32                       6.00  10.00          ≥63.75     16            -  FADD + PRMT
mma.sync.aligned.m16n8k16    25.00  25.00               -      -         2560  HMMA
bra                              -      -               -      -            -  skipped: it branches"""


def test_the_table(records: list[Record]) -> None:
    assert measure.table(records) == TABLE


def test_two_sets_that_agree(records: list[Record]) -> None:
    assert measure.compare(records, records) == ("3 spellings in both; 0 differ by more than 2%", True)


def test_two_sets_that_differ(records: list[Record]) -> None:
    text, same = measure.compare(records, [replace(records[0], step=4.2, latency=4.2), *records[1:]])
    assert not same
    assert text == (
        "3 spellings in both; 1 differ by more than 2%\n"
        "spelling     step  step'  change     rate    rate'  change\n"
        "fma.rn.f32  4.000  4.200  +5.00%  128.000  128.000  +0.00%"
    )


def test_what_nvidia_says(records: list[Record]) -> None:
    (found,) = against(records)
    assert (found.row.row, found.measured, found.ratio) == (
        "32-bit floating-point add, multiply, multiply-add", 128.0, 1.0,
    )  # fmt: skip


def test_a_packed_half_counts_twice(records: list[Record]) -> None:
    (found,) = against([replace(records[0], spelling="fma.rn.f16x2", rate=116.9)])
    assert (found.measured, round(found.ratio, 3)) == (233.8, 0.913)


def test_rows_of_the_table_do_not_overlap(records: list[Record]) -> None:
    for spelling in (
        "fma.rn.f32",
        "add.s32",
        "sqrt.approx.ftz.f32",
        "shl.b32",
        "cvt.f64.f32",
        "cvt.rn.f32.s32",
    ):
        assert len(against([replace(records[0], spelling=spelling)], TABLE_90)) == 1, spelling


class Page(HTMLParser):
    """Tags that are open, and every address that a page asks for."""

    VOID = frozenset({"meta", "input"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_asks_for_nothing(records: list[Record]) -> None:
    text = measure.report(records)
    page = Page()
    page.feed(text)
    assert page.open == []
    assert all(address.startswith("#") for address in page.addresses)
    assert page.seen.count("svg") == 5
    assert "http" not in text
    assert "<li>3 spellings and 0 points of scenarios measured, 1 skipped</li>" in text
    assert '<td class="n" data-v="63.75">≥ 63.75</td>' in text
    assert "<tr><td>bra</td><td>it branches</td></tr>" in text


def test_a_page_of_nothing() -> None:
    assert "0 spellings and 0 points of scenarios measured, 0 skipped" in measure.report([])


@pytest.mark.parametrize("text", ["a<b>&c"])
def test_the_page_escapes(records: list[Record], text: str) -> None:
    page = measure.report([replace(records[0], note=text), replace(records[3], skipped=text)])
    assert text not in page
    assert page.count("a&lt;b&gt;&amp;c") == 2
