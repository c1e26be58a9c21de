"""The table of value functions: what it holds, what it says it lacks, and every spelling the GPU is asked about."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ptxtile.emulator import semantics
from ptxtile.emulator.semantics import kinds

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


@pytest.fixture(scope="module")
def benchmark():
    """The case table and its text module, loaded from their files."""
    modules = []
    for name in ("device_semantics_cases", "device_semantics_text"):
        spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        modules.append(module)
    yield modules
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


def test_what_is_not_modelled_is_said():
    for spelling in (
        "fma.rn.f16x2",
        "cvt.rn.satfinite.e2m1x2.f32",
        "cvt.rn.f16x2.e5m2x2",
        "add.u8x4",
        "add.rn.f32.f16",
    ):
        assert semantics.supports(spelling.split(".")[0], tuple("." + m for m in spelling.split(".")[1:])), (
            spelling
        )
    lacking = (
        "cvt.rs.f16x2.f32",
        "cvt.rn.scaled::n2::ue8m0.bf16x2.e4m3x2",
        "mul.e4m3x4.e2m1x4.e5m2x4",
        "bra.uni",
    )
    for spelling in lacking:
        assert not semantics.supports(
            spelling.split(".")[0], tuple("." + m for m in spelling.split(".")[1:])
        ), spelling


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


def test_importing_the_package_loads_no_numpy():
    code = (
        "import sys, ptxtile.emulator.semantics.kinds; print('lark' in sys.modules or 'cuda' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
