"""The public face: every fixed name with its signature, lazily loaded, and the same for type checkers."""

from __future__ import annotations

import ast
import builtins
import inspect
import subprocess
import sys
from collections.abc import Callable

import pytest
import source

import ptxtile as pt

# Fixed names: parameters, their order, kinds and defaults; the return type where it is fixed too.
SIGNATURES = {
    "ComposeLayout": "(per_element, swizzle_len, atom_len, tile, swizzle_inner=True)",
    "Kernel.__call__": "(self, *args, **static)",
    "Kernel.cubin": "(self, target, **static) -> bytes",
    "Kernel.launch": "(self, *args, grid=None, block=None, stream=None, device=None, programmatic=False, **static)",
    "Kernel.module": "(self, target=None, **static) -> Module",
    "Kernel.ptx": "(self, target=None, **static) -> str",
    "ModuleBuilder": "(target=None, version=None)",
    "ModuleBuilder.entry": "(self, name, params=None, *, block=None, grid=None, cluster=None)",
    "Pointer": "(dtype, *, align=None)",
    "Tensor": "(shape, dtype, layout=None, *, align=None)",
    "Tensor.permute": "(self, *order)",
    "Tensor.rearrange": "(self, pattern, **sizes)",
    "Tensor.view": "(self, *shape, layout=None)",
    "TileLayout": "(layout)",
    "TileLayout.apply": "(self, *coord, shape=None)",
    "TileLayout.canonicalize": "(self)",
    "TileLayout.owners": "(self, *coord, shape=None)",
    "TileLayout.tile_to": "(self, to_shape, cur_shape)",
    "alloc_local": "(shape, dtype, layout='default')",
    "alloc_shared": "(shape, dtype, layout='default', align=None)",
    "asarray": "(source, dtype=None, *, device=None)",
    "assemble": "(module, target=None, *, options=()) -> bytes",
    "assume": "(condition)",
    "block_dim": "(axis='x')",
    "block_idx": "(axis='x')",
    "break_": "()",
    "check_text": "(text, target=None) -> list[Diagnostic]",
    "continue_": "()",
    "cta_sync": "()",
    "dim": "(name, multiple_of=1)",
    "disassemble": "(cubin) -> str",
    "else_": "()",
    "empty": "(shape, dtype, *, device=None)",
    "emulator.launch": "(module, name, grid, block, args, cluster=None, dynamic_shared=0, sanitize=True, seed=0)",
    "exp": "(x)",
    "for_range": "(lo, hi=None, step=1)",
    "forms": "(pattern='*', target=None)",
    "function": "(python)",
    "if_": "(p)",
    "is_valid": "(spelling, target=None, ptx_version=None) -> bool",
    "kernel": "(function=None, *, grid=None, block=None, cluster=None, target=None)",
    "lane_id": "()",
    "pack": "(*values, dtype=None)",
    "parse": "(text) -> Module",
    "reg": "(dtype, initial=None)",
    "thread_idx": "(axis='x')",
    "tile.apply": "(form, *operands, scope='thread', pred=None, preserve_dst=False, **parameters)",
    "tile.ewise": "(function, dst, *inputs, scope='thread', pred=None)",
    "validate": "(spelling, target=None, ptx_version=None) -> Form",
    "verdict": "(spelling, target=None, ptx_version=None) -> Verdict",
    "warp_id": "()",
    "while_": "(condition)",
    "zeros": "(shape, dtype, *, device=None)",
}
AXES = "m bx by bz cbx cby cbz tx warpid laneid wgid tid_in_wg wid_in_wg TLane TCol".split()
DTYPES = (
    "float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool_ "
    "float8_e4m3fn float8_e5m2"
).split()
ERRORS = {
    "AssemblerError": RuntimeError,
    "DriverError": RuntimeError,
    "EmulatorError": RuntimeError,
    "FormError": ValueError,
    "LayoutError": ValueError,
    "ModuleSyntaxError": ValueError,
    "NotationError": ValueError,
    "OperandError": TypeError,
    "TargetError": ValueError,
    "TileError": ValueError,
    "TraceError": RuntimeError,
}


def named(path: str) -> Callable[..., object]:
    found = pt
    for name in path.split("."):
        found = getattr(found, name)
    return found


def signature(path: str, returns: bool) -> str:
    full = inspect.signature(named(path))
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in full.parameters.values()]
    text = str(full.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    return f"{text} -> {full.return_annotation}" if returns else text


@pytest.mark.parametrize("path", SIGNATURES)
def test_fixed_signature(path: str) -> None:
    assert signature(path, "->" in SIGNATURES[path]) == SIGNATURES[path]


def test_axes_are_axes() -> None:
    assert [str(getattr(pt, name)) for name in AXES] == AXES
    assert {type(getattr(pt, name)) for name in AXES} == {pt.Axis}


def test_dtypes_are_classes() -> None:
    assert all(issubclass(getattr(pt, name), pt.Scalar) for name in DTYPES)


@pytest.mark.parametrize("name", ERRORS)
def test_every_error_is_a_ptxtile_error_and_a_fitting_builtin(name: str) -> None:
    assert issubclass(getattr(pt, name), pt.PtxtileError)
    assert issubclass(getattr(pt, name), ERRORS[name])


def test_form_has_the_fixed_attributes() -> None:
    form = pt.ptx["fma.rn.f32"]
    assert form is pt.ptx.fma.rn.f32
    assert (form.spelling, form.opcode, form.modifiers) == ("fma.rn.f32", "fma", (".rn", ".f32"))
    assert form.summary
    assert form.signatures
    assert form.targets["sm_90"]


def test_verdict_has_the_fixed_attributes() -> None:
    said = pt.verdict("fma.f32.rn")
    assert said.kind == "tolerated"
    assert said.form is pt.ptx["fma.rn.f32"]
    assert said.reasons


def test_every_name_resolves_and_dir_lists_it() -> None:
    assert set(pt._HOME) | pt._MODULES <= set(dir(pt))
    assert [name for name in dir(pt) if getattr(pt, name) is None] == []


def test_type_checkers_see_the_same_names() -> None:
    """The imports under TYPE_CHECKING and the table of homes are one list, written twice."""
    seen: dict[str, str] = {}
    for node in ast.walk(source.tree(source.PACKAGE / "__init__.py")):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ptxtile"):
            for alias in node.names:
                assert alias.asname == alias.name, "a re-export is written `name as name`"
                seen[alias.name] = (node.module or "").removeprefix("ptxtile").removeprefix(".")
    assert seen == {**pt._HOME, **dict.fromkeys(pt._MODULES, "")}


def test_no_name_hides_a_part_of_the_package() -> None:
    parts = {name.split(".")[1] for name in source.files() if "." in name}
    assert parts & set(pt._HOME) == set()


def test_star_import_brings_every_name_that_is_not_a_builtin() -> None:
    space: dict[str, object] = {}
    exec("from ptxtile import *", space)
    assert set(dir(pt)) - set(space) == set(dir(pt)) & set(dir(builtins))


def test_a_misspelt_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError) as caught:
        pt.flaot32  # noqa: B018
    assert str(caught.value) == "ptxtile has no name 'flaot32'"
    assert caught.value.name == "flaot32"
    with pytest.raises(ImportError):
        exec("from ptxtile import flaot32")


def fresh(code: str) -> str:
    """What a fresh process prints."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        cwd=source.ROOT,
        check=True,
    ).stdout.strip()


def test_import_loads_none_of_the_heavy_packages() -> None:
    """Nor dataclasses, which alone is half of what the import may cost."""
    heavy = {"numpy", "lark", "ml_dtypes", "cuda", "dataclasses", "inspect", "typing"}
    assert (
        fresh(
            f"import sys; old = set(sys.modules); import ptxtile; print({heavy!r} & (set(sys.modules) - old))"
        )
        == "set()"
    )


@pytest.mark.parametrize("use", ["ptxtile.S[8:2].apply(3)", "ptxtile.float32(2)", "ptxtile.TraceError"])
def test_layouts_and_dtypes_need_none_of_the_heavy_packages(use: str) -> None:
    heavy = {"numpy", "lark", "ml_dtypes", "cuda"}
    assert fresh(f"import sys, ptxtile; {use}; print({heavy!r} & set(sys.modules))") == "set()"


def test_validation_needs_no_nvidia_package_and_no_numpy() -> None:
    code = "import sys, ptxtile; ptxtile.validate('fma.rn.f32', 'sm_90'); print({'numpy', 'cuda'} & set(sys.modules))"
    assert fresh(code) == "set()"


def test_submodules_are_both_attributes_and_modules() -> None:
    code = "import ptxtile; a = ptxtile.tile; from ptxtile import tile; import ptxtile.tile as b; print(a is b is tile)"
    assert fresh(code) == "True"


def test_a_layout_reads_back_in_the_namespace() -> None:
    code = (
        "import ptxtile; x = ptxtile.TileLayout(ptxtile.S[(8, 4) : (4 @ ptxtile.laneid, 1)]); "
        "print(eval(repr(x), vars(ptxtile)) == x)"
    )
    assert fresh(code) == "True"
