"""mov.v4 from a special register of several elements, all at once (not in the manual, taken by the assembler)."""

from __future__ import annotations

import numpy as np
import pytest

from ptxtile import parse
from ptxtile.emulator import launch

TEXT = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{{
.reg .b32 r<5>;
.reg .b64 d<2>;
ld.param.u64 d1, [p];
mov.u32 r3, 99;
{move}
st.global.v4.b32 [d1], {{r1,r2,r3,r4}};
ret;
}}
"""


@pytest.mark.parametrize(
    ("move", "wanted"),
    [
        ("mov.v4.u32 {r1,r2,r3,r4}, %ntid;", [4, 2, 1, 0]),
        ("mov.v4.b32 {r1,r2,_,r4}, %nctaid;", [3, 1, 99, 0]),
    ],
)
def test_all_elements_at_once(move: str, wanted: list[int]) -> None:
    text = TEXT.format(move=move)
    out = np.zeros(4, np.uint32)
    launch(text, "k", 3, (4, 2, 1), [out])
    assert out.tolist() == wanted
    assert parse(str(parse(text))) == parse(text)
