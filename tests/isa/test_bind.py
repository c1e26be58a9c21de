"""Operand shapes against signatures, with the full text of refusals."""

from __future__ import annotations

import pytest

from isa.table_text import form
from ptxtile.errors import OperandError
from ptxtile.isa import Shape, bind, check_literals, validate

HEAD = 'instruction op "Test" 9.7.1;\nout d : type;  a, b, c : type;\n'


def message(spelling: str, *shapes: Shape) -> str:
    with pytest.raises(OperandError) as error:
        bind(validate(spelling), shapes)
    assert isinstance(error.value, TypeError)
    return str(error.value)


@pytest.mark.parametrize(
    ("spelling", "shapes"),
    [
        ("fma.rn.f32", ("f32", "b32", "f32lit", "f64lit")),
        ("add.u32", ("b32", "u32", "int")),
        ("add.f16x2", ("b32", "b32", "b32")),
        ("mul.wide.u16", ("b32", "b16", "u16")),
        ("setp.eq.u32", ("pred", "b32", "int")),
        ("setp.eq.u32", (("|", "pred", "_"), "b32", "int")),
        ("setp.eq.and.u32", ("pred", "b32", "int", "!pred")),
        ("ld.global.v4.b32", (("{", "b32", "b32", "f32", "_"), ("[", "b64"))),
        ("ld.shared.u8", ("b32", ("[", "sym:shared"))),
        ("mov.u32", ("b32", "sreg:%tid.x")),
        ("mov.u64", ("b64", "sreg:%clock64")),
        ("mov.b64", (("{", "b32", "b32"), "b64")),
        ("mov.b64", ("b64", ("{", "b32", "b32"))),
        ("bra", ("label",)),
    ],
)
def test_what_fits(spelling: str, shapes: tuple[Shape, ...]) -> None:
    form = validate(spelling)
    found = bind(form, shapes)
    assert found in form.signatures and bind(form, shapes) is found and form.bound[shapes] is found


@pytest.mark.parametrize(
    ("spelling", "shapes"),
    [
        ("fma.rn.f32", ("f32lit", "f32", "f32", "f32")),
        ("fma.rn.f32", ("f32", "int", "f32", "f32")),
        ("fma.rn.f32", ("f32", "f32", "f32", "b64")),
        ("add.f16x2", ("b32", "b32", "int")),
        ("add.u32", ("b32", "sreg:%tid.x", "int")),
        ("mul.wide.u16", ("b16", "b16", "b16")),
        ("ld.global.v4.b32", (("{", "b32", "b32"), ("[", "b64"))),
        ("ld.global.b32", ("b16", ("[", "b64"))),
        ("ld.global.b32", ("b32", "b64")),
        ("mov.u64", ("b64", "sreg:%tid.x")),
        ("bra", ("b32",)),
    ],
)
def test_what_does_not(spelling: str, shapes: tuple[Shape, ...]) -> None:
    with pytest.raises(OperandError):
        bind(validate(spelling), shapes)


def test_part_selectors() -> None:
    text = HEAD + ".sel = { .b0, .h1 };\nop.u32 d, a{.sel};"
    made = form(text, "op.u32")
    assert bind(made, ("b32", (".", "h1", "b32"))) is bind(made, ("b32", "b32"))
    with pytest.raises(OperandError):
        bind(made, ("b32", (".", "b1", "b32")))


def test_message_names_the_operand() -> None:
    assert message("fma.rn.f32", "f32", "f32", "f64", "int") == (
        "fma.rn.f32 does not take these operands\n"
        "  fma.rn.f32 d, a, b, c\n"
        "    operand 3 (b) must be a .f32 register (f32, b32) or a float literal, not a f64 register\n"
        "    operand 4 (c) must be a .f32 register (f32, b32) or a float literal, not an integer literal"
    )


def test_message_of_a_wrong_count() -> None:
    assert message("fma.rn.f32", "f32") == (
        "fma.rn.f32 takes 4 operands, 1 given\n"
        "  fma.rn.f32 d, a, b, c"
    )  # fmt: skip


def test_message_of_a_vector() -> None:
    assert message("ld.global.v2.f64", ("{", "f64"), ("[", "b64")).splitlines()[-1] == (
        "    operand 1 (d) must be a vector of 2 elements, each a .f64 register (f64, b64, b128) or _, "
        "not a vector of 1: a f64 register"
    )


def test_literal_ranges() -> None:
    text = HEAD + "op.u32 d, n, m;\nn : imm .u32 range(0, 31);  m : imm .u32 among(4, 8);"
    made = form(text, "op.u32")
    signature = bind(made, ("b32", "int", "int"))
    check_literals(made, signature, (None, 31, 8))
    with pytest.raises(OperandError) as error:
        check_literals(made, signature, (None, 32, 8))
    assert str(error.value) == "op.u32: operand 2 (n) is 32, but must be 0 to 31"
    with pytest.raises(OperandError) as error:
        check_literals(made, signature, (None, 0, 5))
    assert str(error.value) == "op.u32: operand 3 (m) is 5, but must be one of 4, 8"


def test_literals_in_vectors_are_checked_too() -> None:
    form = validate(
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0"
    )
    (signature,) = form.signatures
    values = [None, None, None, None, None, (2, 1), None, (0, 3)]
    check_literals(form, signature, values)
    with pytest.raises(OperandError) as error:
        check_literals(form, signature, [*values[:5], (2, 3), *values[6:]])
    assert str(error.value) == (f"{form.spelling}: operand 6, element 2 (thread_a) is 3, but must be 0 to 1")
    with pytest.raises(OperandError) as error:
        check_literals(form, signature, [*values[:7], (3, 0)])
    assert str(error.value) == (
        f"{form.spelling}: operand 8, element 1 (byte_b) is 3, but must be one of 0, 2"
    )


def test_a_literal_limited_by_another_operand() -> None:
    form = validate("cp.async.ca.shared.global")
    signature = next(each for each in form.signatures if each.operands[-1].name == "src_size")
    check_literals(form, signature, [None, None, 8, 8])
    check_literals(form, signature, [None, None, None, 16])
    with pytest.raises(OperandError) as error:
        check_literals(form, signature, [None, None, 8, 9])
    assert str(error.value) == (
        "cp.async.ca.shared.global: operand 4 (src_size) is 9, but must be no more than size, which is 8"
    )
