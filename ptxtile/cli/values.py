"""Arguments of a kernel as they are written on a command line: numbers, arrays made up, arrays from files."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptxtile.cli import UsageFault

__all__ = ["Given", "given"]

_MAKERS = ("zeros", "ones", "arange", "random")
_WHOLE = {f"{sign}{bits}": bits for sign in "sub" for bits in (8, 16, 32, 64)}
_KINDS = {
    **_WHOLE,
    "f16": 16,
    "bf16": 16,
    "f32": 32,
    "f64": 64,
}
_SHOWN = 8
_LISTED = 4096


@dataclass(slots=True)
class Given:
    """One argument: what the kernel gets; for an array also what it was, and the file that it goes to."""

    text: str
    value: Any
    before: Any = None
    file: str | None = None

    @property
    def is_array(self) -> bool:
        """Whether it is an array, which the kernel may change."""
        return self.before is not None

    def save(self) -> None:
        """Write the array to its file, if it has one."""
        if self.file is None:
            return
        import numpy as np

        try:
            np.save(self.file, self.value)
        except OSError as error:
            raise UsageFault(f"{self.file} cannot be written: {error.strerror or error}") from None

    def facts(self) -> dict[str, object]:
        """For JSON: the values of an array in order, the first 4096 of them."""
        if not self.is_array:
            return {"given": self.text}
        flat = self.value.reshape(-1)
        listed = flat[:_LISTED]
        return {
            "given": self.text,
            "dtype": str(self.value.dtype),
            "shape": list(self.value.shape),
            "changed": self.changed,
            "values": _plain(listed),
            "file": self.file,
        }

    @property
    def changed(self) -> bool:
        """Whether the kernel changed a byte of it."""
        return bool(self.before.tobytes() != self.value.tobytes())

    def described(self) -> str:
        """`float32 (32, 4), changed: 1.0 2.0 … -> out.npy`."""
        flat = self.value.reshape(-1)
        values = " ".join(str(value) for value in flat[:_SHOWN])
        more = " …" if len(flat) > _SHOWN else ""
        state = "changed" if self.changed else "not changed"
        text = f"{self.value.dtype} {self.value.shape}, {state}: {values}{more}"
        return text if self.file is None else f"{text} -> {self.file}"


def _plain(values: Any) -> list[object]:
    """Values as JSON has them: what is no finite number becomes a text."""
    if values.dtype.kind in "biu":
        return list(values.tolist())
    return [value if math.isfinite(value) else str(value) for value in values.astype("float64").tolist()]


def given(text: str, seed: int = 0) -> Given:
    """What an --arg says. Raises UsageFault where it says nothing that a kernel could take."""
    head, _, rest = text.partition(":")
    if head in _MAKERS:
        return _made(text, head, rest, seed)
    if ".npy" in text:
        return _loaded(text)
    if head in _KINDS and rest:
        return Given(text, _typed(text, head, rest))
    name, equals, rest = text.partition("=")
    if equals and name in _KINDS:
        return Given(text, _typed(text, name, rest))
    number = _number(text)
    if number is None:
        raise UsageFault(
            f"--arg {text!r} is no argument: write a number (2.0, u32=7), an array (zeros:f32:1024) or a file "
            "(in.npy)"
        )
    return Given(text, number)


def _number(text: str) -> int | float | None:
    for read in (lambda each: int(each, 0), float):
        try:
            found: int | float = read(text)
        except ValueError:
            continue
        return found
    return None


def _dtype(kind: str) -> Any:
    import numpy as np

    if kind == "bf16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    letter = {"s": "i", "u": "u", "b": "u", "f": "f"}[kind[0]]
    return np.dtype(f"{letter}{_KINDS[kind] // 8}")


def _typed(text: str, kind: str, written: str) -> Any:
    number, whole = _number(written), kind in _WHOLE
    if number is None or (whole and isinstance(number, float)):
        raise UsageFault(f"--arg {text!r}: {written!r} is no number of type {kind}")
    import numpy as np

    bits = _KINDS[kind]
    if whole:
        low, high = (-(1 << bits - 1), 1 << bits - 1) if kind[0] == "s" else (0, 1 << bits)
        if kind[0] == "b":
            low = -(1 << bits - 1)
        if not low <= number < high:
            raise UsageFault(f"--arg {text!r}: {written} does not fit into {kind}")
        number = int(number) & (1 << bits) - 1
        return np.array(number, f"u{bits // 8}").view(_dtype(kind))[()]
    return np.array(number).astype(_dtype(kind))[()]


def _made(text: str, how: str, rest: str, seed: int) -> Given:
    kind, _, rest = rest.partition(":")
    size, _, file = rest.partition(":")
    extents = size.replace(",", "x").split("x")
    if kind not in _KINDS or not all(extent.isdigit() for extent in extents):
        kinds = ", ".join(_KINDS)
        raise UsageFault(
            f"--arg {text!r}: an array is written like {how}:f32:1024 or {how}:f32:32x64; types are {kinds}"
        )
    import numpy as np

    shape, dtype = tuple(int(extent) for extent in extents), _dtype(kind)
    count = math.prod(shape)
    try:
        if how == "random":
            chooser = np.random.default_rng(seed)
            made = chooser.integers(0, 100, count) if kind in _WHOLE else chooser.standard_normal(count)
        else:
            made = np.arange(count) if how == "arange" else np.full(count, int(how == "ones"))
        array = np.ascontiguousarray(made.astype(dtype).reshape(shape))
        return Given(text, array, array.copy(), file or None)
    except (MemoryError, ValueError, OverflowError):  # NumPy's words for too much, and for far too much
        raise UsageFault(f"--arg {text!r}: {count} elements do not fit into memory") from None


def _loaded(text: str) -> Given:
    name, _, file = text.partition(".npy")
    source = name + ".npy"
    if file and not file.startswith(":"):
        raise UsageFault(f"--arg {text!r}: a file is written like in.npy or in.npy:out.npy")
    import numpy as np

    if not Path(source).is_file():
        raise UsageFault(f"--arg {text!r}: there is no file {source}")
    try:
        array = np.load(source, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise UsageFault(f"--arg {text!r}: {source} cannot be read: {error}") from None
    array = np.ascontiguousarray(array)
    return Given(text, array, array.copy(), file[1:] or None)
