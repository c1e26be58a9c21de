"""The house: imports go down only, three packages are imported in few places, files and functions stay small."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import source

# What each part of the package may import, besides itself and level 0. "" is the facade, `ptxtile` itself.
GROUND = {"errors", "location", "resources", "dtypes", "encoding", "tracing"}
LEVELS: Mapping[str, set[str]] = {
    "isa": set(),
    "layout": set(),
    "driver": set(),
    "ir": {"isa"},
    "builder": {"layout", "ir", "isa"},
    "emulator": {"ir", "isa"},
    "tile": {"builder", "layout", "ir", "isa"},
    "execute": {"ir", "isa", "emulator", "driver"},
    "launchable": {"builder", "tile", "execute", "ir"},
    "measure": {
        "",
        "driver",
    },  # it assembles batches, and launches their cubins, in ways a kernel object has no use for
    "kernels": {""},
    "interop": {""},
    "doctor": {"", "isa", "driver", "execute"},
    "cli": {"", "measure", "kernels", "interop", "doctor"},
    "__main__": {"cli"},
}
# Modules that other parts may import by name; the rest of a part is entered through its `__init__`. `builder` is open,
# since `tile` and `launchable` are made of it.
DOORS: Mapping[str, set[str]] = {
    "isa": {"bind", "cache", "form", "misfit"},
    "ir": {"inference", "instruction", "module", "operand", "reader", "tensor_map", "writer"},
    "layout": {
        "banks",
        "descriptor",
        "draw",
        "fragment",
        "mma_fragment",
        "shared",
        "tensor_memory",
    },  # not loaded with the package
    "driver": set(),
    "emulator": set(),
    "execute": {"cache"},
    "tile": set(),
}
LARK = {"ptxtile.isa.notation", "ptxtile.ir.reader"}


def part(module: str) -> str:
    """`ptxtile.isa.form` → `isa`; the facade is ""."""
    return module.split(".")[1] if "." in module else ""


def above(found: source.Import) -> bool:
    """Whether an import points up or sideways."""
    mine, theirs = part(found.importer), part(found.imported)
    if not mine or mine == theirs or (theirs in GROUND and mine not in GROUND):
        return False
    return theirs not in (GROUND if mine in GROUND else LEVELS[mine])


def ours() -> list[source.Import]:
    return [found for found in source.imports() if found.imported.split(".")[0] == "ptxtile"]


def test_every_part_has_a_level() -> None:
    """A new package is placed in the picture before it is used."""
    assert {part(name) for name in source.files()} - GROUND - set(LEVELS) == {""}


def test_imports_go_down_only() -> None:
    """Imports inside functions count; what only type checkers read does not."""
    assert [str(found) for found in ours() if not found.typing and above(found)] == []


def private(found: source.Import) -> bool:
    """Whether an import reaches past another part's door. The facade may."""
    _, *path = found.imported.split(".")
    mine, theirs = part(found.importer), part(found.imported)
    return bool(mine) and mine != theirs and len(path) > 1 and path[1] not in DOORS.get(theirs, {path[1]})


def test_parts_enter_each_other_through_their_doors() -> None:
    """What only type checkers read counts as well."""
    assert [str(found) for found in ours() if private(found)] == []


@pytest.mark.parametrize(
    ("importer", "imported", "expected"),
    [
        ("ptxtile.ir.check", "ptxtile.isa.match", True),
        ("ptxtile.ir.check", "ptxtile.isa.form", False),
        ("ptxtile.ir.check", "ptxtile.isa", False),
        ("ptxtile.isa.bind", "ptxtile.isa.match", False),
        ("ptxtile.tile.scope", "ptxtile.builder.trace", False),
        ("ptxtile", "ptxtile.isa.validate", False),
    ],
)
def test_doors_are_seen(importer: str, imported: str, expected: bool) -> None:
    """The test of the test: it can fail."""
    assert private(source.Import(importer, imported, 1, typing=False, late=False)) is expected


def circles(graph: Mapping[str, set[str]]) -> set[tuple[str, ...]]:
    """The groups of modules that reach each other."""

    def reach(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            fresh = graph.get(waiting.pop(), set()) - seen
            seen |= fresh
            waiting += fresh
        return seen

    reached = {name: reach(name) for name in graph}
    groups = (
        tuple(sorted(other for other in reached[name] if name in reached.get(other, ()))) for name in graph
    )
    return {group for group in groups if group}


def test_no_module_imports_itself_in_a_circle() -> None:
    """Inside a package too, modules form layers as they load.

    A record's method may hand the record up inside its package (`str(module)` to the writer): an import inside a
    function makes no circle here. The facade is left out, because those who stand on it may be on it.
    """
    graph: dict[str, set[str]] = {}
    for found in ours():
        early = not found.typing and not found.late
        if early and found.importer != "ptxtile" and found.imported not in ("ptxtile", found.importer):
            graph.setdefault(found.importer, set()).add(found.imported)
    assert circles(graph) == set()


def test_circles_are_found() -> None:
    """The test of the test: it can fail."""
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == {("b", "c")}


def foreign(package: str) -> Iterator[source.Import]:
    return (
        found for found in source.imports() if found.imported.split(".")[0] == package and not found.typing
    )


def test_only_the_two_readers_import_lark_and_late() -> None:
    found = list(foreign("lark"))
    assert {where.importer for where in found} == LARK
    assert [str(where) for where in found if not where.late] == []


def test_only_the_driver_imports_cuda_and_late() -> None:
    found = list(foreign("cuda"))
    assert {part(where.importer) for where in found} == {"driver"}
    assert [str(where) for where in found if not where.late] == []


@pytest.mark.parametrize("package", ["numpy", "ml_dtypes", "torch", "jax"])
def test_arrays_are_imported_late_outside_the_emulator(package: str) -> None:
    early = [
        str(where) for where in foreign(package) if not where.late and part(where.importer) != "emulator"
    ]
    assert early == []


def functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(source.tree(path)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield (
                f"{path.relative_to(source.ROOT)}:{node.lineno} {node.name}",
                (node.end_lineno or 0) - node.lineno + 1,
            )


def python() -> list[Path]:
    return [
        path
        for folder in ("ptxtile", "tests", "benchmarks", "examples")
        for path in (source.ROOT / folder).rglob("*.py")
        if not any(name.startswith(".") for name in path.relative_to(source.ROOT).parts)
    ]


def test_files_are_under_400_lines() -> None:
    tables = list((source.ROOT / "grammar").rglob("*.*"))
    sizes = {
        str(path.relative_to(source.ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in [*python(), *tables]
    }
    assert {name: size for name, size in sizes.items() if size >= 400} == {}


def test_functions_are_under_50_lines() -> None:
    assert [f"{name}: {size}" for path in python() for name, size in functions(path) if size >= 50] == []


def test_nothing_is_called_utils() -> None:
    assert [
        str(path) for path in python() if path.stem in ("utils", "util", "helpers", "common", "misc")
    ] == []


@pytest.mark.parametrize(
    ("importer", "text", "expected"),
    [
        ("ptxtile.isa.form", "from ptxtile.ir import module", True),
        ("ptxtile.isa.form", "from ..ir.module import Module", True),
        ("ptxtile.isa.form", "def f():\n    import ptxtile.builder.trace", True),
        ("ptxtile.isa.form", "from importlib import import_module\nimport_module('ptxtile.ir')", True),
        ("ptxtile.layout.axis", "from ptxtile import isa", True),
        ("ptxtile.layout.axis", "from ptxtile import S", True),
        ("ptxtile.dtypes", "from ptxtile.isa import form", True),
        ("ptxtile.isa.form", "from ptxtile import tracing", False),
        ("ptxtile.isa.form", "from .types import Type", False),
        ("ptxtile.tile.scope", "from ptxtile.builder.trace import Trace", False),
        ("ptxtile.measure.chain", "import ptxtile as pt", False),
        ("ptxtile.measure.chain", "from ptxtile.ir import module", True),
    ],
)
def test_the_walker_sees_imports_that_point_up(importer: str, text: str, expected: bool) -> None:
    """The test of the test: it can fail."""
    found = source.read(importer, Path(importer.replace(".", "/") + ".py"), ast.parse(text))
    inside = [one for one in found if one.imported.startswith("ptxtile")]
    assert inside
    assert any(map(above, inside)) is expected


def test_the_walker_tells_typing_imports_from_others() -> None:
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import a\nelse:\n    import b\nimport c"
    found = source.read("ptxtile.x", Path("ptxtile/x.py"), ast.parse(text))
    assert [(one.imported, one.typing) for one in found if len(one.imported) == 1] == [
        ("a", True),
        ("b", False),
        ("c", False),
    ]
