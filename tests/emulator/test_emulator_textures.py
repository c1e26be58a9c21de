"""Textures and surfaces of one and two dimensions, against NumPy indexing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ptxtile.emulator import EmulatorError, Loaded, launch, pack, sampler, surface, texture

HEAD = """.version 8.6
.target sm_90
.address_size 64
"""
TEXT = (
    HEAD
    + """MODULE
.visible .entry k(.param .u64 T, .param .u64 S, .param .u64 XY, .param .u64 OUT)
{
.reg .pred %p<4>; .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .f32 %f<8>; .reg .b64 %rd<8>;
ld.param.u64 %rd1, [T];
ld.param.u64 %rd2, [S];
ld.param.u64 %rd3, [XY];
ld.param.u64 %rd4, [OUT];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd5, %r1, 8;
add.u64 %rd3, %rd3, %rd5;
mul.wide.u32 %rd5, %r1, 16;
add.u64 %rd4, %rd4, %rd5;
ld.global.v2.f32 {%f1, %f2}, [%rd3];
ld.global.v2.b32 {%r2, %r3}, [%rd3];
mov.b32 %r4, 0; mov.b32 %r5, 0; mov.b32 %r6, 0; mov.b32 %r7, 0;
BODY
st.global.v4.b32 [%rd4], {%r4, %r5, %r6, %r7};
ret;
}
"""
)
FLOATS = "mov.b32 %r4, %f3; mov.b32 %r5, %f4; mov.b32 %r6, %f5; mov.b32 %r7, %f6;"


def run(body, points, first, second=0, module=""):
    """Each thread's four result words; the points are float32 or int32, two a thread."""
    out = np.zeros((len(points), 4), np.uint32)
    text = TEXT.replace("MODULE\n", module).replace("BODY", body)
    launch(text, "k", 1, len(points), [int(first), int(second), np.ascontiguousarray(points), out])
    return out


def reflect(i, n):
    i %= 2 * n
    return i if i < n else 2 * n - 1 - i


def model(x, size, mode, normalized):
    """The texel that a coordinate means, None on the border."""
    i = math.floor(math.floor(x * 2**21) / 2**21 * size if normalized else x)
    if mode == "border":
        return i if 0 <= i < size else None
    if normalized and mode == "wrap":
        return i % size
    if normalized and mode == "mirror":
        return reflect(i, size)
    return min(max(i, 0), size - 1)


@pytest.mark.parametrize("mode", ["wrap", "mirror", "clamp", "border"])
@pytest.mark.parametrize("normalized", [False, True])
def test_points_of_two_dimensions(mode, normalized):
    rng = np.random.default_rng(2)
    image = rng.random((5, 7, 4)).astype(np.float32)
    points = (rng.random((64, 2)) * 30 - 10).astype(np.float32) / (8 if normalized else 1)
    border = (1.0, 2.0, 3.0, 4.0)
    handle = texture(image, channels=4, normalized=normalized, address=mode, border=border)
    got = run(f"tex.2d.v4.f32.f32 {{%f3, %f4, %f5, %f6}}, [%rd1, {{%f1, %f2}}]; {FLOATS}", points, handle)
    for row, (x, y) in zip(got.view(np.float32), points.tolist()):
        column, line = model(x, 7, mode, normalized), model(y, 5, mode, normalized)
        due = border if column is None or line is None else image[line, column]
        assert row.tolist() == [np.float32(v) for v in due], (x, y)


def test_whole_coordinates_are_zero_outside_and_offsets_count():
    image = np.arange(12, dtype=np.uint32).reshape(3, 4) + 100
    points = np.array([[0, 0], [3, 2], [2, 1], [-1, 0], [4, 0], [0, 3]], np.int32)
    handle = texture(image, normalized=True, address="wrap")
    body = "tex.2d.v4.u32.s32 {%r4, %r5, %r6, %r7}, [%rd1, {%r2, %r3}];"
    got = run(body, points, handle)
    assert got.tolist() == [
        [100, 0, 0, 0],
        [111, 0, 0, 0],
        [106, 0, 0, 0],
        [0, 0, 0, 0],
        [0, 0, 0, 0],
        [0, 0, 0, 0],
    ]
    body = "mov.b32 %r8, 1; mov.b32 %r9, -1; tex.2d.v4.u32.s32 {%r4, _, _, %r7}|%p1, [%rd1, {%r2, %r3}], {%r8, %r9};"
    body += "selp.b32 %r7, %r7, 77, %p1;"
    assert run(body, points[1:3], handle).tolist() == [[0, 0, 0, 0], [103, 0, 0, 0]]


def test_an_offset_of_one_dimension_leaves_a_texture_with_a_border():
    image = np.arange(8, dtype=np.float32) + 1
    points = np.array([[4.5, 0]], np.float32)
    for mode, due in (("clamp", 3), ("border", 0)):
        handle = texture(image, address=mode)
        body = f"tex.1d.v4.f32.f32 {{%f3, %f4, %f5, %f6}}, [%rd1, {{%f1}}], {{-2}}; {FLOATS}"
        assert run(body, points, handle).view(np.float32)[0, 0] == due


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "int32", "float16", "float32"])
def test_elements_of_one_dimension(dtype):
    values = np.array([0, 1, -1, 100, -128, 127], np.float64)
    image = (values if dtype[0] in "if" else np.abs(values)).astype(dtype)
    points = np.array([[i + 0.5, 0] for i in range(6)], np.float32)
    handle = texture(image)
    if dtype.startswith("float"):
        got = run(f"tex.1d.v4.f32.f32 {{%f3, %f4, %f5, %f6}}, [%rd1, {{%f1}}]; {FLOATS}", points, handle)
        assert got.view(np.float32)[:, 0].tolist() == image.astype(np.float32).tolist()
        body = """tex.1d.v2.f16x2.f32 {%r4, %r5}, [%rd1, {%f1}];
        tex.1d.v4.f16.f32 {%h1, %h2, %h3, %h4}, [%rd1, {%f1}]; mov.b32 %r6, {%h1, %h4};"""
        got = run(body, points, handle).view(np.float16).reshape(6, 8)
        assert (got[:, 0] == image.astype(np.float16)).all() and (got[:, 1:4] == 0).all()
        assert (got[:, 4] == image.astype(np.float16)).all() and (got[:, 5] == 0).all()
        return
    kind = "s32" if dtype[0] == "i" else "u32"
    got = run(f"tex.1d.v4.{kind}.f32 {{%r4, %r5, %r6, %r7}}, [%rd1, {{%f1}}];", points, handle)
    assert got.view(np.int32)[:, 0].tolist() == image.astype(np.int32).tolist()
    if dtype == "int32":
        return
    handle = texture(image, as_float=True)
    got = run(f"tex.1d.v4.f32.f32 {{%f3, %f4, %f5, %f6}}, [%rd1, %f1]; {FLOATS}", points, handle).view(
        np.float32
    )
    top = np.iinfo(dtype).max
    assert (got[:, 0] == np.maximum(image.astype(np.float64) / top, -1).astype(np.float32)).all()


def test_the_four_around_a_place():
    image = np.arange(60, dtype=np.int32).reshape(5, 6, 2)
    handle = texture(image, channels=2)
    points = np.array([[2.5, 3.5], [2.9, 3.1], [0.2, 0.2], [5.9, 4.9]], np.float32)
    got = run("tld4.g.2d.v4.s32.f32 {%r4, %r5, %r6, %r7}, [%rd1, {%f1, %f2}];", points, handle)
    for row, (x, y) in zip(got.tolist(), points.tolist()):
        i, j = math.floor(x - 0.5), math.floor(y - 0.5)
        near = [(i, j + 1), (i + 1, j + 1), (i + 1, j), (i, j)]
        assert row == [int(image[min(max(b, 0), 4), min(max(a, 0), 5), 1]) for a, b in near]


def test_a_sampler_of_its_own_and_variables_that_hold_handles():
    image = np.arange(8, dtype=np.float32)
    points = np.array([[1.25, 0], [-0.25, 0]], np.float32)
    one = texture(image)
    other = sampler(normalized=True, address="wrap")
    body = f"tex.1d.v4.f32.f32 {{%f3, %f4, %f5, %f6}}, [%rd1, %rd2, {{%f1}}]; {FLOATS}"
    assert run(body, points, one, other).view(np.float32)[:, 0].tolist() == [2, 6]
    module = ".global .texref t;\n.global .samplerref u;\n"
    text = TEXT.replace("MODULE\n", module).replace("BODY", body.replace("%rd1", "t").replace("%rd2", "u"))
    loaded = Loaded(text)
    for name, handle in (("t", one), ("u", other)):
        loaded.memory.write(loaded.variable(name)[0], int(handle).to_bytes(8, "little"))
    place = loaded.memory.allocate(points.nbytes, written=True)
    loaded.memory.write(place, points)
    out = loaded.memory.allocate(32)
    function = loaded.program.code("k").function
    loaded.launch("k", 1, 2, pack(function, [0, 0, place, out], [None] * 4))
    assert np.frombuffer(loaded.memory.read(out, 32), np.float32)[::4].tolist() == [2, 6]


def test_queries():
    image = np.zeros((3, 9, 2), np.int16)
    body = """txq.width.b32 %r4, [%rd1]; txq.height.b32 %r5, [%rd1]; txq.channel_data_type.b32 %r6, [%rd1];
    txq.channel_order.b32 %r7, [%rd1];"""
    points = np.zeros((1, 2), np.float32)
    handle = texture(image, channels=2, normalized=True, address=("wrap", "border"))
    assert run(body, points, handle).tolist() == [[9, 3, 0x10D8, 0x10B2]]
    body = """txq.normalized_coords.b32 %r4, [%rd1]; txq.addr_mode_1.b32 %r5, [%rd1];
    txq.force_unnormalized_coords.b32 %r6, [%rd2]; txq.num_mipmap_levels.b32 %r7, [%rd1];"""
    assert run(body, points, handle, sampler(normalized=True)).tolist() == [[1, 3, 0, 1]]
    body = """istypep.texref %p1, %rd1; istypep.samplerref %p2, %rd1; istypep.surfref %p3, %rd2;
    selp.b32 %r4, 1, 0, %p1; selp.b32 %r5, 1, 0, %p2; selp.b32 %r6, 1, 0, %p3; suq.height.b32 %r7, [%rd2];"""
    plane = surface(np.zeros((4, 4), np.uint8))
    assert run(body, points, handle, plane).tolist() == [[1, 0, 1, 4]]


def test_surfaces_in_bytes():
    image = np.arange(24, dtype=np.uint16).reshape(3, 8)
    handle = surface(image)
    points = np.array([[0, 0], [12, 2], [4, 1], [-4, 0], [16, 0], [0, 5]], np.int32)
    for clamp, outside in (("zero", [0, 0, 0]), ("clamp", [0 | 1 << 16, 6 | 7 << 16, 16 | 17 << 16])):
        got = run(f"suld.b.2d.b32.{clamp} %r4, [%rd1, {{%r2, %r3}}];", points, handle)[:, 0]
        assert got.tolist() == [0 | 1 << 16, 22 | 23 << 16, 10 | 11 << 16, *outside]
    body = "mov.b16 %h1, 7; mov.b16 %h2, 9; sust.b.2d.v2.b16.zero [%rd1, {%r2, %r3}], {%h1, %h2};"
    run(body, points, handle)
    assert (
        image[0, :2].tolist() == [7, 9]
        and image[2, 6:].tolist() == [7, 9]
        and image[1, 2:4].tolist() == [7, 9]
    )
    assert image[0, 2:].tolist() == list(range(2, 8))


def test_formatted_stores_and_reductions():
    floats = np.zeros((4, 2), np.float16)
    points = np.array([[2, 0], [9, 0]], np.int32)
    body = "mov.b32 %r8, 0f3FC00000; sust.p.1d.v2.b32.zero [%rd1, {%r2}], {%r8, %r2};"
    run(body.replace("%r2};", "%r8};"), points, surface(floats, channels=2))
    assert floats.tolist() == [[0, 0], [0, 0], [1.5, 1.5], [0, 0]]
    counts = np.array([5, 0, -3, 7], np.int32)
    lanes = np.array([[2, 0]] * 32, np.int32)
    run("sured.p.min.1d.b32.trap [%rd1, %r2], -9; mov.b32 %r8, 4;", lanes[:1], surface(counts))
    assert counts.tolist() == [5, 0, -9, 7]
    run("shl.b32 %r2, %r2, 2; sured.b.add.1d.u32.trap [%rd1, %r2], 2;", lanes, surface(counts))
    assert counts.tolist() == [5, 0, -9 + 64, 7]


def failure(body, points, first, second=0):
    with pytest.raises(EmulatorError) as caught:
        run(body, points, first, second)
    return caught.value


def test_what_is_wrong_is_said():
    plane, points = surface(np.zeros((2, 4), np.uint8)), np.array([[4, 1]], np.int32)
    error = failure("suld.b.2d.b8.trap %h1, [%rd1, {%r2, %r3}];", points, plane)
    assert (error.kind, str(error).splitlines()[0]) == (
        "out-of-bounds",
        "out of bounds: reads 1 byte at byte 4 of row 1; the surface has 2 rows of 4 bytes",
    )
    error = failure("suld.b.2d.b32.trap %r4, [%rd1, {1, %r3}];", points, plane)
    assert (error.kind, str(error).splitlines()[0]) == (
        "misaligned",
        "misaligned: reads at byte 1 of a row, which is not a multiple of 4",
    )
    error = failure("tex.1d.v4.u32.s32 {%r4, _, _, _}, [%rd1, {%r2}];", points, plane)
    assert error.kind == "handle"
    assert (
        str(error).splitlines()[0]
        == f"handle: {int(plane):#x} stands for a surface, and a texture is needed here"
    )
    error = failure("tex.1d.v4.u32.s32 {%r4, _, _, _}, [%rd1, {%r2}];", points, 5)
    assert str(error).splitlines()[0] == (
        "handle: 0x5 stands for nothing that the emulator knows, and a texture is needed here"
    )
    error = failure("txq.filter_mode.b32 %r4, [%rd1];", points, plane)
    assert (
        str(error).splitlines()[0]
        == f"handle: {int(plane):#x} stands for a surface, which has no filter_mode"
    )
    error = failure(
        "tex.1d.v4.f32.f32 {%f3, _, _, _}, [%rd1, {%f7}];", points, texture(np.zeros(4, np.float32))
    )
    assert error.kind == "uninitialised"
    error = failure("tex.level.1d.v4.f32.f32 {%f3, _, _, _}, [%rd1, {%f1}], %f2;", points, 0)
    assert error.kind == "unsupported"
    error = failure("tex.2d.v4.f32.f32 {%f3, _, _, _}, [%rd1, {%f1, %f2}], %f1;", points, 0)
    assert str(error).splitlines()[0] == (
        "the emulator cannot run tex.2d.v4.f32.f32 with a depth or a packed offset"
    )


ARRAY = "a texture or surface is a C-contiguous array of uint8, uint16, uint32, int8, int16, int32, float16, float32"
SHAPE = "a texture or surface has one or two dimensions, and 1, 2 or 4 channels in a last axis, which"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: texture([1.0]), f"{ARRAY}, not list"),
        (lambda: surface(np.zeros(4)), f"{ARRAY}, not an array of float64"),
        (
            lambda: texture(np.zeros((2, 3), np.float32), channels=4),
            f"{SHAPE} (2, 3) with channels=4 has not",
        ),
        (lambda: texture(np.zeros((0,), np.float32)), "a texture or surface of shape (0,) has no texels"),
        (
            lambda: texture(np.zeros(3, np.float32), as_float=True),
            "as_float is for 8 and 16-bit integers, not float32",
        ),
        (
            lambda: sampler(address="repeat"),
            "address is one or two of 'wrap', 'mirror', 'clamp', 'border', not 'repeat'",
        ),
        (lambda: sampler(border=(1,)), "border has four numbers, not 1"),
    ],
)
def test_arrays_that_are_no_textures(make, message):
    with pytest.raises(EmulatorError) as caught:
        make()
    assert (caught.value.kind, str(caught.value)) == ("launch", message)


def test_a_handle_lives_as_long_as_its_object():
    number = int(texture(np.zeros(4, np.float32)))
    points = np.zeros((1, 2), np.float32)
    error = failure("tex.1d.v4.f32.f32 {%f3, _, _, _}, [%rd1, {%f1}];", points, number)
    assert "stands for nothing that the emulator knows" in str(error)
