"""Every test runs the same way everywhere: no randomness from hypothesis, no cache of the user's."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("ptxtile", derandomize=True, deadline=None, database=None)
settings.load_profile("ptxtile")


@pytest.fixture(scope="session", autouse=True)
def cache_of_this_run() -> Iterator[None]:
    """The caches of the spelling table and of cubins start empty and go when the tests end."""
    with tempfile.TemporaryDirectory(prefix="ptxtile-tests-", ignore_cleanup_errors=True) as folder:
        before = os.environ.get("XDG_CACHE_HOME")
        os.environ["XDG_CACHE_HOME"] = folder
        yield
        if before is None:
            del os.environ["XDG_CACHE_HOME"]
        else:
            os.environ["XDG_CACHE_HOME"] = before
