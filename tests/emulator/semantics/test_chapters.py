"""The table of value functions: what it holds, what it says it lacks, and every spelling the GPU is asked about."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ptxtile
from ptxtile.emulator import semantics
from ptxtile.emulator.semantics import kinds
from ptxtile.emulator.support import supports
from ptxtile.emulator.widths import bits_of, holder

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


@pytest.fixture(scope="module")
def benchmark():
    """The case table and its text module, loaded from their files."""
    modules = []
    for name in ("device_semantics_cases", "device_semantics_halfway", "device_semantics_text"):
        spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        modules.append(module)
    yield modules[0], modules[-1]
    for module in modules:
        del sys.modules[module.__name__]


def test_every_chapter_is_registered():
    assert {"add", "fma", "popc", "addc", "setp", "lop3", "cvt", "ex2", "tanh"} <= semantics.names()
    assert semantics.find("bra") is None


def test_two_functions_for_one_opcode_are_refused():
    with pytest.raises(RuntimeError, match="^two semantics for cvt: cvt, again$"):

        @semantics.value("cvt")
        def again(call):
            return call


@pytest.mark.parametrize("opcode", sorted(semantics.names()))
def test_every_form_of_the_table_computes_at_its_width(opcode):
    """All that `missing.txt` does not name: a form with a type or an operand nobody thought of would fail here."""
    found = [form for glob in (opcode, f"{opcode}.*") for form in ptxtile.forms(glob)]
    spellings = [form if isinstance(form, str) else form.spelling for form in found]
    known = [spelling for spelling in spellings if supports(spelling)]
    # set and setp cross operators with types: thousands of spellings, of which every ninth meets each type.
    for spelling in known[:: 9 if opcode in ("set", "setp") else 1]:
        form = ptxtile.validate(spelling)
        for signature in form.signatures:
            _check_widths(form, signature)
    assert known


def _check_widths(form, signature):
    count, rng = 3, np.random.default_rng(3)

    def draw(name):
        bits = bits_of(name)
        if bits == 1:
            return rng.integers(0, 2, count).astype(np.bool_)
        return rng.integers(0, 1 << min(bits, 63), count, dtype=np.uint64).astype(holder(bits))

    targets, sources, types = [], [], []
    for operand in signature.operands:
        if operand.role == "out":
            targets += [part.type for part in (operand.elements or (operand,) * operand.length)]
        else:
            types.append(operand.type)
            several = tuple(draw(operand.type) for _ in range(operand.length))
            sources.append(several if operand.kind == "vector" else several[0])
    call = semantics.Call(
        form.spelling,
        form.opcode,
        form.modifiers,
        signature.slots,
        (*targets, *types),
        count,
        np.ones(count, np.bool_),
    )
    outcome = semantics.find(form.opcode)(call, *sources)
    if isinstance(outcome, semantics.WithCarry):
        outcome = outcome.value
    results = outcome if isinstance(outcome, tuple) else (outcome,)
    assert [result.dtype for result in results] == [holder(bits_of(name)) for name in targets], form.spelling
    assert {result.shape for result in results} == {(count,)}, form.spelling


def test_an_unknown_rounding_names_the_known_ones():
    from ptxtile.emulator.numeric import F64, pack

    one = np.ones(1, np.uint64) << np.uint64(63)
    with pytest.raises(ValueError, match="^unknown rounding 'up'; one of rn, rz, rm, rp, rna$"):
        pack(np.zeros(1, np.bool_), np.zeros(1, np.int64), one, F64, "up")


def test_types_are_read_from_modifiers():
    assert kinds.kind_of(".f16x2") == kinds.Kind("f", 16, 2, "f16")
    assert kinds.kind_of(".s32") == kinds.Kind("s", 32)
    assert kinds.kind_of(".e2m1x4") == kinds.Kind("f", 4, 4, "e2m1")
    assert kinds.kind_of(".ftz") is None


def test_every_spelling_asked_of_a_gpu_computes_at_its_width(benchmark):
    table, text = benchmark
    for chapter in table.CHAPTERS:
        for case in table.cases(chapter)[::6]:
            arrays = [array[:32] for array in text.operands(case, 0)]
            results = text.expected(case, arrays)
            assert len(results) == len(case.targets) + case.carry
            for target, result in zip(case.targets, results):
                bits = text.width(target)
                assert result.dtype == (np.bool_ if bits == 1 else np.dtype(f"u{bits // 8}")), case.spelling
                assert result.shape == arrays[0].shape, case.spelling


def test_the_same_arrays_come_from_broadcast_immediates():
    """A literal arrives as an array of stride 0; nothing may write to it or need it contiguous."""
    a = np.arange(8, dtype=np.uint32)
    literal = np.broadcast_to(np.uint32(3), (8,))
    call = semantics.Call("add.u16x2", "add", (".u16x2",), {}, (".b32",) * 3, 8)
    assert list(semantics.find("add")(call, a, literal)) == [x + 3 for x in range(8)]


def test_the_chapters_load_neither_lark_nor_cuda():
    code = (
        "import sys, ptxtile.emulator.semantics.kinds; print('lark' in sys.modules or 'cuda' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
