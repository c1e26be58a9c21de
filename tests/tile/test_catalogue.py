"""The catalogue: every form has one family, its page is current, and keywords are the family's own."""

from __future__ import annotations

import runpy
import sys

import pytest
import source

import ptxtile as pt
from ptxtile import isa, tile
from ptxtile.tile.catalogue import FAMILIES, family_of
from ptxtile.tile.samples import SAMPLES
from tile.running import failure, message

ALL = [(name, spelling) for name, spellings in SAMPLES.items() for spelling in spellings]


def test_families_have_names_of_their_own_and_samples():
    names = [family.name for family in FAMILIES]
    assert len(set(names)) == len(names)
    assert set(names) == set(SAMPLES)


@pytest.mark.parametrize(("name", "spelling"), ALL)
def test_a_sample_is_canonical_and_of_its_family(name, spelling):
    form = isa.validate(spelling)
    assert form.spelling == spelling
    assert family_of(form).name == name
    assert sum(family.has(form) for family in FAMILIES[:-1]) == (name != "registers")


def test_the_page_is_what_the_code_says():
    before = list(sys.path)
    try:
        made = runpy.run_path(str(source.ROOT / "docs" / "build_tile.py"), run_name="docs_build_tile")
    finally:
        sys.path[:] = before
    assert (source.ROOT / "docs" / "tile.md").read_text(encoding="utf-8") == made["page"](), (
        "the catalogue has changed: run python docs/build_tile.py"
    )


@pytest.mark.parametrize(
    ("spelling", "known"),
    [
        ("fma.rn.f32", "it has none"),
        ("ld.global.b32", "it has cache_policy"),
        ("cp.async.cg.shared.global", "it has chunk_bytes, src_size, ignore_src, cache_policy"),
        ("st.async.release.gpu.global.b32", "it has mbar, remote"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "it has none"),
    ],
)
def test_an_unknown_keyword_is_named(spelling, known):
    def body(k):
        tile.apply(spelling, pt.alloc_local((1,), pt.uint32), wait=True)

    assert message(failure(body), __file__) == (
        f"{spelling} has no parameter 'wait'; {known} beside scope, pred, preserve_dst"
    )


def test_a_form_without_a_family_says_so():
    def body(k):
        tile.apply("mbarrier.init.shared::cta.b64", pt.alloc_local((1,), pt.uint32))

    assert message(failure(body), __file__) == (
        "mbarrier.init.shared::cta.b64 is no tile operation: its operands are not all registers; call the form itself"
    )
