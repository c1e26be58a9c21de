"""Ask a GPU about textures and surfaces by points, and compare with the emulator bit for bit.

    python benchmarks/device_textures.py [--seed 1] [--match tld4] [--json FILE]
    python benchmarks/device_textures.py --against benchmarks/results/h200/textures.json

Every case is a kernel that 4,096 threads run with random coordinates, many of them at and beyond edges, on CUDA arrays
of several formats. --json keeps a hash of every answer, so that --against reruns the comparison without a GPU.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from ptxtile import driver, emulator
from ptxtile.errors import DriverError

THREADS, BLOCK, SHOWN, DIGITS = 4096, 256, 3, 16
WIDTH, HEIGHT = 13, 6
FORMATS = {
    "uint8": 1,
    "uint16": 2,
    "uint32": 3,
    "int8": 8,
    "int16": 9,
    "int32": 10,
    "float16": 16,
    "float32": 32,
}
"""Numbers of CUarray_format."""
MODES = ("wrap", "clamp", "mirror", "border")
"""Address modes in the order of CUaddress_mode."""
BORDER = (0.25, 0.5, 0.75, 1.0)
Words = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel body on one object. `surface`: whether it is one; `whole`: coordinates are integers."""

    body: str
    dtype: str
    channels: int
    rows: int
    surface: bool = False
    normalized: bool = False
    address: str = "clamp"
    as_float: bool = False
    whole: bool = False

    @property
    def name(self) -> str:
        """What the case is, in one line."""
        kind = f"{self.dtype}x{self.channels} {self.address} {'normalized' if self.normalized else 'texels'}"
        return f"{' '.join(self.body.split())} on {self.rows} rows of {kind}{' as float' * self.as_float}"


TAKE = "mov.b32 r4, f3; mov.b32 r5, f4; mov.b32 r6, f5; mov.b32 r7, f6;"


def _textures() -> Iterator[Case]:
    for rows in (0, HEIGHT):
        geometry, point, numbers = ("2d", "{f1, f2}", "{r2, r3}") if rows else ("1d", "{f1}", "{r2}")
        shift = "{-3, 2}" if rows else "{-3}"
        for dtype in FORMATS:
            for channels in (1, 2, 4):
                floats = dtype.startswith("float")
                data = "f32" if floats else "s32" if dtype[0] == "i" else "u32"
                out, after = ("{f3, f4, f5, f6}", TAKE) if floats else ("{r4, r5, r6, r7}", "")
                read = f"tex.{geometry}.v4.{data}.f32 {out}, [d1, {point}]; {after}"
                yield Case(read, dtype, channels, rows)
                fetch = f"tex.{geometry}.v4.{data}.s32 {out}, [d1, {numbers}]; {after}"
                yield Case(fetch, dtype, channels, rows, whole=True)
        for mode in MODES:
            for normalized in (False, True):
                read = f"tex.{geometry}.v4.f32.f32 {{f3, f4, f5, f6}}, [d1, {point}]; {TAKE}"
                yield Case(read, "float32", 4, rows, normalized=normalized, address=mode)
                moved = f"tex.{geometry}.v4.f32.f32 {{f3, f4, f5, f6}}, [d1, {point}], {shift}; {TAKE}"
                yield Case(moved, "float32", 4, rows, normalized=normalized, address=mode)
                fetch = f"tex.{geometry}.v4.f32.s32 {{f3, f4, f5, f6}}, [d1, {numbers}]; {TAKE}"
                yield Case(fetch, "float32", 4, rows, normalized=normalized, address=mode, whole=True)
        for dtype in ("uint8", "int8", "uint16", "int16"):
            read = f"tex.{geometry}.v4.f32.f32 {{f3, f4, f5, f6}}, [d1, {point}]; {TAKE}"
            yield Case(read, dtype, 4, rows, as_float=True)
        for dtype in ("float16", "float32"):
            yield Case(f"tex.{geometry}.v2.f16x2.f32 {{r4, r5}}, [d1, {point}];", dtype, 4, rows)
    for channel in "rgba":
        for mode in MODES:
            read = f"tld4.{channel}.2d.v4.f32.f32 {{f3, f4, f5, f6}}, [d1, {{f1, f2}}]; {TAKE}"
            yield Case(read, "float32", 4, HEIGHT, address=mode, normalized=mode in ("wrap", "mirror"))
    yield Case("tld4.g.2d.v4.s32.f32 {r4, r5, r6, r7}, [d1, {f1, f2}], {1, -2};", "int16", 2, HEIGHT)
    for query in ("width", "height"):  # for others the driver has no code
        yield Case(f"txq.{query}.b32 r4, [d1];", "int16", 2, HEIGHT, normalized=True, address="wrap")


def _surfaces() -> Iterator[Case]:
    for rows in (0, HEIGHT):
        geometry, place = ("2d", "{r2, r3}") if rows else ("1d", "{r2}")
        for clamp in ("zero", "clamp"):
            for data, size in (("b8", 1), ("b16", 2), ("b32", 4), ("b64", 8)):
                out = {"b8": "h1", "b16": "h1", "b32": "r4", "b64": "d4"}[data]
                move = {"h": "cvt.u32.u16 r4, h1;", "r": "", "d": "mov.b64 {r4, r5}, d4;"}[out[0]]
                text = f"mul.lo.s32 r2, r2, {size}; suld.b.{geometry}.{data}.{clamp} {out}, [d1, {place}]; {move}"
                yield Case(text, "uint8", 4, rows, surface=True, whole=True)
            text = f"shl.b32 r2, r2, 3; suld.b.{geometry}.v2.b32.{clamp} {{r4, r5}}, [d1, {place}];"
            yield Case(text, "float32", 4, rows, surface=True, whole=True)
        store = f"shl.b32 r2, r2, 2; add.u32 r8, r2, 7; sust.b.{geometry}.b32.zero [d1, {place}], r8;"
        yield Case(store, "uint32", 1, rows, surface=True, whole=True)
        add = f"shl.b32 r2, r2, 2; sured.b.add.{geometry}.u32.zero [d1, {place}], 3;"
        yield Case(add, "uint32", 1, rows, surface=True, whole=True)


CASES = (*_textures(), *_surfaces())


def image_of(case: Case, seed: int) -> NDArray[np.generic]:
    """The texels of a case."""
    rng = np.random.default_rng([seed, FORMATS[case.dtype], case.channels, case.rows])
    shape = ([case.rows] if case.rows else []) + [WIDTH] + ([case.channels] if case.channels > 1 else [])
    if case.dtype.startswith("float"):
        return (rng.random(shape) * 100 - 50).astype(case.dtype)
    raw = rng.integers(0, 256, [*shape, np.dtype(case.dtype).itemsize], np.uint8)
    return np.ascontiguousarray(raw).view(case.dtype)[..., 0].copy()


def points_of(case: Case, seed: int) -> NDArray[np.generic]:
    """Two coordinates a thread, at and around texels, their edges and the ends of the texture."""
    rng = np.random.default_rng([seed, 77])
    sizes = np.array([WIDTH, max(case.rows, 1)])
    if case.whole:
        return rng.integers(-4, sizes + 4, (THREADS, 2)).astype(np.int32)
    points = rng.random((THREADS, 2)) * (sizes * 3) - sizes
    points[::4] = np.floor(points[::4])
    points[1::4] = np.floor(points[1::4]) + 0.5
    return (points / (sizes if case.normalized else 1)).astype(np.float32)


def module(cases: list[Case]) -> str:
    """A module with an entry for each case."""
    text = ".version 8.6\n.target sm_90\n.address_size 64\n"
    for number, case in enumerate(cases):
        text += f""".visible .entry k{number}(.param .u64 T, .param .u64 IN, .param .u64 OUT)
{{
.reg .b16 h<4>; .reg .b32 r<12>; .reg .f32 f<8>; .reg .b64 d<8>;
ld.param.u64 d1, [T]; ld.param.u64 d2, [IN]; ld.param.u64 d3, [OUT];
mov.u32 r8, %ctaid.x; mov.u32 r9, %ntid.x; mov.u32 r10, %tid.x; mad.lo.u32 r1, r8, r9, r10;
mul.wide.u32 d4, r1, 8; add.u64 d2, d2, d4; mul.wide.u32 d4, r1, 16; add.u64 d3, d3, d4;
ld.global.v2.f32 {{f1, f2}}, [d2]; ld.global.v2.b32 {{r2, r3}}, [d2];
mov.b32 r4, 0; mov.b32 r5, 0; mov.b32 r6, 0; mov.b32 r7, 0;
{case.body}
st.global.v4.b32 [d3], {{r4, r5, r6, r7}};
ret;
}}
"""
    return text


def emulated(cases: list[Case], seed: int) -> list[Words]:
    """What the emulator computes: the threads' words, and of a surface its words behind them."""
    text, found = module(cases), []
    for number, case in enumerate(cases):
        image, out = image_of(case, seed), np.zeros((THREADS, 4), np.uint32)
        if case.surface:
            handle = emulator.surface(image, channels=case.channels)
        else:
            options: dict[str, Any] = {
                "normalized": case.normalized,
                "address": case.address,
                "border": BORDER,
            }
            handle = emulator.texture(image, channels=case.channels, as_float=case.as_float, **options)
        arguments = [int(handle), points_of(case, seed), out]
        emulator.launch(text, f"k{number}", THREADS // BLOCK, BLOCK, arguments, sanitize=False)
        found.append(_with_image(case, out, image))
    return found


def _with_image(case: Case, out: Words, image: NDArray[np.generic]) -> Words:
    raw = image.tobytes() if case.surface else b""
    return np.concatenate([out.reshape(-1), np.frombuffer(raw, np.uint32)])


class Asked:
    """One device."""

    def __init__(self, ordinal: int) -> None:
        self.ordinal = ordinal
        self.device = driver.device(ordinal)
        self.inputs, self.outputs = (driver.DeviceBuffer(16 * THREADS, ordinal) for _ in range(2))
        self.cuda = driver.session().binding

    def _done(self, answer: tuple[Any, ...]) -> Any:
        if int(answer[0]):
            raise DriverError(f"the driver says {answer[0]}")
        return answer[1] if len(answer) > 1 else None

    def _copy(self, array: Any, image: NDArray[np.generic], back: bool) -> None:
        copy, kinds = self.cuda.CUDA_MEMCPY2D(), self.cuda.CUmemorytype
        copy.WidthInBytes, copy.Height = image.nbytes // (image.shape[0] if self.rows else 1), self.rows or 1
        if back:
            copy.srcMemoryType, copy.srcArray = kinds.CU_MEMORYTYPE_ARRAY, array
            copy.dstMemoryType, copy.dstHost, copy.dstPitch = (
                kinds.CU_MEMORYTYPE_HOST,
                image.ctypes.data,
                copy.WidthInBytes,
            )
        else:
            copy.dstMemoryType, copy.dstArray = kinds.CU_MEMORYTYPE_ARRAY, array
            copy.srcMemoryType, copy.srcHost, copy.srcPitch = (
                kinds.CU_MEMORYTYPE_HOST,
                image.ctypes.data,
                copy.WidthInBytes,
            )
        self._done(self.cuda.cuMemcpy2D(copy))

    def _object(self, case: Case, array: Any, image: NDArray[np.generic]) -> int:
        cuda, resource = self.cuda, self.cuda.CUDA_RESOURCE_DESC()
        if case.whole and not case.rows and not case.surface:
            # Integers reach linear memory alone.
            self.linear = driver.DeviceBuffer(image.nbytes, self.ordinal)
            driver.copy_to_device(self.linear.address, image.ctypes.data, image.nbytes, ordinal=self.ordinal)
            resource.resType = cuda.CUresourcetype.CU_RESOURCE_TYPE_LINEAR
            resource.res.linear.devPtr, resource.res.linear.sizeInBytes = self.linear.address, image.nbytes
            resource.res.linear.format = cuda.CUarray_format(FORMATS[case.dtype])
            resource.res.linear.numChannels = case.channels
        else:
            resource.resType = cuda.CUresourcetype.CU_RESOURCE_TYPE_ARRAY
            resource.res.array.hArray = array
        if case.surface:
            return int(self._done(cuda.cuSurfObjectCreate(resource)))
        texture = cuda.CUDA_TEXTURE_DESC()
        texture.addressMode = [cuda.CUaddress_mode(MODES.index(case.address))] * 3
        texture.filterMode = cuda.CUfilter_mode.CU_TR_FILTER_MODE_POINT
        texture.flags = 2 * case.normalized + (not case.as_float and not case.dtype.startswith("float"))
        texture.borderColor = list(BORDER)
        return int(self._done(cuda.cuTexObjectCreate(resource, texture, None)))

    def run(self, loaded: driver.LoadedModule, number: int, case: Case, seed: int) -> Words:
        """The same as `emulated`, from the device."""
        image, points = image_of(case, seed), points_of(case, seed)
        self.rows = case.rows
        with driver.activate(self.ordinal):
            shape = self.cuda.CUDA_ARRAY3D_DESCRIPTOR()
            shape.Width, shape.Height, shape.Depth, shape.Flags = WIDTH, case.rows, 0, 2 * case.surface
            shape.Format, shape.NumChannels = self.cuda.CUarray_format(FORMATS[case.dtype]), case.channels
            array = self._done(self.cuda.cuArray3DCreate(shape))
            self._copy(array, image, False)
            handle = self._object(case, array, image)
        driver.copy_to_device(self.inputs.address, points.ctypes.data, points.nbytes, ordinal=self.ordinal)
        slots = [driver.Slot("Q", 8 * i, 8) for i in range(3)]
        geometry = driver.Geometry((THREADS // BLOCK, 1, 1), (BLOCK, 1, 1))
        arguments = [handle, self.inputs.address, self.outputs.address]
        driver.Launcher(loaded.function(f"k{number}"), geometry, slots)(arguments)
        out = np.empty((THREADS, 4), np.uint32)
        driver.copy_from_device(out.ctypes.data, self.outputs.address, out.nbytes, ordinal=self.ordinal)
        driver.synchronize(self.ordinal)
        with driver.activate(self.ordinal):
            if case.surface:
                self._copy(array, image, True)
            self._done(self.cuda.cuArrayDestroy(array))
        return _with_image(case, out, image)


def digest(words: Words) -> str:
    """The first digits of the SHA-256."""
    return hashlib.sha256(np.ascontiguousarray(words).tobytes()).hexdigest()[:DIGITS]


def judge(case: Case, points: NDArray[np.generic], got: Words, want: Words) -> dict[str, Any]:
    """One row of the report."""
    wrong = np.flatnonzero(got != want)
    row: dict[str, Any] = {
        "case": case.name,
        "sha256": digest(got),
        "words": len(got),
        "agree": len(got) - len(wrong),
    }
    shown = []
    for thread in dict.fromkeys((wrong[wrong < 4 * THREADS] // 4).tolist()):
        place = slice(4 * thread, 4 * thread + 4)
        shown.append([points[thread].tolist(), [hex(x) for x in got[place]], [hex(x) for x in want[place]]])
    return {**row, "differences": shown[:SHOWN]}


def main() -> int:
    """Ask a device, or compare with what one answered before."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--match", default="", help="only cases that contain this")
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--json", type=Path, help="keep hashes and differences here")
    parser.add_argument("--against", type=Path, help="compare with the answers kept there, without a GPU")
    options = parser.parse_args()
    cases = [case for case in CASES if options.match in case.name]
    if options.against:
        kept = json.loads(options.against.read_text())
        hashes = {row["case"]: row["sha256"] for row in kept["cases"]}
        found = emulated(cases, kept["seed"])
        bad = [case.name for case, words in zip(cases, found) if digest(words) != hashes.get(case.name)]
        print("\n".join([*bad, f"{len(cases) - len(bad)} of {len(cases)} cases agree with {kept['device']}"]))
        return 1 if bad else 0
    try:
        asked = Asked(options.device)
        loaded = driver.load(module(cases), options.device)
    except DriverError as error:
        print(f"no CUDA device to ask: {error}", file=sys.stderr)
        return 2
    rows = []
    for number, (case, want) in enumerate(zip(cases, emulated(cases, options.seed))):
        try:
            got = asked.run(loaded, number, case, options.seed)
        except DriverError as error:
            rows.append({"case": case.name, "error": str(error)})
            continue
        rows.append(judge(case, points_of(case, options.seed), got, want))
    for row in rows:
        if row.get("agree") != row.get("words") or "error" in row:
            print(f"{row['case']}\n    {row.get('error') or row['agree']} {row.get('differences')}")
    whole = sum(row.get("agree", -1) == row.get("words") for row in rows)
    print(f"{whole} of {len(rows)} cases agree in every bit")
    if options.json:
        head = {"command": "python " + " ".join(sys.argv), "device": asked.device.name, "seed": options.seed}
        options.json.write_text(json.dumps({**head, "cases": rows}, separators=(",", ":")) + "\n")
    return 0 if whole == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
