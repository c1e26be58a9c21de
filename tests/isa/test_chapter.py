"""The compiled chapters in the user's cache: what they give is what the text says, whatever became of the file."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from ptxtile import resources
from ptxtile.errors import NotationError
from ptxtile.isa import cache, chapter, notation, rules
from ptxtile.isa.line import Line, lines_of

FLOAT = resources.grammar() / "instructions" / "float.isa"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(chapter, "_chapter", chapter._chapter.__wrapped__)
    return tmp_path / "ptxtile"


def facts(line: Line) -> dict[str, object]:
    """All that a line says, without what is only remembered."""
    found = {
        each.name: getattr(line, each.name) for each in dataclasses.fields(line) if each.name != "cached"
    }
    found["clauses"] = [clause._replace(floors=None) for clause in line.clauses]
    return found


def read(opcode: str = "fma", path: Path = FLOAT) -> list[dict[str, object]]:
    return [facts(line) for line in chapter.lines(path, opcode)]


def written(opcode: str = "fma") -> list[dict[str, object]]:
    """The same from the text itself."""
    records = notation.parse(FLOAT.read_text(encoding="utf-8"), "chapter", FLOAT.name)
    return [facts(line) for each in records if each[0] == opcode for line in lines_of(each, FLOAT.name)]


@pytest.mark.parametrize("path", sorted(FLOAT.parent.glob("*.isa")), ids=lambda path: path.name)
def test_a_packed_line_is_the_line(path: Path) -> None:
    for record in notation.parse(path.read_text(encoding="utf-8"), "chapter", path.name):
        for line in lines_of(record, path.name):
            again = chapter._unpacked(chapter._packed(line, {}))
            assert facts(again) == facts(line)
            nothing = (None,) * len(line.pieces)
            assert rules.available(again, nothing) == rules.available(line, nothing)


def test_the_second_time_nothing_is_parsed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = read()
    assert first == written()
    assert len([each for each in folder.iterdir() if each.suffix == ".lines"]) == 1
    monkeypatch.setattr("ptxtile.isa.notation.parse", None)
    assert read() == first


@pytest.mark.parametrize("damage", [b"", b"x", b"{}\n{}", b"\xff" * 100, "cut", "not marshal", "a number"])
def test_a_damaged_file_is_made_anew(folder: Path, damage: bytes | str) -> None:
    first = read()
    [kept] = folder.glob("*.lines")
    content = kept.read_bytes()
    if damage == "cut":
        kept.write_bytes(content[:-1])
    elif isinstance(damage, bytes):
        kept.write_bytes(damage)
    else:
        cache.write(kept, b"\xff\xff" if damage == "not marshal" else b"i\x01\x00\x00\x00")
    assert read() == first
    assert kept.read_bytes() == content


def test_where_nothing_can_be_written_it_is_parsed_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert read() == read() == written()


def test_a_changed_chapter_is_read_again_and_few_files_stay(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "float.isa"
    for number in range(cache.KEPT + 5):
        copy.write_text(f'instruction new "A test" 9.7.9;\nout d : .u{8 << number % 4};\nnew.u{number} d;\n')
        (line,) = chapter.lines(copy, "new")
        assert line.text == f"new.u{number} d"
        newest = max(folder.glob("float-*.lines"), key=lambda each: each.stat().st_mtime)
        os.utime(newest, (number, number))
    assert len(list(folder.glob("float-*.lines"))) == cache.KEPT


def test_an_opcode_that_the_chapter_lacks_has_no_lines(folder: Path) -> None:
    assert read("mma") == []


def test_a_fault_in_a_chapter_is_told_each_time(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "float.isa"
    copy.write_text('instruction new "A test" 9.7.9;\nnew.u8 d;\n  where nothing;\n')
    for _ in range(2):
        with pytest.raises(NotationError) as caught:
            list(chapter.lines(copy, "new"))
        assert str(caught.value) == "float.isa:2:1: the condition names 'nothing', which is no operand here"
    assert list(folder.glob("float-*.lines")) == []
