"""tensormap.replace, tensormap.cp_fenceproxy: tensor maps that a kernel changes (PTX ISA 9.7.9.28, 9.7.13.16).

A tensor map in memory is 128 bytes: the atom of a tensor of any dtype, (…, 128) of uint8 or (…, 16) of uint64. Operands
in PTX order, for replace (memory[, ordinal], value), by any thread; for cp_fenceproxy (global, shared), by whole warps.
`A.at(tensor)` is a pt.TensorMap's box at another place, for the copies that read what was changed.
"""

from __future__ import annotations

from dataclasses import replace

from ptxtile.tile import addressed, collective
from ptxtile.tile.addressed import Place
from ptxtile.tile.family import GUARDED, Call, Family

_BYTES = 128
_ALIGNMENT = 64
_COPIED = 128


def issue_replace(call: Call) -> None:
    """One field of one tensor map a repeat."""
    signature = call.form.signatures[0]
    names = [slot.name for slot in signature.operands]
    given = call.take(len(names), ", ".join(names))
    addressed.issue(call, signature, given, {"addr": Place(0, 0, _ALIGNMENT, True, _BYTES)})


def issue_copy(call: Call) -> None:
    """One tensor map from shared to global memory a repeat, by a whole warp."""
    dst, src = call.take(2, "global, shared")
    group = replace(collective.warps(call.form.spelling, call.group), lanes=None)
    atoms = {"dst": Place(0, 0, _COPIED, True, _BYTES), "src": Place(0, 0, _COPIED, False, _BYTES)}
    addressed.issue(replace(call, group=group), call.form.signatures[0], [dst, src, _BYTES], atoms)


REPLACE = Family(
    name="tensormap.replace",
    section="9.7.9.28",
    starts=("tensormap.replace.",),
    operands=("memory, value", "with an ordinal: memory, ordinal, value"),
    atoms="128 bytes, aligned to 64: the tensor map",
    carriers="any dtype whose elements fill 128 bytes; the value is one number, or a register tensor over the repeats",
    guards=GUARDED,
    judges=("ptxas", "emulator", "H200"),
    issue=issue_replace,
)

FENCE = Family(
    name="tensormap.cp_fenceproxy",
    section="9.7.13.16",
    starts=("tensormap.cp_fenceproxy.",),
    operands=("global, shared",),
    atoms="128 bytes in both, aligned to 128",
    carriers="any dtype whose elements fill 128 bytes",
    guards=GUARDED,
    scopes="warp and above",
    judges=("ptxas", "emulator", "H200"),
    issue=issue_copy,
)
