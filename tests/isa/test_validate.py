"""validate, is_valid, verdict, forms on the real table, with the full text of every kind of refusal."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from ptxtile.errors import FormError, TargetError
from ptxtile.isa import forms, is_valid, ptx, validate, verdict


def message(spelling: str, target: str | None = None, version: str | None = None) -> str:
    with pytest.raises(FormError) as error:
        validate(spelling, target, version)
    assert error.value.spelling == spelling and error.value.reasons
    assert isinstance(error.value, ValueError)
    return str(error.value)


def test_a_form() -> None:
    form = validate("fma.rn.ftz.f32")
    assert (form.spelling, form.opcode, form.modifiers) == ("fma.rn.ftz.f32", "fma", (".rn", ".ftz", ".f32"))
    assert form.section == "9.7.3.6" and form.targets["sm_75"] == "6.3" and form.targets["sm_100f"] == "8.8"
    assert form.signatures[0].slots == {"rnd": ".rn"}
    assert validate("fma.rn.ftz.f32", "sm_90a", "8.0") is form


def test_validity_is_a_set() -> None:
    targets = validate("add.rn.f32x2").targets
    assert (targets["sm_100"], targets["sm_120"], targets["sm_103"]) == ("8.6", "8.7", "8.8")
    assert "sm_90" not in targets
    assert is_valid("add.rn.f32x2", "sm_100", "8.6") and not is_valid("add.rn.f32x2", "sm_103", "8.7")


def test_tolerated() -> None:
    found = verdict("fma.f32.rn")
    assert (found.kind, found.form) == ("tolerated", validate("fma.rn.f32"))
    assert found.reasons == ("the modifiers are not in the order of the manual: fma.rn.f32",)
    assert verdict("fma.rn.f32").kind == "canonical"


def test_rejected_keeps_the_form_if_only_the_target_refuses() -> None:
    found = verdict("add.rn.f32x2", "sm_90")
    assert (found.kind, found.form) == ("rejected", validate("add.rn.f32x2"))
    assert found.reasons == (".f32x2 needs sm_100 or later (PTX ISA 8.6)",)
    assert verdict("fma.rn.f23").form is None


@pytest.mark.parametrize(
    "spelling",
    [
        "",
        ".",
        "fma",
        "fma.",
        "fma..rn.f32",
        "fma.rn.f32 ",
        " fma.rn.f32",
        "fma.rn.rn.f32",
        "FMA.rn.f32",
        "fma.rn.F32",
        "é.ü",
    ],
)
def test_no_spelling_is_too_odd(spelling: str) -> None:
    assert not is_valid(spelling)
    assert message(spelling).startswith(f"{spelling} is not a PTX form\n")


def test_not_on_the_target() -> None:
    assert message("add.rn.f32x2", "sm_90") == (
        "add.rn.f32x2 is not available on sm_90\n"
        "  add.rn.f32x2\n"
        "         ^^^^^ .f32x2 needs sm_100 or later (PTX ISA 8.6)"
    )  # fmt: skip


def test_not_in_the_version() -> None:
    assert message("add.rn.f32x2", "sm_100", "8.5") == (
        "add.rn.f32x2 is not available on sm_100 in PTX ISA 8.5\n"
        "  add.rn.f32x2\n"
        "  ^^^^^^^^^^^^ sm_100 needs PTX ISA 8.6"
    )  # fmt: skip


def test_missing_rounding() -> None:
    assert message("fma.f32") == (
        "fma.f32 is not a PTX form\n"
        "  fma.f32\n"
        "         ^ it lacks one of .rn, .rz, .rm, .rp\n"
        "  close by: fma.rn.f32, fma.rz.f32, fma.rm.f32"
    )


def test_unknown_modifier() -> None:
    assert message("sqrt.rn.f23") == (
        "sqrt.rn.f23 is not a PTX form\n"
        "  sqrt.rn.f23\n"
        "          ^^^ .f23 is no modifier of sqrt; after sqrt.rn may stand one of .ftz, .f32, .f64\n"
        "  close by: sqrt.rn.f32, sqrt.rn.f64, sqrt.rn.ftz.f32"
    )


def test_modifier_in_the_wrong_company() -> None:
    assert message("sqrt.rn.ftz.f64") == (
        "sqrt.rn.ftz.f64 is not a PTX form\n"
        "  sqrt.rn.ftz.f64\n"
        "              ^^^ .f64 cannot stand in sqrt.rn.ftz; after sqrt.rn.ftz may stand .f32\n"
        "  close by: sqrt.rn.ftz.f32, sqrt.rn.f64"
    )


def test_written_twice() -> None:
    assert message("fma.rn.rn.f32").splitlines()[1:3] == [
        "  fma.rn.rn.f32",
        "         ^^ .rn is written twice",
    ]


def test_unknown_instruction() -> None:
    assert message("fmaa.rn.f32") == (
        "fmaa.rn.f32 is not a PTX form\n"
        "  fmaa.rn.f32\n"
        "  ^^^^ there is no instruction 'fmaa'\n"
        "  close by: fma.rn.f32, fma.rn.f32x2, fma.rz.f32"
    )


def test_a_broken_clause_is_shown() -> None:
    text = message("setp.eq.and.ftz.f64").splitlines()
    assert text[2].startswith("              ^^^ the table says: where .ftz -> .type == .f32 (compare.isa:")


def test_targets_and_versions_must_exist() -> None:
    for ask in (validate, is_valid, verdict):
        with pytest.raises(TargetError) as error:
            ask("fma.rn.f32", "sm_91")
        assert str(error.value).startswith("unknown target 'sm_91'; targets are sm_75, sm_80, ")
        with pytest.raises(TargetError) as error:
            ask("fma.rn.f32", "sm_90", "8.9")
        assert str(error.value) == "unknown PTX ISA version '8.9'; versions are 1.0 to 9.5, written as text"
    with pytest.raises(TargetError):
        forms("*", "sm_91")


def test_forms_are_canonical_distinct_and_lazy() -> None:
    found = list(forms("fma.*", "sm_75"))
    assert len(found) == len(set(found)) and "fma.rn.ftz.sat.f32" in found and "fma.rn.bf16" not in found
    assert all(verdict(each, "sm_75").kind == "canonical" for each in found)
    assert list(forms("fma.r[nz].f64")) == ["fma.rn.f64", "fma.rz.f64"]
    assert next(forms("ld.*")).startswith("ld.")
    assert list(forms("nothing*")) == []
    assert len(list(itertools.islice(forms(), 500))) == 500


@pytest.mark.parametrize(
    ("ask", "kind", "message"),
    [
        (lambda: validate(b"x"), FormError, "a spelling is text such as 'fma.rn.f32', not b'x'"),
        (lambda: is_valid(["x"]), FormError, "a spelling is text such as 'fma.rn.f32', not ['x']"),
        (lambda: verdict(None), FormError, "a spelling is text such as 'fma.rn.f32', not None"),
        (lambda: ptx[3], FormError, "a spelling is text such as 'fma.rn.f32', not 3"),
        (lambda: forms(3), FormError, "a pattern is text such as 'cvt.*', not 3"),
        (lambda: is_valid("ret", ["sm_90"]), TargetError, "a target is text such as 'sm_90a', not ['sm_90']"),
        (lambda: is_valid("ret", 90), TargetError, "a target is text such as 'sm_90a', not 90"),
        (lambda: validate("ret", "sm_90", 8.6), TargetError, "a PTX version is text such as '8.6', not 8.6"),
    ],
)
def test_what_is_no_text(ask: Callable[[], object], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught:
        ask()
    assert str(caught.value) == message
