"""A vector and a predicate as one destination: `tex … {r0, r1, r2, r3}|p`, where the predicate says whether the texel is there."""

from __future__ import annotations

import pytest

from ptxtile import check_text
from ptxtile.ir import parse, write

_MODULE = """.version 7.1
.target sm_80
.address_size 64
.visible .entry k()
{{
  .reg .b32 %r<5>;
  .reg .b64 %d<2>;
  .reg .f32 %f<3>;
  .reg .pred %p<2>;
  {statement}
  ret;
}}
"""


@pytest.mark.parametrize(
    "destination", ["{%r1, %r2, %r3, %r4}|%p1", "{%r1, _, _, %r4} | %p1", "{%r1, %r2, %r3, %r4}|_"]
)
def test_is_read_and_written(destination: str) -> None:
    text = _MODULE.format(statement=f"tex.2d.v4.u32.f32 {destination}, [%d1, {{%f1, %f2}}];")
    wanted = not destination.endswith("_")
    assert (check_text(text) == []) == wanted
    if wanted:
        assert destination.replace(" | ", "|") in write(parse(text))


def test_the_second_is_a_predicate() -> None:
    text = _MODULE.format(statement="tex.2d.v4.u32.f32 {%r1, %r2, %r3, %r4}|5, [%d1, {%f1, %f2}];")
    [found] = check_text(text)
    assert (found.line, found.severity) == (10, "error")
