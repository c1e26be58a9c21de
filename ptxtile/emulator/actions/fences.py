"""membar and fence (PTX ISA 9.7.13.4)."""

from __future__ import annotations

from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.ordering import SCOPES
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.step import Run, action

LEVELS = {".cta": ".cta", ".gl": ".gpu", ".sys": ".sys", ".gpu": ".gpu", ".cluster": ".cluster"}


@action("membar", "fence")
def fence(program: Program, site: Site) -> Run:
    """All strengths of fence order as acquire and release at their scope.

    Proxy fences and fence.mbarrier_init order what asynchronous instructions do; between generic accesses they order
    nothing.
    """
    modifiers = site.instruction.form.modifiers
    if ".proxy" in modifiers or any(m.startswith((".proxy", ".mbarrier_init")) for m in modifiers):
        return lambda lanes: None
    level = next((LEVELS[modifier] for modifier in modifiers if modifier in LEVELS), ".sys")
    scope = SCOPES[level]
    acquire, release = ".release" not in modifiers, ".acquire" not in modifiers

    def run(lanes: Lanes) -> None:
        ordering = lanes.wave.machine.ordering
        if ordering is not None:
            ordering.fence(lanes, scope, acquire, release)

    return run
