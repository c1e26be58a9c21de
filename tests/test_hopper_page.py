"""docs/hopper.md: every instruction that it shows is one, and every word is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ptxtile as pt

PAGE = (Path(__file__).parent.parent / "docs" / "hopper.md").read_text()
WORDS = """mbarrier ring elect named_barrier warpgroup_role directive wait_on_dependencies launch_dependents cluster_rank
    cluster_idx cluster_sync cluster_arrive cluster_wait mapa fence_mbarrier_init fence_async TensorMap shared_layout
    tensor_memory printf trap_if address"""


def instructions() -> list[str]:
    """Statements of ptx blocks, and those in backquotes that end with a semicolon."""
    blocks = re.findall(r"```ptx\n(.*?)```", PAGE, re.DOTALL)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    inline = [found.replace("\\|", "|") for found in re.findall(r"`([a-z][^`]*;)`", PAGE)]
    return [
        re.sub(r"^@!?(%p\d+|p) ", "", line)
        for line in (*lines, *inline)
        if re.match(r"[@a-z]", line) and line[-1] != ":"
    ]


def target(spelling: str) -> str:
    return "sm_100a" if spelling.startswith("tcgen05") else "sm_90a"


def test_instructions_are_valid():
    found = instructions()
    assert len(found) > 35
    for line in found:
        spelling = re.split(r"[ ;]", line)[0].replace("::N", "::1")
        assert pt.is_valid(spelling, target(spelling)), line


@pytest.mark.parametrize("word", WORDS.split())
def test_every_word_is_there(word):
    assert f"pt.{word}(" in PAGE and hasattr(pt, word)


def test_forms_of_tile_operations_are_valid():
    for spelling in re.findall(r'ptx\["([^"]+)"\]', PAGE):
        assert pt.is_valid(spelling, target(spelling)), spelling
