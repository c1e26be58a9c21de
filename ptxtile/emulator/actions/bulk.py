"""Bulk copies (PTX ISA 9.7.9.25.4, 9.7.9.27.2): cp.async.bulk, cp.reduce.async.bulk, prefetch and bulk groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator import windows
from ptxtile.emulator.actions.updates import OPERATIONS, update_of
from ptxtile.emulator.asynchronous import Mechanism
from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.operands import Locate, Read, address_reader, reader, refuse_undefined
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.report import fault
from ptxtile.emulator.spaces import Part
from ptxtile.emulator.step import Run
from ptxtile.emulator.transfer import Combine, Source, Target, Transfer, barrier_of, plain_source
from ptxtile.emulator.values import declared
from ptxtile.emulator.widths import bytes_of
from ptxtile.ir.operand import Integer, Operand

LINE = 16
"""Bytes that addresses and sizes of bulk copies are multiples of."""
SHARED = ("shared::cta", "shared::cluster", "shared")


def named(site: Site) -> dict[str, Operand]:
    """The operands that are written, by their names in the table."""
    return {operand.name: written for operand, written in zip(declared(site), site.instruction.operands)}


def bulk(program: Program, site: Site) -> Run:
    """Every bulk instruction that is not about tensors."""
    modifiers = site.instruction.form.modifiers
    if ".commit_group" in modifiers:
        return lambda lanes: lanes.wave.pending.commit(lanes.threads, "bulk_group")
    if ".wait_group" in modifiers:
        return _wait(site)
    if ".prefetch" in modifiers:
        return _prefetch(program, site)
    return _copy(program, site)


def _wait(site: Site) -> Run:
    """wait_group: writes are done and visible; with .read, sources have been read."""
    (count,) = site.instruction.operands
    assert isinstance(count, Integer)
    allowed, reading = count.value, ".read" in site.instruction.form.modifiers

    def run(lanes: Lanes) -> None:
        pending, ordering = lanes.wave.pending, lanes.wave.machine.ordering
        act = pending.wait_read if reading else pending.wait
        issued = act(lanes.threads, "bulk_group", allowed)
        sanitizer = lanes.wave.machine.sanitizer
        if ordering is None or sanitizer is None:
            return
        proxies = sanitizer.proxies
        for thread, time in issued.items():
            name = int(ordering.id[thread])
            claims = {("thread", proxies.agent("bulk.read", name)): time}
            if not reading:
                claims.update(proxies.done(proxies.agent("bulk", name)))
            ordering.learn(np.array([thread]), claims)

    return run


def _prefetch(program: Program, site: Site) -> Run:
    locate = address_reader(program, site, named(site)["src"])

    def run(lanes: Lanes) -> None:
        locate(lanes)

    return run


@dataclass(frozen=True, slots=True)
class Plan:
    """A copy's operands, ready to be read.

    kept      which bytes of each 16 are copied, one bit a byte
    ignored   how many bytes at the start and at the end are not read
    """

    source_space: str
    target_space: str
    source: Locate
    target: Locate
    size: Read
    barrier: Locate | None
    mask: Read | None
    unit: int
    combine: Combine | None
    kept: Read | None = None
    ignored: tuple[Read, Read] | None = None


def _plan(program: Program, site: Site) -> Plan:
    operands, modifiers = named(site), site.instruction.form.modifiers
    spaces = [modifier[1:] for modifier in modifiers if modifier[1:] in (*SHARED, "global")]
    operation = next((modifier for modifier in modifiers if modifier in OPERATIONS), "")
    unit, combine = LINE, None
    if operation:
        unit = bytes_of(modifiers[-1])
        combine = update_of(operation, modifiers[-1], True)
    ends = [operands[name] for name in ("ignore_left", "ignore_right") if name in operands]
    left, right = (reader(program, site, each, ".u32") for each in ends) if ends else (None, None)
    return Plan(
        spaces[1],
        spaces[0],
        address_reader(program, site, operands["src_mem" if "src_mem" in operands else "src"]),
        address_reader(program, site, operands["dst_mem" if "dst_mem" in operands else "dst"]),
        reader(program, site, operands["size"], ".u32"),
        address_reader(program, site, operands["mbar"]) if "mbar" in operands else None,
        reader(program, site, operands["cta_mask"], ".b16") if "cta_mask" in operands else None,
        unit,
        combine,
        reader(program, site, operands["byte_mask"], ".b16") if "byte_mask" in operands else None,
        None if left is None or right is None else (left, right),
    )


def _copy(program: Program, site: Site) -> Run:
    plan = _plan(program, site)

    def run(lanes: Lanes) -> None:
        size, shadow = plan.size(lanes)
        if shadow is not None:
            refuse_undefined(lanes, shadow, "how much is copied", "the size")
        masks = None if plan.mask is None else plan.mask(lanes)[0]
        sources, targets = plan.source(lanes), plan.target(lanes)
        barriers = None if plan.barrier is None else plan.barrier(lanes)
        for position in range(lanes.count):
            one = lanes.at(np.array([position]))
            _one(
                plan,
                one,
                int(size[position]),
                sources[position : position + 1],
                targets[position : position + 1],
                None if barriers is None else barriers[position : position + 1],
                None if masks is None else int(masks[position]),
            )

    return run


def _one(
    plan: Plan,
    lanes: Lanes,
    size: int,
    source: NDArray[np.uint64],
    target: NDArray[np.uint64],
    barrier: NDArray[np.uint64] | None,
    mask: int | None,
) -> None:
    """The copy of one thread."""
    if size % LINE:
        raise fault(
            "misaligned", f"misaligned: a bulk copy of {size} bytes; it takes a multiple of 16", lanes, 0
        )
    if not size:
        return
    if plan.ignored is not None:
        taken, held = _without_ends(plan, lanes, source, size)
    else:
        taken = whole(lanes, plan.source_space, source, size, "copies")
        held = plain_source(taken, size)
    unit, chosen = plan.unit, None
    if plan.kept is not None:
        unit, chosen = 1, _kept(lanes, plan.kept, size)
    targets = []
    for part, counter in destinations(lanes, plan.target_space, target, barrier, mask, size):
        start = int(part.offsets[0])
        inside = part.store is lanes.wave.spaces.shared
        targets.append(
            Target(
                part.store,
                np.arange(start, start + size, unit) if chosen is None else start + chosen,
                unit,
                chosen,
                plan.combine,
                cta_of(part) if inside else None,
                None if counter is None else barrier_of(counter),
                size,
            )
        )
    home = cta_of(taken) if taken.store is lanes.wave.spaces.shared else None
    mechanism: Mechanism = "bulk_group" if barrier is None else "mbarrier"
    Transfer(lanes, held, targets, mechanism).start(home)


def _kept(lanes: Lanes, mask: Read, size: int) -> NDArray[np.intp]:
    """The bytes of which a byte mask says that they are copied."""
    value, shadow = mask(lanes)
    if shadow is not None:
        refuse_undefined(lanes, shadow, "which bytes are copied", "the mask")
    byte = np.arange(size)
    return np.flatnonzero(int(value[0]) >> byte % LINE & 1)


def _without_ends(plan: Plan, lanes: Lanes, source: NDArray[np.uint64], size: int) -> tuple[Part, Source]:
    """.ignore_oob: the ends of the source may lie anywhere; what comes of them is undefined."""
    assert plan.ignored is not None
    ends = []
    for read in plan.ignored:
        value, shadow = read(lanes)
        if shadow is not None:
            refuse_undefined(lanes, shadow, "how much is ignored", "a register")
        ends.append(int(value[0]))
    left, right = ends
    if max(ends) >= LINE:
        text = f"a bulk copy ignores 0 to 15 bytes at either end, not {left} and {right}"
        raise fault("out-of-bounds", f"out of bounds: {text}", lanes, 0)
    if int(source[0]) % LINE:
        text = f"misaligned: copies {size} bytes at {int(source[0]):#x}, which is not a multiple of 16"
        raise fault("misaligned", text, lanes, 0)
    spaces = lanes.wave.spaces
    (first,) = spaces.parts(lanes, plan.source_space, source + np.uint64(left), 1, "copies")
    (last,) = spaces.parts(lanes, plan.source_space, source + np.uint64(size - right - 1), 1, "copies")
    if first.store is not last.store:
        text = (
            f"out of bounds: copies {size} bytes at {int(source[0]):#x}, across the end of {first.store.name}"
        )
        raise fault("out-of-bounds", text, lanes, 0)
    store, start, count = first.store, int(first.offsets[0]), size - left - right

    def take() -> tuple[NDArray[np.uint8], NDArray[np.uint8] | None]:
        data, lost = np.zeros(size, np.uint8), np.full(size, 255, np.uint8)
        data[left : size - right] = store.data[start : start + count]
        read = None if store.unwritten is None else store.unwritten[start : start + count]
        lost[left : size - right] = 0 if read is None else read
        return data, lost

    granules = np.unique(np.arange(start, start + count) & ~3)
    return first, Source(store, granules, take)


def whole(
    lanes: Lanes, space: str, address: NDArray[np.uint64], size: int, verb: str, alignment: int = LINE
) -> Part:
    """The `size` bytes at one address, checked from end to end."""
    if int(address[0]) % alignment:
        named = "" if space in ("", "global") else "shared address "
        text = f"misaligned: {verb} {size} bytes at {named}{int(address[0]):#x}, which is not a multiple of {alignment}"
        raise fault("misaligned", text, lanes, 0)
    spaces = lanes.wave.spaces
    unit = min(alignment, LINE)
    (first,) = spaces.parts(lanes, space, address, unit, verb)
    (last,) = spaces.parts(lanes, space, address + np.uint64(size - unit), unit, verb)
    if last.store is not first.store:
        text = f"out of bounds: {verb} {size} bytes at {int(address[0]):#x}, across the end of {first.store.name}"
        raise fault("out-of-bounds", text, lanes, 0)
    return first


def destinations(
    lanes: Lanes,
    space: str,
    target: NDArray[np.uint64],
    barrier: NDArray[np.uint64] | None,
    mask: int | None,
    size: int,
    alignment: int = LINE,
) -> Iterator[tuple[Part, Part | None]]:
    """Where a copy writes and what counts its bytes: once, or in each CTA of the cluster that a mask names."""
    for address, counter in _ranks(lanes, target, barrier, mask):
        part = whole(lanes, space, address, size, "copies", alignment)
        if counter is None:
            yield part, None
            continue
        (found,) = lanes.wave.spaces.parts(lanes, space, counter, 8, "counts on an mbarrier of")
        for each in (part, found):
            cta = cta_of(each)
            if not lanes.wave.live[cta * lanes.wave.block : (cta + 1) * lanes.wave.block].any():
                raise fault("exit", "exit: a copy into the shared memory of a CTA that has ended", lanes, 0)
            lanes.wave.clusters.covered(lanes, cta)
        yield part, found


def _ranks(
    lanes: Lanes, target: NDArray[np.uint64], barrier: NDArray[np.uint64] | None, mask: int | None
) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.uint64] | None]]:
    if mask is None:
        yield target, barrier
        return
    within = np.uint64((1 << windows.RANK_SHIFT) - 1)
    for rank in range(16):
        if not mask >> rank & 1:
            continue
        if rank >= lanes.wave.cluster_size:
            text = f"out of bounds: a copy to CTA {rank} of a cluster of {lanes.wave.cluster_size}"
            raise fault("out-of-bounds", text, lanes, 0)
        place = np.uint64(rank << windows.RANK_SHIFT)
        yield (target & within) + place, None if barrier is None else (barrier & within) + place


def cta_of(part: Part) -> int:
    """The CTA of the wave in whose shared memory the only access of `part` falls."""
    return int(part.offsets[0]) // part.lanes.wave.spaces.shared_stride
