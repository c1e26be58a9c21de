"""What an installation holds and needs: dependencies, where the grammar folder is found, modules that all import."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import source

from ptxtile import resources

PYPROJECT = (source.ROOT / "pyproject.toml").read_text(encoding="utf-8")


def names(table: str) -> list[str]:
    """The distributions that a list of requirements in pyproject.toml names."""
    text = re.search(rf"^{table} = \[(.*?)\]$", PYPROJECT, re.DOTALL | re.MULTILINE)
    assert text, table
    return sorted(re.findall(r'"([A-Za-z0-9_.-]+(?:\[\w+\])?)[^"]*"', text[1]))


def test_four_runtime_dependencies() -> None:
    assert names("dependencies") == ["cuda-python", "lark", "ml_dtypes", "numpy"]


def test_no_major_of_cuda_is_pinned() -> None:
    assert re.search(r'"cuda-python>=12\.8; sys_platform != \'darwin\'"', PYPROJECT)


def test_extras() -> None:
    assert names("assemble") == ["nvidia-nvjitlink"]
    assert {"ptxtile[assemble]", "pytest", "nvidia-cuda-nvcc", "nvidia-cuda-nvdisasm"} <= set(names("test"))
    assert {"mypy", "ruff", "basedpyright", "build"} <= set(names("dev"))


def test_licence_is_apache_2() -> None:
    text = (source.ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    assert 'license = "Apache-2.0"' in PYPROJECT


def test_grammar_is_found_in_the_package_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "ptxtile"
    (package / "grammar").mkdir(parents=True)
    (tmp_path / "grammar").mkdir()
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.setattr(resources, "_HERE", package)
    assert resources.grammar() == package / "grammar"


def test_grammar_is_found_beside_the_package_in_a_checkout(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "grammar").mkdir()
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.setattr(resources, "_HERE", tmp_path / "ptxtile")
    assert resources.grammar() == tmp_path / "grammar"


def test_a_stray_grammar_folder_is_never_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "grammar").mkdir()
    here = tmp_path / "ptxtile"
    monkeypatch.setattr(resources, "_HERE", here)
    with pytest.raises(FileNotFoundError) as caught:
        resources.grammar()
    assert str(caught.value) == (
        f"ptxtile's grammar folder is missing: looked for {here / 'grammar'} and for {tmp_path / 'grammar'} beside a "
        "pyproject.toml; reinstall ptxtile"
    )


@pytest.mark.parametrize(
    ("version", "taken"), [("standard", {"grammar": "ptxtile/grammar"}), ("editable", {})]
)
def test_the_wheel_hook_leaves_editable_installs_alone(
    monkeypatch: pytest.MonkeyPatch, version: str, taken: dict[str, str]
) -> None:
    """Hatchling is in no test environment: its base class is stood in for."""
    interface = ModuleType("hatchling.builders.hooks.plugin.interface")
    interface.BuildHookInterface = {Any: object}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, interface.__name__, interface)
    hook = runpy.run_path(str(source.ROOT / ".ci" / "wheel_hook.py"))["GrammarHook"]
    build: dict[str, dict[str, str]] = {"force_include": {}}
    hook.initialize(SimpleNamespace(), version, build)
    assert build == {"force_include": taken}


def test_every_module_imports_without_a_warning() -> None:
    """In one fresh process; none needs a GPU, a driver, Lark or CUDA to load."""
    code = (
        f"import importlib, sys\nfor name in {sorted(source.files())!r}:\n"
        "    if not name.endswith('__main__'): importlib.import_module(name)\n"
        "assert not {'lark', 'cuda', 'ml_dtypes', 'torch', 'jax'} & set(sys.modules), sorted(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        cwd=source.ROOT,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
