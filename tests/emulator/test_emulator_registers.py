"""setmaxnreg: what warpgroups give back and ask for, and kernels that can never get it."""

from __future__ import annotations

import numpy as np
import pytest

from ptxtile.emulator import EmulatorError, launch

TEXT = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 A)
{directives}
{{
.reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
ld.param.u64 %rd1, [A];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 4;
add.u64 %rd1, %rd1, %rd2;
setp.ge.u32 %p1, %r1, 128;
@%p1 bra consumer;
{producer}
bra done;
consumer:
{consumer}
done:
st.global.b32 [%rd1], %r1;
ret;
}}
"""
GIVE, TAKE = "setmaxnreg.dec.sync.aligned.u32 {};", "setmaxnreg.inc.sync.aligned.u32 {};"


def run(directives, producer, consumer, block=384):
    out = np.zeros(block, np.uint32)
    text = TEXT.format(directives=directives, producer=producer, consumer=consumer)
    launch(text, "k", 1, block, [out])
    return out.tolist() == list(range(block))


@pytest.mark.parametrize("order", [False, True])
def test_what_one_gives_two_take(order):
    """384 threads have 168 registers each: 24 * 128 + 240 * 256 is as many as 168 * 384."""
    wait = "bar.sync 1, 384;" if order else ""
    assert run(".maxntid 384", GIVE.format(24) + wait, wait + TAKE.format(240))


def test_a_count_that_fits_no_more():
    with pytest.raises(EmulatorError) as caught:
        run(".maxntid 384", GIVE.format(40), TAKE.format(240))
    assert (caught.value.kind, caught.value.line) == ("deadlock", 17)
    assert str(caught.value) == (
        "deadlock: all 128 threads left wait\n"
        "  line 17: setmaxnreg.inc.sync.aligned.u32 240\n"
        "  128 threads (thread (256, 0, 0) of CTA (0, 0, 0), …) wait for 9216 registers, and their CTA has 7168 "
        "registers to give, at line 17: setmaxnreg.inc.sync.aligned.u32 240"
    )


@pytest.mark.parametrize(
    ("directives", "producer", "message"),
    [
        (
            ".maxnreg 64",
            GIVE.format(72),
            "setmaxnreg.dec to 72, where the thread has 64, which is fewer already",
        ),
        (
            ".maxnreg 168",
            TAKE.format(160),
            "setmaxnreg.inc to 160, where the thread has 168, which is more already",
        ),
        (
            ".maxntid 128\n.minnctapersm 4",
            GIVE.format(136),
            "setmaxnreg.dec to 136, where the thread has 128, which is fewer already",
        ),
    ],
)
def test_the_wrong_way(directives, producer, message):
    block = 128 if "128" in directives else 384
    with pytest.raises(EmulatorError) as caught:
        run(directives, producer, "", block)
    assert caught.value.kind == "registers"
    assert str(caught.value).splitlines()[0] == f"registers: {message}"


def test_a_count_that_the_assembler_may_have_chosen_smaller():
    assert run(".maxntid 256", GIVE.format(40), TAKE.format(232), 256)


def test_without_a_count_nothing_happens():
    assert run("", TAKE.format(240), TAKE.format(240))
