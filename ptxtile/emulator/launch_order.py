"""Which CTAs come onto the machine when, and which never do because the program cancelled their launch."""

from __future__ import annotations

import random

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.decode import Decoded

CANCELS = "clusterlaunchcontrol"


def may_cancel(decoded: Decoded) -> bool:
    """Whether the program can ask to cancel the launch of clusters (PTX ISA 9.7.13.17)."""
    return any(site.opcode == CANCELS for code in decoded.codes.values() for site in code.sites)


class LaunchOrder:
    """The CTAs of a grid that have not been started, those of a cluster next to each other.

    Where a program can cancel, the seed draws how many clusters a device would have had room for, so that some are left
    to be cancelled.
    """

    def __init__(self, ctas: NDArray[np.int64], cluster_size: int, most: int, seed: int | None) -> None:
        self._left = ctas
        self._size = cluster_size
        self._most = most
        self._chance = None if seed is None else random.Random(seed)

    def __len__(self) -> int:
        return len(self._left)

    def take(self) -> NDArray[np.int64]:
        """The CTAs that start together now."""
        count = min(self._most, len(self._left))
        if self._chance is not None:
            count = self._size * self._chance.randint(1, count // self._size)
        started, self._left = self._left[:count], self._left[count:]
        return started

    def cancel(self) -> int | None:
        """The first CTA of a cluster that will not be started now, or None where all have been."""
        if not len(self._left):
            return None
        first = int(self._left[0])
        self._left = self._left[self._size :]
        return first
