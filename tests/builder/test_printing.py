"""pt.printf: what is emitted, what the buffer holds, the assembler, and every refusal."""

from __future__ import annotations

import re

import numpy as np
import pytest

import ptxtile as pt
from ptxtile import driver
from ptxtile.errors import PtxtileError
from ptxtile.ir.module import Variable

PARAMS = {
    "f": pt.float32, "h": pt.float16, "d": pt.float64, "i": pt.int32, "u": pt.uint32, "b": pt.int8, "s": pt.uint16,
    "w": pt.int64, "p": pt.uint64,
}  # fmt: skip


def module(body, target=None):
    builder = pt.ModuleBuilder(target)
    with builder.entry("k", PARAMS, block=32) as k:
        body(k)
    return builder.module()


def stores(body):
    """(type, offset, value) of each store into the buffer."""
    return re.findall(r"st\.local\.(\w+) \[k\$printf(?:\+(\d+))?\], (\S+);", str(module(body)))


def texts(made):
    return [bytes(each.value for each in item.initial) for item in made.items if isinstance(item, Variable)]


def test_the_whole_sequence():
    text = str(module(lambda k: pt.printf("%d %g\n", k.i, k.f), "sm_75"))
    assert (
        text.count(".extern .func (.param .b32 count) vprintf(.param .b64 format, .param .b64 values);") == 1
    )
    body = text[text.index("cvt.f64") :]
    names = [re.sub(r"%(r|rd|f|fd)\d+", r"%\1", line.strip()) for line in body.splitlines()[:16]]
    assert names == [
        "cvt.f64.f32 %fd, %f;", "mov.u64 %rd, k$text_0;", "cvta.global.u64 %rd, %rd;", "st.local.b32 [k$printf], %r;",
        "st.local.f64 [k$printf+8], %fd;", "mov.u64 %rd, k$printf;", "cvta.local.u64 %rd, %rd;", "{",
        ".param .b64 $format;", ".param .b64 $values;", ".param .b32 $count;", "st.param.b64 [$format], %rd;",
        "st.param.b64 [$values], %rd;", "call ($count), vprintf, ($format, $values);", "}", "ret;",
    ]  # fmt: skip
    assert ".local .align 8 .b8 k$printf[16];" in text


def test_values_lie_as_c_has_them():
    found = stores(lambda k: pt.printf("%hhd %hu %d %lld %g %c %p", k.b, k.s, 7, k.w, 1, 65, k.p))
    assert [(kind, offset) for kind, offset, _ in found] == [
        ("b32", ""), ("b32", "4"), ("b32", "8"), ("b64", "16"), ("f64", "24"), ("b32", "32"), ("b64", "40"),
    ]  # fmt: skip
    assert [value for _, _, value in found if value[0] != "%"] == ["7", "0d3FF0000000000000", "65"]


def test_every_float_is_printed_as_a_float64():
    text = str(module(lambda k: pt.printf("%f %e %a", k.h, k.f, k.d)))
    assert re.findall(r"cvt\.f64\.f\d+", text) == ["cvt.f64.f16", "cvt.f64.f32"]


def test_a_width_is_a_value():
    found = stores(lambda k: pt.printf("%*d %.2f|%-08.3lf %+i %%", 5, k.i, k.f, k.d, k.i))
    assert [kind for kind, _, _ in found] == ["b32", "b32", "f64", "f64", "b32"]


def test_texts_are_kept_once():
    def body(k):
        pt.printf("%s: %d\n", "a", k.i)
        pt.printf("%s: %d\n", "b", k.i)
        pt.printf("no values, é\n")

    made = module(body)
    assert texts(made) == [b"a\0", b"%s: %d\n\0", b"b\0", "no values, é\n\0".encode()]
    assert (
        str(made).count("mov.u64 %rd") == len({"a", "%s: %d\n", "b", "no values"}) + 2
    )  # and the buffer, twice
    assert "st.param.b64 [$values], 0;" in str(made)


def test_two_entries_declare_the_function_once():
    builder = pt.ModuleBuilder()
    for name in ("one", "two"):
        with builder.entry(name, {}, block=32):
            pt.printf("hello\n")
    text = str(builder)
    assert text.count(".extern .func") == 1
    assert "one$text_0" in text and "two$text_0" in text
    assert str(pt.parse(text)) == text
    assert pt.check_text(text) == []


@pytest.mark.parametrize("target", ["sm_75", "sm_90a", "sm_120a"])
def test_nvidias_assembler_takes_it(target):
    pytest.importorskip("nvidia", reason="nvidia-nvjitlink is not installed")

    def body(k):
        with pt.if_(k.i < 3):
            pt.printf("%d %g\n", k.i, k.f)

    assert pt.assemble(module(body, target), target)[:4] == b"\x7fELF"


def test_text_reads_back():
    made = module(lambda k: pt.printf("%d\n", k.i))
    assert pt.parse(str(made)) == made


BAD = [
    (lambda k: pt.printf(k.i), "pt.printf: the format is Python text, not a run-time int32"),
    (lambda k: pt.printf("%d"), "pt.printf: '%d' prints 1 value, and there are 0"),
    (lambda k: pt.printf("plain", k.i, k.i), "pt.printf: 'plain' prints 0 values, and there are 2"),
    (lambda k: pt.printf("%d" * 33, *[k.i] * 33), "pt.printf prints at most 32 values, not 33"),
    (lambda k: pt.printf("%d", k.u), "pt.printf: %d prints int8, int16 or int32, and value 0 is a run-time uint32; %u prints it"),
    (lambda k: pt.printf("%u", k.i), "pt.printf: %u prints uint8, uint16 or uint32, and value 0 is a run-time int32; %d prints it"),
    (lambda k: pt.printf("%d", k.w), "pt.printf: %d prints int8, int16 or int32, and value 0 is a run-time int64; %lld prints it"),
    (lambda k: pt.printf("%lld", k.i), "pt.printf: %lld prints int64, and value 0 is a run-time int32; %d prints it"),
    (lambda k: pt.printf("%d", k.f), "pt.printf: %d prints int8, int16 or int32, and value 0 is a run-time float32; %f prints it"),
    (lambda k: pt.printf("%d %f", 1, k.i), "pt.printf: %f prints a float, and value 1 is a run-time int32; %d prints it"),
    (lambda k: pt.printf("%d", 1.5), "pt.printf: %d prints int8, int16 or int32, and value 0 is 1.5"),
    (lambda k: pt.printf("%d", k.i < 3), "pt.printf: %d prints int8, int16 or int32, and value 0 is a run-time bool_; pt.cast(value, pt.int32) makes it 0 or 1"),
    (lambda k: pt.printf("%d", True), "pt.printf: %d prints int8, int16 or int32, and value 0 is True"),
    (lambda k: pt.printf("%f", "x"), "pt.printf: %f prints a float, and value 0 is 'x'; %s prints it"),
    (lambda k: pt.printf("%s", k.p), "pt.printf: %s prints Python text, which is known while tracing, and value 0 is a run-time uint64; %llu prints it"),
    (lambda k: pt.printf("%p", k.u), "pt.printf: %p prints uint64 or int64, and value 0 is a run-time uint32; %u prints it"),
    (lambda k: pt.printf("%n", k.p), "pt.printf: '%n' is no conversion: %n writes to memory, and the device has it not; a per cent sign is %%"),
    (lambda k: pt.printf("%.*f", 2, k.f), ("pt.printf: '%.*f' takes its precision from a value, which CUDA's printf does not (an H200 "
     "prints it as it stands); write it into the format")),
    (lambda k: pt.printf("%y", k.i), "pt.printf: '%y' is no conversion: there are d i u o x X c f F e E g G a A p s; a per cent sign is %%"),
    (lambda k: pt.printf("100%"), "pt.printf: '%' is no conversion: there are d i u o x X c f F e E g G a A p s; a per cent sign is %%"),
    (lambda k: pt.printf("%Lf", k.d), "pt.printf: '%Lf' is no conversion: there are d i u o x X c f F e E g G a A p s; a per cent sign is %%"),
    (lambda k: pt.printf("a\0b"), "pt.printf: a text ends at its first zero byte, and this one has one inside"),
    (lambda k: pt.printf("%d", 1 << 40), "pt.printf: value 0, printed by %d: 1099511627776 does not fit pt.int32, which holds -2147483648 to 2147483647"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "text"), BAD)
def test_what_it_does_not_print(body, text):
    with pytest.raises(PtxtileError) as caught:
        module(body)
    assert str(caught.value).split("\n  ")[0] == text
    assert "test_printing.py" in str(caught.value)


# --- what is printed --------------------------------------------------------------------------------------------------
@pt.kernel(grid=1, block=32)
def printing(H: pt.Tensor((1,), pt.float16), B: pt.Tensor((1,), pt.int8), n: pt.int64, u: pt.uint32):
    with pt.if_(pt.thread_idx() == 3):
        pt.printf("%s %d %u %lld %g %5.2f|%-4d|%04x %c %%\n", "text", B[0], u, n, H[0], 2.5, -7, 255, 65)
        pt.printf("%*d,%.1f.\n", 4, 12, 0.25)


@pytest.mark.parametrize(
    "device",
    [
        "emulator",
        pytest.param(0, id="gpu", marks=pytest.mark.skipif(not driver.available(), reason="no CUDA device")),
    ],
)
def test_what_is_printed(device, capfd):
    printing.launch(
        np.array([1.5], np.float16), np.array([-3], np.int8), -(1 << 40), 4000000000, device=device
    )
    assert capfd.readouterr().out == (
        "text -3 4000000000 -1099511627776 1.5  2.50|-7  |00ff A %\n  12,0.2.\n"
    )
