"""Ask a GPU what copies of interleaved tensor maps move, byte for byte, and the emulator too.

    python benchmarks/device_interleave.py [--device 0] [--json FILE]
    python benchmarks/device_interleave.py --against benchmarks/results/h200/interleave.json

Each case is one copy. A load fills 4096 bytes of shared memory, whose start is kept, and says whether the mbarrier's
phase ended with as many bytes as the map's `box_bytes`; a store or a reduction keeps the elements of global memory that
changed. --against compares the emulator with an earlier --json, without a GPU.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from ptxtile import driver, emulator
from ptxtile.errors import DriverError, EmulatorError, LayoutError
from ptxtile.execute import tensor_maps
from ptxtile.ir.tensor_map import Im2col, Mapped, TiledMap

Row = dict[str, Any]
Array = np.ndarray[Any, np.dtype[Any]]
SIZE = 4096
THREADS = 128
TEXT = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 M[128], .param .u64 O)
{{
.reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<8>;
.shared .align 1024 .b8 s[4096];
.shared .align 8 .b64 bar;
mov.b64 %rd1, M; cvta.param.u64 %rd1, %rd1; ld.param.u64 %rd2, [O]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0;
shl.b32 %r2, %r1, 5; mov.u32 %r3, s; add.u32 %r3, %r3, %r2; cvt.u64.u32 %rd3, %r2; add.u64 %rd2, %rd2, %rd3;
ld.global.v4.b32 {{%r8, %r9, %r10, %r11}}, [%rd2]; st.shared.v4.b32 [%r3], {{%r8, %r9, %r10, %r11}};
ld.global.v4.b32 {{%r8, %r9, %r10, %r11}}, [%rd2+16]; st.shared.v4.b32 [%r3+16], {{%r8, %r9, %r10, %r11}};
@%p1 mbarrier.init.shared.b64 [bar], 1;
@%p1 fence.mbarrier_init.release.cluster;
fence.proxy.async; bar.sync 0;
mov.u32 %r5, s; mov.u32 %r6, bar; mov.u32 %r7, 0;
{copy}
bar.sync 0;
ld.shared.v4.b32 {{%r8, %r9, %r10, %r11}}, [%r3]; st.global.v4.b32 [%rd2], {{%r8, %r9, %r10, %r11}};
ld.shared.v4.b32 {{%r8, %r9, %r10, %r11}}, [%r3+16]; st.global.v4.b32 [%rd2+16], {{%r8, %r9, %r10, %r11}};
{after}
ret;
}}
"""
LOAD = """@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], {size};
@%p1 cp.async.bulk.tensor.{rank}d.shared::cluster.global{mode}.mbarrier::complete_tx::bytes [%r5], {place}, [%r6]{tail};
W: mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0;
add.u32 %r7, %r7, 1; setp.lt.and.u32 %p2, %r7, 1000, !%p3; @%p2 bra W;"""
STORE = """@!%p1 bra W;
{form} {place}, [%r5]; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
W:"""
DONE = "selp.u32 %r8, 1, 0, %p3; @%p1 st.global.u32 [%rd2+4096], %r8;"


@dataclass(frozen=True)
class Case:
    """A copy: "load", "store" or "reduce", through a map, at coordinates; `ahead`, the offsets of an im2col load."""

    name: str
    verb: str
    map: TiledMap
    at: tuple[int, ...]
    ahead: tuple[int, ...] = ()

    def text(self) -> str:
        """Its kernel."""
        rank, pixels = self.map.rank, self.map.im2col is not None
        place = "[%rd1, {" + ", ".join(map(str, self.at)) + "}]"
        if self.verb == "load":
            tail = ", {" + ", ".join(map(str, self.ahead or (0,) * (rank - 2))) + "}" if pixels else ""
            mode = ".im2col" if pixels else ""
            size = self.map.box_bytes
            copy = LOAD.format(size=size, rank=rank, mode=mode, place=place, tail=tail)
            return TEXT.format(copy=copy, after=DONE)
        mode = ".im2col_no_offs" if pixels else ".tile"
        verb, operation = ("cp.reduce", ".add") if self.verb == "reduce" else ("cp", "")
        form = f"{verb}.async.bulk.tensor.{rank}d.global.shared::cta{operation}{mode}.bulk_group"
        return TEXT.format(copy=STORE.format(form=form, place=place), after="")

    def arrays(self) -> tuple[Array, Array]:
        """The tensor in global memory, and what is in shared memory before."""
        size = self.map.itemsize
        tensor = np.arange(1, 65536 // size + 1, dtype=np.uint64)
        held = (tensor % 251 + 1 if size == 1 else tensor).astype(f"u{size}")
        out = np.full(SIZE + 16, 0xEE, np.uint8)
        if self.verb != "load":
            out[:SIZE] = np.arange(20001, 20001 + SIZE // 2, dtype=np.uint16).view(np.uint8)
        return held, out


def cases() -> list[Case]:
    """All of them."""
    found: list[Case] = []

    def add(
        name: str,
        element: str,
        extents: tuple[int, ...],
        strides: tuple[int, ...],
        box: tuple[int, ...],
        at: tuple[int, ...],
        interleave: int = 16,
        swizzle: int = 0,
        **more: Any,
    ) -> None:
        steps = more.get("steps", (1,) * len(extents))
        corners = more.get("corners")
        pixels = None if corners is None else Im2col(*corners)
        map_ = TiledMap(element, extents, strides, box, steps, interleave, swizzle, im2col=pixels)
        found.append(Case(f"{name} {at}", more.get("verb", "load"), map_, at, more.get("ahead", ())))

    _boxes(add)
    _four(add)
    _pixels(add)
    _stores(add)
    return found


def _boxes(add: Callable[..., None]) -> None:
    """Three dimensions: width, slices, images."""
    add("plain", "u16", (64, 4, 3), (128, 512), (8, 2, 2), (0, 0, 0), 0)
    for channels in (1, 8, 16, 64):
        add(f"box {channels}", "u16", (8, 64, 3), (128, 1024), (8, channels, 2), (0, 0, 0))
    for extent, at in ((64, 8), (64, 63), (64, 64), (64, -1), (4, 3), (4, 4), (20, 19), (20, 20)):
        add(f"extent {extent}", "u16", (8, extent, 3), (128, 1024), (8, 16, 2), (0, at, 0))
    add("f32", "f32", (8, 32, 3), (128, 1024), (4, 8, 2), (1, 1, 0))
    add("u8", "u8", (16, 128, 3), (256, 2048), (16, 32, 1), (1, 1, 0))
    for channels in (16, 48):
        add(f"32 box {channels}", "u16", (8, 64, 3), (256, 2048), (8, channels, 2), (0, 1, 0), 32, 32)
    add("32 f32", "f32", (8, 64, 3), (256, 2048), (4, 16, 2), (1, 1, 0), 32, 32)
    add("short line", "u16", (8, 4, 3), (128, 512), (4, 2, 2), (0, 0, 0))


FOUR, STRIDES = (8, 4, 64, 2), (128, 512, 4096)
FIVE, WIDER = (4, 3, 2, 32, 2), (64, 192, 384, 1536)


def _four(add: Callable[..., None]) -> None:
    """Four and five dimensions: width, height, depth, slices, images."""
    places = (((8, 2, 16, 2), (0, 1, 1, 0)), ((8, 3, 24, 1), (2, 2, 6, 1)), ((8, 2, 24, 1), (-3, -1, -1, 1)))
    for box, at in (*places, ((8, 3, 24, 2), (-3, -1, 1, -1))):
        add(f"rank 4 {box}", "u16", FOUR, STRIDES, box, at)
    for steps in ((2, 2, 1, 1), (1, 1, 2, 1), (1, 1, 1, 2), (3, 1, 1, 1)):
        add(f"rank 4 steps {steps}", "u16", FOUR, STRIDES, (8, 2, 16, 2), (0, 0, 0, 0), steps=steps)
    for swizzle in (32, 64, 128):
        add(f"rank 4 swizzle {swizzle}", "u16", FOUR, STRIDES, (8, 4, 24, 1), (1, 1, 1, 0), 16, swizzle)
    wide = (20, 4, 64, 2), (320, 1280, 10240), (16, 2, 24, 1)
    add("rank 4 swizzle 128 wide", "u16", *wide, (1, 0, 1, 0), 16, 128)
    add("rank 5", "u16", FIVE, WIDER, (8, 2, 2, 16, 2), (1, 0, 0, 1, 0))
    add("rank 5", "u16", FIVE, WIDER, (8, 2, 1, 16, 1), (-1, 1, 1, 3, 1))


def _pixels(add: Callable[..., None]) -> None:
    """im2col."""
    none = ((0, 0), (0, 0))
    for channels in (1, 8, 16, 32):
        box = (channels, 12)
        add(f"im2col {channels}", "u16", FOUR, STRIDES, box, (2, 1, 1, 0), corners=none)
    around = {"corners": ((-1, -1), (-2, -1)), "ahead": (1, 2)}
    add("im2col corners", "u16", FOUR, STRIDES, (16, 12), (-1, -1, 2, 0), **around)
    add("im2col images", "u16", FOUR, STRIDES, (8, 40), (4, 2, 1, 0), corners=none)
    for steps in ((2, 2, 1, 1), (1, 2, 2, 1)):
        add(f"im2col {steps}", "u16", FOUR, STRIDES, (16, 8), (0, 0, 0, 0), corners=none, steps=steps)
    add("im2col rank 3", "u16", (8, 64, 3), (128, 1024), (16, 12), (2, 1, 0), corners=((0,), (0,)))
    add("im2col rank 5", "u16", FIVE, WIDER, (16, 20), (1, 1, 0, 1, 0), corners=((0, 0, 0), (0, 0, 0)))
    add("im2col plain", "u16", (64, 8, 4, 2), (128, 1024, 4096), (16, 12), (16, 2, 1, 0), 0, corners=none)
    add("im2col swizzle", "u16", FOUR, STRIDES, (16, 12), (0, 0, 0, 0), 16, 32, corners=none)
    wide = (8, 4, 16, 2), (256, 1024, 4096)
    add("im2col 32 bytes", "u16", *wide, (32, 12), (2, 1, 1, 0), 32, 32, corners=none)
    add("im2col f32", "f32", (8, 4, 8, 2), STRIDES, (8, 12), (2, 1, 1, 0), corners=none)


def _stores(add: Callable[..., None]) -> None:
    """The other way."""
    for at in ((0, 0, 0, 0), (1, 1, 1, 0), (5, 2, 63, 0), (5, 2, 6, 1)):
        for swizzle in (0, 64):
            add(f"store {swizzle}", "u16", FOUR, STRIDES, (8, 3, 24, 1), at, 16, swizzle, verb="store")
        add("reduce", "u16", FOUR, STRIDES, (8, 3, 24, 1), at, verb="reduce")
    add("store 32", "u16", (8, 64, 3), (256, 2048), (8, 16, 2), (1, 1, 1), 32, 32, verb="store")
    box = (8, 4, 24, 1)
    add("store steps", "u16", FOUR, STRIDES, box, (1, 1, 1, 0), steps=(2, 2, 1, 1), verb="store")
    none = ((0, 0), (0, 0))
    add("store pixels", "u16", FOUR, STRIDES, (16, 12), (2, 1, 1, 0), corners=none, verb="store")


def _row(case: Case, before: Array, tensor: Array, out: Array) -> Row:
    if case.verb != "load":
        changed = np.flatnonzero(tensor != before)
        return {"case": case.name, "changed": [[int(i), int(tensor[i])] for i in changed]}
    written = np.flatnonzero(out[:SIZE] != 0xEE)
    size = int(written.max()) + 1 if len(written) else 0
    return {"case": case.name, "done": int(out[SIZE]) == 1, "bytes": out[:size].tobytes().hex()}


def on_emulator(case: Case) -> Row:
    """What the emulator says; "refused" is true if there is no such map, "fault" is what it says a GPU reports."""
    tensor, out = case.arrays()
    try:
        case.map.check(case.name)
    except LayoutError:
        return {"case": case.name, "refused": True}
    before = tensor.copy()
    try:
        emulator.launch(case.text(), "k", 1, THREADS, [Mapped(case.map, tensor), out])
    except EmulatorError as error:
        said = re.search(r"CUDA_ERROR_\w+", str(error))
        return {"case": case.name, "fault": said.group() if said else error.kind}
    return _row(case, before, tensor, out)


def on_device(case: Case, ordinal: int) -> Row:
    """What a GPU says."""
    tensor, out = case.arrays()
    before = tensor.copy()
    held, result = (driver.DeviceBuffer(x.nbytes, ordinal) for x in (tensor, out))
    for buffer, array in ((held, tensor), (result, out)):
        driver.copy_to_device(buffer.address, array.ctypes.data, array.nbytes, ordinal=ordinal)
    try:
        packed = tensor_maps.encode(case.name, case.map, held.address, ordinal)
    except DriverError:
        return {"case": case.name, "refused": True}
    with driver.load(case.text(), ordinal) as module:
        slots = [driver.Slot("128s", 0, 128), driver.Slot("Q", 128, 8)]
        geometry = driver.Geometry((1, 1, 1), (THREADS, 1, 1))
        driver.Launcher(module.function("k"), geometry, slots)([packed, result.address])
        for buffer, array in ((held, tensor), (result, out)):
            driver.copy_from_device(array.ctypes.data, buffer.address, array.nbytes, ordinal=ordinal)
        driver.synchronize(ordinal)
    return _row(case, before, tensor, out)


def name_of(ordinal: int) -> str:
    """A GPU's name; asked in a process of its own, since this one must not hold a context."""
    return driver.device(ordinal).name


def alone(case: Case, ordinal: int) -> Row:
    """What a GPU says, asked by a process of the case's own, since a fault ends it; "fault" is how it ended."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        try:
            return pool.submit(on_device, case, ordinal).result()
        except DriverError as error:
            return {"case": case.name, "fault": error.name or str(error).splitlines()[0]}
        except BrokenExecutor:
            return {"case": case.name, "fault": "the process died"}


def main() -> int:
    """Parse the command line, run the cases, report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="0", help="a CUDA ordinal, or emulator to run that alone")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--against", type=Path, help="an earlier --json: compare the emulator with it")
    options = parser.parse_args()
    rows: list[Row] = [on_emulator(case) for case in cases()]
    other = rows
    report: Row = {"command": " ".join(sys.argv)}
    if options.against:
        other = json.loads(options.against.read_text())["cases"]
    elif options.device != "emulator":
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            report["device"] = pool.submit(name_of, int(options.device)).result()
        other = [alone(case, int(options.device)) for case in cases()]
    known = {row["case"]: row for row in other}
    rows = [row for row in rows if row["case"] in known]
    agree = 0
    for row in rows:
        asked = known[row["case"]]
        same = {name: row.get(name) for name in asked} == asked
        agree += same
        if not same:
            print(f"differs: {row['case']}: the emulator {str(row)[:300]}, a GPU {str(asked)[:300]}")
    print(f"{agree} of {len(rows)} cases agree")
    if options.json:
        text = ",\n".join(json.dumps(row) for row in other)
        options.json.write_text(f'{json.dumps(report)[:-1]}, "cases": [\n{text}\n]}}\n')
    return 0 if agree == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
