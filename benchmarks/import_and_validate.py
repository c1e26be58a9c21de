"""What `import ptxtile` adds to a bare Python, and a process's first `validate`, with the user's cache and without.

    python benchmarks/import_and_validate.py [--rounds 25]

Every round starts fresh processes on one core; byte code is cached, as after a first use.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import harness

COLD = """
import pathlib, shutil, os
shutil.rmtree(pathlib.Path(os.environ["XDG_CACHE_HOME"], "ptxtile"), ignore_errors=True)
"""
CODE = {
    "bare": "pass",
    "import": "import ptxtile",
    "layout names": "from ptxtile import S, TileLayout, laneid",
    "bare, emptying a cache": COLD,
    "validate, cold cache": COLD + "import ptxtile; ptxtile.validate('fma.rn.f32')",
    "validate, warm cache": "import ptxtile; ptxtile.validate('fma.rn.f32')",
}
LINES = (  # what is reported: the difference of two, and the limit in seconds
    ("import", "bare", 0.05),
    ("layout names", "bare", None),
    ("validate, warm cache", "bare", 0.3),
    ("validate, cold cache", "bare, emptying a cache", 0.6),
)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rounds", type=int, default=25)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        contenders = []
        for name, code in CODE.items():
            home = str(Path(folder, "cold" if "cold" in name or "emptying" in name else "warm"))
            contenders.append(
                harness.Fresh(name, [sys.executable, "-c", code], {"XDG_CACHE_HOME": home}, {"code": code})
            )
        harness.pin()
        for contender in contenders:
            contender.__enter__()
        times = harness.measure(contenders, given.rounds)
    results: harness.Facts = {}
    for more, less, limit in LINES:
        spread = harness.differences(times, more, less)
        results[f"{more} - {less}"] = {"spread": spread, "limit": limit}
        due = f"   (limit {limit * 1e3:.0f} ms)" if limit else ""
        print(f"{more} above {less}{due}: {harness.text(spread, 1e3, ' ms')}")
    print(
        "kept in", harness.write("import_and_validate", contenders, times, results).relative_to(harness.ROOT)
    )


if __name__ == "__main__":
    main()
