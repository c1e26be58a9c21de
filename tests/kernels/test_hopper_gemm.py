"""The Hopper GEMM: its text, and what NVIDIA's assembler makes of it. On a GPU: right at any size."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import ptxtile as pt
from examples import load
from ptxtile import driver

SIZES = [(128, 256, 64), (300, 520, 200), (1, 8, 8), (1000, 1000, 1000)]


def text() -> str:
    return load("hopper_gemm").hopper_gemm.ptx()


def test_text_reads_back_and_is_clean():
    assert pt.check_text(text()) == []
    assert str(pt.parse(text())) == text()


def test_module_asks_for_sm_90a_and_no_more():
    assert text().startswith(".version 8.0\n.target sm_90a\n")


def test_one_stage_is_two_copies_and_four_products():
    loads = re.findall(r"cp\.async\.bulk\.tensor\.2d\.shared::cluster\.global\S+", text())
    assert [".multicast::cluster" in name for name in loads] == [False, True]
    assert text().count("wgmma.mma_async") == 4
    assert text().count("bfe.u32") == 2  # one start address an operand; the steps along K are constants


def test_descriptors_advance_by_the_bytes_of_k():
    """16 bfloat16 are 32 bytes, two units of a start address; 1 is the leading offset, unused with a swizzle."""
    added = [int(found) for found in re.findall(r"add\.u32 %r\d+, %r\d+, (6\d{4});", text())]
    assert added == [65536, 65536, 65538, 65538, 65540, 65540, 65542, 65542]
    assert f"mov.b32 %r{re.search(r'mov.b32 %r([0-9]+), 1073741888', text())[1]}, {1 << 30 | 64};" in text()


def test_parameters_are_three_maps_and_three_sizes():
    assert re.findall(r"\.param (\S.*?),?\n", text()) == [
        ".align 64 .b8 A[128]",
        ".align 64 .b8 B[128]",
        ".align 64 .b8 C[128]",
        ".u32 size_M",
        ".u32 size_K",
        ".u32 size_N",
    ]


def test_nvidias_assembler_takes_it():
    """nvJitLink leaves setmaxnreg out; it says nothing else: no wgmma is serialised, nothing spills."""
    pytest.importorskip("nvidia", reason="nvidia-nvjitlink is not installed")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        cubin = pt.assemble(text(), "sm_90a")
    assert cubin[:4] == b"\x7fELF"
    codes = [re.search(r"C\d+", str(each.message))[0] for each in told]
    # 13.5 says that it leaves setmaxnreg out; 13.0 does so without a word.
    assert codes == ["C7504"] or (not codes and driver.find_assembler().version < (13, 5))


def check(size, **launch):
    """Within what rounding to bfloat16 alone may make, and float32 sums of k products."""
    import ml_dtypes

    m, n, k = size
    rng = np.random.default_rng(m)
    a, b = (
        rng.standard_normal(shape, dtype=np.float32).astype(ml_dtypes.bfloat16) for shape in ((m, k), (n, k))
    )
    c = np.zeros((m, n), ml_dtypes.bfloat16)
    load("hopper_gemm").hopper_gemm.launch(a, b, c, **launch)
    due = a.astype(np.float32) @ b.astype(np.float32).T
    gap = np.abs(c.astype(np.float32) - due)
    assert (gap <= np.abs(due) * 2.0**-8 + k**0.5 * 2.0**-13).all()


@pytest.mark.skipif(not driver.available(), reason="no CUDA device: the GPU's part is not run")
@pytest.mark.parametrize("size", SIZES)
def test_product(size):
    check(size, device=0)


def test_product_on_the_emulator():
    """One cluster, two tiles, two steps, its sanitizer on: nothing races, every expected byte came, phases fit."""
    check((130, 264, 72), device="emulator", ctas=2)
