"""nvJitLink and nvdisasm, where they are installed; their absence, everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxtile import driver
from ptxtile.driver import assembler, disassembler as disassembler_file
from ptxtile.errors import AssemblerError, TargetError

PTX = """.version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 p)
{
.reg .b64 %a;
.reg .f32 %f;
ld.param.u64 %a, [p];
ld.global.f32 %f, [%a];
fma.rn.f32 %f, %f, %f, %f;
st.global.f32 [%a], %f;
ret;
}
"""


def _has_assembler() -> bool:
    try:
        driver.find_assembler()
    except AssemblerError:
        return False
    return True


needs_assembler = pytest.mark.skipif(not _has_assembler(), reason="nvJitLink is not installed")
needs_disassembler = pytest.mark.skipif(
    driver.find_disassembler() is None, reason="nvdisasm is not installed"
)


@needs_assembler
@pytest.mark.parametrize("target", ["sm_75", "sm_90a", "sm_100a"])
def test_assemble(target: str) -> None:
    made = driver.assemble_with_log(PTX, target)
    assert made.cubin.startswith(b"\x7fELF")
    assert "Used " in made.log and "bytes spill stores" in made.log
    assert driver.assemble(PTX, target) == made.cubin


@needs_assembler
def test_a_module_it_refuses() -> None:
    with pytest.raises(AssemblerError) as caught:
        driver.assemble(PTX.replace("fma.rn.f32", "fma.f32"), "sm_90a")
    text = str(caught.value)
    assert text.startswith("nvJitLink ") and " refused the module for sm_90a\n  log:\n" in text
    assert "line 10; error" in caught.value.log and "line 10; error" in text


@needs_assembler
def test_a_target_it_does_not_know() -> None:
    with pytest.raises(AssemblerError, match=r"refused the module for sm_93\n  log:\n"):
        driver.assemble(PTX, "sm_93")


@pytest.mark.parametrize("target", ["sm_7", "sm_90x", "90", "compute_90", "", "sm_9000", "sm_90 -O0"])
def test_what_is_no_target_never_reaches_the_library(target: str) -> None:
    with pytest.raises(TargetError) as caught:
        driver.assemble(PTX, target)
    assert str(caught.value) == (
        f"{target!r} is no target: a target is sm_ and two or three digits, then a or f or nothing"
    )


def test_no_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PTXTILE_NVJITLINK", str(tmp_path / "absent.so"))
    monkeypatch.setattr(assembler, "_NAMES", ("libnvJitLink-of-nowhere.so",))
    driver.find_assembler.cache_clear()
    try:
        with pytest.raises(AssemblerError) as caught:
            driver.assemble(PTX, "sm_90a")
    finally:
        driver.find_assembler.cache_clear()
    lines = str(caught.value).splitlines()
    assert lines[0] == "NVIDIA's assembler library nvJitLink cannot be loaded"
    assert lines[1].startswith(f"  {tmp_path / 'absent.so'}: ")
    assert lines[2].startswith("  libnvJitLink-of-nowhere.so: ")
    assert lines[3] == (
        "  what to do: pip install 'ptxtile[assemble]', or name the library in PTXTILE_NVJITLINK"
    )


def test_versioned_names_are_found_and_foreign_libraries_refused() -> None:
    class Library:
        __nvJitLinkCreate_12_4 = "found"

    setattr(Library, "__nvJitLinkCreate_12_4", "found")
    found = assembler.Assembler(Library(), "there", (12, 4))
    assert found.entry("Create") == "found"
    with pytest.raises(AssemblerError) as caught:
        found.entry("Destroy")
    assert str(caught.value) == "there has no nvJitLinkDestroy: it is no nvJitLink library of CUDA 12 or 13"


@needs_assembler
@needs_disassembler
def test_disassemble() -> None:
    sass = driver.disassemble(driver.assemble(PTX, "sm_90a"))
    assert sass.count("FFMA") == 1 and "EXIT" in sass


@needs_disassembler
def test_what_is_no_cubin() -> None:
    with pytest.raises(AssemblerError, match="^nvdisasm refused the cubin: .*the cubin"):
        driver.disassemble(b"not a cubin")


def test_no_disassembler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(disassembler_file, "find_disassembler", lambda: None)
    with pytest.raises(AssemblerError) as caught:
        driver.disassemble(b"")
    assert str(caught.value) == (
        "nvdisasm was not found\n"
        "  what to do: pip install nvidia-cuda-nvdisasm, or name the program in PTXTILE_NVDISASM"
    )
    monkeypatch.setattr(disassembler_file, "find_disassembler", lambda: tmp_path / "absent")
    with pytest.raises(AssemblerError, match="absent cannot be run: "):
        driver.disassemble(b"")
