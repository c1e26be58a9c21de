"""Types, targets, special registers, the user cache."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ptxtile import resources
from ptxtile.errors import TargetError
from ptxtile.isa import (
    all_types,
    cache,
    driver_version,
    runs_on,
    special_register,
    target_facts,
    targets as targets_module,
    types,
)


def test_types() -> None:
    known = all_types()
    assert (known[".f16x2"].bits, known[".f16x2"].carrier, known[".f16x2"].element) == (32, "b32", ".f16")
    assert known[".u32"].registers >= {"b32", "u32", "s32"} and "f32" not in known[".u32"].registers
    assert "f32" in known[".b32"].registers
    assert (known[".bf16x2"].kind, known[".u16x2"].kind, known[".s64"].kind, known[".pred"].kind) == (
        "bf",
        "u",
        "s",
        "pred",
    )
    for each in known.values():
        assert each.carrier in types.wider(each.name) and each.registers <= set(types.REGISTER_BITS)
        assert each.element is None or all_types()[each.element].bits * each.count <= max(each.bits, 8)


def test_wider_registers() -> None:
    assert types.wider(".f32") == {"f32", "b32", "b64", "b128"}
    assert {"b64", "s16", "u32"} <= types.wider(".u8") and "f32" not in types.wider(".u16")
    assert "f64" in types.wider(".b32") and "b16" not in types.wider(".b32")
    assert (types.double(".s16"), types.double(".u64")) == (".s32", None)


def test_targets() -> None:
    known = target_facts()
    supported = [name for name, each in known.targets.items() if each.supported]
    assert len(supported) == 26 and supported[0] == "sm_75"
    assert (known.targets["sm_90a"].since, known.targets["sm_103"].since) == ("8.0", "8.8")
    assert known.versions[-1] == "9.5"
    assert (driver_version(580), driver_version(581), driver_version(100)) == ("9.0", "9.0", None)


def test_what_a_clause_means_by_a_target() -> None:
    assert runs_on("sm_90a") == {"sm_90a"}
    assert {"sm_100", "sm_100a", "sm_121f"} <= runs_on("sm_90") and "sm_89" not in runs_on("sm_90")
    assert runs_on("sm_100f") == {"sm_100f", "sm_100a", "sm_103f", "sm_103a", "sm_107f", "sm_107a"}
    with pytest.raises(TargetError) as error:
        runs_on("90")
    assert str(error.value) == "'90' is not a target: targets are written like sm_75, sm_90a, sm_100f"


def test_a_clause_in_words() -> None:
    assert targets_module.describe(
        [("8.6", "sm_100f"), ("8.7", "sm_120a"), ("9.0", None), (None, "sm_80")]
    ) == (
        "the sm_100f family (PTX ISA 8.6) or exactly sm_120a (PTX ISA 8.7) or PTX ISA 9.0 or later or sm_80 or later"
    )


def test_special_registers() -> None:
    tid = special_register("%tid")
    lane = special_register("%laneid")
    assert tid is not None and (tid.type, tid.elements) == (".u32", ("x", "y", "z", "w"))
    assert lane is not None and lane.targets["sm_75"] == "6.3"
    rank = special_register("%cluster_ctarank")
    assert rank is not None and rank.targets["sm_90"] == "7.8" and "sm_80" not in rank.targets
    assert special_register("%envreg31") is not None and special_register("%envreg32") is None
    assert special_register("%nope") is None


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "ptxtile"


TYPES = resources.grammar() / "types.isa"


def test_the_cache_answers_without_parsing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = cache.load(TYPES, "types")
    [kept] = folder.iterdir()
    assert kept.name.startswith("types-")
    monkeypatch.setattr("ptxtile.isa.notation.parse", None)
    assert cache.load(TYPES, "types") == first


@pytest.mark.parametrize("damage", [b"", b"x", b"{}\n{}", b"\xff" * 100])
def test_a_damaged_cache_is_ignored(folder: Path, damage: bytes) -> None:
    first = cache.load(TYPES, "types")
    [kept] = folder.iterdir()
    kept.write_bytes(damage)
    assert cache.load(TYPES, "types") == first
    assert json.loads(kept.read_bytes().partition(b"\n")[2]) == first


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert cache.load(TYPES, "types")


def test_a_changed_table_is_read_again(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "types.isa"
    copy.write_text("type .u32 : bits 32 carrier b32 takes b32;")
    assert len(cache.load(copy, "types")) == 1
    copy.write_text("type .u32, .s32 : bits 32 carrier b32 takes b32;")
    assert cache.load(copy, "types")[0][0] == [".u32", ".s32"]
    assert len(list(folder.iterdir())) == 2
