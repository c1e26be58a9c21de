"""Traces small bodies, and runs kernels on the emulator, on a GPU if there is one, and through NVIDIA's assembler."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import pytest

import ptxtile as pt
from ptxtile import driver
from ptxtile.errors import AssemblerError, PtxtileError

Body = Callable[[object], object]

machines = pytest.mark.parametrize(
    "device",
    [
        "emulator",
        pytest.param(
            0,
            marks=pytest.mark.skipif(
                not driver.available(), reason="no CUDA device: the GPU's part is not run"
            ),
            id="gpu",
        ),
    ],
)
TARGETS = ("sm_75", "sm_90a", "sm_100a")
_PLACE = re.compile(r"\n  [^\n]*?(\w+\.py):\d+(: [^\n]*)?$")

PARAMS: Mapping[str, object] = {
    "A": pt.Tensor((64, 4), pt.float32),
    "H": pt.Tensor((64,), pt.float16),
    "M": pt.Tensor(("R", pt.dim("C", multiple_of=4)), pt.float32),
    "P": pt.Pointer(pt.float32),
    "n": pt.uint32,
    "i": pt.int32,
    "w": pt.int64,
    "x": pt.float32,
}


def assembles(kernel: pt.Kernel, targets: tuple[str, ...] = TARGETS, **static: object) -> None:
    """NVIDIA's assembler takes the kernel for each target."""
    pytest.importorskip("nvidia", reason="nvidia-nvjitlink is not installed")
    for target in targets:
        assert kernel.cubin(target, **static)[:4] == b"\x7fELF"


def takes(text: pt.ir.Module, target: str) -> bool:
    """NVIDIA's assembler takes the module; skips where it is older than the module's PTX version."""
    pytest.importorskip("nvidia", reason="nvidia-nvjitlink is not installed")
    version = text.version
    try:
        pt.assemble(f".version {version}\n.target sm_90\n.address_size 64\n", "sm_90")
    except AssemblerError as error:
        if "Unsupported .version" not in str(error):
            raise
        found = ".".join(map(str, driver.find_assembler().version))
        pytest.skip(f"nvJitLink {found} is older than PTX {version}, which the forms of this test need")
    return pt.assemble(str(text), target)[:4] == b"\x7fELF"


def module(
    body: Body,
    block: object = 1,
    grid: object = None,
    cluster: object = None,
    params: Mapping[str, object] = PARAMS,
) -> pt.ir.Module:
    """The module of an entry `k` with this body."""
    builder = pt.ModuleBuilder()
    with builder.entry("k", params, block=block, grid=grid, cluster=cluster) as k:
        body(k)
    return builder.module()


def lines(body: Body, block: object = 1, **options: object) -> list[str]:
    """The instructions and labels of the body, whose one parameter is `x` unless `params` are given; what loads parameters
    is left out."""
    options.setdefault("params", {"x": pt.float32})
    text = str(module(body, block, **options))  # type: ignore[arg-type]
    kept = []
    for line in text[text.index("{") :].splitlines()[1:-1]:
        word = line.strip().removesuffix(";")
        if (
            word
            and ", %tid" not in word
            and not word.startswith((".reg", ".shared", ".loc", "ld.param", "cvta.to.global"))
        ):
            kept.append(word)
    assert kept[-1] == "ret"
    return kept[:-1]


def failure(body: Body, block: object = 1, **options: object) -> PtxtileError:
    """The error of tracing the body."""
    with pytest.raises(PtxtileError) as caught:
        module(body, block, **options)  # type: ignore[arg-type]
    return caught.value


def message(error: BaseException, file: str | None = None) -> str:
    """The text of an error without the user's line at its end; with `file`, that line must be there and lie in it."""
    text = str(error)
    found = _PLACE.search(text)
    if file is not None:
        assert found is not None and found[1] == file.rpartition("/")[2], text
    return _PLACE.sub("", text)
