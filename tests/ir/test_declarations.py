"""Declarations that NVIDIA's assembler refuses: one Diagnostic each."""

from __future__ import annotations

import pytest

from ptxtile.ir import check_text

HEAD = ".version 9.5\n.target sm_90a\n.address_size 64\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (".entry k() .maxntid 0 {ret;}", "a value of .maxntid is an integer of 32 bits from 1"),
        (".entry k() .maxntid 1.5 {ret;}", "a value of .maxntid is an integer of 32 bits from 1"),
        (".entry k() .maxntid 8 .reqntid 8 {ret;}", ".maxntid and .reqntid exclude each other"),
        (".entry k() .noreturn {ret;}", ".noreturn is for a .func"),
        (".func f() .maxnreg 32 {ret;}", ".maxnreg is for an .entry"),
        (".func (.reg .b32 r) f() .noreturn {trap;}", ".noreturn at a function that returns a value"),
        (".entry k() .blocksareclusters {ret;}", ".blocksareclusters needs .reqntid and .reqnctapercluster"),
        (".common .shared .u32 x;", "a .common variable is in .global"),
        (".extern .global .u32 x = 1;", "an .extern variable takes no initial value"),
        (".shared .texref t;", "a variable of type .texref is in .global"),
        (".global .b64 y = y;", "y takes no address: only .u32 and .u64 do"),
        (".global .u16 y = 0xFF(y);", "a byte of an address is one .u8, of a mask such as 0xFF or 0xFF00"),
        (".global .u32 WARP_SZ;", "WARP_SZ is no name"),
        (".global .f64 x = 1e999;", "the number 1e999 does not fit in 64 bits"),
        (".extern .func f() {ret;}", "f is .extern, so it has no body here"),
        (
            ".func f(.param .b32 x); .func f(.param .b64 x) {ret;}",
            "f was declared with other parameters or return values",
        ),
        (".func f() {ret;} .alias g, f;", "g is not declared as a function"),
        (".func f() {ret;} .func g(.param .b32 x); .alias g, f;", "g and f differ in their parameters"),
        (".func f() {T: .branchtargets f; ret;}", "f is no target of .branchtargets"),
        (".section .x { .b8 256 }", "256 is no value of type .b8 in a section"),
        (".section .x { .u32 1 }", "1 is no value of type .u32 in a section"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    assert [each.message for each in check_text(HEAD + text)] == [message]
