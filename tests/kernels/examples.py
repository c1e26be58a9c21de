"""The kernels of examples/, loaded as modules."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).resolve().parents[2] / "examples"
HOPPER = ("hopper_gemm",)  # of sm_90a alone: tests in test_hopper_gemm.py
LATER = {
    "affine_relu": ("sm_80", "sm_100a"),
    "async_copy": ("sm_80", "sm_100a"),
    "async_read_next_row": ("sm_80", "sm_100a"),
    "blackwell_tile": ("sm_100a", "sm_110a"),
    "bulk_sum": ("sm_90a", "sm_120a"),
    "cluster_mailbox": ("sm_90a", "sm_120a"),
    "cluster_send": ("sm_90a", "sm_120a"),
    "changed_map": ("sm_90a", "sm_120a"),
    "dependent_grids": ("sm_90a", "sm_120a"),
    "gather_rows": ("sm_100a", "sm_110a"),
    "matrix_round_trip": ("sm_90a", "sm_120a"),
    "maximum3": ("sm_100a", "sm_120a"),
    "mma_packed": ("sm_80", "sm_120a"),
    "multimem_sum": ("sm_90a", "sm_100a"),
    "narrow_pairs": ("sm_80", "sm_100a"),
    "tensor_memory_round_trip": ("sm_100a", "sm_110a"),
    "tensor_sum": ("sm_90a", "sm_120a"),
    "warp_matrix": ("sm_80", "sm_120a"),
    "warp_sum": ("sm_80", "sm_100a"),
}
"""Examples of later targets than sm_75, and those they are assembled for: tests in test_catalogue_examples.py."""

NAMES = tuple(
    sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in HOPPER and path.stem not in LATER)
)


def load(name: str) -> ModuleType:
    """The example as a module; its main() has not run."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
