"""fence.sc across a barrier of a CTA (PTX ISA 8.10, Fence-SC and causality order).

What threads did before each executed fence.sc (or membar) and met the others at a barrier is published by a strong
write that any of them makes afterwards: whoever reads that write and then executes fence.sc comes later in Fence-SC
order than each of their fences. It is how a last CTA adds up what others left: `membar.gl; bar.sync 0; @p atom.add`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.lanes import Threads

if TYPE_CHECKING:
    from ptxtile.emulator.ordering import Claims, Ordering

Arrivals = list[tuple[Threads, NDArray[np.int64], bool, int]]


def pass_on(ordering: Ordering, arrivals: Arrivals) -> None:
    """After a barrier its threads write as if each had executed the fences that any of them executed before it."""
    cta_of = ordering.wave.cta
    met: dict[tuple[int, int], list[int]] = {}
    for threads, barriers, _, _ in arrivals:
        for thread, barrier in zip(threads.tolist(), barriers.tolist()):
            met.setdefault((int(cta_of[thread]), barrier), []).append(thread)
    for members in met.values():
        sources = [thread for thread in members if thread in ordering.sequential]
        if not sources:
            continue
        claims: Claims = {}
        for thread in sources:
            for key, time in ordering.sequential[thread][0].items():
                claims[key] = max(claims.get(key, 0), time)
        scope = max(ordering.sequential.pop(thread)[1] for thread in sources)
        own = set(sources)
        for thread in members:
            before, at_least = ({}, 0) if thread in own else ordering.fenced.get(thread, ({}, 0))
            merged = claims
            if before:
                merged = dict(claims)
                for key, time in before.items():
                    merged[key] = max(merged.get(key, 0), time)
            ordering.fenced[thread] = (merged, max(scope, at_least))
