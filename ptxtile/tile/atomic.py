"""atom, red, multimem, st.async and red.async over tiles (PTX ISA 9.7.13.5, 9.7.13.6, 9.7.9.14, 9.7.9.12, 9.7.13.7).

Operands in PTX order: registers, and one tensor in memory (or a register tensor of addresses); both end in the atom
(N,), the N of .vN. The d of atom and of multimem.ld_reduce is a register tensor, or None for the sink `_` where the
form has one. Atomic places may be shared by threads and repeats; those of multimem.st and st.async may not.
"""

from __future__ import annotations

from ptxtile.errors import OperandError, TileError
from ptxtile.isa import type_bits
from ptxtile.isa.form import Operand as Slot, Signature
from ptxtile.tile import addressed
from ptxtile.tile.addressed import Place
from ptxtile.tile.family import Call, Family, Parameter

_POLICY = Parameter("cache_policy", "uint64 of createpolicy; due with .L2::cache_hint")


def _policy(call: Call) -> object:
    """cache_policy=, which goes with .L2::cache_hint. TileError if one is there without the other."""
    form, policy = call.form, call.parameters.get("cache_policy")
    if ".L2::cache_hint" in form.modifiers and policy is None:
        raise TileError(
            f"{form.spelling}: .L2::cache_hint needs cache_policy=, a 64-bit value made by createpolicy"
        )
    if policy is not None and ".L2::cache_hint" not in form.modifiers:
        raise TileError(f"{form.spelling}: cache_policy= is only for forms with .L2::cache_hint")
    return policy


def _data(signature: Signature) -> Slot:
    """The slot whose elements are those in memory."""
    return next(
        slot for slot in signature.operands if slot.kind in ("value", "vector") and slot.name in ("b", "d")
    )


def issue(call: Call) -> None:
    """atom, red and multimem; see the module's docstring."""
    form = call.form
    policy = _policy(call)
    given = [*call.operands, *([] if policy is None else [policy])]
    signature = next((each for each in form.signatures if len(each.operands) == len(given)), None)
    if signature is None:
        names = [slot.name for slot in form.signatures[0].operands if slot.name != "cache_policy"]
        call.take(len(names), ", ".join(names))
        raise OperandError(f"{form.spelling} does not take {len(given)} operands")
    slot = _data(signature)
    bits = type_bits(slot.type or "")
    writes = form.spelling.startswith("multimem.st")
    address = next(each.name for each in signature.operands if each.kind == "address")
    place = Place(slot.length, bits, bits // 8 * slot.length, writes)
    addressed.issue(call, signature, given, {address: place})


def issue_async(call: Call) -> None:
    """st.async and red.async: (memory, registers), mbar=, remote=."""
    form = call.form
    mbar, remote = call.parameters.get("mbar"), call.parameters.get("remote")
    given = list(call.take(2, "memory, registers"))
    signature = max(
        form.signatures, key=lambda each: len(each.operands)
    )  # the assembler takes those without, too
    if any(slot.name == "mbar" for slot in signature.operands):
        if mbar is None:
            raise TileError(f"{form.spelling} needs mbar=, the mbarrier of that CTA that counts the bytes")
        given.append(mbar)
    elif mbar is not None or remote is not None:
        raise TileError(f"{form.spelling} is of global memory: it has no mbar= and no remote=")
    slot = _data(signature)
    bits = type_bits(slot.type or "")
    place = Place(slot.length, bits, bits // 8 * slot.length, form.opcode == "st", remote=True)
    addressed.issue(call, signature, given, {"a": place}, remote)


FAMILY = Family(
    name="atom, red",
    section="9.7.13.5 and 9.7.13.6",
    starts=("atom.", "red."),
    without=(".async",),
    operands=("atom: d, memory, b[, c]; d may be None", "red: memory, b"),
    atoms="(N,): 1, or the N of .vN",
    carriers="the form's type; packed types in their carrier; memory may be a register tensor of addresses",
    parameters=(_POLICY,),
    judges=("ptxas", "emulator", "H200"),
    issue=issue,
)

MULTIMEM = Family(
    name="multimem",
    section="9.7.9.14",
    starts=("multimem.ld_reduce.", "multimem.st.", "multimem.red."),
    operands=("ld_reduce: d, memory", "st, red: memory, b"),
    atoms="(N,): 1, or the N of .vN",
    carriers="the form's type; memory is a multicast address",
    judges=("ptxas", "emulator"),
    issue=issue,
)

ASYNC = Family(
    name="st.async, red.async",
    section="9.7.9.12 and 9.7.13.7",
    starts=("st.async.", "red.async."),
    operands=("memory, b",),
    atoms="(N,): 1, or the N of .vN",
    carriers="the form's type",
    parameters=(
        Parameter("mbar", "the mbarrier that counts the bytes, of the same CTA as the memory"),
        Parameter(
            "remote",
            "the CTA of the cluster, by mapa on both; without it the addresses are taken as they are",
        ),
    ),
    judges=("ptxas", "emulator", "H200"),
    issue=issue_async,
)
