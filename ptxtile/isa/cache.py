"""The user cache of parsed tables, so that a second process needs no lark.

A file is named after the hash of what it was made from (the `.isa` text, the grammar, the code that reads it),
begins with the hash of its own content, and is put in place by a rename: a damaged file is ignored,
two writers do no harm, and where nothing can be written nothing is said. Of each table the last few stay.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ptxtile import resources

if TYPE_CHECKING:
    from ptxtile.isa.notation import Raw

KEPT = 8
"""Files of one table that stay: a checkout whose tables change, or several Pythons, would fill the disk else."""


def folder() -> Path:
    """`$XDG_CACHE_HOME/ptxtile`, or `~/.cache/ptxtile`."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "ptxtile"


@functools.cache
def code(*names: str) -> bytes:
    """The text of modules of this package, which is part of what a table was made by."""
    here = Path(__file__).parent
    return b"\0".join((here / f"{name}.py").read_bytes() for name in names)


@functools.lru_cache(maxsize=1)
def grammar_text() -> bytes:
    """The grammar of the notation."""
    return (resources.grammar() / "notation.lark").read_bytes()


def load(path: Path, start: str) -> list[Raw]:
    """The records of a `.isa` file, from the cache if it has them, else parsed and kept there as JSON."""
    text = path.read_bytes()
    kept = place(path.stem, "json", start.encode(), grammar_text(), code("notation"), text)
    payload = read(kept)
    if payload is not None:
        with contextlib.suppress(ValueError):
            found: list[Raw] = json.loads(payload)
            return found
    from ptxtile.isa import notation

    found = notation.parse(text.decode("utf-8"), start, path.name)
    write(kept, json.dumps(found, separators=(",", ":")).encode())
    return found


def place(stem: str, kind: str, *made_from: bytes) -> Path:
    """Where the file of table `stem` is kept that is made from these texts."""
    key = hashlib.sha256(b"\0".join(made_from)).hexdigest()
    return folder() / f"{stem}-{key[:32]}.{kind}"


def read(path: Path) -> bytes | None:
    """What `write` kept, or None."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, _, payload = content.partition(b"\n")
    return payload if hashlib.sha256(payload).hexdigest().encode() == digest else None


def write(path: Path, payload: bytes) -> None:
    """Keep `payload`, if that can be."""
    import tempfile

    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        with os.fdopen(handle, "wb") as out:
            out.write(hashlib.sha256(payload).hexdigest().encode() + b"\n" + payload)
        os.replace(temporary, path)
        _tidy(path)
    except OSError:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _tidy(path: Path) -> None:
    """Remove the oldest files of the same table and kind."""
    stem = path.name.rpartition("-")[0]
    others = [each for each in path.parent.glob(f"{stem}-*{path.suffix}") if each != path]
    for each in sorted(others, key=lambda one: one.stat().st_mtime)[: max(len(others) + 1 - KEPT, 0)]:
        each.unlink(missing_ok=True)
