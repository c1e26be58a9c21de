"""barrier.cluster (PTX ISA 9.7.13.4)."""

from __future__ import annotations

from ptxtile.emulator.actions.control import fall_through
from ptxtile.emulator.group import Group
from ptxtile.emulator.lanes import Lanes, Threads
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.step import Control


def cluster_barrier(program: Program, site: Site) -> Control:
    """arrive (release unless .relaxed) and wait (acquire)."""
    modifiers = site.instruction.form.modifiers
    releases = ".relaxed" not in modifiers
    arrives = ".arrive" in modifiers

    def run(group: Group, lanes: Lanes) -> None:
        fall_through(group, lanes)
        if not lanes.count:
            return
        wave = lanes.wave

        def resume(threads: Threads) -> None:
            wave.pool.add(group.at(site.number + 1, threads))

        if arrives:
            resume(lanes.threads)
            wave.clusters.arrive(site, lanes.threads, releases)
        else:
            wave.clusters.wait(site, lanes.threads, resume)

    return run
