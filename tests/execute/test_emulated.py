"""The same entries on the emulator."""

from __future__ import annotations

import numpy as np
import pytest

from ptxtile import execute
from ptxtile.errors import EmulatorError, OperandError

SAXPY = """.version 7.0
.target sm_75
.address_size 64
.visible .entry saxpy(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n)
{
.reg .pred %p; .reg .b32 %r<6>; .reg .b64 %d<6>; .reg .f32 %f<5>;
ld.param.u64 %d0, [x]; ld.param.u64 %d1, [y]; ld.param.f32 %f0, [a]; ld.param.u32 %r0, [n];
mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
mad.lo.s32 %r4, %r1, %r2, %r3;
setp.ge.u32 %p, %r4, %r0;
@%p bra done;
mul.wide.u32 %d2, %r4, 4; add.s64 %d3, %d0, %d2; add.s64 %d4, %d1, %d2;
ld.global.f32 %f1, [%d3]; ld.global.f32 %f2, [%d4];
fma.rn.f32 %f3, %f0, %f1, %f2;
st.global.f32 [%d4], %f3;
done: ret;
}
"""


def saxpy(x: object, y: object, a: object, n: object) -> None:
    execute.run(SAXPY, "saxpy", (x, y, a, n), grid=2, block=32, device="emulator")


def test_host_arrays_change_in_place() -> None:
    x, y = np.arange(50, dtype=np.float32), np.ones(50, np.float32)
    saxpy(x, y, 2.0, np.int64(49))
    assert y.tolist() == [2.0 * i + 1 for i in range(49)] + [1.0]


def test_device_arrays_of_the_emulator() -> None:
    x = execute.asarray(np.arange(8, dtype=np.float32), device="emulator")
    y = execute.zeros(8, "float32", device="emulator")
    saxpy(x, y, 3, 8)
    assert y.numpy().tolist() == [3.0 * i for i in range(8)]


def test_aliases() -> None:
    base = np.arange(9, dtype=np.float32)
    saxpy(base[1:], base[1:], 1.0, 8)
    assert base.tolist() == [0, 2, 4, 6, 8, 10, 12, 14, 16]


def test_arrays_that_are_not_writable() -> None:
    x, y = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    x.flags.writeable = False
    saxpy(x, y, 1.0, 4)
    assert y.tolist() == [0, 1, 2, 3]
    view = y[:]
    view.flags.writeable = False
    saxpy(view, y, 1.0, 4)
    assert y.tolist() == [0, 2, 4, 6]
    with pytest.raises(OperandError) as caught:
        saxpy(y, x, 1.0, 4)
    assert str(caught.value) == (
        "the kernel wrote to argument 2 ('y', .u64), an array that is not writable; the array was left as it was"
    )
    assert x.tolist() == [0, 1, 2, 3]


def test_an_array_without_axes() -> None:
    x, y = np.array(3, np.float32), np.array(1, np.float32)
    saxpy(x, y, 2.0, 1)
    assert y == 7.0


def test_an_error_names_the_line_of_the_text_that_was_given() -> None:
    with pytest.raises(EmulatorError) as caught:
        saxpy(np.zeros(4, np.float32), np.zeros(4, np.float32), 1.0, 5)
    assert caught.value.kind == "out-of-bounds"
    assert caught.value.line == 1 + next(i for i, row in enumerate(SAXPY.splitlines()) if "ld.global" in row)
