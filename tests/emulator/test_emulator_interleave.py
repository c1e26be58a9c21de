"""Copies of interleaved tensor maps: what an H200 moved, and the same against NumPy."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ptxtile.emulator import EmulatorError, launch
from ptxtile.ir.tensor_map import Im2col, Mapped, TiledMap

BENCHMARKS = Path(__file__).resolve().parent.parent.parent / "benchmarks"
KEPT = json.loads((BENCHMARKS / "results" / "h200" / "interleave.json").read_text(encoding="utf-8"))["cases"]
N, S, H, W = 2, 6, 4, 8


@pytest.fixture(scope="module")
def asked():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import device_interleave
    finally:
        sys.path.remove(str(BENCHMARKS))
    return device_interleave


@pytest.mark.parametrize("row", KEPT, ids=[row["case"] for row in KEPT])
def test_what_an_h200_moved(asked, row):
    (case,) = [each for each in asked.cases() if each.name == row["case"]]
    found = asked.on_emulator(case)
    assert {name: found.get(name) for name in row} == row


def tensor(interleave):
    """Slices of channels in (images, slices, height, width): their elements are innermost."""
    return np.arange(1, N * S * H * W * interleave // 2 + 1, dtype=np.uint16).reshape(
        N, S, H, W, interleave // 2
    )


def described(array, box, interleave, swizzle=0, steps=(1, 1, 1, 1), corners=None):
    extents = array.shape[-2::-1]
    strides = tuple(array.strides[-3::-1])
    pixels = None if corners is None else Im2col(*corners)
    return TiledMap("u16", extents, strides, box, steps, interleave, swizzle, im2col=pixels)


def moved(asked, verb, map_, at, array):
    out = np.full(asked.SIZE + 16, 0xEE, np.uint8)
    out[: asked.SIZE // 2] = np.arange(7, 7 + asked.SIZE // 4, dtype=np.uint16).view(np.uint8)
    shared = out.view(np.uint16)[: map_.box_bytes // 2].copy()
    case = asked.Case("", verb, map_, at)
    launch(case.text(), "k", 1, asked.THREADS, [Mapped(map_, array), out])
    return shared, out.view(np.uint16)[: map_.box_bytes // 2]


@pytest.mark.parametrize("interleave", [16, 32])
@pytest.mark.parametrize("at", [(0, 0, 0, 0), (2, 1, 3, 1), (-3, -1, 2, 0), (6, 2, 5, 1), (0, 0, 6, 0)])
def test_a_load_moves_one_slice(asked, interleave, at):
    array = tensor(interleave)
    map_ = described(array, (8, 3, 16, 2), interleave, 32 if interleave == 32 else 0)
    assert map_.tile == (interleave // 2, 8, 3, 1, 2)
    _, shared = moved(asked, "load", map_, at, array)
    wide = np.zeros((3 * N, 3 * S, 3 * H, 3 * W, interleave // 2), np.uint16)
    wide[N : 2 * N, S : 2 * S, H : 2 * H, W : 2 * W] = array
    w, h, s, n = (place + extent for place, extent in zip(at, (W, H, S, N)))
    due = wide[n : n + 2, s, h : h + 3, w : w + 8]
    if interleave == 32:  # in every other line of 128 bytes the halves of 32 bytes are exchanged
        lines = due.reshape(-1, 4, 2, 8)
        due = np.where(np.arange(len(lines))[:, None, None, None] % 2 == 1, lines[:, :, ::-1], lines)
    np.testing.assert_array_equal(shared, due.reshape(-1))


@pytest.mark.parametrize("at", [(0, 0, 0, 0), (5, 2, 3, 1)])
@pytest.mark.parametrize("verb", ["store", "reduce"])
def test_stores_and_reductions(asked, at, verb):
    array = tensor(16) if verb == "store" else tensor(16).view(np.uint32)
    map_ = replace(described(array, (8, 3, 16, 1), 16), element=f"u{8 * array.itemsize}")
    before = array.copy()
    shared, _ = moved(asked, verb, map_, at, array)
    w, h, s, n = at
    part = shared.view(array.dtype).reshape(3, 8, -1)[: H - h, : W - w]
    before[n, s, h : h + 3, w : w + 8] = part + (0 if verb == "store" else before[n, s, h : h + 3, w : w + 8])
    np.testing.assert_array_equal(array, before)


def test_halves_of_words_are_not_added(asked):
    array = tensor(16)
    with pytest.raises(EmulatorError) as found:
        moved(asked, "reduce", described(array, (8, 3, 16, 1), 16), (0, 0, 0, 0), array)
    assert found.value.kind == "tensor-map"
    assert str(found.value).splitlines()[0] == (
        "tensor map: a reduction .add has no elements of u16; hardware stops with CUDA_ERROR_ILLEGAL_INSTRUCTION"
    )


def test_pixels_of_one_slice(asked):
    array = tensor(16)
    map_ = described(array, (8, 20), 16, corners=((-1, 0), (-1, -1)))
    assert map_.tile == (8, 20)
    _, shared = moved(asked, "load", map_, (4, 1, 2, 0), array)
    wide = np.pad(array, ((0, 0), (0, 0), (0, 0), (1, 0), (0, 0)))
    places = [(0, h, w) for h in range(H - 1) for w in range(-1, W - 1)]
    places += [(1, h, w) for _, h, w in places]
    start = places.index((0, 1, 4))
    due = [wide[n, 2, h, w + 1] for n, h, w in places[start : start + 20]]
    np.testing.assert_array_equal(shared, np.array(due).reshape(-1))


def test_pixels_along_the_width_are_not_interleaved(asked):
    array = tensor(16)
    map_ = described(array, (8, 20), 16, 32, corners=((0, 0), (0, 0)))
    text = asked.Case("", "load", map_, (0, 0, 0, 0), (0, 0)).text().replace(".im2col.", ".im2col::w.")
    text = text.replace("sm_90a", "sm_100a").replace("8.0", "8.6")
    with pytest.raises(EmulatorError) as found:
        launch(text, "k", 1, asked.THREADS, [Mapped(map_, array), np.zeros(asked.SIZE + 16, np.uint8)])
    assert found.value.kind == "tensor-map"
    assert str(found.value).splitlines()[0] == (
        "tensor map: .im2col::w takes a map with a swizzle, one that exchanges no halves of 16 bytes, and without "
        "interleaving"
    )
