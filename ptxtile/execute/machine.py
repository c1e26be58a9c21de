"""Which machine: a CUDA ordinal or the emulator."""

from __future__ import annotations

import os
from typing import Literal, Union

from ptxtile import driver
from ptxtile.errors import DriverError

__all__ = ["Machine", "choose", "default_device"]

Machine = Union[int, Literal["emulator"]]
"""A CUDA device ordinal, or "emulator"."""

_VARIABLE = "PTXTILE_DEVICE"


def _wrong(what: object, source: str) -> DriverError:
    return DriverError(f'{source} is {what!r}: a device is a CUDA ordinal such as 0, or "emulator"')


def from_environment() -> Machine | None:
    """The default that PTXTILE_DEVICE sets; None where it sets none."""
    text = os.environ.get(_VARIABLE, "").strip()
    if not text:
        return None
    if text == "emulator":
        return "emulator"
    if not text.isdecimal():
        raise _wrong(text, _VARIABLE)
    return int(text)


def choose(device: Machine | str | None, arrays_on: int | None = None) -> Machine:
    """The machine to run on.

    Args:
        device: what the caller says; it decides.
        arrays_on: the CUDA device that an argument lives on, if any.

    Without `device`: PTXTILE_DEVICE, else the device of the arguments, else the current GPU, else the emulator.

    Raises:
        DriverError: no such device, or no GPU although one was asked for.
    """
    chosen = device if device is not None else from_environment()
    if chosen is None:
        chosen = arrays_on
    if chosen is None:
        return driver.current_ordinal() if driver.available() else "emulator"
    if chosen == "emulator":
        return "emulator"
    if isinstance(chosen, bool) or not isinstance(chosen, int):
        raise _wrong(chosen, "device")
    return driver.device(chosen).ordinal


def default_device() -> str:
    """Where a kernel runs that is told nothing, in words: "the emulator", or "CUDA device 0, NVIDIA H200"."""
    chosen = choose(None)
    return "the emulator" if chosen == "emulator" else f"CUDA device {chosen}, {driver.device(chosen).name}"
