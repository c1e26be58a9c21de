"""cp.async, bulk copies, and prefetches of lines over tiles (PTX ISA 9.7.9.25, 9.7.9.15 to 9.7.9.17).

Operands in PTX order: (destination, source), or (source,) of a prefetch; tensors in memory that end in the chunk, as
many elements as `chunk_bytes` are. Each thread copies its chunk in each repeat. Commits, waits, expect_tx and fences
are the caller's.
"""

from __future__ import annotations

from ptxtile.errors import TileError
from ptxtile.isa.form import Form
from ptxtile.tile import addressed
from ptxtile.tile.addressed import Place
from ptxtile.tile.family import GUARDED, Call, Family, Parameter

_LINE = 128  # bytes that discard and applypriority take


def _has(form: Form, name: str) -> bool:
    return any(slot.name == name for signature in form.signatures for slot in signature.operands)


def _chunk(call: Call, sizes: str, fits: tuple[int, ...] | None) -> int:
    """chunk_bytes=, checked. `fits` lists what there is; else any positive multiple of 16."""
    form, given = call.form, call.parameters.get("chunk_bytes")
    if given is None:
        raise TileError(f"{form.spelling} needs chunk_bytes=, the bytes of one copy: {sizes}")
    whole = isinstance(given, int) and not isinstance(given, bool)
    if isinstance(given, int) and whole and (given in fits if fits else given >= 16 and given % 16 == 0):
        return given
    raise TileError(f"{form.spelling}: chunk_bytes= is {sizes}, not {given!r}")


def _extras(call: Call, names: tuple[str, ...]) -> dict[str, object]:
    """The operands that keywords give. TileError for one the form does not have, or that it needs and is not given."""
    form, found = call.form, {}
    for name in names:
        value = call.parameters.get(name)
        if value is None:
            continue
        if not _has(form, name):
            raise TileError(f"{form.spelling} has no {name}=: {_WHY[name]}")
        found[name] = value
    for name in names:
        needed = all(any(slot.name == name for slot in each.operands) for each in form.signatures)
        if needed and name not in found:
            raise TileError(f"{form.spelling} needs {name}=: {_WHY[name]}")
    return found


_WHY = {
    "cache_policy": "a 64-bit value made by createpolicy goes with .L2::cache_hint",
    "src_size": "bytes to read, the rest of the chunk being zeros",
    "ignore_src": "a bool_; where it is true the chunk is zeros",
    "mbar": "the mbarrier that counts the bytes goes with .mbarrier::complete_tx::bytes",
    "cta_mask": "the CTAs of the cluster that receive go with .multicast::cluster",
    "byte_mask": "the bytes of each 16 that are written go with .cp_mask",
    "ignore_left": "bytes at the start that are not written go with .ignore_oob",
    "ignore_right": "bytes at the end that are not written go with .ignore_oob",
}


def issue_async(call: Call) -> None:
    """cp.async of 4, 8 or 16 bytes."""
    form = call.form
    sizes = (16,) if ".cg" in form.modifiers else (4, 8, 16)
    size = _chunk(call, "16" if ".cg" in form.modifiers else "4, 8 or 16", sizes)
    extras = _extras(call, ("src_size", "ignore_src", "cache_policy"))
    if "src_size" in extras and "ignore_src" in extras:
        raise TileError(f"{form.spelling}: src_size= and ignore_src= are one or the other")
    read = extras.get("src_size")
    if isinstance(read, int) and not 0 <= read <= size:
        raise TileError(f"{form.spelling}: src_size= is 0 to chunk_bytes, {size}, not {read}")
    dst, src = call.take(2, "shared memory, global memory")
    values: dict[str, object] = {"dst": dst, "src": src, "size": size, **extras}
    signature = addressed.signature_of(form, tuple(values))
    atoms = {"dst": Place(0, 0, size, True, size), "src": Place(0, 0, size, False, size)}
    addressed.issue(call, signature, list(values.values()), atoms)


_BULK = ("mbar", "ignore_left", "ignore_right", "cta_mask", "cache_policy", "byte_mask")


def issue_bulk(call: Call) -> None:
    """cp.async.bulk in each direction, cp.reduce.async.bulk, and their multimem and prefetch forms."""
    form = call.form
    size = _chunk(call, "a positive multiple of 16", None)
    extras = _extras(call, _BULK)
    remote = call.parameters.get("remote")
    slots = form.signatures[0].operands
    to = slots[0]
    if remote is not None and to.space != ".shared::cluster":
        raise TileError(f"{form.spelling} has no remote=: its destination is not .shared::cluster")
    tensors = [slot.name for slot in slots if slot.kind == "address" and slot.name != "mbar"]
    given = call.take(len(tensors), ", ".join(tensors))
    values: dict[str, object] = {**dict(zip(tensors, given)), "size": size, **extras}
    wanted = next(
        (each for each in form.signatures if {slot.name for slot in each.operands} == set(values)), None
    )
    signature = wanted or addressed.signature_of(form, tuple(values))
    ordered = [values[slot.name] for slot in signature.operands]
    writes = len(tensors) == 2
    atoms = {
        name: Place(0, 0, 16, writes and name == tensors[0], size, remote=writes and name == tensors[0])
        for name in tensors
    }
    addressed.issue(call, signature, ordered, atoms, remote)


def issue_line(call: Call) -> None:
    """prefetch, prefetchu of any address; discard and applypriority of aligned lines of 128 bytes."""
    form = call.form
    sized = _has(form, "size")
    (a,) = call.take(1, "memory")
    signature = form.signatures[0]
    place = Place(0, 0, _LINE, False, _LINE) if sized else Place(1, 0, 1)
    addressed.issue(call, signature, [a, _LINE] if sized else [a], {"a": place})


_POLICY = Parameter("cache_policy", _WHY["cache_policy"])

FAMILY = Family(
    name="cp.async",
    section="9.7.9.25.3.1",
    starts=("cp.async.ca.", "cp.async.cg."),
    operands=("shared, global",),
    atoms="(chunk_bytes / itemsize,) in both, consecutive and aligned to the chunk",
    carriers="any dtype whose elements fill a chunk",
    parameters=(
        Parameter("chunk_bytes", "4, 8 or 16; 16 with .cg; always due"),
        Parameter("src_size", _WHY["src_size"]),
        Parameter("ignore_src", _WHY["ignore_src"]),
        _POLICY,
    ),
    guards=GUARDED,
    judges=("ptxas", "emulator", "H200"),
    issue=issue_async,
)

BULK = Family(
    name="bulk copies",
    section="9.7.9.25.4 and 9.7.9.26.4",
    starts=("cp.async.bulk.", "cp.reduce.async.bulk.", "multimem.cp."),
    without=(".tensor", ".commit_group", ".wait_group"),
    operands=("destination, source", "prefetch: source"),
    atoms="(chunk_bytes / itemsize,), consecutive and aligned to 16 bytes",
    carriers="any dtype whose elements fill a chunk",
    parameters=(
        Parameter("chunk_bytes", "bytes of one copy, a multiple of 16; always due"),
        Parameter("mbar", _WHY["mbar"]),
        Parameter("remote", "the CTA of the cluster, by mapa on the destination and mbar"),
        Parameter("cta_mask", _WHY["cta_mask"]),
        Parameter("byte_mask", _WHY["byte_mask"]),
        Parameter("ignore_left", _WHY["ignore_left"]),
        Parameter("ignore_right", _WHY["ignore_right"]),
        _POLICY,
    ),
    guards=GUARDED,
    judges=("ptxas", "emulator", "H200"),
    issue=issue_bulk,
)

LINES = Family(
    name="prefetch, discard, applypriority",
    section="9.7.9.15 to 9.7.9.17",
    starts=("prefetch.", "prefetchu.", "discard.", "applypriority."),
    without=(".tensormap",),
    operands=("memory",),
    atoms="(1,); discard and applypriority: 128 bytes, aligned to 128",
    carriers="any dtype",
    guards=GUARDED,
    judges=("ptxas", "emulator", "H200"),
    issue=issue_line,
)
