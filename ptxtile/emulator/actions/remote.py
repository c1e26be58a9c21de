"""st.async, red.async and st.bulk (PTX ISA 9.7.9.12, 9.7.9.13, 9.7.13.7): stores that an mbarrier of the target counts.

Those to global memory, without an mbarrier, are plain stores and reductions here.
"""

from __future__ import annotations

import numpy as np

from ptxtile.emulator.actions.access import element_type, elements
from ptxtile.emulator.actions.bulk import cta_of, destinations, named
from ptxtile.emulator.actions.updates import OPERATIONS, update_of
from ptxtile.emulator.lanes import Lanes
from ptxtile.emulator.operands import address_reader, reader, refuse_undefined
from ptxtile.emulator.ordering import Strength
from ptxtile.emulator.program import Program, Site
from ptxtile.emulator.step import Run
from ptxtile.emulator.transfer import Combine, Target, Transfer, barrier_of, register_source
from ptxtile.emulator.widths import Bits, bytes_of


def zeros(program: Program, site: Site) -> Run:
    """st.bulk (9.7.9.13): zeros in shared memory."""
    address, amount = site.instruction.operands[:2]
    locate, size = address_reader(program, site, address), reader(program, site, amount, ".u64")

    def run(lanes: Lanes) -> None:
        counts, shadow = size(lanes)
        if shadow is not None:
            refuse_undefined(lanes, shadow, "how much is stored", "the size")
        starts = locate(lanes)
        for position, count in enumerate(counts.astype(np.int64).tolist()):
            if count:
                many = lanes.repeat(position, count // 8)
                places = starts[position] + np.arange(0, count, 8, dtype=np.uint64)
                for part in lanes.wave.spaces.parts(many, "shared::cta", places, 8, "writes"):
                    if lanes.wave.machine.sanitizer is not None:
                        lanes.wave.machine.sanitizer.write(part, 8, Strength(), ())
                    part.store.scatter(part.index(8), 8, np.zeros(part.lanes.count, np.uint64))
        lanes.wave.happened()

    return run


def asynchronous_store(program: Program, site: Site) -> Run:
    """st.async to the shared memory of a CTA of the cluster."""
    return _counted(program, site, None)


def asynchronous_reduction(program: Program, site: Site) -> Run:
    """red.async to the shared memory of a CTA of the cluster."""
    operation = next(m for m in site.instruction.form.modifiers if m in OPERATIONS)
    return _counted(program, site, update_of(operation, element_type(site), True))


def _counted(program: Program, site: Site, combine: Combine | None) -> Run:
    operands, name = named(site), element_type(site)
    parts = elements(operands["b"])
    reads = [reader(program, site, part, name) for part in parts]
    target, barrier = (
        address_reader(program, site, operands["a"]),
        address_reader(program, site, operands["mbar"]),
    )
    unit = bytes_of(name)
    size = unit * len(parts)

    def run(lanes: Lanes) -> None:
        values = []
        for part, read in zip(parts, reads):
            value, shadow = read(lanes)
            if shadow is not None:
                refuse_undefined(lanes, shadow, "the stored value", f"register {part}")
            values.append(value)
        addresses, counters = target(lanes), barrier(lanes)
        for position in range(lanes.count):
            one = lanes.at(np.array([position]))
            own = slice(position, position + 1)
            found = destinations(one, "shared::cluster", addresses[own], counters[own], None, size, size)
            for place, counter in found:
                assert counter is not None
                start = int(place.offsets[0])
                offsets = np.arange(start, start + size, unit)
                counted = barrier_of(counter, False)
                goal = Target(place.store, offsets, unit, None, combine, cta_of(place), counted, size)
                data = np.concatenate([_bytes(value[own]) for value in values])
                Transfer(one, register_source(data), [goal], "mbarrier", proxied=False).start()

    return run


def _bytes(value: Bits) -> Bits:
    return np.ascontiguousarray(value).reshape(-1).view(np.uint8)
