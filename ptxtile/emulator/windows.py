"""Where each state space lies in the generic address space (PTX ISA 5.1, 6.4.1), and inside itself.

A device's windows are its own business; these keep the properties that programs rely on: an address of one space is
never valid in another, null is invalid everywhere, and a shared address carries the rank of its CTA in the cluster in
bits 24 and up, as on the hardware, so that `shared::cta` addresses are `shared::cluster` addresses too.
"""

from __future__ import annotations

SHARED_WINDOW = 1 << 40
LOCAL_WINDOW = 2 << 40
CONST_WINDOW = 3 << 40
PARAM_WINDOW = 4 << 40
GLOBAL_BASE = 0x7F << 40
WINDOW_SIZE = 1 << 32

SHARED_START = 0x400
"""The first byte of a CTA's shared variables: the system keeps the first 1 KiB, and 0 stays invalid."""
RANK_SHIFT = 24
SHARED_LIMIT = 227 * 1024
"""The most shared memory that a CTA of sm_90 and later may have, static and dynamic together, in bytes."""

LOCAL_START = 0x100
PARAM_START = 0x280
CONST_START = 0x100
FUNCTION_BASE = 0x10_0000_0000
FUNCTION_STEP = 0x100

WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "const": CONST_WINDOW, "param": PARAM_WINDOW}
"""Generic base address of each space but global, where the generic address is the address itself."""


def space_of(address: int) -> str:
    """The state space that holds a generic address: "shared", "local", "const", "param" or "global"."""
    for space, base in WINDOWS.items():
        if base <= address < base + WINDOW_SIZE:
            return space
    return "global"
