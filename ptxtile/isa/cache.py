"""The user cache of parsed tables: JSON by content hash, so that a second process needs no lark.

A file is named after the hash of what it was made from (the `.isa` text, the grammar, this package's
version), begins with the hash of its own content, and is put in place by a rename: a damaged file is ignored,
two writers do no harm, and where nothing can be written nothing is said.
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

LAYOUT = "1"
"""Changes when the nested lists of `notation.parse` change their shape."""


def folder() -> Path:
    """`$XDG_CACHE_HOME/ptxtile`, or `~/.cache/ptxtile`."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "ptxtile"


@functools.lru_cache(maxsize=1)
def _grammar_text() -> bytes:
    return (resources.grammar() / "notation.lark").read_bytes()


@functools.lru_cache(maxsize=1)
def _code_text() -> bytes:
    return Path(__file__).with_name("notation.py").read_bytes()


def load(path: Path, start: str) -> list[Raw]:
    """The records of a `.isa` file, from the cache if it has them, else parsed and kept there."""
    text = path.read_bytes()
    key = hashlib.sha256(
        b"\0".join([LAYOUT.encode(), start.encode(), _grammar_text(), _code_text(), text])
    ).hexdigest()
    kept = folder() / f"{path.stem}-{key[:32]}.json"
    found = _read(kept)
    if found is None:
        from ptxtile.isa import notation

        found = notation.parse(text.decode("utf-8"), start, path.name)
        _write(kept, found)
    return found


def _read(path: Path) -> list[Raw] | None:
    try:
        content = path.read_bytes()
        digest, _, payload = content.partition(b"\n")
        if hashlib.sha256(payload).hexdigest().encode() != digest:
            return None
        found: list[Raw] = json.loads(payload)
        return found
    except (OSError, ValueError):
        return None


def _write(path: Path, records: list[Raw]) -> None:
    import tempfile

    payload = json.dumps(records, separators=(",", ":")).encode()
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        with os.fdopen(handle, "wb") as out:
            out.write(hashlib.sha256(payload).hexdigest().encode() + b"\n" + payload)
        os.replace(temporary, path)
    except OSError:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
