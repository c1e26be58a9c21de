"""`assemble` with nvJitLink: the cache, warnings, errors."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from ptxtile import driver, execute
from ptxtile.errors import AssemblerError, OperandError, TargetError

TEXT = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k() .reqntid 128
{
BODY
ret;
}
"""
PLAIN = TEXT.replace("BODY", "bar.sync 0;")


def _has_assembler() -> bool:
    try:
        driver.find_assembler()
    except AssemblerError:
        return False
    return True


pytestmark = pytest.mark.skipif(not _has_assembler(), reason="nvJitLink is not installed")


def test_the_cache_is_used(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = execute.assemble(PLAIN, "sm_90a")
    assert first.startswith(b"\x7fELF") and len(list(cache_folder.iterdir())) == 1
    monkeypatch.setattr(driver, "assemble_with_log", None)
    assert execute.assemble(PLAIN, "sm_90a") == first


def test_lines_with_a_code_become_warnings_each_time(cache_folder: Path) -> None:
    text = TEXT.replace("BODY", "setmaxnreg.inc.sync.aligned.u32 96;")
    for _ in range(2):
        with pytest.warns(execute.AssemblerWarning) as caught:
            execute.assemble(text, "sm_90a")
        (found,) = caught
        assert str(found.message).startswith("(C7504) Potential Performance Loss: 'setmaxnreg' ignored")
        assert str(found.message).endswith(
            "nvJitLink assembles as for linking and ignores setmaxnreg; the driver, given the text, obeys it"
        )


def test_refused(cache_folder: Path) -> None:
    with pytest.raises(AssemblerError, match=r"line 6; error"):
        execute.assemble(TEXT.replace("BODY", "fma.f32 a, b, c, d;"), "sm_90a")
    assert not cache_folder.exists()


def test_targets(cache_folder: Path) -> None:
    with pytest.raises(OperandError, match=r'^assemble needs a target for PTX text, such as "sm_90a"$'):
        execute.assemble(PLAIN)
    with pytest.raises(TargetError):
        execute.assemble(PLAIN, "sm_9")
