"""Shadow memory for races: of every granule, who wrote it last, and who read it since.

A granule is four bytes until somebody accesses fewer; then the store's shadow is made finer, once. Readers of which
there are several are kept in a log, and consulted only when somebody writes without having synchronised with all of
their CTA.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Indices = NDArray[np.int64]

NOBODY = 0
MANY = -1
LOG_LIMIT = 1 << 20


@dataclass(frozen=True, slots=True)
class Event:
    """Accesses that may conflict with others: by access, granule, thread of the launch, time, site and strength."""

    granule: Indices
    thread: Ids
    time: NDArray[np.int64]
    site: NDArray[np.int64]
    strength: NDArray[np.int64]

    def at(self, positions: NDArray[np.intp]) -> Event:
        """Some of them."""
        return Event(
            self.granule[positions],
            self.thread[positions],
            self.time[positions],
            self.site[positions],
            self.strength[positions],
        )


class Cells:
    """One access a granule: thread + 1 (NOBODY: none, MANY: in the log), time, site, strength, and its CTA + 1."""

    __slots__ = ("cta", "owner", "site", "strength", "time")

    def __init__(self, count: int) -> None:
        self.owner: NDArray[np.int32] = np.zeros(count, np.int32)
        self.time: NDArray[np.int32] = np.zeros(count, np.int32)
        self.site: NDArray[np.int32] = np.zeros(count, np.int32)
        self.cta: NDArray[np.int32] = np.zeros(count, np.int32)
        self.strength: NDArray[np.int8] = np.zeros(count, np.int8)

    def set(
        self, granules: slice | Indices, owners: Ids, ctas: Ids, time: int, site: int, strength: int
    ) -> None:
        """Note the same kind of access to these granules."""
        self.owner[granules] = owners
        self.time[granules] = time
        self.site[granules] = site
        self.cta[granules] = ctas
        self.strength[granules] = strength

    def event(self, granules: Indices) -> Event:
        """What is noted of these granules."""
        return Event(
            granules,
            self.owner[granules].astype(np.int64) - 1,
            self.time[granules].astype(np.int64),
            self.site[granules].astype(np.int64),
            self.strength[granules].astype(np.int64),
        )

    def repeat(self, factor: int) -> Cells:
        """The same for granules that are `factor` times finer."""
        finer = Cells(0)
        for name in Cells.__slots__:
            setattr(finer, name, np.repeat(getattr(self, name), factor))
        return finer


class Races:
    """The shadow of one store."""

    __slots__ = ("bytes", "grain", "log", "logged", "reads", "writes")

    def __init__(self, size: int) -> None:
        self.bytes = size
        self.grain = 4
        self.reads = Cells(size // 4)
        self.writes = Cells(size // 4)
        self.log: list[Event] = []
        self.logged = 0

    def fit(self, width: int) -> None:
        """Make granules no coarser than an access of `width` bytes."""
        while self.grain > width:
            self.grain //= 2
            self.reads, self.writes = self.reads.repeat(2), self.writes.repeat(2)
            self.log = [
                Event(
                    np.concatenate([event.granule * 2, event.granule * 2 + 1]),
                    np.tile(event.thread, 2),
                    np.tile(event.time, 2),
                    np.tile(event.site, 2),
                    np.tile(event.strength, 2),
                )
                for event in self.log
            ]

    def remember(self, event: Event) -> None:
        """Log readers of granules that have several. Who polls replaces its last read, which implies the one before."""
        last = self.log[-1] if self.log else None
        if (
            last is not None
            and len(last.granule) == len(event.granule)
            and np.array_equal(last.thread, event.thread)
            and np.array_equal(last.granule, event.granule)
        ):
            self.log[-1] = event
            return
        self.log.append(event)
        self.logged += len(event.granule)
        if self.logged > LOG_LIMIT:
            self._compact()

    def readers(self, granules: Indices) -> Event:
        """All logged readers of these granules."""
        if not self.log:
            none: NDArray[np.int64] = np.zeros(0, np.int64)
            return Event(none, none, none, none, none)
        if len(self.log) > 1:
            self.log = [_joined(self.log)]
        event = self.log[0]
        return event.at(np.flatnonzero(np.isin(event.granule, granules)))

    def _compact(self) -> None:
        """Keep, of each thread and granule that still has many readers, the last read."""
        event = _joined(self.log)
        event = event.at(np.flatnonzero(self.reads.owner[event.granule] == MANY))
        order = np.lexsort((event.time, event.thread, event.granule))
        event = event.at(order)
        last = np.ones(len(order), np.bool_)
        last[:-1] = (event.granule[1:] != event.granule[:-1]) | (event.thread[1:] != event.thread[:-1])
        event = event.at(np.flatnonzero(last))
        if len(event.granule) > LOG_LIMIT // 2:
            event = event.at(np.arange(len(event.granule) // 2, len(event.granule)))
        self.log = [event]
        self.logged = len(event.granule)


def _joined(events: list[Event]) -> Event:
    return Event(
        np.concatenate([event.granule for event in events]),
        np.concatenate([event.thread for event in events]),
        np.concatenate([event.time for event in events]),
        np.concatenate([event.site for event in events]),
        np.concatenate([event.strength for event in events]),
    )
