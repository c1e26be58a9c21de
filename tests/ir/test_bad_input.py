"""Any text whatever ends in a Module, a ModuleSyntaxError or Diagnostics, soon."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from ptxtile.errors import ModuleSyntaxError
from ptxtile.ir import check_text, parse, reading

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
MANY = 1 << 17
TEXTS: dict[str, Callable[[], str]] = {
    "blocks": lambda: HEAD + ".entry k() " + "{" * 20_000,
    "closed blocks": lambda: HEAD + ".entry k() " + "{" * 50_000 + "}" * 50_000,
    "initialisers": lambda: HEAD + ".global .u32 a = " + "{" * 5_000 + "1" + "}" * 5_000 + ";",
    "parentheses": lambda: HEAD + ".global .u32 a = " + "(" * 5_000 + "1" + ")" * 5_000 + ";",
    "minuses": lambda: HEAD + ".global .u32 a = " + "-" * 5_000 + "1;",
    "a word": lambda: HEAD + "a" * MANY,
    "words": lambda: HEAD + "a " * MANY,
    "labels": lambda: HEAD + ".entry k() {" + "a:" * 20_000,
    "colons": lambda: HEAD + ":" * MANY,
    "spaced colons": lambda: HEAD + ".entry k() {" + "   :" * 20_000,
    "dots": lambda: HEAD + "." * MANY,
    "directives": lambda: HEAD + ".foo\n" * 50_000,
    "directives before a quote": lambda: HEAD + ".foo\n" * 50_000 + '"',
    "sections": lambda: HEAD + ".section .a {\n" * 20_000,
    "unended initialisers": lambda: HEAD + ".global .u32 a = 1\n" * 50_000,
    "comments": lambda: HEAD + "/*" * MANY,
    "quotes": lambda: HEAD + '"' * MANY,
    "semicolons": lambda: HEAD + ";" * 5_000,
    "a statement": lambda: HEAD + ".entry k() { add.u32 " + "a," * MANY + "a; }",
    "digits": lambda: HEAD + ".global .u32 a = " + "9" * MANY + ";",
    "a big range": lambda: HEAD + ".entry k() { .reg .b32 a<999999999>; ret; }",
    "a bigger range": lambda: HEAD + ".entry k() { .reg .b32 a<99999999999999999999999>; ret; }",
    "many variables": lambda: HEAD + ".global .u32 a<999999999>;",
    "a shift": lambda: HEAD + ".global .u32 a = 1 << 0x7FFFFFFFFFFFFFFF;",
    "null": lambda: HEAD + "\0" * 10_000,
    "a long list": lambda: HEAD + ".global .u32 a[50000] = {" + "1," * 49_999 + "x};",
    "unopened": lambda: HEAD + "}" * 10 * MANY,
    "unclosed": lambda: HEAD + ".entry k() " + "{" * 10 * MANY,
    "colons without end": lambda: HEAD + ".entry k() {" + ":" * 10 * MANY,
    "statements in one line": lambda: (
        HEAD + ".entry k() { .reg .b32 a; " + "add.u32 a, a, a; " * 20_000 + "}"
    ),
    "wrong statements in one line": lambda: (
        HEAD + ".entry k() { .reg .b32 a; " + "add.u3 a, a, a; " * 500 + "}"
    ),
    "a section in one line": lambda: HEAD + ".section .debug_x { " + ".b8 1 " * 20_000 + "}",
    "a list of lists": lambda: HEAD + ".global .u32 a[50000][1] = {" + "{1}," * 49_999 + "{x}};",
    "parameters": lambda: (
        HEAD + ".func f (" + ", ".join(f".reg .u32 a{i}" for i in range(5_000)) + ") { ret; }"
    ),
    "lines without end": lambda: HEAD + ".entry k() {\n" + "add.u32 a, b, c\n" * 20_000,
}


def both(text: str) -> None:
    with suppress(ModuleSyntaxError):
        parse(text)
    for found in check_text(text):
        assert found.line >= 1 and found.column >= 1


@pytest.mark.parametrize("name", TEXTS)
def test_sizes_that_overflow_or_hang_others(name: str) -> None:
    text = TEXTS[name]()
    start = time.process_time()
    both(text)
    assert time.process_time() - start < 20  # a hang, not a speed


def test_ten_million_letters_in_one_line_are_told_at_once() -> None:
    """Each fault costs what its own statement is long, not what the line is long."""
    start = time.process_time()
    found = check_text(HEAD + "}" * 10_000_000)
    assert (found[-1].line, found[-1].column) == (4, 10_001)
    assert found[-1].message == "10,000 statements are wrong: the rest is not read"
    assert (
        time.process_time() - start < 20
    )  # today 0.2; searching for the line's end at each fault, 10 000 times as long


def test_labels_are_known_behind_blocks_too_deep_to_read() -> None:
    """Braces nested deeper than any block stand in an initialiser that is refused, or end the reading."""
    deep = ".global .u32 a = " + "{" * 400 + "1; " + "}" * 400 + "\n"
    body = ".entry k() { bra end;\n{ bra inside; inside: ret; }\nend: ret; }\n"
    assert "end is not declared" not in [each.message for each in check_text(HEAD + deep + body)]
    assert check_text(HEAD + body) == []
    spaced = ".entry k() " + "{ " * 300 + "bra end; end: ret; " + "} " * 300
    (found,) = check_text(HEAD + spaced)
    assert found.message == "blocks nested more than 200 deep"


@given(st.text())
def test_any_text(text: str) -> None:
    both(text)
    both(HEAD + ".entry k() {\n" + text)


@given(st.binary(max_size=200))
def test_random_bytes(data: bytes) -> None:
    both(data.decode("latin-1"))
    both(HEAD + ".entry k() {\n" + data.decode("utf-8", "surrogateescape"))


@given(st.text(alphabet=' \n{}()[];:,.@!%|_+-*/<>="0x1fabr'))
def test_text_of_ptx_signs(text: str) -> None:
    both(HEAD + ".entry k() { .reg .b32 a, b, r;\n" + text + "\nret; }")


def test_truncated_and_garbled_programs(program: str) -> None:
    text = program
    chance = random.Random(len(text))
    for _ in range(12):
        both(text[: chance.randrange(len(text))])
        at = chance.randrange(len(text))
        both(text[:at] + chance.choice("{};:,[]()\"'@\0é$ \n9") + text[at + chance.randrange(3) :])


def test_blanks_that_only_python_knows_are_no_blanks() -> None:
    for blank in "\x1c\x1f\x85\xa0\u2003":
        body = f".entry k() {{ .reg .b32 a;\nadd.u32 a, a, a;\nadd.u32{blank}a, a, a;\nret; }}"
        (found,) = check_text(HEAD + body)
        assert (found.line, found.column) == (6, 8)


def test_wrong_statements_without_end_are_not_all_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_MOST_FAULTS", 100)
    body = ".entry k() { .reg .b32 a;\n" + "".join(f"bra L{i};\n" for i in range(110))
    found = check_text(HEAD + body)
    assert len(found) == 101
    assert found[-1].message == "100 statements are wrong: the rest is not read"


def test_every_planted_fault_is_found_at_its_line() -> None:
    """A semicolon, comma, bracket or declaration taken away is told where it is missed, and nowhere else."""
    lines = [".reg .b32 a, b;"] + ["add.u32 a, b, 1;"] * 5
    for at in range(1, 6):
        for broken in (
            "add.u32 a b, 1;",
            "add.u32 a, c, 1;",
            "add.u32 a, b, 1, 1;",
            "add.u99 a, b, 1;",
            "add.u32 a, b, [1;",
        ):
            body = [*lines[:at], broken, *lines[at + 1 :]]
            found = check_text(HEAD + ".entry k() {\n" + "\n".join(body) + "\nret; }")
            assert [each.line for each in found] == [5 + at], broken


@pytest.mark.parametrize("function", [parse, check_text])
@pytest.mark.parametrize(
    ("value", "told"),
    [
        (3, "int; give what a .ptx file holds, or str(module)"),
        (None, "NoneType; give what a .ptx file holds, or str(module)"),
        (b".version 8.0", "bytes; decode it: PTX is ASCII"),
    ],
)
def test_what_is_no_text(function: Callable[[object], object], value: object, told: str) -> None:
    with pytest.raises(TypeError) as error:
        function(value)
    name = function.__name__
    assert str(error.value) == f"{name} takes the text of a PTX module, a str, but was given {told}"
