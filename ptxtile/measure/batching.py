"""Many spellings prepared, batch by batch, each in a process of its own at low priority.

The assembler is foreign code and has inputs that end it. A batch whose process ends by a signal is halved until the
spelling that does it stands alone; that one is skipped, with the reason, and the rest go on.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import ptxtile as pt
from ptxtile.measure.links import ANCHORS
from ptxtile.measure.plan import Batch, load, store
from ptxtile.measure.preparation import LINKS, prepare_batch
from ptxtile.measure.scenarios import is_scenario

__all__ = ["ASSEMBLY_SECONDS", "main", "prepare"]

ASSEMBLY_SECONDS = 300.0
"""How long a batch may take before its process is ended."""


def _kept(path: Path, spellings: Sequence[str], target: str) -> bool:
    """Whether a batch of exactly these spellings is in the folder already."""
    if not path.exists():
        return False
    batch = load(path)
    return batch.asked == tuple(spellings) and batch.target == target


def _process(spellings: Sequence[str], target: str, folder: Path, name: str) -> str | None:
    """One batch in a process; why its process was ended, or None.

    Raises:
        AssemblerError: the process ended by itself with an error, such as no assembler.
    """
    request = json.dumps(
        {"spellings": list(spellings), "target": target, "folder": str(folder), "name": name}
    )
    paths = [str(Path(pt.__file__).parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "ptxtile.measure.batching"], input=request, capture_output=True, text=True,
            timeout=ASSEMBLY_SECONDS, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)}, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"it did not end within {ASSEMBLY_SECONDS:.0f} s and was stopped"
    if done.returncode < 0:
        return f"it ended by {signal.Signals(-done.returncode).name}"
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise pt.AssemblerError(f"{name} was not prepared: {said[-1] if said else f'exit {done.returncode}'}")
    return None


def _batch(spellings: Sequence[str], target: str, folder: Path, name: str) -> Batch:
    """One batch, halved if it ends its process."""
    reason = _process(spellings, target, folder, name)
    if reason is None:
        return load(folder / f"{name}.json")
    skipped = {}
    if len(spellings) == 1:
        skipped[spellings[0]] = f"the assembler cannot be used on it: {reason}"
    else:
        middle = len(spellings) // 2
        for half, part in ((spellings[:middle], "a"), (spellings[middle:], "b")):
            _batch(half, target, folder, name + part)
    batch = Batch(name, target, "", tuple(spellings), (), skipped)  # its halves hold the cases
    store(batch, b"", folder)
    return batch


def prepare(
    spellings: Sequence[str],
    target: str,
    folder: Path,
    *,
    size: int = 40,
    workers: int = 2,
    progress: Callable[[str], None] = lambda _: None,
) -> None:
    """Prepare a folder for these spellings; batches that are there already are left alone.

    Args:
        spellings: canonical spellings, and names of points of scenarios.
        target: "sm_90a".
        folder: made if it is not there.
        size: spellings a cubin.
        workers: processes, at low priority.
        progress: called with a line of text as each batch is done.

    Raises:
        AssemblerError: nvJitLink or nvdisasm is missing.
    """
    rest = [each for each in dict.fromkeys(spellings) if each not in ANCHORS]
    groups = [list(LINKS + ANCHORS)]
    for kind in (False, True):  # points of scenarios in batches of their own
        held = [each for each in rest if is_scenario(each) is kind]
        groups += [held[start : start + size] for start in range(0, len(held), size)]
    names = [f"batch-{number:03d}" for number in range(len(groups))]
    missing = [
        (group, name)
        for group, name in zip(groups, names)
        if not _kept(folder / f"{name}.json", group, target)
    ]
    for path in folder.glob("batch-*"):
        name = path.name.partition(".")[0]
        if name[:9] not in names or (name not in names and name[:9] in {each for _, each in missing}):
            path.unlink()  # of other spellings, or a half of them
    with ThreadPoolExecutor(workers) as pool:
        running = [pool.submit(_batch, group, target, folder, name) for group, name in missing]
        try:
            for each in running:
                batch = each.result()
                progress(f"{batch.name}: {len(batch.cases)} of {len(batch.asked)} spellings proven")
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def main() -> int:
    """`python -m ptxtile.measure.batching`; what to prepare comes on standard input."""
    if hasattr(os, "nice"):
        os.nice(10)
    request = json.load(sys.stdin)
    prepare_batch(request["spellings"], request["target"], Path(request["folder"]), request["name"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
