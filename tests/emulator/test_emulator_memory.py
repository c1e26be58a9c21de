"""State spaces, vectors, generic addresses, and what is said of an access that is not allowed."""

from __future__ import annotations

import numpy as np
import pytest

from ptxtile.emulator import Loaded, Memory, launch, pack


def test_vector_accesses_of_every_width(run):
    a = np.arange(64, dtype=np.uint32)
    b = np.zeros(64, np.uint32)
    run(
        """
        ld.param.u64 %rd1, [A]; ld.param.u64 %rd2, [B];
        mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 16; add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;
        ld.global.v4.b32 {%r2, %r3, %r4, %r5}, [%rd1];
        st.global.v2.b32 [%rd2], {%r5, %r4};
        st.global.v4.b16 [%rd2+8], {%h1, %h2, %h3, %h4};
        """.replace("st.global.v4", "mov.b32 {%h1, %h2}, %r3; mov.b32 {%h3, %h4}, %r2; st.global.v4"),
        [a, b],
        block=16,
    )
    assert (b.reshape(16, 4) == a.reshape(16, 4)[:, ::-1][:, [0, 1, 2, 3]]).all()


def test_narrow_values_extend_to_wide_registers(run):
    a = np.array([0x80FE], np.uint16)
    b = np.zeros(4, np.uint32)
    run(
        """
        ld.param.u64 %rd1, [A]; ld.param.u64 %rd2, [B];
        ld.global.u8 %r1, [%rd1]; ld.global.s8 %r2, [%rd1]; ld.global.u16 %r3, [%rd1]; ld.global.s16 %r4, [%rd1];
        st.global.v4.b32 [%rd2], {%r1, %r2, %r3, %r4};
        """,
        [a, b],
        block=1,
    )
    assert b.tolist() == [0xFE, 0xFFFFFFFE, 0x80FE, 0xFFFF80FE]


def test_every_space_through_generic_addresses(run):
    a = np.array([5], np.uint32)
    out = np.zeros((5, 32), np.uint32)
    run(
        """
        .shared .align 4 .b32 s[32];
        .local .align 4 .b32 l[2];
        ld.param.u64 %rd1, [A]; ld.param.u64 %rd2, [B];
        mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd2, %rd2, %rd3;
        mov.u64 %rd4, s; cvta.shared.u64 %rd4, %rd4; add.s64 %rd4, %rd4, %rd3;
        mov.u64 %rd5, l; cvta.local.u64 %rd5, %rd5;
        mov.u64 %rd6, c; cvta.const.u64 %rd6, %rd6;
        mov.u64 %rd7, g;
        st.b32 [%rd4], %r1; st.b32 [%rd5+4], %r1;
        ld.b32 %r2, [%rd4]; ld.b32 %r3, [%rd5+4]; ld.b32 %r4, [%rd6+4]; ld.b32 %r5, [%rd7+8]; ld.b32 %r6, [%rd1];
        st.b32 [%rd2], %r2; st.b32 [%rd2+128], %r3; st.b32 [%rd2+256], %r4; st.b32 [%rd2+384], %r5;
        st.b32 [%rd2+512], %r6;
        """,
        [a, out],
        module=".const .align 4 .b32 c[3] = {7, 8};\n.global .align 4 .b32 g[3] = {1, 2, 3};",
    )
    i = np.arange(32)
    assert (out == np.array([i, i, i * 0 + 8, i * 0 + 3, i * 0 + 5])).all()


def test_threads_of_one_instruction_in_different_spaces(run):
    out = np.zeros(32, np.uint32)
    run(
        """
        .shared .align 4 .b32 s[32];
        ld.param.u64 %rd1, [A];
        mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd1, %rd1, %rd3;
        mov.u64 %rd4, s; cvta.shared.u64 %rd4, %rd4; add.s64 %rd4, %rd4, %rd3;
        setp.lt.u32 %p1, %r1, 10; selp.b64 %rd5, %rd4, %rd1, %p1;
        st.b32 [%rd5], %r1;
        isspacep.shared %p2, %rd5; selp.b32 %r2, 100, 0, %p2;
        ld.b32 %r3, [%rd5]; add.u32 %r3, %r3, %r2; st.global.b32 [%rd1], %r3;
        """,
        [out],
    )
    i = np.arange(32)
    assert (out == i + 100 * (i < 10)).all()


def test_local_memory_is_the_threads_own(run):
    out = np.zeros(70, np.uint32)
    run(
        """
        .local .align 8 .b8 l[24];
        ld.param.u64 %rd1, [A];
        mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd1, %rd1, %rd3;
        st.local.b32 [l+20], %r1; st.local.b8 [l], %r1;
        ld.local.b32 %r2, [l+20]; st.global.b32 [%rd1], %r2;
        """,
        [out],
        block=70,
    )
    assert (out == np.arange(70)).all()


def test_dynamic_shared_memory_follows_the_static(run, fail):
    body = """
    .shared .align 4 .b32 fixed[5];
    ld.param.u64 %rd1, [A];
    mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, dynamic; add.u32 %r3, %r3, %r2;
    st.shared.b32 [%r3], %r1; ld.shared.b32 %r4, [%r3];
    mov.u32 %r5, %dynamic_smem_size; add.u32 %r4, %r4, %r5;
    cvt.u64.u32 %rd2, %r2; add.s64 %rd1, %rd1, %rd2; st.global.b32 [%rd1], %r4;
    """
    out = np.zeros(32, np.uint32)
    options = {"module": ".extern .shared .align 16 .b8 dynamic[];", "dynamic_shared": 128}
    run(body, [out], **options)
    assert (out == np.arange(32) + 128).all()
    error = fail(body, [out], **{**options, "dynamic_shared": 64})
    assert (error.kind, error.line) == ("out-of-bounds", 11)
    assert str(error) == (
        "out of bounds: writes 4 bytes at shared address 0x470; the CTA has 112 bytes of it, 0x400 to 0x470\n"
        "  line 11: st.shared.b32 [%r3], %r1\n  thread (16, 0, 0) of CTA (0, 0, 0)"
    )


EXTENT = "argument 1 (A) (256 bytes at 0x7f0000000200)"
ACCESS = "ld.param.u64 %rd1, [A];\nmov.u32 %r2, 1;\n"


@pytest.mark.parametrize(
    ("access", "kind", "text"),
    [
        (
            "ld.global.b32 %r1, [%rd1+256];",
            "out-of-bounds",
            f"out of bounds: reads 4 bytes at 0x7f0000000300, just past the end of {EXTENT}",
        ),
        (
            "st.global.b32 [%rd1+264], %r2;",
            "out-of-bounds",
            f"out of bounds: writes 4 bytes at 0x7f0000000308, 8 bytes past the end of {EXTENT}",
        ),
        (
            "ld.global.b32 %r1, [%rd1+-4];",
            "out-of-bounds",
            f"out of bounds: reads 4 bytes at 0x7f00000001fc, 4 bytes before the start of {EXTENT}",
        ),
        (
            "ld.global.v4.b32 {%r3, %r4, %r5, %r6}, [%rd1+8];",
            "misaligned",
            "misaligned: reads 16 bytes at 0x7f0000000208, which is not a multiple of 16",
        ),
        (
            "mov.u64 %rd1, 8; ld.b32 %r1, [%rd1];",
            "out-of-bounds",
            "out of bounds: reads 4 bytes at 0x8, which is near null",
        ),
        (
            "ld.local.b32 %r1, [%rd1];",
            "out-of-bounds",
            "out of bounds: reads 4 bytes at local address 0x7f0000000200; the thread has 0 bytes of it from 0x100",
        ),
        (
            "mov.u32 %r3, 0x400; ld.shared.b32 %r1, [%r3];",
            "out-of-bounds",
            "out of bounds: reads 4 bytes at shared address 0x400; this launch has no shared memory",
        ),
        (
            "ld.param.b32 %r1, [A+6];",
            "misaligned",
            "misaligned: reads 4 bytes at param address 0x286, which is not a multiple of 4",
        ),
        (
            "ld.param.b64 %rd1, [A+8];",
            "out-of-bounds",
            "out of bounds: reads 8 bytes at param address 0x288; the parameter space has 8 bytes from 0x280",
        ),
    ],
)
def test_what_is_said_of_a_wrong_access(fail, access, kind, text):
    error = fail(ACCESS + access, [np.zeros(64, np.uint32)], block=1)
    instruction = access.split("; ")[-1].rstrip(";")
    assert (error.kind, error.line) == (kind, 9)
    assert str(error) == f"{text}\n  line 9: {instruction}\n  thread (0, 0, 0) of CTA (0, 0, 0)"


def test_bounds_and_alignment_are_checked_without_the_sanitizer(fail):
    assert (
        fail(ACCESS + "ld.global.b32 %r1, [%rd1+2];", [np.zeros(1, np.uint32)], sanitize=False).kind
        == "misaligned"
    )
    assert (
        fail(ACCESS + "ld.global.b32 %r1, [%rd1+4];", [np.zeros(1, np.uint32)], sanitize=False).kind
        == "out-of-bounds"
    )


def test_neighbouring_arrays_do_not_touch(fail):
    a, b = np.zeros(16, np.uint32), np.zeros(16, np.uint32)
    for offset in (64, 256, 512):
        assert fail(ACCESS + f"ld.global.b32 %r1, [%rd1+{offset}];", [a, b], block=1).kind == "out-of-bounds"


def test_constants_cannot_be_written(fail):
    error = fail(
        "mov.u64 %rd1, c; cvta.const.u64 %rd1, %rd1;\nst.b32 [%rd1], 1;", [], module=".const .b32 c = 4;"
    )
    assert error.kind == "read-only"
    assert str(error).startswith(
        "read-only: the constant memory cannot be written\n  line 9: st.b32 [%rd1], 1\n"
    )


# -- arguments


def test_arrays_that_share_memory_share_it_on_the_device(run):
    a = np.arange(64, dtype=np.uint32)
    run(
        """
        ld.param.u64 %rd1, [A]; ld.param.u64 %rd2, [B];
        ld.global.b32 %r1, [%rd2]; add.u32 %r1, %r1, 1000; st.global.b32 [%rd1+128], %r1;
        """,
        [a, a[32:]],
        block=1,
    )
    assert a[32] == 1032
    assert a.sum() == np.arange(64).sum() + 1000


def test_an_array_that_is_not_contiguous(run):
    a = np.zeros((8, 8), np.uint32)
    run(
        "ld.param.u64 %rd1, [A]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;\n"
        "st.global.b32 [%rd1], %r1;",
        [a[:, 3]],
        block=8,
    )
    assert (a[:, 3] == np.arange(8)).all()
    assert a.sum() == 28


SCALARS = """
ld.param.u64 %rd1, [O];
ld.param.b32 %r1, [x]; ld.param.u16 %r2, [y]; ld.param.b64 %rd2, [z]; ld.param.v2.b32 {%r3, %r4}, [s+8];
st.global.b32 [%rd1], %r1; st.global.b32 [%rd1+4], %r2; st.global.b64 [%rd1+8], %rd2;
st.global.v2.b32 [%rd1+16], {%r3, %r4};
"""
SCALAR_PARAMETERS = ".param .u64 O, .param .f32 x, .param .s16 y, .param .f64 z, .param .align 8 .b8 s[16]"


def test_scalars_and_structs(run):
    out = np.zeros(24, np.uint8)
    struct = np.arange(4, dtype=np.uint32)
    run(SCALARS, [out, 1.5, -2, np.float64(0.1), struct], block=1, parameters=SCALAR_PARAMETERS)
    assert out[:4].view(np.float32)[0] == 1.5
    assert out[4:8].view(np.uint32)[0] == 0xFFFE
    assert out[8:16].view(np.float64)[0] == 0.1
    assert out[16:].view(np.uint32).tolist() == [2, 3]
    run(SCALARS, [out, 1.5, -2, 0.1, struct.tobytes()], block=1, parameters=SCALAR_PARAMETERS)


@pytest.mark.parametrize(
    ("position", "value", "text"),
    [
        (1, "x", "argument 2 (x) is .f32; str 'x' is no value for it"),
        (2, 40000, "argument 3 (y) is .s16; 40000 does not fit into it"),
        (2, 1.0, "argument 3 (y) is .s16; the float 1.0 is no integer"),
        (4, b"1", "argument 5 (s) is .b8[16] of 16 bytes; 1 bytes were given"),
        (4, 3, "argument 5 (s) is .b8[16]; it takes 16 bytes or an array of that size"),
        (1, np.zeros(3), "argument 2 (x) is .f32, which cannot hold the address of an array"),
    ],
)
def test_arguments_that_do_not_fit(fail, position, value, text):
    arguments = [np.zeros(24, np.uint8), 1.5, -2, 0.1, bytes(16)]
    arguments[position] = value
    error = fail(SCALARS, arguments, block=1, parameters=SCALAR_PARAMETERS)
    assert (error.kind, str(error)) == ("launch", text)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"grid": 0, "block": 2000}, "block.x is 2000; 1024 is the most"),
        ({"block": (64, 32)}, "a CTA of 2048 threads; 1024 is the most"),
        ({"dynamic_shared": 300000}, "300000 bytes of shared memory; 232448 is the most"),
        ({"grid": 3, "cluster": 2}, "a cluster of (2, 1, 1) does not divide a grid of (3, 1, 1)"),
        ({"dynamic_shared": -4}, "dynamic_shared is -4, below 0"),
        ({"grid": 17, "cluster": 17}, "cluster.x is 17; 16 is the most"),
        ({"grid": (4, 8), "cluster": (4, 8)}, "a cluster of 32 CTAs; 16 is the most"),
        ({"grid": 1.0}, "grid must be one to three positive numbers, not 1.0"),
        ({"block": "32"}, "block must be one to three positive numbers, not '32'"),
        ({"grid": (1, 2, 3, 4)}, "grid must be one to three positive numbers, not (1, 2, 3, 4)"),
    ],
)
def test_launches_that_a_device_would_refuse(fail, options, text):
    assert str(fail("", [], **options)) == text


@pytest.mark.parametrize("module", [None, b".version 8.0"])
def test_what_is_no_module(module):
    from ptxtile.emulator import EmulatorError, launch

    with pytest.raises(EmulatorError, match="a module is PTX text or a Module, not "):
        launch(module, "k", 1, 1, [])


def test_an_array_of_objects(fail):
    error = fail("", [np.array([None])])
    assert (error.kind, "an array of Python objects" in str(error)) == ("launch", True)


def test_names_and_counts_that_do_not_fit():
    from ptxtile.emulator import EmulatorError
    from tests.emulator.conftest import kernel

    for name, args, text in (
        ("f", [], "the module has no function 'f' with a body; it has k"),
        ("k", [1], "k takes 0 parameters (none), 1 arguments were given"),
    ):
        with pytest.raises(EmulatorError) as caught:
            launch(kernel("", ""), name, 1, 1, args)
        assert (caught.value.kind, str(caught.value)) == ("launch", text)


def test_an_empty_grid_and_an_empty_array(run):
    run("ld.param.u64 %rd1, [A]; ld.global.b32 %r1, [%rd1];", [np.zeros(0, np.uint32)], grid=0)


# -- memory that is kept


def test_memory_between_launches():
    from tests.emulator.conftest import kernel

    memory = Memory()
    loaded = Loaded(
        kernel(
            "ld.param.u64 %rd1, [A]; ld.global.b32 %r1, [n]; add.u32 %r1, %r1, 1; st.global.b32 [n], %r1;\n"
            "st.global.b32 [%rd1], %r1;",
            ".param .u64 A",
            ".global .align 4 .b32 n = 40;",
        ),
        memory,
    )
    address = memory.allocate(4, name="out")
    function = loaded.program.code("k").function
    for expected in (41, 42):
        loaded.launch("k", 1, 1, pack(function, [address], [None]))
        assert int.from_bytes(memory.read(address, 4), "little") == expected
    assert loaded.variable("n")[1] == 4
    memory.free(address)
    from ptxtile.emulator import EmulatorError

    with pytest.raises(EmulatorError) as caught:
        memory.read(address, 4)
    assert caught.value.kind == "out-of-bounds"


def test_device_memory_that_nobody_wrote():
    from ptxtile.emulator import EmulatorError
    from tests.emulator.conftest import kernel

    loaded = Loaded(
        kernel(
            "ld.param.u64 %rd1, [A]; ld.global.b32 %r1, [%rd1];\nst.global.b32 [%rd1+4], %r1;",
            ".param .u64 A",
        )
    )
    address = loaded.memory.allocate(8)
    with pytest.raises(EmulatorError) as caught:
        loaded.launch("k", 1, 1, address.to_bytes(8, "little"))
    assert (caught.value.kind, caught.value.line) == ("uninitialised", 8)
