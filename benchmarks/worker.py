"""What a measured process runs: rounds on request, one line of JSON each. Standard library only, so that it runs in any
environment, a peer's too."""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable


def serve(prepare: Callable[[], Callable[[], object]], facts: dict[str, object]) -> None:
    """Say `facts`, then for each line of input run one round: `prepare()` untimed, what it returns timed.

    The answer is [wall, cpu] in seconds; cpu is what this process used, which other work on the machine disturbs less.

    The garbage collector runs before a round and stays on during it, as it would for a user.
    """
    print(json.dumps(facts), flush=True)
    for _ in sys.stdin:
        work = prepare()
        gc.collect()
        start, used = time.perf_counter(), time.process_time()
        work()
        seconds = [time.perf_counter() - start, time.process_time() - used]
        print(json.dumps(seconds), flush=True)
