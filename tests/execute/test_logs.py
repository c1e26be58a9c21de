"""Reading the assembler's log."""

from __future__ import annotations

import warnings

import pytest

from ptxtile.errors import AssemblerError, DriverError
from ptxtile.execute.logs import AssemblerWarning, Message, explained, messages, warn
from ptxtile.location import Location

QUIET = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 4 registers, used 0 barriers
ptxas info    : Compile time = 1.516 ms
info    : 0 bytes gmem
info    : used 4 registers, used 5 barriers, 0 stack, 0 bytes smem, 536 bytes cmem[0], 0 bytes lmem
"""


def nowhere(line: int, function: str) -> Location | None:
    return None


def there(line: int, function: str) -> Location | None:
    return Location(__file__, 1) if line == 4 or function == "k" else None


def test_a_quiet_log() -> None:
    assert messages(QUIET) == ()
    assert messages("") == ()


def test_errors() -> None:
    log = """ptxas application ptx input, line 4; error   : Unknown symbol 'a'
ptxas /tmp/a b.ptx, line 1; fatal   : Unsupported .version 9.6; current version is '9.5'
ptxas fatal   : Ptx assembly aborted due to errors
ERROR NVJITLINK_ERROR_PTX_COMPILE: JIT the PTX (ptxtile)
ptxas m.ptx, line 9; warning : odd
"""
    assert messages(log) == (
        Message("error", "Unknown symbol 'a'", 4),
        Message("fatal", "Unsupported .version 9.6; current version is '9.5'", 1),
        Message("fatal", "Ptx assembly aborted due to errors"),
        Message("warning", "odd", 9),
    )


def test_codes_and_spills() -> None:
    log = QUIET.replace(
        "0 bytes stack frame, 0 bytes spill stores", "16 bytes stack frame, 8 bytes spill stores"
    )
    log += (
        "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to "
        "insufficient register resources for the wgmma pipeline in the function 'g'\n"
    )
    assert messages(log) == (
        Message(
            "info",
            "16 bytes of stack, 8 bytes of spill stores, 0 bytes of spill loads",
            function="k",
        ),
        Message(
            "info",
            "Potential Performance Loss: wgmma.mma_async instructions are serialized due to insufficient register "
            "resources for the wgmma pipeline in the function 'g'",
            code="C7510",
            function="g",
        ),
    )


def test_warnings_stand_at_the_python_line() -> None:
    log = (
        "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine it.\n"
    )
    with pytest.warns(AssemblerWarning) as caught:
        warn(log, nowhere)
    assert str(caught[0].message) == (
        "(C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine it.\n"
        "  setmaxnreg needs a register count at entry: give the kernel .maxntid or .reqntid and .minnctapersm"
    )
    spills = QUIET.replace("0 bytes spill loads", "4 bytes spill loads")
    with pytest.warns(AssemblerWarning) as caught:
        warn(spills, there)
    assert str(caught[0].message) == "k: 0 bytes of stack, 0 bytes of spill stores, 4 bytes of spill loads"
    assert (caught[0].filename, caught[0].lineno) == (__file__, 1)


def test_a_quiet_log_does_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn(QUIET, there)


def test_errors_show_the_python_line() -> None:
    log = "ptxas application ptx input, line 4; error   : Unknown symbol 'a'\nptxas fatal   : aborted\n"
    found = explained(DriverError("could not load", code=218, name="CUDA_ERROR_INVALID_PTX", log=log), there)
    assert isinstance(found, DriverError) and (found.code, found.log) == (218, log)
    assert str(found) == (
        "could not load\n"
        "  written at:\n"
        "  line 4: Unknown symbol 'a'\n"
        f'    {__file__}:1: """Reading the assembler\'s log."""'
    )
    original = AssemblerError("no", log=log)
    assert explained(original, nowhere) is original
    assert isinstance(explained(original, there), AssemblerError)
