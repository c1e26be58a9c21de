"""Makes docs/tile.md from the catalogue of tile operations: `python docs/build_tile.py` writes it."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "tile.md"
sys.path.insert(0, str(ROOT))

from ptxtile import isa  # noqa: E402 - the checkout's own package
from ptxtile.cli.words import floors_text  # noqa: E402
from ptxtile.tile.catalogue import FAMILIES  # noqa: E402
from ptxtile.tile.family import Family  # noqa: E402
from ptxtile.tile.samples import SAMPLES  # noqa: E402

HEAD = """# Tile operations: the families

`tile.apply(form, *operands, scope=…, pred=…, preserve_dst=…, **parameters)` issues one instruction a repeat. Operand
axes are (*group, *repeat, *atom): the scope and the threads active there give the group, the form the atom. Forms whose
operands are all registers or literals need no contract of their own; the other families have the ones below.

Fragments of matrices are in `ptxtile.layout.mma_fragment` (`mma_a`, `mma_b`, `mma_c`, `ldmatrix`, `stmatrix`, and
`stacked` for a tensor of them), tensor memory in `ptxtile.layout.tensor_memory` (`datapath`, `scale_factors`,
`tensor_memory_fragment`); `pt.tensor_memory(columns)` allocates it (`alloc`, `relinquish` and `dealloc` are the three
tcgen05 instructions), `pt.alloc_stack(shape, dtype)` is local memory.

This page is made by `python docs/build_tile.py` from `ptxtile/tile/`; a test holds it to the code. Judges: *ptxas*,
NVIDIA's assembler has taken text of it for each target; *emulator*, it runs there; *H200*, it ran on one, whose results
are those of the tests that take a `device`.

| family | spellings | scope | pred, preserve_dst | judges |
| --- | --- | --- | --- | --- |
"""


def _row(family: Family) -> str:
    starts = ", ".join(f"`{start}…`" for start in family.starts if start) or "all others"
    cells = [
        f"[{family.name}](#{_anchor(family)})", starts, family.scopes, family.guards, ", ".join(family.judges)
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _anchor(family: Family) -> str:
    kept = "".join(c for c in family.name.lower() if c.isalnum() or c in " -_")
    return kept.replace(" ", "-")


def _targets(spelling: str) -> str:
    return floors_text(isa.validate(spelling).targets)


def _section(family: Family) -> list[str]:
    lines = [f"## {family.name}", "", f"PTX ISA {family.section}.", ""]
    lines += [f"- operands: {line}" for line in family.operands]
    lines += [f"- atoms: {family.atoms}", f"- carriers: {family.carriers}"]
    lines += [f"- `{each.name}=`: {each.meaning}" for each in family.parameters]
    lines += ["", "| spelling | targets |", "| --- | --- |"]
    lines += [f"| `{spelling}` | {_targets(spelling)} |" for spelling in SAMPLES[family.name]]
    return [*lines, ""]


def page() -> str:
    """The page's text."""
    lines = [HEAD + "\n".join(_row(family) for family in FAMILIES), ""]
    for family in FAMILIES:
        lines += _section(family)
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
