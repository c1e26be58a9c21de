"""Textures, samplers and surfaces (PTX ISA 5.3, 9.7.10): NumPy arrays that programs reach through handles.

A handle is an integer that a launch passes as a `.u64` or `.texref` parameter. Programs read and write the array
itself, and the handle means something as long as the Python object lives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Literal
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from ptxtile.errors import EmulatorError

Kind = Literal["texture", "sampler", "surface"]
Ints = NDArray[np.int64]
Doubles = NDArray[np.float64]
ADDRESSES = ("wrap", "mirror", "clamp", "border")
FORMATS = ("uint8", "uint16", "uint32", "int8", "int16", "int32", "float16", "float32")
REFERENCES = {"texref": "texture", "samplerref": "sampler", "surfref": "surface"}
TURN, STEPS = 2.0**21, 2.0**8
_FIRST, _STEP = 0x7E << 40, 0x20


@dataclass(frozen=True, slots=True)
class Sampling:
    """How coordinates become texels.

    normalized   coordinates of 0 to 1 span the texture; else they count texels
    address      beyond its edge, along x and along y: "clamp", "border", and where normalized "wrap", "mirror"
    border       what lies there, as red, green, blue, alpha
    """

    normalized: bool
    address: tuple[str, str]
    border: tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Image:
    """Texels: (rows, columns, channels), a view of the array that was given. `flat`: it has one dimension."""

    texels: NDArray[np.generic]
    flat: bool
    as_float: bool

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return int(self.texels.shape[1]) * self.sample_bytes

    @property
    def sample_bytes(self) -> int:
        """Bytes of a texel."""
        return int(self.texels.shape[2]) * self.texels.itemsize

    @property
    def floating(self) -> bool:
        """Whether reading a texel gives floats."""
        return self.as_float or self.texels.dtype.kind == "f"


class Opaque:
    """What a handle stands for. `image`: of a texture or a surface; `sampling`: of a texture or a sampler."""

    __slots__ = ("__weakref__", "image", "kind", "sampling")

    def __init__(self, kind: Kind, image: Image | None, sampling: Sampling | None) -> None:
        self.kind = kind
        self.image = image
        self.sampling = sampling


class Handle(int):
    """The handle of a texture, a sampler or a surface, which is an integer that launches take."""

    described: Opaque


_known: WeakValueDictionary[int, Opaque] = WeakValueDictionary()
_numbers = count(_FIRST, _STEP)


def _handle(kind: Kind, image: Image | None, sampling: Sampling | None) -> Handle:
    made = Handle(next(_numbers))
    made.described = _known[int(made)] = Opaque(kind, image, sampling)
    return made


def find(number: int) -> Opaque | None:
    """What a handle stands for, or None of another number and where the handle is gone."""
    return _known.get(number)


def texture(
    array: NDArray[np.generic],
    *,
    channels: int = 1,
    normalized: bool = False,
    address: str | Sequence[str] = "clamp",
    border: Sequence[float] = (0, 0, 0, 0),
    as_float: bool = False,
) -> Handle:
    """A texture of one or two dimensions, read by points, with a sampler of its own (unified mode).

    array        (width,) or (height, width), with a last axis more of 1, 2 or 4 where `channels` says so; C-contiguous,
                 of 8, 16 or 32-bit integers, float16 or float32. It is read as it is when the program runs
    normalized, address, border   see `Sampling`
    as_float     8 and 16-bit integers are read as floats of 0 to 1, or -1 to 1

    EmulatorError for another array or address.
    """
    image = _image(array, channels, as_float)
    return _handle("texture", image, _sampling(normalized, address, border))


def surface(array: NDArray[np.generic], *, channels: int = 1) -> Handle:
    """A surface of one or two dimensions on an array like that of `texture`; stores change the array."""
    return _handle("surface", _image(array, channels, False), None)


def sampler(
    *,
    normalized: bool = False,
    address: str | Sequence[str] = "clamp",
    border: Sequence[float] = (0, 0, 0, 0),
) -> Handle:
    """A sampler by itself (independent mode), which a `tex` names beside the texture."""
    return _handle("sampler", None, _sampling(normalized, address, border))


def _image(array: NDArray[np.generic], channels: int, as_float: bool) -> Image:
    if not isinstance(array, np.ndarray) or array.dtype.name not in FORMATS or not array.flags.c_contiguous:
        given = f"an array of {array.dtype}" if isinstance(array, np.ndarray) else type(array).__name__
        raise EmulatorError(
            f"a texture or surface is a C-contiguous array of {', '.join(FORMATS)}, not {given}",
            kind="launch",
        )
    dimensions = array.ndim - (channels > 1)
    if (
        channels not in (1, 2, 4)
        or dimensions not in (1, 2)
        or (channels > 1 and array.shape[-1] != channels)
    ):
        raise EmulatorError(
            "a texture or surface has one or two dimensions, and 1, 2 or 4 channels in a last axis, which "
            f"{array.shape} with channels={channels} has not",
            kind="launch",
        )
    if not array.size:
        raise EmulatorError(f"a texture or surface of shape {array.shape} has no texels", kind="launch")
    if as_float and array.dtype.name not in FORMATS[:2] + FORMATS[3:5]:
        raise EmulatorError(f"as_float is for 8 and 16-bit integers, not {array.dtype}", kind="launch")
    rows = 1 if dimensions == 1 else array.shape[0]
    return Image(array.reshape(rows, -1, channels), dimensions == 1, as_float)


def _sampling(normalized: bool, address: str | Sequence[str], border: Sequence[float]) -> Sampling:
    both = (address, address) if isinstance(address, str) else tuple(address)
    if len(both) != 2 or any(mode not in ADDRESSES for mode in both):
        raise EmulatorError(
            f"address is one or two of {', '.join(map(repr, ADDRESSES))}, not {address!r}", kind="launch"
        )
    if len(border) != 4:
        raise EmulatorError(f"border has four numbers, not {len(border)}", kind="launch")
    return Sampling(normalized, (both[0], both[1]), (border[0], border[1], border[2], border[3]))


def axis(coordinate: Doubles, size: int, normalized: bool, back: float = 0.0) -> Ints:
    """Float coordinates as texel numbers, not yet within the texture: as an H200 does it.

    It cuts normalized ones to 21 fraction bits. `back`: how far before its coordinate the texel is, rounded then to 8.
    """
    kept = np.clip(np.where(np.isnan(coordinate), 0.0, coordinate), -(2.0**40), 2.0**40)
    if normalized:
        kept = np.floor(kept * TURN) / TURN * size
    if back:
        kept = np.rint((kept - back) * STEPS) / STEPS
    found: Ints = np.floor(kept).astype(np.int64)
    return found


def within(place: Ints, size: int, mode: str, normalized: bool) -> tuple[Ints, NDArray[np.bool_]]:
    """Texel numbers brought inside, and which of them are on the texture. Only normalized ones wrap and mirror."""
    inside = (place >= 0) & (place < size)
    if mode == "border":
        return np.clip(place, 0, size - 1), inside
    if mode == "wrap" and normalized:
        place = place % size
    elif mode == "mirror" and normalized:
        turned = place % (2 * size)
        place = np.minimum(turned, 2 * size - 1 - turned)
    return np.clip(place, 0, size - 1), np.ones(place.shape, np.bool_)


def fetch(
    image: Image, border: Sequence[float], rows: Ints, columns: Ints, inside: NDArray[np.bool_]
) -> Doubles:
    """Texels as numbers, (threads, 4): missing channels are 0; outside is the border."""
    texels = image.texels[rows, columns].astype(np.float64)
    if image.as_float:
        top = 2.0 ** (8 * image.texels.itemsize - (image.texels.dtype.kind == "i")) - 1
        texels = np.maximum((texels / top).astype(np.float32).astype(np.float64), -1.0)
    found = np.zeros((len(rows), 4))
    found[:, : texels.shape[1]] = texels
    return np.where(inside[:, None], found, np.array(border, np.float64))
