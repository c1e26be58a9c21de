"""The package's source as the tests of its shape see it: files, imports, functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "ptxtile"


@dataclass(frozen=True)
class Import:
    """One import statement's target. `typing` is under `if TYPE_CHECKING`, `late` inside a function."""

    importer: str
    imported: str
    line: int
    typing: bool
    late: bool

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.imported}"


@cache
def files() -> dict[str, Path]:
    """Dotted module name → file, for every module of the package."""
    return {_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@cache
def imports() -> tuple[Import, ...]:
    """Every import of the package: statements, and `import_module("…")` with a literal name."""
    return tuple(found for name, path in files().items() for found in read(name, path, tree(path)))


def read(name: str, path: Path, module: ast.Module) -> Iterator[Import]:
    """The imports of one module, given its dotted name (`path` tells a package from a module)."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]

    def walk(node: ast.AST, typing: bool, late: bool) -> Iterator[Import]:
        for target in _targets(node, package):
            yield Import(name, target, getattr(node, "lineno", 0), typing, late)
        inner = late or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        guarded = set(map(id, node.body)) if isinstance(node, ast.If) and _is_typing(node.test) else set()
        for child in ast.iter_child_nodes(node):
            yield from walk(child, typing or id(child) in guarded, inner)

    return walk(module, False, False)


def _is_typing(test: ast.expr) -> bool:
    return ast.unparse(test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def _targets(node: ast.AST, package: str) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            kept = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*kept, base]) if base else ".".join(kept)
        return [_resolved(base, alias.name) for alias in node.names]
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module") and node.args:
        first = node.args[0]
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            return [first.value]
    return []


def _resolved(base: str, name: str) -> str:
    """`from base import name` takes a submodule if there is one, else a name of base."""
    return f"{base}.{name}" if f"{base}.{name}" in files() else base
