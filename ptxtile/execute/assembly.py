"""`assemble`: a module to a cubin without a GPU, kept in the user's cache, with the log's warnings."""

from __future__ import annotations

from collections.abc import Sequence

from ptxtile import driver
from ptxtile.errors import AssemblerError, OperandError
from ptxtile.execute.cache import key, look_up, store
from ptxtile.execute.lines import framed, locator
from ptxtile.execute.logs import explained, warn
from ptxtile.ir.module import Module

__all__ = ["assemble", "assemble_module", "disassemble"]


def assemble(module: Module | str, target: str | None = None, *, options: Sequence[str] = ()) -> bytes:
    """The cubin of a module.

    Lines with a code in the assembler's log, spills and stack become AssemblerWarnings at the Python line.

    Args:
        module: a Module, or PTX text, which is passed on as it is.
        target: "sm_90a"; a Module's own target if None.
        options: further options of nvJitLink.

    Raises:
        AssemblerError: no assembler, or it refused the module; with the Python lines of what its log names.
        TargetError: `target` is no target.
    """
    if target is None:
        if not isinstance(module, Module):
            raise OperandError('assemble needs a target for PTX text, such as "sm_90a"')
        target = module.target
    text = str(module)
    made_of = module if isinstance(module, Module) else None
    locate = locator(made_of)
    found = driver.find_assembler()
    digest = key(text, target, options, found.version, found.path)
    made = look_up(digest)
    if made is None:
        try:
            made = driver.assemble_with_log(text, target, options=options)
        except AssemblerError as error:
            raise explained(error, locate) from error
        store(digest, made)
    warn(made.log, locate, framed(made_of) if made.log else ())
    return made.cubin


def assemble_module(module: Module, target: str | None = None) -> bytes:
    """`assemble` for a Module alone, without options: what a kernel object needs."""
    return assemble(module, target)


def disassemble(cubin: bytes) -> str:
    """The SASS of a cubin; AssemblerError where nvdisasm is missing or refuses it."""
    return driver.disassemble(cubin)
