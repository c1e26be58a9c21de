"""cp.async (PTX ISA 9.7.9.25.3): copies to shared memory that are there after their group was waited for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.actions.bulk import bulk
from ptxtile.emulator.actions.mbarrier import arrive_after_copies
from ptxtile.emulator.actions.tensor_copy import tensor_copy
from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.operands import address_reader, reader, refuse_undefined
from ptxtile.emulator.ordering import Strength
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.report import stop
from ptxtile.emulator.sanitizer import Sanitizer
from ptxtile.emulator.spaces import Part
from ptxtile.emulator.step import Run, action
from ptxtile.emulator.widths import Bits
from ptxtile.ir.operand import Integer, Negated, Register


@action("cp")
def cp(program: Program, site: Site) -> Run:
    """cp.async and its groups; the bulk copies stand in `bulk` and `tensor_copy`."""
    modifiers = site.instruction.form.modifiers
    if ".bulk" in modifiers:
        return tensor_copy(program, site) if ".tensor" in modifiers else bulk(program, site)
    if ".mbarrier" in modifiers:
        return arrive_after_copies(program, site)
    if ".commit_group" in modifiers:
        return lambda lanes: lanes.wave.pending.commit(lanes.threads, "group")
    if ".wait_all" in modifiers:

        def wait_all(lanes: Lanes) -> None:
            lanes.wave.pending.wait_all(lanes.threads, "group")

        return wait_all
    if ".wait_group" in modifiers:
        (count,) = site.instruction.operands
        assert isinstance(count, Integer)
        allowed = count.value

        def wait(lanes: Lanes) -> None:
            lanes.wave.pending.wait(lanes.threads, "group", allowed)

        return wait
    if modifiers[1] in (".ca", ".cg"):
        return _copy(program, site)
    raise stop("unsupported", f"the emulator cannot run {site.instruction.form.spelling} yet", site)


def _copy(program: Program, site: Site) -> Run:
    """Bytes that the source does not give, because of src_size or ignore_src, become zero."""
    target, source, size, *rest = site.instruction.operands
    assert isinstance(size, Integer)
    width = size.value
    locate_target, locate_source = (
        address_reader(program, site, target),
        address_reader(program, site, source),
    )
    ignores = bool(rest) and (
        isinstance(rest[0], Negated) or (isinstance(rest[0], Register) and rest[0].type == "pred")
    )
    limited = bool(rest) and not ignores and ".L2::cache_hint" not in site.instruction.form.modifiers
    limited = limited or (not ignores and len(rest) > 1)
    read = reader(program, site, rest[0], ".pred" if ignores else ".u32") if ignores or limited else None

    def run(lanes: Lanes) -> None:
        taken = np.full(lanes.count, width, np.int64)
        if read is not None:
            value, shadow = read(lanes)
            if shadow is not None:
                refuse_undefined(lanes, shadow, "how much is copied", "a register")
            taken = np.where(value, 0, width) if ignores else np.minimum(value.astype(np.int64), width)
        spaces = lanes.wave.spaces
        addresses = locate_source(lanes)
        for into in spaces.parts(lanes, "shared", locate_target(lanes), width, "copies"):
            _claim(into, width)
            for size in np.unique(taken[taken > 0]).tolist():
                some = np.flatnonzero(taken == size)
                for part in spaces.parts_of(lanes.at(some), addresses[some], width, size, "copies"):
                    where = some if part.positions is None else some[part.positions]
                    _start(site, into, part, where, taken[where], width)
            none = np.flatnonzero(taken == 0)
            if len(none):
                _start(site, into, None, none, taken[none], width)

    return run


def _claim(into: Part, width: int) -> None:
    """The target belongs to the copy until it is waited for."""
    sanitizer = into.lanes.wave.machine.sanitizer
    if sanitizer is not None:
        sanitizer.write(into, width, Strength(), ())
        sanitizer.fly(into.store, into.offsets, into.lanes.threads, into.lanes.step.site, width)


class Held:
    """The source of copies in flight: nobody may write there, and each thread reads it when its own are done."""

    def __init__(self, sanitizer: Sanitizer, source: Part, taken: NDArray[np.int64]) -> None:
        self.sanitizer = sanitizer
        self.source = source
        self.taken = taken
        self.left: NDArray[np.bool_] = np.ones(len(taken), np.bool_)
        self._read(np.arange(len(taken)))
        self._hold()

    def free(self, chosen: NDArray[np.intp]) -> None:
        """The copies of the threads at these positions are done."""
        self.left[chosen] = False
        self._hold()
        self._read(chosen)

    def _hold(self) -> None:
        proxies, source = self.sanitizer.proxies, self.source
        proxies.forget(id(self))
        some = np.flatnonzero(self.left)
        if len(some):
            offsets = source.offsets[some][:, None] + np.arange(0, int(self.taken.max()), 4)
            inside = np.arange(0, int(self.taken.max()), 4) < self.taken[some][:, None]
            proxies.hold(id(self), source.store, offsets[inside], source.lanes.at(some[:1]))

    def _read(self, chosen: NDArray[np.intp]) -> None:
        source = self.source
        for shift in range(0, int(self.taken.max()), 4):
            some = chosen[self.taken[chosen] > shift]
            if len(some):
                part = Part(source.store, source.lanes.at(some), None, source.offsets[some] + shift, None)
                self.sanitizer.read(part, 4, Strength())


def _start(
    site: Site, into: Part, source: Part | None, where: NDArray[np.intp], taken: NDArray[np.int64], width: int
) -> None:
    """Queue the copies of the threads at `where`: reading and writing both happen when they complete."""
    threads, offsets = into.lanes.threads[where], into.offsets[where]
    wave = into.lanes.wave
    sanitizer = wave.machine.sanitizer
    held = None if sanitizer is None or source is None else Held(sanitizer, source, taken)

    def effect(chosen: NDArray[np.intp]) -> None:
        value: Bits = np.zeros((len(chosen), width), np.uint8)
        columns = np.arange(width)
        if source is not None:
            value = source.store.data[source.offsets[chosen][:, None] + columns]
            value[columns[None, :] >= taken[chosen][:, None]] = 0
        places = offsets[chosen][:, None] + columns
        into.store.data[places] = value
        if into.store.unwritten is not None:
            into.store.unwritten[places] = 0
        if sanitizer is not None:
            sanitizer.land(into.store, offsets[chosen], threads[chosen], site, width)
        if held is not None:
            held.free(chosen)

    wave.pending.start(site, threads, effect, "generic", "group")
