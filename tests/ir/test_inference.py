"""The target and version that a module's parts ask for."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ptxtile import isa, location
from ptxtile.errors import TargetError
from ptxtile.ir import Function, Instruction, Module, Register, explain, infer, parse
from ptxtile.ir.demand import parameter_bytes

HEAD = ".version 9.0\n.target sm_120a\n.address_size 64\n"
REGISTERS = ".reg .pred p, q; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<9>; .reg .b16 %h<9>;\n"


def module(body: str, header: str = ".visible .entry k()", before: str = "") -> Module:
    return parse(f"{HEAD}{before}{header} {{\n{REGISTERS}{body}\nret; }}\n")


@pytest.mark.parametrize(
    ("body", "chosen"),
    [
        ("", ("sm_75", "6.3")),
        ("fma.rn.f32 %f1, %f1, %f1, %f1;", ("sm_75", "6.3")),
        ("add.rn.bf16x2 %r1, %r1, %r1;", ("sm_90", "7.8")),
        ("add.rn.f32x2 %d1, %d1, %d1;", ("sm_100", "8.6")),
        ("mov.u32 %r1, %clusterid.x;", ("sm_90", "7.8")),
        ("{ .reg .b128 x; }", ("sm_75", "8.3")),
        ("ld.global.v8.f32 {%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8}, [%d1];", ("sm_100", "8.8")),
        (".loc 1 2 3, function_name L, inlined_at 1 2 3", ("sm_75", "7.0")),
    ],
)
def test_statements(body: str, chosen: tuple[str, str]) -> None:
    assert infer(module(body).items) == chosen


@pytest.mark.parametrize(
    ("header", "chosen"),
    [
        (".entry k() .maxntid 128", ("sm_75", "6.3")),
        (".entry k() .reqnctapercluster 2", ("sm_90", "7.8")),
        (".entry k() .blocksareclusters .reqntid 32 .reqnctapercluster 2", ("sm_90", "9.0")),
        (".entry k(.param .b8 a[4352])", ("sm_75", "6.3")),
        (".entry k(.param .b8 a[4353])", ("sm_75", "8.1")),
        (".func f() .noreturn", ("sm_75", "6.4")),
        (".func f() .abi_preserve 3", ("sm_80", "9.0")),
    ],
)
def test_headers(header: str, chosen: tuple[str, str]) -> None:
    assert infer(module("", header).items) == chosen


def test_a_module_of_the_choice_assembles_and_a_lower_version_does_not(ptxas: str, tmp_path: Path) -> None:
    cases = [
        (module("", ".entry k(.param .b8 a[4353])"), "8.0"),
        (module("", ".func f() .noreturn").items and module("bra L; L:", ".func f() .noreturn"), "6.3"),
        (module("{ .reg .b128 x; }"), "8.2"),
        (module("", before=".global .u32 a; .global .u8 b = 0xFF(a);\n"), "7.0"),
    ]
    for given, lower in cases:
        target, version = infer(given.items)
        for tried, right in ((version, True), (lower, False)):
            source = tmp_path / "module.ptx"
            source.write_text(str(Module(tried, target, given.items)), encoding="utf-8")
            command = [ptxas, "-w", "-c", "-arch", target, "-o", str(tmp_path / "image"), str(source)]
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            assert (done.returncode == 0) == right, (tried, done.stderr)


def test_a_pin_is_kept() -> None:
    plain = module("").items
    assert infer(plain, target="sm_90a") == ("sm_90a", "8.0")
    assert infer(plain, target="sm_90a", version="8.6") == ("sm_90a", "8.6")
    assert infer(plain, version="7.0") == ("sm_75", "7.0")


def test_a_pin_that_lacks_something() -> None:
    items = module("add.rn.f32x2 %d1, %d1, %d1;").items
    with pytest.raises(TargetError) as caught:
        infer(items, target="sm_90")
    assert str(caught.value) == "add.rn.f32x2 is not available on sm_90: it needs sm_100 or later"
    with pytest.raises(TargetError) as caught:
        infer(items, target="sm_120", version="8.6")
    assert str(caught.value) == "sm_120 needs PTX ISA 8.7, not 8.6"
    with pytest.raises(TargetError) as caught:
        infer(module("{ .reg .b128 x; }").items, target="sm_90", version="8.2")
    assert str(caught.value) == "the type .b128 needs PTX ISA 8.3 on sm_90, not 8.2"
    with pytest.raises(TargetError, match="unknown target 'sm_7'"):
        infer(items, target="sm_7")
    with pytest.raises(TargetError, match="unknown PTX ISA version '8.99'"):
        infer(items, version="8.99")


def _only(name: str, **targets: str) -> Instruction:
    """An instruction of a form made up for one target."""
    from ptxtile.isa.form import Form, Signature

    signature = Signature((), targets, {}, {}, name, "")
    return Instruction(
        Form(name, name, (), "", "", (signature,), targets), (), None, signature, location.mark(2)
    )


def test_no_common_target_names_both_forms() -> None:
    here = test_no_common_target_names_both_forms.__code__.co_firstlineno + 2
    body = (_only("first", sm_90a="8.0"), _only("second", sm_100a="8.6", sm_103a="8.8"))
    with pytest.raises(TargetError) as caught:
        infer([Function("k", True, body=body)])
    file = __file__
    assert str(caught.value) == (
        f"no target has first ({file}:{here}) and second ({file}:{here}) together:\n"
        "  first needs sm_90a\n"
        "  second needs sm_100a, sm_103a"
    )


def test_three_forms_of_which_any_two_have_a_target() -> None:
    body = (
        _only("first", sm_80="7.0", sm_90="7.8"),
        _only("second", sm_90="7.8", sm_100="8.6"),
        _only("third", sm_100="8.6", sm_80="7.0"),
    )
    with pytest.raises(TargetError, match="^no target has first .* and third .* together:"):
        infer([Function("k", True, body=body)])


def test_family_before_exact_target() -> None:
    family = _only("one", sm_100a="8.6", sm_100f="8.8", sm_103a="8.8", sm_103f="8.8")
    assert infer([Function("k", True, body=(family,))]) == ("sm_100f", "8.8")
    exact = _only("other", sm_100a="8.6")
    assert infer([Function("k", True, body=(family, exact))]) == ("sm_100a", "8.6")


def test_explain() -> None:
    ret = Instruction(isa.validate("ret"), (), mark=location.mark())
    d = Register("d", "b64")
    add = Instruction(isa.validate("add.rn.f32x2"), (d, d, d), mark=location.mark())
    here = test_explain.__code__.co_firstlineno + 3
    built = Module("8.6", "sm_100", (Function("k", True, body=(ret, add)),))
    assert (
        explain(built)
        == built.explain()
        == (
            ".target sm_100\n"
            f"  add.rn.f32x2 ({__file__}:{here}) needs sm_100 or later\n"
            ".version 8.6\n"
            "  sm_100 needs PTX ISA 8.6"
        )
    )
    assert explain(Module("8.3", "sm_75", module("{ .reg .b128 x; }").items)) == (
        ".target sm_75\n  nothing needs more than sm_75\n.version 8.3\n  the type .b128 needs PTX ISA 8.3 on sm_75"
    )


def test_parameters_are_aligned() -> None:
    items = module(
        "", ".entry k(.param .u8 a, .param .u64 b, .param .align 16 .b8 c[3], .param .v2 .f32 d)"
    ).functions
    assert parameter_bytes(items[0].parameters) == 16 + 3 + 5 + 8
