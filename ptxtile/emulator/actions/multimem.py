"""multimem (PTX ISA 9.7.9.14) on one device: the only replica is the memory itself."""

from __future__ import annotations

from ptxtile.emulator.actions.access import ld, st
from ptxtile.emulator.actions.atomic import atomic
from ptxtile.emulator.actions.bulk import bulk
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.step import Run, action


@action("multimem")
def multimem(program: Program, site: Site) -> Run:
    """ld_reduce is a load, st a store, red a reduction, and cp a bulk copy."""
    verb = site.instruction.form.modifiers[0]
    if verb == ".cp":
        return bulk(program, site)
    if verb == ".ld_reduce":
        return ld(program, site)
    return st(program, site) if verb == ".st" else atomic(program, site)
