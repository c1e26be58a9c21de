"""Warp collectives (PTX ISA 9.7.9.6, 9.7.13.7 to 9.7.13.12): shfl vote match redux activemask elect.

The `.sync` ones meet by member mask (see rendezvous). Arrays are (warps, 32); lane i of a row is lane i of the warp.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ptxtile.emulator.actions.control import fall_through
from ptxtile.emulator.group import Group
from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.operands import Read, Write, reader, refuse_undefined, writer
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.rendezvous import Arrival, Compute, Meeting
from ptxtile.emulator.report import stop
from ptxtile.emulator.step import Control, Run, action, control
from ptxtile.emulator.widths import Bits
from ptxtile.ir.operand import Operand, Pair, Sink

LANES: NDArray[np.int64] = np.arange(32, dtype=np.int64)


def _halves(operand: Operand) -> tuple[Operand, Operand]:
    return (operand.first, operand.second) if isinstance(operand, Pair) else (operand, Sink())


def _collective(
    site: Site, reads: list[Read], read_mask: Read, writes: list[Write], compute: Compute
) -> Control:
    def deliver(lanes: Lanes, results: tuple[Bits, ...]) -> None:
        for write, result in zip(writes, results):
            write(lanes, result, None)

    def run(group: Group, lanes: Lanes) -> None:
        fall_through(group, lanes)
        if not lanes.count:
            return
        mask, shadow = read_mask(lanes)
        if shadow is not None:
            refuse_undefined(lanes, shadow, "the member mask", "a register")
        sources = []
        for read in reads:
            value, shadow = read(lanes)
            if shadow is not None:
                refuse_undefined(lanes, shadow, "what another thread gets", "a register")
            sources.append(value)
        arrival = Arrival(
            group,
            lanes,
            site,
            lanes.threads,
            mask.astype(np.uint32),
            tuple(sources),
            compute,
            deliver,
            orders=False,
        )
        lanes.wave.rendezvous.arrive(arrival)

    return run


@control("shfl")
def shfl(program: Program, site: Site) -> Control:
    """shfl.sync (9.7.9.6): up, down, bfly, idx, in segments that operand c gives."""
    modifiers = site.instruction.form.modifiers
    if ".sync" not in modifiers:
        raise stop("unsupported", f"the emulator cannot run {site.instruction.form.spelling} yet", site)
    destination, a, b, c, mask = site.instruction.operands
    value, inside = _halves(destination)
    reads = [
        reader(program, site, a, ".b32"),
        reader(program, site, b, ".u32"),
        reader(program, site, c, ".u32"),
    ]
    mode = modifiers[1]

    def compute(meeting: Meeting) -> tuple[Bits, ...]:
        a, b, c = meeting.sources
        source, valid = shuffle_source(mode, b.astype(np.int64), c.astype(np.int64))
        return np.take_along_axis(a, source, axis=1), valid

    writes = [writer(site, value, ".b32"), writer(site, inside, ".pred")]
    return _collective(site, reads, reader(program, site, mask, ".b32"), writes, compute)


def shuffle_source(
    mode: str, b: NDArray[np.int64], c: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Which lane each lane reads, and whether that is inside its segment."""
    lane = np.broadcast_to(LANES, b.shape)
    delta, clamp, segment = b & 0x1F, c & 0x1F, (c >> 8) & 0x1F
    highest = (lane & segment) | (clamp & ~segment)
    lowest = lane & segment
    if mode == ".up":
        source = lane - delta
        valid = source >= highest
    elif mode == ".down":
        source = lane + delta
        valid = source <= highest
    elif mode == ".bfly":
        source = lane ^ delta
        valid = source <= highest
    else:
        source = lowest | (delta & ~segment)
        valid = source <= highest
    return np.where(valid, source, lane), valid


@control("vote")
def vote(program: Program, site: Site) -> Control:
    """vote.sync (9.7.13.7): all, any, uni, ballot."""
    modifiers = site.instruction.form.modifiers
    if ".sync" not in modifiers:
        raise stop("unsupported", f"the emulator cannot run {site.instruction.form.spelling} yet", site)
    destination, a, mask = site.instruction.operands
    mode = modifiers[1]

    def compute(meeting: Meeting) -> tuple[Bits, ...]:
        true = meeting.sources[0].astype(np.bool_) & meeting.present
        if mode == ".ballot":
            ballot = (true.astype(np.uint32) << LANES.astype(np.uint32)).sum(axis=1, dtype=np.uint32)
            return (np.repeat(ballot[:, None], 32, axis=1),)
        some: NDArray[np.bool_] = np.any(true, axis=1)
        every: NDArray[np.bool_] = np.all(true | ~meeting.present, axis=1)
        result: NDArray[np.bool_] = {".all": every, ".any": some, ".uni": every | ~some}[mode]
        return (np.repeat(result[:, None], 32, axis=1),)

    kind = ".b32" if mode == ".ballot" else ".pred"
    reads = [reader(program, site, a, ".pred")]
    return _collective(
        site, reads, reader(program, site, mask, ".b32"), [writer(site, destination, kind)], compute
    )


@control("match")
def match(program: Program, site: Site) -> Control:
    """match.sync (9.7.13.8): which lanes hold the same value; for .all, whether all do."""
    modifiers = site.instruction.form.modifiers
    destination, a, mask = site.instruction.operands
    lanes_out, same = _halves(destination)
    everyone = ".all" in modifiers

    def compute(meeting: Meeting) -> tuple[Bits, ...]:
        a = meeting.sources[0]
        equal = (a[:, :, None] == a[:, None, :]) & meeting.present[:, None, :]
        found = (equal.astype(np.uint32) << LANES.astype(np.uint32)).sum(axis=2, dtype=np.uint32)
        if not everyone:
            return found, meeting.present
        members = (meeting.present.astype(np.uint32) << LANES.astype(np.uint32)).sum(axis=1, dtype=np.uint32)
        agreed = found == members[:, None]
        return np.where(agreed, found, np.uint32(0)), agreed

    reads = [reader(program, site, a, modifiers[-1])]
    writes = [writer(site, lanes_out, ".b32"), writer(site, same, ".pred")]
    return _collective(site, reads, reader(program, site, mask, ".b32"), writes, compute)


_REDUCE: dict[str, tuple[Callable[..., Bits], int]] = {
    ".add": (np.add.reduce, 0),
    ".and": (np.bitwise_and.reduce, -1),
    ".or": (np.bitwise_or.reduce, 0),
    ".xor": (np.bitwise_xor.reduce, 0),
}


@control("redux")
def redux(program: Program, site: Site) -> Control:
    """redux.sync (9.7.13.10) of 32-bit integers and of f32."""
    modifiers = site.instruction.form.modifiers
    name = modifiers[-1]
    destination, a, mask = site.instruction.operands
    if name == ".f32":
        return _redux_float(program, site)
    mode = modifiers[1]
    kind = np.int32 if name == ".s32" else np.uint32

    def compute(meeting: Meeting) -> tuple[Bits, ...]:
        a = meeting.sources[0].view(kind)
        if mode in _REDUCE:
            function, neutral = _REDUCE[mode]
            whole = function(np.where(meeting.present, a, np.array(neutral).astype(kind)), axis=1, dtype=kind)
        elif mode == ".min":
            whole = np.where(meeting.present, a, np.iinfo(kind).max).min(axis=1)
        else:
            whole = np.where(meeting.present, a, np.iinfo(kind).min).max(axis=1)
        return (np.repeat(whole.astype(kind).view(np.uint32)[:, None], 32, axis=1),)

    reads = [reader(program, site, a, ".b32")]
    return _collective(
        site, reads, reader(program, site, mask, ".b32"), [writer(site, destination, ".b32")], compute
    )


def _redux_float(program: Program, site: Site) -> Control:
    """The least or greatest of the numbers, of .abs their sizes; with .NaN the canonical NaN where any is one.

    The order of bits: -0 is below +0. Without .NaN the result is the canonical NaN where nothing else is there.
    """
    modifiers = site.instruction.form.modifiers
    destination, a, mask = site.instruction.operands
    least = ".min" in modifiers
    outside = np.int64(1 << 32) if least else np.int64(-1 << 32)

    def compute(meeting: Meeting) -> tuple[Bits, ...]:
        words = meeting.sources[0]
        if ".abs" in modifiers:
            words = words & np.uint32(0x7FFFFFFF)
        nan = meeting.present & ((words & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000))
        signed = words.view(np.int32).astype(np.int64)
        order = np.where(signed < 0, -1 - (signed & 0x7FFFFFFF), signed)
        order = np.where(meeting.present & ~nan, order, outside)
        found = order.min(axis=1) if least else order.max(axis=1)
        bits = np.where(found < 0, (-1 - found) | 0x80000000, found).astype(np.uint32)
        lost = (found == outside) | (nan.any(axis=1) & (".NaN" in modifiers))
        whole = np.where(lost, np.uint32(0x7FFFFFFF), bits)
        return (np.repeat(whole[:, None], 32, axis=1),)

    reads = [reader(program, site, a, ".b32")]
    return _collective(
        site, reads, reader(program, site, mask, ".b32"), [writer(site, destination, ".b32")], compute
    )


@control("elect")
def elect(program: Program, site: Site) -> Control:
    """elect.sync (9.7.13.12): the lowest lane of the mask is chosen, as the hardware does."""
    destination, mask = site.instruction.operands
    leader, chosen = _halves(destination)

    def compute(meeting: Meeting) -> tuple[Bits, ...]:
        first = meeting.present.argmax(axis=1).astype(np.uint32)
        return np.repeat(first[:, None], 32, axis=1), first[:, None] == LANES

    writes = [writer(site, leader, ".b32"), writer(site, chosen, ".pred")]
    return _collective(site, [], reader(program, site, mask, ".b32"), writes, compute)


@action("activemask")
def activemask(program: Program, site: Site) -> Run:
    """activemask (9.7.13.9): the lanes that execute this instruction together."""
    write = writer(site, site.instruction.operands[0], ".b32")

    def run(lanes: Lanes) -> None:
        warp = lanes.wave.warp[lanes.where]
        bits = np.uint32(1) << lanes.wave.lane[lanes.where].astype(np.uint32)
        sums = np.bincount(warp, weights=bits)
        write(lanes, sums[warp].astype(np.uint32), None)

    return run
