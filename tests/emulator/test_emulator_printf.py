"""vprintf and __assertfail: what C prints, from every thread, in their order."""

from __future__ import annotations

import ctypes
import math
import struct

import numpy as np
import pytest

import ptxtile as pt
from ptxtile.emulator import EmulatorError, launch
from ptxtile.emulator.formatting import parse, render

C = ctypes.CDLL(None)


def by_c(form, *values):
    """What the C library prints."""
    buffer = ctypes.create_string_buffer(400)
    C.snprintf(buffer, ctypes.c_size_t(400), form.encode(), *values)
    return buffer.value.decode()


def ours(form, *values):
    """What the emulator makes of it."""
    conversions = parse(form)
    rest, line = list(values), ""
    for conversion in conversions:
        if not conversion.letter:
            line += conversion.text
            continue
        stars = [rest.pop(0) for _ in range(conversion.stars)]
        line += render(conversion, rest.pop(0), stars)
    return line


FLAGS = ["", "-", "+", " ", "0", "#", "-+", "+0", "# ", "-#", "#0", " 0"]
WIDTHS = ["", "1", "7", "12", ".0", ".3", "9.4", ".12", "20.9"]


@pytest.mark.parametrize("letter", list("diuoxX"))
def test_integers(letter):
    for flags in FLAGS:
        for width in WIDTHS:
            for value in (0, 1, -1, 42, -12345, 2147483647, -2147483648):
                form = f"<%{flags}{width}{letter}>"
                assert ours(form, value & 0xFFFFFFFF) == by_c(form, ctypes.c_int(value)), form
            for length in ("ll", "l", "h", "hh"):
                form = f"<%{flags}{width}{length}{letter}>"
                value = -(1 << 62) + 5 if length in ("ll", "l") else -300
                mask = (1 << 64) - 1 if length in ("ll", "l") else (1 << 32) - 1
                given = ctypes.c_longlong(value) if length in ("ll", "l") else ctypes.c_int(value)
                assert ours(form, value & mask) == by_c(form, given), form


@pytest.mark.parametrize("letter", list("eEfFgGaA"))
def test_floats(letter):
    values = [0.0, -0.0, 1.0, -1.5, 0.1, 123456.789, 1e-7, 3e20, 1.9999999, math.inf, -math.inf, math.nan]
    for flags in FLAGS:
        if "#" in flags and letter in "aA":
            continue  # a point without digits behind it
        for width in WIDTHS:
            for value in values:
                form = f"<%{flags}{width}{letter}>"
                assert ours(form, value) == by_c(form, ctypes.c_double(value)), (form, value)


def test_text_characters_and_stars():
    assert ours("%5s|%-5s|%.2s", "abc", "abc", "abc") == "  abc|abc  |ab"
    assert ours("%c%c %%", 65, 0x142) == "AB %"
    assert ours("%*d|%-*d|%.*f", 5, 3, 4, 7, 2, 1.5) == "    3|7   |1.50"
    assert ours("%*d", -4, 9) == "9   "
    assert ours("%p", 0x7F0000001234) == "0x7f0000001234"
    assert ours("100%, %y") == "100%, %y"


PROGRAM = """.version 8.0
.target sm_90
.address_size 64
.extern .func (.param .b32 count) vprintf (.param .b64 format, .param .b64 values);
.extern .func __assertfail (.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s);
.global .align 1 .b8 text[{size}] = {{{bytes}}};
.global .align 1 .b8 word[4] = {{108, 111, 119, 0}};
.visible .entry k(.param .u64 A)
{{
.local .align 8 .b8 buffer[64];
.reg .b32 %r<8>; .reg .b64 %rd<12>; .reg .f64 %fd<4>; .reg .pred %p<2>;
mov.u32 %r1, %tid.x;
ld.param.u64 %rd10, [A];
mul.wide.u32 %rd9, %r1, 4;
add.u64 %rd10, %rd10, %rd9;
cvta.global.u64 %rd1, text;
mov.u64 %rd2, buffer;
cvta.local.u64 %rd3, %rd2;
{body}
ret;
}}
"""
CALL = """{{
.param .b64 p0; .param .b64 p1; .param .b32 r0;
st.param.b64 [p0], {0}; st.param.b64 [p1], %rd3;
call.uni (r0), vprintf, (p0, p1);
ld.param.b32 %r5, [r0];
}}
st.global.b32 [%rd10], %r5;
"""


def program(text, body):
    raw = [*text.encode(), 0]
    return PROGRAM.format(size=len(raw), bytes=", ".join(map(str, raw)), body=body)


def test_every_thread_prints_in_order(capsys):
    body = """
    st.local.b32 [buffer], %r1;
    cvt.rn.f64.u32 %fd1, %r1; mul.f64 %fd1, %fd1, 0d3FE0000000000000; st.local.f64 [buffer+8], %fd1;
    mov.b64 %rd4, -5; st.local.b64 [buffer+16], %rd4;
    cvta.global.u64 %rd5, word; st.local.b64 [buffer+24], %rd5;
    st.local.b32 [buffer+32], 88;
    """ + CALL.format("%rd1")
    out = np.zeros(3, np.int32)
    launch(program("%d: %.2f %lld %s%c\n", body), "k", 1, 3, [out])
    assert capsys.readouterr().out == "".join(f"{i}: {i / 2:.2f} -5 lowX\n" for i in range(3))
    assert out.tolist() == [5, 5, 5]


def test_no_format_is_minus_one_and_nothing_counts_nothing(capsys):
    out = np.zeros(1, np.int32)
    launch(program("plain\n", CALL.format("0")), "k", 1, 1, [out])
    assert (out.tolist(), capsys.readouterr().out) == ([-1], "")
    launch(program("plain\n", CALL.format("%rd1")), "k", 1, 1, [out])
    assert (out.tolist(), capsys.readouterr().out) == ([0], "plain\n")


def test_a_guard_keeps_threads_silent(capsys):
    body = "setp.eq.u32 %p1, %r1, 2; st.local.b32 [buffer], %r1;" + CALL.format("%rd1").replace(
        "call.uni", "@%p1 call"
    ).replace("ld.param.b32 %r5, [r0];", "mov.b32 %r5, 0;")
    launch(program("[%d]", body), "k", 1, 4, [np.zeros(4, np.int32)])
    assert capsys.readouterr().out == "[2]"


def test_what_was_never_written_is_not_printed():
    with pytest.raises(EmulatorError) as caught:
        launch(program("%d", CALL.format("%rd1")), "k", 1, 1, [np.zeros(1, np.int32)])
    assert caught.value.kind == "uninitialised"
    assert str(caught.value).splitlines()[0] == (
        "uninitialised: what vprintf prints as value 1 depends on memory, which holds bits that were never written"
    )


def test_an_assertion_stops_with_its_words():
    body = """
    cvta.global.u64 %rd5, word;
    {
    .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 n; .param .b64 s;
    st.param.b64 [m], %rd1; st.param.b64 [f], %rd5; st.param.b32 [l], 12; st.param.b64 [n], %rd5;
    st.param.b64 [s], 1;
    call.uni __assertfail, (m, f, l, n, s);
    }
    """
    with pytest.raises(EmulatorError) as caught:
        launch(program("x > 0", body), "k", 1, 1, [np.zeros(1, np.int32)])
    assert caught.value.kind == "trap"
    assert str(caught.value).splitlines()[0] == "assertion failed: x > 0 (low:12, low)"


def test_arguments_lie_as_c_lays_them():
    """A double after an int begins at a multiple of eight."""
    sizes = [c.size for c in parse("%d%f%hd%lld%s%c")]
    assert sizes == [4, 8, 4, 8, 8, 4]
    assert struct.calcsize("idi") == 20


def test_the_builders_word(capsys):
    """What `pt.printf` emits is what the emulator takes."""

    @pt.kernel(grid=1, block=3)
    def speak(A: pt.Tensor((3,), pt.float32)):
        i = pt.thread_idx("x")
        pt.printf("%u: %6.2f %s %lld%%\n", pt.cast(i, pt.uint32), A[i], "bytes", -7)

    speak.launch(np.array([0.5, -1.25, 1000], np.float32), device="emulator")
    assert capsys.readouterr().out == "0:   0.50 bytes -7%\n1:  -1.25 bytes -7%\n2: 1000.00 bytes -7%\n"
