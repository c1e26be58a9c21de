"""Kernels assembled together as far as they go: those that are refused are found by halving."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import ptxtile as pt
from ptxtile import driver
from ptxtile.measure import sass

__all__ = ["LEAST_VERSION", "Code", "Part", "assemble", "assembler", "module_of", "version_of"]

LEAST_VERSION = "8.0"
"""The PTX version of a kernel whose form asks for less; sm_90 needs it."""

Code = dict[str, list[tuple[str, str]]]
"""Functions by name: their instructions as (mnemonic, operands)."""


@dataclass(frozen=True, slots=True)
class Part:
    """Kernels that stand or fall together: what they measure, their text, the PTX version that it asks for."""

    key: str
    text: str
    version: str = LEAST_VERSION


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def version_of(floors: Sequence[str]) -> str:
    """The lowest PTX version that has all of these floors."""
    return max((LEAST_VERSION, *floors), key=_number)


def assembler() -> str:
    """The assembler and its release, for records."""
    return f"nvJitLink {'.'.join(map(str, driver.find_assembler().version))}"


def module_of(parts: Sequence[Part], target: str) -> str:
    """The module of these parts, of the lowest PTX version that they have."""
    version = version_of([each.version for each in parts])
    header = f".version {version}\n.target {target}\n.address_size 64\n"
    return header + "".join(each.text for each in parts)


def assemble(parts: Sequence[Part], target: str) -> tuple[Code, bytes, dict[str, str]]:
    """Functions of the parts that assemble, their cubin, and by key why the others do not.

    There is no cubin unless all of them assemble.
    """
    if not parts:
        return {}, b"", {}
    try:
        cubin = driver.assemble(module_of(parts, target), target)
    except pt.AssemblerError as error:
        if len(parts) == 1:
            said = [line.strip() for line in str(error.log or error).splitlines()]
            lines = [line for line in said if "error" in line or "fatal" in line]
            return {}, b"", {parts[0].key: lines[0] if lines else str(error)}
        middle = len(parts) // 2
        left, right = assemble(parts[:middle], target), assemble(parts[middle:], target)
        return {**left[0], **right[0]}, b"", {**left[2], **right[2]}
    return sass.functions(driver.disassemble(cubin)), cubin, {}
