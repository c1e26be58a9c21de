"""tcgen05.mma of sm_103 with K = 96: 48 bytes a line, three or six scale factors a line."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tensor_memory_kernel import descriptor, instruction, place, run, text
from test_emulator_tcgen05_scaled import VALUES, factors, packed

import ptxtile as pt
from ptxtile.emulator import EmulatorError

M, K = 128, 96
ABSOLUTE = 1 << 52


def lay(words, column, held, first):
    """The bytes of each line one after the other from `first` on, four a column, then behind all of these columns."""
    raw = words.view(np.uint8).reshape(*words.shape, 4)
    behind = (len(held) + 127) // 128 * 4
    for line, i in np.ndindex(held.shape):
        byte = first + i
        raw[line % 32 :: 32, column + line // 32 + byte // 4 * behind, byte % 4] = held[line, i]


def placed(lines, offset, swizzle, size, start):
    """Lines of 48 bytes that begin at `offset` of lines of 256; and what the descriptor says, without the base."""
    if not swizzle:
        raw, along, down = place(lines, 0, size)
        return raw, descriptor(along, down, 0, start)
    wide = np.zeros((len(lines), 256), np.uint8)
    wide[:, offset : offset + 48] = lines
    raw, along, down = place(wide, swizzle, size)
    if offset % 128 <= 80:
        return raw, descriptor(0, down, swizzle, start + offset)
    return raw, descriptor(start + along, down, swizzle, start + offset) | ABSOLUTE


def work(form, idesc, descriptors, places):
    lines = [f"mov.b32 %r55, {idesc}; shl.b64 %rd13, %rd10, 16;"]
    for register, bits in zip(("%rd11", "%rd12"), descriptors):
        lines.append(f"add.u64 {register}, %rd10, {bits};")
        if bits & ABSOLUTE:
            lines.append(f"add.u64 {register}, {register}, %rd13;")
    lines += [f"add.u32 %r{57 + i}, %r50, {column};" for i, column in enumerate(places)]
    return "\n".join([*lines, f"{form} [%r50], %rd11, %rd12, %r55, [%r57], [%r58], %p6;"])


def deep(kind, vector_of, scale, n, first, offset, swizzle):
    """The kernel's work, shared memory, tensor memory, and D."""
    rng = np.random.default_rng(n + offset)
    vector = 6 if vector_of in (".block16", ".scale_vec::4X") else 3
    a, b = rng.choice(VALUES, (M, K)), rng.choice(VALUES, (n, K))
    by_a, bytes_a = factors(rng, M, vector, scale)
    by_b, bytes_b = factors(rng, n, vector, scale)
    size = M * 256 if swizzle else 8192
    raw_a, left = placed(packed(a), offset, swizzle, size, 0)
    raw_b, right = placed(packed(b), offset, swizzle, 8192, size)
    words = np.zeros((128, n + 24), np.uint32)
    lay(words, n, bytes_a, first)
    lay(words, n + 8, bytes_b, first)
    idesc = instruction(M, n, 1, 1, 0, ue8m0=int(scale == "ue8m0"), sfa=first, sfb=first) | 1 << 31
    form = f"tcgen05.mma.cta_group::1.kind::{kind}.block_scale{vector_of}"
    block = K // vector
    due = (a * np.repeat(by_a, block, axis=1)) @ (b * np.repeat(by_b, block, axis=1)).T
    return work(form, idesc, (left, right), (n, n + 8)), np.concatenate([raw_a, raw_b]), words, due


CASES = [
    ("mxf4", ".block32", "ue8m0", 32, 0, 0, 0),
    ("mxf4", "", "ue8m0", 160, 1, 0, 0),
    ("mxf4", ".block32", "ue8m0", 32, 3, 0, 128),
    ("mxf4nvf4", ".block16", "ue4m3", 32, 0, 48, 128),
    ("mxf4nvf4", ".block16", "ue4m3", 160, 2, 0, 0),
    ("mxf4nvf4", ".block16", "ue8m0", 32, 2, 96, 128),
    ("mxf4nvf4", ".block16", "ue4m3", 24, 0, 112, 128),
]


@pytest.mark.parametrize("case", CASES)
def test_ninety_six_along_k(case):
    line, shared, words, due = deep(*case)
    out = run(line, shared, words, target="sm_103a")
    np.testing.assert_array_equal(out[:, : case[3]].view(np.float32), due)


def test_the_text_assembles():
    pytest.importorskip("nvidia", reason="nvidia-nvjitlink is not installed")
    line, shared, words, _ = deep(*CASES[5])
    assert pt.assemble(text(line, len(shared), words.shape[1], target="sm_103a"), "sm_103a")


def refused(line, shared, words):
    with pytest.raises(EmulatorError) as found:
        run(line, shared, words, target="sm_103a")
    assert found.value.kind == "tensor-memory"
    return str(found.value)


def test_what_is_refused():
    line, shared, words, _ = deep(*CASES[5])
    other = line.replace("kind::mxf4nvf4.block_scale.block16", "kind::mxf8f6f4.block_scale")
    told = "bit 31 asks for K = 96, which dense A of .kind::mxf4 and .kind::mxf4nvf4 has"
    assert told in refused(other, shared, words)
    relative = line.replace("mov.b32", f"mov.b64 %rd14, {~ABSOLUTE}; mov.b32", 1)
    relative = relative.replace("tcgen05.mma", "and.b64 %rd11, %rd11, %rd14; tcgen05.mma")
    told = "48 bytes cross the end of a line of 128 bytes, and bit 52 does not say where they go on"
    assert told in refused(relative, shared, words)
    shallow = instruction(M, 32, 1, 1, 0, ue8m0=1)
    told = "bit 52 asks for an absolute leading address, which K = 96 with a swizzle of 128 bytes has"
    assert told in refused(re.sub(r"%r55, \d+", f"%r55, {shallow}", line), shared, words)
    odd = instruction(M, 32, 1, 1, 0, ue8m0=1, sfa=1) | 1 << 31
    told = "the scale factors of scale_a_tmem begin at byte 1, with 6 a row"
    assert told in refused(re.sub(r"%r55, \d+", f"%r55, {odd}", line), shared, words)
