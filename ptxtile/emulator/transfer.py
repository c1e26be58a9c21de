"""Asynchronous copies as the machine sees them: bytes that are taken from one place, and later put into others.

A transfer belongs to one thread. Its source is read and its targets are written as late as may be; in between the
sanitizer keeps everybody away from both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.asynchronous import Mechanism
from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.mbarrier import MBarrier, Misuse
from ptxtile.emulator.memory import Offsets, Store
from ptxtile.emulator.operands import refuse_undefined
from ptxtile.emulator.ordering import SCOPES, Strength
from ptxtile.emulator.proxies import Actor, Proxies
from ptxtile.emulator.report import fault
from ptxtile.emulator.spaces import Part
from ptxtile.emulator.widths import Bits, holder

Bytes = NDArray[np.uint8]
Combine = Callable[[Bits, tuple[Bits, ...]], Bits]
LOOK = Strength(SCOPES[".sys"])


@dataclass(frozen=True, slots=True)
class Source:
    """What is copied.

    store, offsets   4-byte granules that are read, by byte offset; None: the bytes came from registers
    take             reads them: the bytes of the whole transfer, and a 1 for each bit that is undefined, or None
    """

    store: Store | None
    offsets: Offsets
    take: Callable[[], tuple[Bytes, Bytes | None]]


@dataclass(frozen=True, slots=True)
class Target:
    """Where it goes: `unit` bytes at each offset of a store.

    chosen    which units of the transfer's bytes those are; None: all, in order
    combine   from the old elements and the new ones to those that are stored; None: the new ones
    cta       of the wave, for shared memory     barrier   what counts the bytes, `size` of them
    """

    store: Store
    offsets: Offsets
    unit: int
    chosen: NDArray[np.intp] | None = None
    combine: Combine | None = None
    cta: int | None = None
    barrier: MBarrier | None = None
    size: int = 0


@dataclass(slots=True)
class Transfer:
    """A copy of one thread, the only one of `lanes`. `proxied`: by the asynchronous proxy."""

    lanes: Lanes
    source: Source
    targets: Sequence[Target]
    mechanism: Mechanism
    proxied: bool = True
    taken: tuple[Bytes, Bytes | None] | None = field(default=None, init=False)
    agents: list[int] = field(default_factory=list, init=False)

    def start(self, home: int | None = None) -> None:
        """Queue it. `home`: the CTA of the wave whose shared memory it reads."""
        lanes = self.lanes
        sanitizer = lanes.wave.machine.sanitizer
        if sanitizer is not None:
            self._claim(sanitizer.proxies)
        uses = {target.cta for target in self.targets if target.cta is not None}
        if home is not None:
            uses.add(home)
        lanes.wave.pending.start(
            lanes.step.site,
            lanes.threads,
            self._effect,
            "async" if self.proxied else "generic",
            self.mechanism,
            self._take,
            frozenset(uses),
        )

    def _claim(self, proxies: Proxies) -> None:
        """Source and targets belong to the transfer until somebody has waited for it."""
        thread = int(proxies.ordering.id[self.lanes.threads[0]])
        for target in self.targets:
            key = ("mbarrier", id(target.barrier)) if target.barrier is not None else ("bulk", thread)
            agent = proxies.agent(*key)
            self.agents.append(agent)
            atomic = target.combine is not None
            actor = Actor(self.lanes, 0, self.lanes.threads, agent, self.proxied, atomic)
            proxies.write(actor, target.store, target.offsets, target.unit)
        if self.source.store is not None:
            agent = self.agents[0] if self.mechanism == "mbarrier" else proxies.agent("bulk.read", thread)
            actor = Actor(self.lanes, 0, self.lanes.threads, agent, self.proxied)
            transient = (
                self.mechanism == "mbarrier" and self.source.store is not self.lanes.wave.spaces.shared
            )
            proxies.read(actor, self.source.store, self.source.offsets, id(self) if transient else None)

    def _take(self) -> None:
        self.taken = self.source.take()

    def _effect(self, positions: NDArray[np.intp]) -> None:
        assert self.taken is not None
        data, shadow = self.taken
        sanitizer = self.lanes.wave.machine.sanitizer
        for number, target in enumerate(self.targets):
            _put(self.lanes, target, data, shadow)
            if sanitizer is not None:
                proxies = sanitizer.proxies
                proxies.ordering.now += 1
                proxies.forget(id(self))
                site = self.lanes.step.site
                proxies.land(self.agents[number], site, target.store, target.offsets, target.unit)
            if target.barrier is not None:
                claims = {} if sanitizer is None else sanitizer.proxies.done(self.agents[number])
                try:
                    target.barrier.receive(target.size, claims)
                except Misuse as misuse:
                    raise fault("mbarrier", f"mbarrier: {misuse}", self.lanes, 0) from None


def _put(lanes: Lanes, target: Target, data: Bytes, shadow: Bytes | None) -> None:
    if not len(target.offsets):
        return
    units = _units(data, target)
    lost = None if shadow is None else _units(shadow, target)
    if lost is not None and not lost.any():
        lost = None
    if lost is not None and (target.store is not lanes.wave.spaces.shared or target.combine is not None):
        refuse_undefined(lanes, np.ones(1, np.uint8), "the copied value", "shared memory")
    places = target.offsets[:, None] + np.arange(target.unit)
    if target.combine is not None:
        kind = holder(target.unit * 8)
        old = target.store.data[places].view(kind)[:, 0]
        unwritten = target.store.unwritten
        if unwritten is not None and unwritten[places].any():
            refuse_undefined(lanes, np.ones(1, np.uint8), "the reduced value", "memory")
        new = target.combine(old, (np.ascontiguousarray(units).view(kind)[:, 0],))
        units = np.ascontiguousarray(new).astype(kind, copy=False)[:, None].view(np.uint8)
    target.store.data[places] = units
    if target.store.unwritten is not None:
        target.store.unwritten[places] = 0 if lost is None else lost


def _units(data: Bytes, target: Target) -> Bytes:
    units = data.reshape(-1, target.unit)
    return units if target.chosen is None else units[target.chosen]


def plain_source(part: Part, size: int, unit: int = 16) -> Source:
    """`size` bytes that lie together, of the only thread of `part`."""
    start = int(part.offsets[0])
    store = part.store

    def take() -> tuple[Bytes, Bytes | None]:
        shadow = None if store.unwritten is None else store.unwritten[start : start + size].copy()
        return store.data[start : start + size].copy(), shadow

    return Source(store, np.arange(start, start + size, 4), take)


def register_source(data: Bytes) -> Source:
    """Bytes that came from registers."""
    return Source(None, np.zeros(0, np.int64), lambda: (data, None))


def barrier_of(part: Part, proxied: bool = True) -> MBarrier:
    """The mbarrier at the only address of `part`, which asynchronous work is to use."""
    lanes = part.lanes
    found = lanes.wave.mbarriers.objects.get(int(part.offsets[0]))
    if found is None:
        text = "the mbarrier was not initialised, or its memory was used for something else"
        raise fault("mbarrier", text, lanes, 0)
    sanitizer = lanes.wave.machine.sanitizer
    if sanitizer is not None:
        sanitizer.look(part, 8, LOOK)
        if proxied and not found.visible:
            from ptxtile.emulator.report import at_line

            text = (
                "proxy: asynchronous work completes on an mbarrier that was initialised without a fence.mbarrier_init "
                "or fence.proxy.async since"
            )
            raise fault("proxy", text, lanes, 0, f"initialised at {at_line(found.site)}")
    return found
