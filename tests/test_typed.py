"""The typed example means what the example means."""

from __future__ import annotations

import runpy

import numpy as np
import source

TYPED = runpy.run_path(str(source.ROOT / "tests" / "typed" / "activation.py"))
EXAMPLE = runpy.run_path(str(source.ROOT / "examples" / "activation.py"))


def test_it_writes_the_same_module() -> None:
    assert TYPED["activation"].ptx() == EXAMPLE["activation"].ptx()


def test_it_computes() -> None:
    x = np.linspace(-4, 4, 256, dtype=np.float32).reshape(2, 32, 4)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(TYPED["run"](x), wide / (1 + np.exp(-wide)) * 2 + 1, rtol=2e-6, atol=2e-6)
