"""The cycle collector stands still while something large is made that has no cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Without the cycle collector, if it is on.

    A trace and a reading allocate what they keep, many small tuples: the collector would walk them again and again, a
    quarter of the time, and free none.
    """
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()
