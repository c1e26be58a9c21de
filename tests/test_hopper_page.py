"""docs/hopper.md: every instruction that it shows is one, and every word is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ptxtile as pt

PAGE = (Path(__file__).parent.parent / "docs" / "hopper.md").read_text()
WORDS = """mbarrier ring elect named_barrier warpgroup_role directive wait_on_dependencies launch_dependents cluster_rank
    cluster_idx cluster_sync cluster_arrive cluster_wait mapa fence_mbarrier_init fence_async TensorMap shared_layout"""


def instructions() -> list[str]:
    """Statements of ptx blocks, and those in backquotes that end with a semicolon."""
    blocks = re.findall(r"```ptx\n(.*?)```", PAGE, re.DOTALL)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    inline = [found.replace("\\|", "|") for found in re.findall(r"`([a-z][^`]*;)`", PAGE)]
    return [re.sub(r"^@!?%p\d+ ", "", line) for line in (*lines, *inline) if line and not line.endswith(":")]


def test_instructions_are_valid():
    found = instructions()
    assert len(found) > 35
    for line in found:
        assert pt.is_valid(re.split(r"[ ;]", line)[0], "sm_90a"), line


@pytest.mark.parametrize("word", WORDS.split())
def test_every_word_is_there(word):
    assert f"pt.{word}(" in PAGE and hasattr(pt, word)


def test_forms_of_tile_operations_are_valid():
    for spelling in re.findall(r'ptx\["([^"]+)"\]', PAGE):
        assert pt.is_valid(spelling, "sm_90a"), spelling
