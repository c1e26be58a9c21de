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
    if ".mbarrier_init" in modifiers:
        return _mbarrier_init
    if any(modifier.startswith(".proxy::async") for modifier in modifiers) or ".async" in modifiers[1:2]:
        return _proxy_async(modifiers)
    if any(modifier.startswith(".proxy") for modifier in modifiers):
        return lambda lanes: None
    level = next((LEVELS[modifier] for modifier in modifiers if modifier in LEVELS), ".sys")
    scope = SCOPES[level]
    acquire, release = ".release" not in modifiers, ".acquire" not in modifiers
    sequential = site.opcode == "membar" or ".sc" in modifiers

    def run(lanes: Lanes) -> None:
        ordering = lanes.wave.machine.ordering
        if ordering is not None:
            ordering.fence(lanes, scope, acquire, release, sequential)

    return run


def _proxy_async(modifiers: tuple[str, ...]) -> Run:
    """What these threads did is visible to the asynchronous proxy, in the state space that is named, or in all."""
    if any("shared::" in modifier for modifier in modifiers):
        spaces: tuple[str, ...] = ("shared",)
    else:
        spaces = ("global",) if ".global" in modifiers else ("shared", "global")

    def run(lanes: Lanes) -> None:
        ordering = lanes.wave.machine.ordering
        if ordering is not None and lanes.count:
            ordering.proxy_fence(lanes.threads, spaces)
            if "shared" in spaces:
                lanes.wave.mbarriers.show(lanes.threads)

    return run


def _mbarrier_init(lanes: Lanes) -> None:
    """The mbarriers that these threads initialised are visible to the cluster and to the asynchronous proxy."""
    ordering = lanes.wave.machine.ordering
    if ordering is not None and lanes.count:
        ordering.fence(lanes, SCOPES[".cluster"], acquire=False)
        lanes.wave.mbarriers.show(lanes.threads)
