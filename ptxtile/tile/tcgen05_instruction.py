"""The instruction descriptor of tcgen05.mma, 32 bits (PTX ISA 9.7.16.4.2).

Sources: PTX ISA 9.7.16.4.2; CUTLASS include/cute/arch/mma_sm100_desc.hpp (InstrDescriptor, InstrDescriptorBlockScaled).
"""

from __future__ import annotations

from dataclasses import dataclass

from ptxtile.builder.tensors import Tensor
from ptxtile.errors import TileError
from ptxtile.isa.form import Form

_FORMATS: dict[str, dict[str, int]] = {
    ".kind::f16": {"f16": 0, "bf16": 1},
    ".kind::tf32": {"tf32": 2},
    ".kind::f8f6f4": {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5},
    ".kind::i8": {"u8": 0, "s8": 1},
    ".kind::mxf8f6f4": {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5},
    ".kind::mxf4": {"e2m1": 1},
    ".kind::mxf4nvf4": {"e2m1": 1},
}
_NAMES = {
    "float16": "f16", "bfloat16": "bf16", "float32": "tf32", "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2",
    "int8": "s8",
}  # fmt: skip
_SUMS = {"f16": 0, "f32": 1, "s32": 2}


@dataclass(frozen=True, slots=True)
class Instruction:
    """What the descriptor says.

    selector      of sparse metadata
    mn_a, mn_b    the matrix is MN-major
    scale_format  "ue8m0", "ue4m3"
    scale_a, scale_b    the byte of a word of scale factors that the instruction begins with
    """

    m: int
    n: int
    a: str
    b: str
    negative_a: bool
    negative_b: bool
    saturate: bool
    d: str
    selector: int
    mn_a: bool = False
    mn_b: bool = False
    scale_format: str = "ue8m0"
    scale_a: int = 0
    scale_b: int = 0


def kind_of(form: Form) -> str:
    """The .kind modifier."""
    return next(word for word in form.modifiers if word.startswith(".kind::"))


def element_kind(form: Form, name: str, tensor: object, given: object) -> str:
    """The format of a or b: of the tensor's dtype, or `a_format=`, `b_format=` for uint8. TileError if the kind has it
    not."""
    kind = kind_of(form)
    formats = _FORMATS[kind]
    dtype = tensor.dtype.name if isinstance(tensor, Tensor) else ""
    found = given if given is not None else _NAMES.get(dtype)
    if found is None and len(formats) == 1:
        found = next(iter(formats))
    if found is None and kind == ".kind::i8":
        found = "u8"
    if not isinstance(found, str) or found not in formats:
        have = ", ".join(formats)
        if given is None and dtype not in _NAMES:
            raise TileError(
                f"{form.spelling} needs {name}_format=, one of {have}: elements of {dtype} do not say it"
            )
        raise TileError(f"{form.spelling}: {name} is {found}, and {kind} has {have}")
    return found


def scale_format(form: Form, given: object) -> str:
    """The type of the scale factors: ue4m3 of blocks of 16, unless `scale_format=` says ue8m0; ue8m0 of all others."""
    small = bool({".scale_vec::4X", ".block16"} & set(form.modifiers))
    have = ("ue4m3", "ue8m0") if small else ("ue8m0",)
    if given is None:
        return have[0]
    if ".block_scale" not in form.modifiers or given not in have:
        told = " or ".join(have) if ".block_scale" in form.modifiers else "of .block_scale"
        raise TileError(f"{form.spelling}: scale_format= is {told}, not {given!r}")
    return str(given)


def instruction_descriptor(form: Form, made: Instruction) -> int:
    """The 32 bits."""
    kind = kind_of(form)
    formats = _FORMATS[kind]
    bits = made.selector | (".sp" in form.modifiers) << 2
    bits |= formats[made.a] << 7 | formats[made.b] << 10 | made.negative_a << 13 | made.negative_b << 14
    bits |= made.mn_a << 15 | made.mn_b << 16 | made.n >> 3 << 17 | made.m >> 4 << 24
    if ".block_scale" in form.modifiers:
        return bits | made.scale_b << 4 | (made.scale_format == "ue8m0") << 23 | made.scale_a << 29
    sums = "s32" if kind == ".kind::i8" else made.d
    narrow = sums == "f16" and kind not in (".kind::f16", ".kind::f8f6f4")
    if narrow or made.d not in ("f16", "f32"):
        raise TileError(
            f"{form.spelling}: d_format= is f32, or f16 of .kind::f16 and .kind::f8f6f4, not {made.d!r}"
        )
    if made.saturate and kind != ".kind::i8":
        raise TileError(f"{form.spelling}: saturate= is of .kind::i8")
    return bits | made.saturate << 3 | _SUMS[sums] << 4
