"""The law: a module's text read again is the module, and written again is the text."""

from __future__ import annotations

import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from ptxtile import isa
from ptxtile.ir import (
    Address,
    Alias,
    Block,
    Directive,
    Float,
    Function,
    Guard,
    Instruction,
    Integer,
    Label,
    LabelMark,
    Loc,
    Module,
    Negated,
    Operand,
    Pair,
    Parameter,
    Register,
    RegisterDeclaration,
    Section,
    Sink,
    Special,
    Statement,
    Symbol,
    Variable,
    Vector,
    parse,
    write,
)

INTEGERS = st.integers(-(2**63), 2**64 - 1)
OFFSETS = st.integers(-(2**31), 2**31)
B32 = st.integers(0, 7).map(lambda n: Register(f"%r{n}", "b32"))
B64 = st.integers(0, 7).map(lambda n: Register(f"%rd{n}", "b64"))
F32 = st.integers(0, 7).map(lambda n: Register(f"%f{n}", "f32"))
PRED = st.sampled_from([Register("p", "pred"), Register("q", "pred")])
SINGLE = st.integers(0, 2**32 - 1).map(lambda bits: Float(bits, 32))
DOUBLE = st.integers(0, 2**64 - 1).map(lambda bits: Float(bits, 64))
GLOBAL = Symbol("numbers", "global")
SHARED = Symbol("near", "shared")
GUARDS = st.none() | st.builds(Guard, PRED, st.booleans())


def instructions() -> st.SearchStrategy[Instruction]:
    """Instructions of every operand kind that parses without help from the rest of the module."""
    wide = st.tuples(F32, F32, F32, F32).map(Vector)
    choices: list[tuple[str, st.SearchStrategy[tuple[Operand, ...]]]] = [
        ("add.u32", st.tuples(B32, B32, B32 | INTEGERS.map(Integer))),
        ("add.f32", st.tuples(F32, F32, SINGLE | DOUBLE)),
        ("mov.u32", st.tuples(B32, st.sampled_from(["%tid.x", "%laneid"]).map(Special))),
        ("mov.u64", st.tuples(B64, OFFSETS.map(lambda n: Symbol("numbers", "global", n)))),
        ("mov.b64", st.tuples(st.tuples(B32, B32 | st.just(Sink())).map(Vector), B64)),
        ("ld.global.v4.f32", st.tuples(wide, st.builds(Address, B64 | st.just(GLOBAL), OFFSETS))),
        ("st.shared.u32", st.tuples(st.builds(Address, st.just(SHARED), OFFSETS), B32)),
        (
            "setp.eq.and.u32",
            st.tuples(st.builds(Pair, PRED, PRED | st.just(Sink())), B32, B32, st.builds(Negated, PRED)),
        ),
        ("bra", st.tuples(st.just(Label("end")))),
        ("ret", st.just(())),
    ]
    return st.one_of(
        [st.builds(_instruction, st.just(spelling), operands, GUARDS) for spelling, operands in choices]
    )


def _instruction(spelling: str, operands: tuple[Operand, ...], guard: Guard | None) -> Instruction:
    return Instruction(isa.validate(spelling), operands, guard)


LOCS = st.builds(Loc, st.integers(1, 9), st.integers(0, 9999), st.integers(0, 200))
DECLARATIONS = (
    RegisterDeclaration("b32", ("%r",), 8),
    RegisterDeclaration("b64", ("%rd",), 8),
    RegisterDeclaration("f32", ("%f",), 8),
    RegisterDeclaration("pred", ("p", "q")),
    Variable("shared", "b8", "near", (64,), 16),
)


def bodies() -> st.SearchStrategy[tuple[Statement, ...]]:
    pragma = st.just(Directive("pragma", ("nounroll",)))
    plain: st.SearchStrategy[Statement] = instructions() | LOCS | pragma
    nested = st.recursive(
        plain, lambda inner: st.lists(inner, max_size=3).map(lambda found: Block(tuple(found))), max_leaves=8
    )
    return st.lists(nested, max_size=8).map(lambda found: (*DECLARATIONS, *found, LabelMark("end")))


def initials(kind: str, shape: tuple[int, ...]) -> st.SearchStrategy[object]:
    leaf: st.SearchStrategy[object] = DOUBLE if kind == "f64" else INTEGERS.map(Integer)
    for extent in reversed(shape):
        leaf = st.lists(leaf, min_size=1, max_size=extent).map(tuple)
    return st.none() | leaf


@st.composite
def modules(draw: st.DrawFn) -> Module:
    kind = draw(st.sampled_from(["b8", "u32", "s64", "f64"]))
    shape = draw(st.sampled_from([(), (4,), (2, 3)]))
    numbers = Variable(
        "global",
        kind,
        "numbers",
        shape,
        draw(st.sampled_from([None, 1, 8, 16])),
        draw(st.sampled_from([1, 4])),
        draw(st.sampled_from(["", "visible", "weak"])),
        draw(initials(kind, shape)),  # type: ignore[arg-type]
        draw(st.sampled_from([(), (".managed",)])),
    )
    parameters = (
        Parameter(
            "a", "u64", pointer=True, pointer_space="global", pointer_align=draw(st.sampled_from([None, 16]))
        ),
        Parameter("m", "b8", (draw(st.integers(1, 128)),), draw(st.sampled_from([None, 64]))),
    )
    directives = draw(
        st.lists(
            st.sampled_from([Directive("maxntid", (128, 1, 1)), Directive("maxnreg", (32,))]), max_size=2
        )
    )
    entry = Function("k", True, parameters, (), tuple(directives), "visible", draw(bodies()))
    returns = (Parameter("o", "b32", space="reg"),)
    helper = Function(
        "f", False, (Parameter("i", "b32", space="reg"),), returns, (), draw(st.sampled_from(["", "weak"]))
    )
    extra = draw(
        st.sampled_from(
            [
                (),
                (replace(helper, name="g", body=None), Alias("g", "f")),
                (Directive("file", (1, "a/b.py")),),
                (Section(".debug_str", (("label", "", ()), ("", "b8", (1, -2)))),),
            ]
        )
    )
    modes = draw(st.sampled_from([(), ("debug",)]))
    return Module("8.0", "sm_90a", (numbers, helper, entry, *extra), modes, draw(st.sampled_from([64, 32])))


@given(modules())
def test_a_module_is_what_its_text_says(module: Module) -> None:
    text = str(module)
    assert parse(text) == module
    assert write(parse(text)) == text


def test_a_program_is_what_its_canonical_text_says(program: str) -> None:
    module = parse(program)
    assert parse(str(module)) == module
    assert str(parse(str(module))) == str(module)


def code(image: bytes) -> dict[str, bytes]:
    """The machine code of a cubin, an ELF file of 64 bits: name to contents of its `.text` sections."""
    table = int.from_bytes(image[0x28:0x30], "little")
    size, count, names_at = struct.unpack("<HHH", image[0x3A:0x40])
    sections = []
    for n in range(count):
        name, _, _, _, start, length = struct.unpack_from("<IIQQQQ", image, table + n * size)
        sections.append((name, image[start : start + length]))
    names = sections[names_at][1]
    named = {names[name : names.index(b"\0", name)].decode(): contents for name, contents in sections}
    return {name: contents for name, contents in named.items() if name.startswith(".text")}


def test_the_canonical_text_assembles_to_the_same_code(program: str, ptxas: str, tmp_path: Path) -> None:
    module = parse(program)
    if module.address_size == 32:
        pytest.skip("no assembler makes code with 32-bit addresses any more")
    target = module.target if isa.find_target(module.target).supported else "sm_75"
    found = []
    for text in (program, str(module)):
        source, image = tmp_path / "module.ptx", tmp_path / "module.cubin"
        source.write_text(text, encoding="utf-8")
        command = [ptxas, "-w", "-c", "-arch", target, "-o", str(image), str(source)]
        subprocess.run(command, check=True, capture_output=True, text=True)
        found.append(code(image.read_bytes()))
    assert found[0] and found[0] == found[1]
