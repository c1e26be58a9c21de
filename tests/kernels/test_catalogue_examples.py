"""The tile catalogue's examples: each checks itself on the emulator, and NVIDIA's assembler takes it for its targets."""

from __future__ import annotations

import re

import pytest

import ptxtile as pt
from examples import LATER, load
from ptxtile import driver

CASES = [(name, target) for name, targets in LATER.items() for target in targets]
NOT_HERE = ("blackwell_tile", "gather_rows", "maximum3", "multimem_sum", "tensor_memory_round_trip")
"""What no H200 runs: instructions of sm_100, and addresses of several GPUs."""


@pytest.mark.parametrize("name", LATER)
def test_main_runs(name, capsys, monkeypatch):
    monkeypatch.setenv("PTXTILE_DEVICE", "emulator")
    load(name).main()
    assert "emulator" in capsys.readouterr().out


@pytest.mark.parametrize("name", [name for name in LATER if name not in NOT_HERE])
@pytest.mark.skipif(not driver.available(), reason="no CUDA device: the GPU's part is not run")
def test_main_runs_on_the_gpu(name, monkeypatch):
    monkeypatch.setenv("PTXTILE_DEVICE", "0")
    load(name).main()


@pytest.mark.parametrize("name", LATER)
def test_text_reads_back_and_is_clean(name):
    text = getattr(load(name), name).ptx()
    assert pt.check_text(text) == []
    assert str(pt.parse(text)) == text


@pytest.mark.parametrize(("name", "target"), CASES)
# For sm_120a the assembler keeps 8 bytes of stack where a kernel takes the generic address of a tensor map among its
# parameters; nothing is spilled.
@pytest.mark.filterwarnings("ignore:.* 8 bytes of stack, 0 bytes of spill stores")
def test_nvidias_assembler_takes_it(name, target):
    pytest.importorskip("nvidia", reason="nvidia-nvjitlink is not installed")
    assert getattr(load(name), name).cubin(target)[:4] == b"\x7fELF"


# --- what the text must hold ------------------------------------------------------------------------------------------
def text(name: str) -> str:
    return getattr(load(name), name).ptx()


def test_an_issue_of_mma_is_one_instruction_and_the_sum_feeds_back():
    found = re.findall(r"mma\.sync\S+ (\{[^}]*\}), \{[^}]*\}, \{[^}]*\}, (\{[^}]*\});", text("warp_matrix"))
    assert len(found) == 2
    assert found[0][1] == "{0f00000000, 0f00000000, 0f00000000, 0f00000000}"
    assert found[1][0] == found[1][1] == found[0][0]


def test_ldmatrix_computes_one_address_an_operand():
    found = re.findall(r"ldmatrix\S+ \{[^}]*\}, \[(%r\d+)(\+\d+)?\];", text("warp_matrix"))
    assert [(base == found[0][0], offset) for base, offset in found] == [
        (True, ""), (True, "+32"), (False, ""), (False, "+32"),
    ]  # fmt: skip


def test_registers_of_ldmatrix_are_the_layout_s():
    found = re.findall(r"ldmatrix\S+ \{%r(\d+), %r(\d+)\}", text("matrix_round_trip"))
    first = int(found[0][0])
    assert [[int(word) - first for word in pair] for pair in found] == [[0, 2], [8, 10]]


def test_asynchronous_copies_are_four_of_one_base():
    found = re.findall(
        r"cp\.async\.cg\S* \[(%r\d+)(?:\+(\d+))?\], \[(%rd\d+)(?:\+(\d+))?\], 16;", text("async_copy")
    )
    assert len({(row[0], row[2]) for row in found}) == 1
    assert [row[1] for row in found] == ["", "16", "32", "48"]


def test_the_other_cta_s_addresses_are_mapped():
    assert text("cluster_send").count("mapa.shared::cluster.u32") == 2  # the destination and the mbarrier


def test_tcgen05_steps_along_k_by_32_bytes():
    added = [int(found) for found in re.findall(r"add\.u32 %r\d+, %r\d+, (6\d{4});", text("blackwell_tile"))]
    assert sorted(set(added)) == [65536, 65538, 65540, 65542]
    assert text("blackwell_tile").count("tcgen05.mma.") == 4


def test_an_instruction_descriptor():
    """f32 sums of f16, N 64, M 128: bits 4, 17 and 24 on."""
    assert f"mov.b32 %r94, {1 << 4 | 8 << 17 | 8 << 24};" in re.sub(r"%r\d+", "%r94", text("blackwell_tile"))
