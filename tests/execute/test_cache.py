"""The cubin cache: keyed on every input, whole files or none, bounded."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ptxtile.driver import Assembly
from ptxtile.execute import cache

MADE = Assembly(b"\x7fELF\nbytes\n", "a log\nof two lines")


def test_store_and_look_up(cache_folder: Path) -> None:
    assert cache.look_up("k") is None
    cache.store("k", MADE)
    assert cache.look_up("k") == MADE
    assert [path.name for path in cache_folder.iterdir()] == ["k"]


def test_every_input_counts(tmp_path: Path) -> None:
    library = tmp_path / "lib.so"
    library.write_bytes(b"1")
    base: tuple[object, ...] = ("text", "sm_90", ["-O3"], (13, 0), str(library))
    others: list[tuple[object, ...]] = [
        ("texu", *base[1:]),
        (base[0], "sm_90a", *base[2:]),
        (*base[:2], ["-O1"], *base[3:]),
        (*base[:3], (13, 1), base[4]),
        (*base[:4], str(tmp_path / "absent.so")),
    ]
    keys = [cache.key(*inputs) for inputs in (base, *others)]  # type: ignore[arg-type]
    library.write_bytes(b"22")
    keys.append(cache.key(*base))  # type: ignore[arg-type]
    assert len(set(keys)) == len(keys)


def test_damage_is_a_miss(cache_folder: Path) -> None:
    cache.store("k", MADE)
    path = cache_folder / "k"
    whole = path.read_bytes()
    for broken in (b"", b"\n", whole[:-1], b"{}\n" + whole, b"[1]\nx", b"\xff\n"):
        path.write_bytes(broken)
        assert cache.look_up("k") is None


def test_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXTILE_CACHE", "off")
    assert cache.folder() is None
    cache.store("k", MADE)
    assert cache.look_up("k") is None


def test_default_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PTXTILE_CACHE", raising=False)
    monkeypatch.setattr(cache.sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.folder() == tmp_path / "ptxtile" / "cubins"


def test_a_folder_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PTXTILE_CACHE", str(tmp_path / "file" / "below"))
    cache.store("k", MADE)
    assert cache.look_up("k") is None


def test_the_oldest_go(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for age, name in enumerate("cab"):
        cache.store(name, MADE)
        os.utime(cache_folder / name, (age, age))
    size = (cache_folder / "a").stat().st_size
    monkeypatch.setattr(cache, "MOST_BYTES", 3 * size)
    cache.store("d", MADE)
    assert sorted(path.name for path in cache_folder.iterdir()) == ["a", "b", "d"]
