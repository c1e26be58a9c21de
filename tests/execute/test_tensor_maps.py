"""Tensor maps of launches: what the driver is asked, what is kept, what is refused."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

import numpy as np
import pytest
from standin import CUresult
from standin.maps import MapStandin

import ptxtile as pt
from ptxtile import driver, ptx, tile
from ptxtile.errors import DriverError, LayoutError, OperandError
from ptxtile.execute import tensor_maps
from ptxtile.execute.tensor_maps import encode


@pytest.fixture
def maps(monkeypatch: pytest.MonkeyPatch) -> Iterator[MapStandin]:
    monkeypatch.delenv("PTXTILE_DEVICE", raising=False)
    monkeypatch.setattr(tensor_maps, "_encoded", OrderedDict())
    made = MapStandin()
    with driver.use(made):
        yield made


def asked(maps: MapStandin, described: pt.TensorMap, shape: tuple[int, ...], address: int) -> str:
    """The arguments of the driver's encoder."""
    found = encode("A", described.of(shape), address, 0)
    assert len(found) == 128
    name, (text,) = next(call for call in reversed(maps.calls) if call[0].startswith("cuTensorMap"))
    assert found.rstrip(b"\0").decode() == text[:128]
    return f"{name[len('cuTensorMapEncode') :]} {text}"


def test_tiles(maps):
    described = pt.TensorMap(
        ("M", "K"),
        pt.bfloat16,
        box=(128, 64),
        swizzle=128,
        l2_promotion=256,
        element_strides=(2, 1),
        nan=True,
    )
    assert asked(maps, described, (300, 200), 0x1000) == (
        "Tiled BFLOAT16 2 4096 200:300 400 64:128 1:2 INTERLEAVE_NONE SWIZZLE_128B L2_PROMOTION_L2_256B "
        "FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA"
    )


def test_pixels(maps):
    described = pt.TensorMap(
        (2, 9, 17, 64), pt.float16, box=(32, 64), swizzle=128, im2col=((-1, -2), (-3, -4)), interleave=0
    )
    assert asked(maps, described, (2, 9, 17, 64), 0x2000) == (
        "Im2col FLOAT16 4 8192 64:17:9:2 128:2176:19584 -2:-1 -4:-3 64 32 1:1:1:1 INTERLEAVE_NONE SWIZZLE_128B "
        "L2_PROMOTION_NONE FLOAT_OOB_FILL_NONE"
    )


@pytest.mark.parametrize(
    ("dtype", "element", "name"),
    [
        (pt.uint8, None, "UINT8"),
        (pt.int8, None, "UINT8"),
        (pt.float8_e4m3fn, None, "UINT8"),
        (pt.uint16, None, "UINT16"),
        (pt.int32, None, "INT32"),
        (pt.uint32, None, "UINT32"),
        (pt.int64, None, "INT64"),
        (pt.float32, None, "FLOAT32"),
        (pt.float32, "tf32", "TFLOAT32"),
        (pt.float32, "f32.ftz", "FLOAT32_FTZ"),
        (pt.float64, None, "FLOAT64"),
    ],
)
def test_element_types(maps, dtype, element, name):
    described = pt.TensorMap((16, 32), dtype, box=(8, 16), element=element)
    assert asked(maps, described, (16, 32), 0x3000).split()[1] == name


def test_a_map_is_encoded_once_for_an_address(maps):
    described = pt.TensorMap(("M", 64), pt.float16, box=(8, 64))
    map_ = described.of((40, 64))
    first = encode("A", map_, 0x44000, 0)
    assert encode("A", map_, 0x44000, 0) is first
    encode("A", map_, 0x45000, 0)
    assert len(maps.named("cuTensorMapEncodeTiled")) == 2


def test_messages(maps):
    described = pt.TensorMap((64, 64), pt.float16, box=(8, 64))
    with pytest.raises(OperandError) as caught:
        encode("k: argument 'A'", described.of((64, 64)), 0x1008, 0)
    assert str(caught.value) == (
        "k: argument 'A': the tensor starts at device address 0x1008, and a tensor map needs a multiple of 16"
    )
    maps.fail_next("cuTensorMapEncodeTiled", CUresult.CUDA_ERROR_INVALID_VALUE)
    with pytest.raises(DriverError, match=r"encode a tensor map of extents \(64, 64\), box \(64, 8\)"):
        encode("A", described.of((64, 64)), 0x88000, 0)


def test_a_launch_encodes_the_array_it_copied(maps):
    """The kernel of the stand-in sees the 128 bytes; a second launch with the same shape may have another address."""

    @pt.kernel(grid=1, block=32)
    def look(A: pt.TensorMap(("M", 64), pt.float16, box=(8, 64))):
        tile.apply(ptx["cp.async.bulk.prefetch.tensor.2d.L2.global.tile"], A[0, 0])

    seen: list[bytes] = []
    maps.kernels["look"] = lambda given: seen.append(given.raw(0, 128))
    maps.function_attributes["PARAMETERS"] = 2
    look.launch(np.zeros((24, 64), np.float16), device=0)
    assert seen[0].startswith(b"FLOAT16 2 ") and b" 64:24 128 64:8 1:1 INTERLEAVE_NONE" in seen[0]
    ready = bytes(range(128))
    with pytest.raises(OperandError) as caught:
        look.launch(ready, device=0)
    assert str(caught.value) == (
        "look: the size M is known from no argument: a tensor map that is encoded already does not say it"
    )


def test_another_shape_dtype_or_stride_is_refused(maps):
    @pt.kernel(grid=1, block=32)
    def look(A: pt.TensorMap(("M", 64), pt.float16, box=(8, 64))):
        tile.apply(ptx["cp.async.bulk.prefetch.tensor.2d.L2.global.tile"], A[0, 0])

    @pt.kernel(grid=1, block=32)
    def any_width(A: pt.TensorMap(("M", "K"), pt.float16, box=(8, 64))):
        tile.apply(ptx["cp.async.bulk.prefetch.tensor.2d.L2.global.tile"], A[0, 0])

    def refused(kernel: pt.Kernel, given: object) -> str:
        with pytest.raises((OperandError, LayoutError)) as caught:
            kernel.launch(given, device=0)
        return str(caught.value)

    assert refused(look, np.zeros((24, 32), np.float16)) == (
        "look: argument 'A' has shape (24, 32) and must have (M, 64)"
    )
    assert (
        refused(look, np.zeros((24, 64), np.float32)) == "look: argument 'A' is float32 and must be float16"
    )
    assert refused(any_width, np.zeros((24, 68), np.float16)) == (
        "any_width: argument 'A': a stride of 136 bytes; it must be a multiple of 16 bytes below 2**40, so the innermost "
        "extent must be a multiple of 8 elements"
    )
    sliced = np.zeros((24, 128), np.float16)[:, :64]
    assert "it is not contiguous in row-major order" in refused(look, sliced)
