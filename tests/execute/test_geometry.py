"""Launch facts: missing, out of range, against a directive."""

from __future__ import annotations

from typing import Any

import pytest

from ptxtile.driver import Geometry
from ptxtile.errors import OperandError
from ptxtile.execute.geometry import geometry
from ptxtile.ir.module import Directive, Function

PLAIN = Function("k", True)


def test_extents() -> None:
    assert geometry(PLAIN, 3, 32) == Geometry((3, 1, 1), (32, 1, 1))
    assert geometry(PLAIN, (4, 2), [8, 4, 2], (2, 1), 100, programmatic=True) == Geometry(
        (4, 2, 1), (8, 4, 2), (2, 1, 1), 100, programmatic=True
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"grid": None}, "k needs a grid: how many blocks to launch"),
        ({"block": None}, "k needs a block: how many threads a block has"),
        ({"grid": 0}, "grid (0, 1, 1): grid.x must be 1 to 2147483647, not 0"),
        ({"grid": (1, 65536)}, "grid (1, 65536, 1): grid.y must be 1 to 65535, not 65536"),
        ({"grid": (1, 1, 1, 1)}, "grid is one to three integers, not (1, 1, 1, 1)"),
        ({"grid": 1.0}, "grid is one to three integers, not 1.0"),
        ({"block": 1025}, "block (1025, 1, 1): block.x must be 1 to 1024, not 1025"),
        ({"block": (1, 1, 65)}, "block (1, 1, 65): block.z must be 1 to 64, not 65"),
        ({"block": (64, 32)}, "block (64, 32, 1) has 2048 threads: 1024 is the most"),
        ({"cluster": 3}, "cluster (3, 1, 1) does not divide grid (4, 1, 1): 4 % 3 along x"),
        ({"grid": 32, "cluster": 32}, "cluster (32, 1, 1): cluster.x must be 1 to 16, not 32"),
        ({"grid": (8, 4), "cluster": (8, 4)}, "cluster (8, 4, 1) has 32 blocks: 16 is the most"),
        ({"dynamic_shared": -1}, "dynamic_shared is a count of bytes, not -1"),
        ({"dynamic_shared": 1.5}, "dynamic_shared is a count of bytes, not 1.5"),
    ],
)
def test_wrong_facts(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(OperandError) as caught:
        geometry(PLAIN, **({"grid": 4, "block": 32} | arguments))
    assert str(caught.value) == message


def test_directives() -> None:
    fixed = Function(
        "k", True, directives=(Directive("reqntid", (64,)), Directive("reqnctapercluster", (2, 1, 1)))
    )
    assert geometry(fixed, 4, None) == Geometry((4, 1, 1), (64, 1, 1), (2, 1, 1))
    with pytest.raises(OperandError) as caught:
        geometry(fixed, 4, 32)
    assert str(caught.value) == "k runs with blocks of (64, 1, 1) alone (.reqntid), not (32, 1, 1)"
    with pytest.raises(OperandError) as caught:
        geometry(fixed, 4, 64, 4)
    assert str(caught.value) == "k runs in clusters of (2, 1, 1) alone (.reqnctapercluster), not (4, 1, 1)"
    with pytest.raises(OperandError) as caught:
        geometry(fixed, 3, 64)
    assert str(caught.value) == "cluster (2, 1, 1) does not divide grid (3, 1, 1): 3 % 2 along x"
    bounded = Function("k", True, directives=(Directive("maxntid", (8, 8)),))
    assert geometry(bounded, 1, (16, 4)).block == (16, 4, 1)
    with pytest.raises(OperandError) as caught:
        geometry(bounded, 1, 65)
    assert str(caught.value) == "k runs with at most 64 threads a block (.maxntid), not 65"
