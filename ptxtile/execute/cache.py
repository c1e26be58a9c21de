"""Cubins that were assembled before, in the user's cache folder.

The name of a file is a digest of everything that decides its contents: the text, the target, the options and the
version of the assembler. PTXTILE_CACHE names another folder; PTXTILE_CACHE=off keeps none.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ptxtile.driver import Assembly

__all__ = ["folder", "key", "look_up", "store"]

_VARIABLE = "PTXTILE_CACHE"
_FORMAT = "ptxtile cubin 1"
MOST_BYTES = 256 << 20  # the oldest files go beyond that


def folder() -> Path | None:
    """Where cubins are kept; None where keeping them is switched off."""
    named = os.environ.get(_VARIABLE, "")
    if named.lower() in ("off", "0"):
        return None
    if named:
        return Path(named)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", "") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME", "") or Path.home() / ".cache")
    return base / "ptxtile" / "cubins"


def key(text: str, target: str, options: Sequence[str], assembler: tuple[int, int], library: str) -> str:
    """A digest of every input. `library` is the assembler's file; its size and time count, for patch releases."""
    try:
        status = os.stat(library)
        identity = [status.st_size, status.st_mtime_ns]
    except OSError:
        identity = []
    parts = json.dumps([_FORMAT, target, list(options), list(assembler), library, identity, text])
    return hashlib.sha256(parts.encode()).hexdigest()


def look_up(digest: str) -> Assembly | None:
    """What was stored under the digest; None if nothing was, or if the file is damaged."""
    place = folder()
    if place is None:
        return None
    try:
        data = (place / digest).read_bytes()
    except OSError:
        return None
    head, _, rest = data.partition(b"\n")
    try:
        fields = json.loads(head)
        log, checksum = str(fields["log"]), str(fields["sha256"])
    except (ValueError, KeyError, TypeError):
        return None
    return Assembly(rest, log) if hashlib.sha256(rest).hexdigest() == checksum else None


def store(digest: str, made: Assembly) -> None:
    """Keep a cubin and its log. A folder that cannot be written to is no error: the next run assembles again."""
    place = folder()
    if place is None:
        return
    head = json.dumps({"log": made.log, "sha256": hashlib.sha256(made.cubin).hexdigest()})
    try:
        place.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=place)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(head.encode() + b"\n" + made.cubin)
            os.replace(name, place / digest)  # whole or not at all, for other processes
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
        _trim(place)
    except OSError:
        return


def _trim(place: Path) -> None:
    """Remove the oldest files until the folder is within its size."""
    rows: list[tuple[int, int, str]] = []
    with os.scandir(place) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                status = entry.stat()
                rows.append((status.st_mtime_ns, status.st_size, entry.path))
    total = sum(size for _, size, _ in rows)
    for _, size, path in sorted(rows):
        if total <= MOST_BYTES:
            return
        with contextlib.suppress(OSError):
            os.unlink(path)
        total -= size
