"""What a newcomer tries, and what it says: blocks without `with`, wrong kinds of values, NumPy numbers, descriptions."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import numpy as np
import pytest

import ptxtile as pt
from builder.running import failure, text
from ptxtile import ptx

PARAMS = {"A": pt.Tensor((16, 4), pt.float32), "N": pt.Tensor((16,), pt.int32), "p": pt.Pointer(pt.int32)}
DESCRIBED = pt.Tensor((4, 4), pt.float32)


def _traced(body: Callable[..., object]) -> pt.Module:
    builder = pt.ModuleBuilder()
    with builder.entry("k", PARAMS, block=16) as k:
        body(k, pt.thread_idx("x"))
    return builder.module()


def block_without_with(k, t):
    pt.if_(t < 3)
    k.N[t] = 1


def exception_caught_outside(k, t):
    try:
        with pt.if_(t < 3):
            raise ValueError
    except ValueError:
        pass


def loop_as_iterator(k, t):
    for _ in pt.for_range(0, 3):
        pass


def if_in_an_if(k, t):
    if pt.if_(t < 3):
        pass


def pointer_arithmetic(k, t):
    ptx.ld.global_.s32(k.p + 4)


def address_in_brackets(k, t):
    ptx.ld.global_.s32([k.p])


def mapa_of_an_element(k, t):
    pt.mapa(pt.alloc_shared((4,), pt.float32)[0], 1)


def array_as_a_number(k, t):
    k.N[t] * np.ones(3, np.int32)


def numpy_number_of_another_dtype(k, t):
    k.N[t] = np.int64(2)


def power(k, t):
    k.A[t, 0] ** 2


def matrix_product(k, t):
    k.A[t, 0] @ k.A[t, 1]


def quotient_and_remainder(k, t):
    divmod(k.N[t], 3)


def rounding(k, t):
    round(k.A[t, 0])


def function_of_math(k, t):
    float(k.A[t, 0])


def array_as_an_index(k, t):
    k.N[np.zeros(3, int)]


def float_as_an_index(k, t):
    k.N[pt.float32(1)]


def pattern_as_a_number(k, t):
    k.A.rearrange(1)


def order_of_other_things(k, t):
    k.A.permute("1", 0)


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        (
            block_without_with,
            pt.TraceError,
            "k: pt.if_ was called without with, so no block is under it: write with pt.if_(…):\n  F: pt.if_(t < 3)",
        ),
        (
            exception_caught_outside,
            pt.TraceError,
            (
                "k: an exception left a pt.if_ block and was caught, so the block has no end; let it pass, or catch it inside "
                "the block\n  F: with pt.if_(t < 3):"
            ),
        ),
        (
            loop_as_iterator,
            pt.TraceError,
            "pt.for_range is no iterator: write with pt.for_range(…) as i:\n  F: for _ in pt.for_range(0, 3):",
        ),
        (if_in_an_if, pt.TraceError, "pt.if_ is no condition: write with pt.if_(…):\n  F: if pt.if_(t < 3):"),
        (
            pointer_arithmetic,
            pt.OperandError,
            (
                "pt.Pointer(pt.int32) has no arithmetic: p[i] is element i, and p.tensor((n,))[i : i + 1] stands as an address "
                "operand\n  F: ptx.ld.global_.s32(k.p + 4)"
            ),
        ),
        (
            address_in_brackets,
            pt.OperandError,
            (
                "ld.global.s32: operand a takes an address in .global, not a list of 1: a tensor or a pointer stands alone; "
                "t[i : i + 1] begins at element i\n  F: ptx.ld.global_.s32([k.p])"
            ),
        ),
        (
            mapa_of_an_element,
            pt.OperandError,
            (
                "pt.mapa takes a tensor or mbarrier in shared memory, not a run-time float32; s[i : i + 1] is the region that "
                "begins at element i\n  F: pt.mapa(pt.alloc_shared((4,), pt.float32)[0], 1)"
            ),
        ),
        (
            array_as_a_number,
            pt.OperandError,
            "int32 * a ndarray: a ndarray is no number\n  F: k.N[t] * np.ones(3, np.int32)",
        ),
        (
            numpy_number_of_another_dtype,
            pt.OperandError,
            (
                "storing into pt.Tensor((16,), pt.int32, TileLayout(S[16])): the value is int64 and must be int32; convert it "
                "with pt.cast(value, pt.int32)\n  F: k.N[t] = np.int64(2)"
            ),
        ),
        (
            power,
            pt.TraceError,
            (
                "float32 has no operator **, because PTX has no instruction for it: write a * a, or pt.pow(a, b)\n"
                "  F: k.A[t, 0] ** 2"
            ),
        ),
        (
            matrix_product,
            pt.TraceError,
            (
                "float32 has no operator @, because PTX has no instruction for it: name a form such as ptx.fma.rn.f32 or an "
                "mma\n  F: k.A[t, 0] @ k.A[t, 1]"
            ),
        ),
        (
            quotient_and_remainder,
            pt.TraceError,
            (
                "int32 has no operator divmod(), because PTX has no instruction for it: write a // b and a % b\n"
                "  F: divmod(k.N[t], 3)"
            ),
        ),
        (
            rounding,
            pt.TraceError,
            (
                "float32 has no operator round(), because PTX has no instruction for it: write pt.round(value), which stays a "
                'float32, or pt.cast(value, pt.int32, "rni")\n  F: round(k.A[t, 0])'
            ),
        ),
        (
            function_of_math,
            pt.TraceError,
            (
                "a run-time float32 was used as float(): its value exists only when the kernel runs; use pt.cast, and pt.exp, "
                "pt.floor … for what math has\n  F: float(k.A[t, 0])"
            ),
        ),
        (
            array_as_an_index,
            pt.LayoutError,
            "an index is an integer, a run-time integer or a slice, not array([0, 0, 0])\n  F: k.N[np.zeros(3, int)]",
        ),
        (
            float_as_an_index,
            pt.LayoutError,
            "an index is an integer, not pt.float32(1.0)\n  F: k.N[pt.float32(1)]",
        ),
        (pattern_as_a_number, pt.LayoutError, "a pattern is 'a (b c) -> b a c'; 1 has no ->"),
        (
            order_of_other_things,
            pt.LayoutError,
            "permute needs each of the dimensions 0 to 1 once, not ('1', 0)",
        ),
    ],
)
def test_messages(body: Callable[..., object], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught:
        _traced(body)
    assert text(caught.value) == message.replace("F:", "test_newcomer.py:N:")


@pytest.mark.parametrize(
    "use",
    [
        lambda: DESCRIBED[1, 1],
        lambda: DESCRIBED[1:],
        lambda: DESCRIBED.__setitem__((0, 0), 1),
        lambda: DESCRIBED.view(16),
        lambda: DESCRIBED.permute(1, 0),
        lambda: DESCRIBED.rearrange("a b -> b a"),
    ],
)
def test_a_description_has_no_elements(use: Callable[[], object]) -> None:
    with pytest.raises(pt.TraceError) as caught:
        use()
    assert str(caught.value) == (
        "pt.Tensor((4, 4), pt.float32) describes an argument; it has elements only inside a kernel's trace"
    )


def test_parameters_are_a_mapping() -> None:
    with pytest.raises(pt.TraceError) as caught:
        pt.ModuleBuilder().entry("k", [("A", pt.float32)])  # type: ignore[arg-type]
    assert str(caught.value) == (
        "params maps names to descriptions, as in {\"A\": pt.Tensor((32,), pt.float32)}; [('A', pt.float32)] does not"
    )
    with pytest.raises(pt.TraceError, match="^3 cannot name a parameter in PTX"):
        pt.ModuleBuilder().entry("k", {3: pt.float32})  # type: ignore[dict-item]


def test_a_body_gives_nothing_back() -> None:
    def generator(A: pt.Tensor((4,), pt.float32)):
        yield A

    async def coroutine(A: pt.Tensor((4,), pt.float32)):
        A[0] = 1.0

    def number(A: pt.Tensor((4,), pt.float32)):
        return 5

    for function in (generator, coroutine, number):
        with pytest.raises(pt.TraceError) as caught:
            pt.kernel(grid=1, block=1)(function).ptx()
        assert str(caught.value) == (
            "number: a kernel returns nothing, and this one returned 5; write into a tensor"
            if function is number
            else f"{function.__name__}: a kernel is a plain function, without yield, async or await"
        )


@pytest.mark.parametrize("function", [pt.sin, pt.cos, pt.tan])
def test_a_constant_has_a_sine(function: Callable[..., pt.float32]) -> None:
    builder = pt.ModuleBuilder()
    with builder.entry("k", {"A": pt.Tensor((2,), pt.float32)}, block=1) as k:
        k.A[0] = function(pt.float32(0.7))
        k.A[1] = function(pt.reg(pt.float32, 0.7))
    out = np.zeros(2, np.float32)
    pt.emulator.launch(builder.module(), "k", 1, 1, [out])
    assert out[0] == out[1]
    np.testing.assert_allclose(out[0], getattr(np, function.__name__)(0.7), rtol=1e-6)


def test_numbers_for_short_floats() -> None:
    """An integer for a float16 is that number, not its bits."""

    @pt.kernel(grid=1, block=1)
    def store(h: pt.float16, b: pt.bfloat16, A: pt.Tensor((2,), pt.float32)):
        A[0] = pt.cast(h, pt.float32)
        A[1] = pt.cast(b, pt.float32)

    for h, b in ((2, 3.5), (np.int64(2), np.float64(3.5)), (np.float16(2), pt.bfloat16(3.5)), (True, -1)):
        out = np.zeros(2, np.float32)
        store.launch(h, b, out, device="emulator")
        assert out.tolist() == [float(h), float(b)]
    with pytest.raises(pt.OperandError) as caught:
        store.launch(np.ones(2, np.float16), 1, out, device="emulator")
    assert str(caught.value) == (
        "argument 1 ('h', .b16) cannot be an array: an array is passed as an address, for which .u64 is due"
    )


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda x: pt.cast(x, {}), "pt.cast takes a dtype such as pt.float32, not a dict"),
        (lambda x: pt.cast(1.5, "float32"), "pt.cast takes a dtype such as pt.float32, not 'float32'"),
        (lambda x: pt.bitcast(x, x), "pt.bitcast takes a dtype such as pt.float32, not a run-time float32"),
        (lambda x: pt.pack(x, x, dtype=3), "pt.pack takes a dtype such as pt.float32, not 3"),
        (lambda x: pt.unpack(x, None), "pt.unpack takes a dtype such as pt.float32, not None"),
        (
            lambda x: pt.unpack(3, pt.float16),
            "pt.unpack takes a uint32 or uint64 that carries the values, not 3",
        ),
        (
            lambda x: pt.abs(1.5),
            "abs(1.5): no operand has a dtype, so it is not known which instruction is meant; write pt.float32(…)",
        ),
    ],
)
def test_no_dtype(use: Callable[..., object], message: str) -> None:
    assert str(failure(use, pt.float32)).split("\n")[0] == message


def test_arguments_are_given_by_position() -> None:
    @pt.kernel(grid=1, block=1)
    def add(A: pt.Tensor((4,), pt.float32), x: pt.float32):
        A[0] = A[0] + x

    with pytest.raises(pt.OperandError) as caught:
        add(np.zeros(4, np.float32), x=1.0)
    assert str(caught.value) == "add: unknown keyword 'x'; the arguments A, x are given by position"


def test_parameters_with_underscores() -> None:
    builder = pt.ModuleBuilder()
    with builder.entry("k", {"__a": pt.int32, "_b": pt.int32}) as k:
        assert k["__a"].name == "int32" and k._b.name == "int32"
        assert copy.copy(k)["_b"] is k._b
        with pytest.raises(pt.TraceError) as caught:
            k["c"]
        assert str(caught.value) == "this entry has no parameter 'c'; it has __a, _b"
        with pytest.raises(pt.TraceError) as caught:
            _ = k.c
        assert str(caught.value) == "this entry has no parameter 'c'; it has __a, _b"


def test_errors_travel_between_processes() -> None:
    for error in (
        pt.FormError("x", spelling="add", reasons=("y",)),
        pt.ModuleSyntaxError("x", line=3, column=4),
        pt.EmulatorError("x", kind="race", line=7),
        pt.AssemblerError("x", log="why"),
        pt.DriverError("x", code=1, name="CUDA_ERROR"),
        pt.TraceError("x"),
    ):
        for made in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
            assert type(made) is type(error) and str(made) == str(error) and vars(made) == vars(error)


def test_a_pointer_is_not_iterated_over() -> None:
    """Without an end of its own, Python's old protocol would ask for element after element for ever."""

    def body(k, t):
        with pytest.raises(TypeError) as caught:
            list(k.p)
        assert str(caught.value) == "a pt.Pointer is not iterated over: index it, or use pt.for_range"

    _traced(body)


def test_what_is_fine() -> None:
    """NumPy's numbers, a block made before its with, an exception caught inside its block."""

    def body(k, t):
        once = pt.for_range(0, 2)
        with once as i:
            k.N[t] = i + np.int32(1)
        with pt.if_(t < np.uint32(8)):
            try:
                raise ValueError
            except ValueError:
                k.N[t] = np.int32(7)
        k.A[t, np.int64(0)] = np.float32(0.5)
        k.A.permute(np.int64(1), 0)[np.array(1), t] = np.float64(0.25)

    numbers, floats = np.zeros(16, np.int32), np.zeros((16, 4), np.float32)
    pt.emulator.launch(_traced(body), "k", 1, 16, [floats, numbers, np.zeros(1, np.int32)])
    assert numbers.tolist() == [7] * 8 + [2] * 8
    assert floats[:, :2].tolist() == [[0.5, 0.25]] * 16
