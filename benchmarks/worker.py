"""What a measured process runs: rounds on request, one line of JSON each. Standard library only, so that it runs in any
environment, a peer's too."""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable


def serve(prepare: Callable[[], Callable[[], object]], facts: dict[str, object]) -> None:
    """Say `facts`, then for each line of input run one round: `prepare()` untimed, what it returns timed, in seconds.

    The garbage collector runs before a round and stays on during it, as it would for a user.
    """
    print(json.dumps(facts), flush=True)
    for _ in sys.stdin:
        work = prepare()
        gc.collect()
        start = time.perf_counter()
        work()
        seconds = time.perf_counter() - start
        print(json.dumps(seconds), flush=True)
