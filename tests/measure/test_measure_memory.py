"""The cells of pointer chases: every ring visits all of its lines, whatever bits a load takes."""

from __future__ import annotations

import struct

import pytest

from ptxtile.measure.chain import candidates, find
from ptxtile.measure.kernel import step_text
from ptxtile.measure.memory import CELLS, cells, ring_of

BASE = 5 * CELLS
IMAGE = cells(BASE)


def word(address: int, code: str) -> int:
    found: int = struct.unpack_from(code, IMAGE, address - BASE)[0]
    return found


def result_of(spelling: str) -> tuple[object, object]:
    form = find(spelling)
    return form, next(operand for operand in form.signatures[0].operands if operand.role == "out")


@pytest.mark.parametrize(
    ("spelling", "lines"),
    [
        ("ld.global.cg.b64", 2048),
        ("ld.global.cv.f32", 2048),
        ("ld.relaxed.gpu.global.v2.b32", 2048),
        ("ld.global.lu.b16", 512),
        ("ld.global.cg.u8", 256),
        ("ld.global.b32", 1),
        ("ld.global.ca.b64", 1),
        ("ld.acquire.cta.global.b32", 1),
        ("ld.global.cg.nc.b32", 1),
    ],
)
def test_a_ring_visits_all_of_its_lines(spelling: str, lines: int) -> None:
    form, result = result_of(spelling)
    ring = ring_of(form, result)  # type: ignore[arg-type]
    assert ring.lines == lines
    address = first = BASE + ring.place
    seen = set()
    for _ in range(lines):
        seen.add(address)
        if ring.lines == 256:  # the second byte of the address is what a byte load takes
            address = first & ~0xFF00 | word(address + 1, "<B") << 8
        elif ring.lines == 512:
            address = first & ~0xFFFF | word(address, "<H")
        else:
            low = word(address, "<I")  # what a 32-bit load takes; the high half is the base's own
            address = word(address, "<Q")
            assert address == first >> 32 << 32 | low
    assert address == first
    assert len(seen) == lines


def test_a_byte_load_reads_the_address_s_second_byte() -> None:
    form = find("ld.global.cg.u8")
    load, *_, insert, _ = step_text(form, next(candidates(form, "sm_90a")))
    assert load == "ld.global.cg.u8 %b16_0, [%b64_0+1];"
    assert insert == "prmt.b32 %b32_0, %b32_0, %low, 0x7604;"


def test_a_transposed_matrix_is_waited_for() -> None:
    form = find("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16")
    *_, wait, address = step_text(form, next(candidates(form, "sm_90a")))
    assert (wait, address) == ("and.b32 %b32_2, %b32_2, %none;", "or.b32 %b32_0, %b32_2, %room;")


def test_a_generic_matrix_says_why_not() -> None:
    form = find("ldmatrix.sync.aligned.m8n8.x1.b16")
    assert list(candidates(form, "sm_90a")) == []
