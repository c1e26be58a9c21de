"""Each example on each machine, against an exact or float64 reference; and what its text must hold."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest

import ptxtile as pt
from examples import NAMES, load
from ptxtile import driver

DEVICES = [
    "emulator",
    pytest.param(
        0,
        marks=pytest.mark.skipif(not driver.available(), reason="no CUDA device: the GPU's part is not run"),
        id="gpu",
    ),
]
machines = pytest.mark.parametrize("device", DEVICES)


@pytest.mark.parametrize("name", NAMES)
def test_main_runs(name, capsys, monkeypatch):
    monkeypatch.setenv("PTXTILE_DEVICE", "emulator")
    load(name).main()
    assert "emulator" in capsys.readouterr().out


@pytest.mark.parametrize("name", NAMES)
def test_text_reads_back_and_is_clean(name):
    text = getattr(load(name), name).ptx()
    assert pt.check_text(text) == []
    assert str(pt.parse(text)) == text


# --- affine_fma -----------------------------------------------------------------------------------------------------
@machines
def test_affine_fma_small_integers(device):
    kernel = load("affine_fma").affine_fma
    a = np.array([[0], [1], [-3], [1000]], np.float32)
    out = np.zeros_like(a)
    kernel.launch(a, out, device=device)
    np.testing.assert_array_equal(out, 2 * a + 1)


def _directed(value: Fraction, rounding: str) -> np.float32:
    """`value` as a float32, from exact rational arithmetic."""
    near = np.float32(float(value))
    candidates = sorted(
        {
            float(near),
            float(np.nextafter(near, np.float32(-np.inf))),
            float(np.nextafter(near, np.float32(np.inf))),
        }
    )
    below = max(c for c in candidates if Fraction(c) <= value)
    above = min(c for c in candidates if Fraction(c) >= value)
    if rounding == "rm" or (rounding == "rz" and value > 0):
        return np.float32(below)
    if rounding == "rp" or rounding == "rz":
        return np.float32(above)
    low, high = value - Fraction(below), Fraction(above) - value
    if low == high:
        return np.float32(below if np.float32(below).view(np.uint32) % 2 == 0 else above)
    return np.float32(below if low < high else above)


@machines
@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp"])
def test_affine_fma_rounds_once_as_its_name_says(rounding, device):
    """Products plus addends that lie between two floats, on both sides of zero, ties among them."""
    kernel = load("affine_fma").affine_fma
    scale, bias = 1 + 2.0**-23, 2.0**-24
    a = np.array([[1.0], [-1.0], [1 + 2.0**-22], [-3.0000002]], np.float32)
    out = np.zeros_like(a)
    kernel.launch(a, out, device=device, rounding=rounding, scale=scale, bias=bias)
    exact = [Fraction(float(x)) * Fraction(scale) + Fraction(bias) for x in a.ravel()]
    assert any(Fraction(float(np.float32(float(x)))) != x for x in exact)
    np.testing.assert_array_equal(out.ravel(), [_directed(x, rounding) for x in exact])


def test_the_roundings_differ_on_these_inputs():
    value = Fraction(1) * Fraction(1 + 2.0**-23) + Fraction(2.0**-24)
    assert _directed(value, "rm") < _directed(value, "rp")
    assert _directed(-value, "rz") == -_directed(value, "rz")


# --- packed_add -----------------------------------------------------------------------------------------------------
@machines
def test_packed_add(device):
    kernel = load("packed_add").packed_add
    a = np.arange(16, dtype=np.float16)
    out = np.zeros_like(a)
    kernel.launch(a, out, device=device)
    np.testing.assert_array_equal(out, np.arange(16, dtype=np.float16) + np.float16(2))


def test_packed_add_is_eight_packed_adds_and_no_conversion():
    text = load("packed_add").packed_add.ptx()
    assert text.count("add.rn.f16x2") == 8
    assert "cvt." not in text


# --- activation -----------------------------------------------------------------------------------------------------
@machines
def test_activation(device):
    module = load("activation")
    x = np.linspace(-2, 2, 256, dtype=np.float32).reshape(2, 32, 4)
    out = np.full_like(x, np.nan)
    module.activation.launch(x, out, device=device)
    np.testing.assert_allclose(out, module.reference(x), rtol=2e-6, atol=2e-6)


def test_activation_text():
    text = load("activation").activation.ptx()
    assert text.count("ld.global.v4.b32") == 1
    assert text.count("st.global.v4.b32") == 1
    tail = re.findall(r"mul\.rn\.f32 [^\n]*0f40000000;\n\tadd\.rn\.f32 [^\n]*0f3F800000;", text)
    assert len(tail) == 4  # multiply and add by themselves, once a register


# --- shared_affine --------------------------------------------------------------------------------------------------
@machines
def test_shared_affine_reads_the_next_row(device):
    a = np.random.default_rng(7).integers(-1000, 1000, (64, 4)).astype(np.float32)
    out = np.zeros_like(a)
    load("shared_affine").shared_affine.launch(a, out, device=device)
    np.testing.assert_array_equal(out, np.roll(2 * a + 1, -1, axis=0))


def test_shared_affine_has_two_barriers():
    assert load("shared_affine").shared_affine.ptx().count("bar.sync") == 2


# --- sub_left, mul_forms --------------------------------------------------------------------------------------------
@machines
def test_sub_left(device):
    a = np.array([[1.5], [-2.0], [0.0], [1e20]], np.float32)
    b = np.array([3.25], np.float32)
    left, view = np.zeros_like(a), np.zeros_like(a)
    load("sub_left").sub_left.launch(a, b, left, view, device=device)
    np.testing.assert_array_equal(left, np.float32(10) - a)
    np.testing.assert_array_equal(view, b[0] - a)


@machines
def test_mul_forms(device):
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-(2**31), 2**31, (4, 1)).astype(np.int32) for _ in range(2))
    lo, hi, wide = np.zeros_like(a), np.zeros_like(a), np.zeros((4, 1), np.int64)
    load("mul_forms").mul_forms.launch(a, b, lo, hi, wide, device=device)
    product = a.astype(np.int64) * b
    np.testing.assert_array_equal(wide, product)
    np.testing.assert_array_equal(lo, product.astype(np.int32))
    np.testing.assert_array_equal(hi, (product >> 32).astype(np.int32))


# --- saxpy ----------------------------------------------------------------------------------------------------------
@machines
@pytest.mark.parametrize("n", [0, 1, 31, 33, 1_000_003])
def test_saxpy_is_one_fma(n, device):
    rng = np.random.default_rng(n)
    x, y = (rng.standard_normal(n, dtype=np.float32) for _ in range(2))
    wide = np.longdouble(2.5) * x + y
    due = wide.astype(np.float32)
    # Rounding twice differs from rounding once only where the first rounding lands on a tie: those, exactly.
    for i in np.flatnonzero(np.abs(wide - due) * 2 == np.abs(np.spacing(due)).astype(np.longdouble)):
        due[i] = _directed(Fraction(2.5) * Fraction(float(x[i])) + Fraction(float(y[i])), "rn")
    guard = y.copy()
    load("saxpy").saxpy.launch(2.5, x, y, device=device)
    np.testing.assert_array_equal(y, due)
    assert n == 0 or not np.array_equal(y, guard)


def test_saxpy_is_guarded():
    text = load("saxpy").saxpy.ptx()
    assert re.search(r"setp\.(lt|ge)\.u32", text) and "fma.rn.f32" in text


# --- the assembler --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("target", ["sm_75", "sm_90a", "sm_100a"])
@pytest.mark.parametrize("name", NAMES)
def test_nvidias_assembler_takes_it(name, target):
    pytest.importorskip("nvidia", reason="nvidia-nvjitlink is not installed")
    cubin = getattr(load(name), name).cubin(target)
    assert cubin[:4] == b"\x7fELF"
