"""What is kept of a device's answers: a hash a case, and of approximations how far each lies from the emulator's.

With these the comparison reruns without a GPU (`device_semantics.py --against FILE`): the emulator computes the same
operands again, and its results must give the device's hash; those of an approximation do once the kept distances are
added.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Sequence

import device_semantics_text as text
import numpy as np
from device_semantics_cases import Case

from ptxtile.emulator import numeric_float as nf
from ptxtile.emulator.semantics.kinds import kind_of

COLUMNS = ("case", "elements", "agree", "sha256", "worst_ulp")
DIGITS = 16


def key(case: Case) -> str:
    """The name of a case: its spelling, and what tells it from another case of the same spelling."""
    literal = "" if case.immediate is None else f" {case.immediate:#x}"
    hints = [source for source in case.sources if ":" in source]
    return f"{case.spelling}{literal}{''.join(' ' + hint for hint in hints)}"


def digest(case: Case, results: Sequence[text.Words]) -> str:
    """The first digits of the SHA-256 of a case's results; where any NaN will do, all NaNs count as one."""
    state = hashlib.sha256()
    for name, result in zip((*case.targets, "b32"), results):
        held = np.ascontiguousarray(result)
        if case.any_nan:
            kind = kind_of("." + name)
            assert kind is not None
            held = np.where(nf.is_nan(held, kind.form), held.dtype.type(kind.form.nan), held)
        state.update(held.tobytes())
    return state.hexdigest()[:DIGITS]


def pack_offsets(got: text.Words, want: text.Words) -> str:
    """Device less emulator as integers of the results' width, modulo their range, compressed."""
    apart = np.ascontiguousarray(got - want)  # type: ignore[operator]
    # Byte planes: the upper bytes of small distances are all alike.
    planes = apart.view(np.uint8).reshape(len(apart), -1).T
    return base64.b85encode(zlib.compress(np.ascontiguousarray(planes).tobytes(), 9)).decode()


def unpack_offsets(packed: str, like: text.Words) -> text.Words:
    """What `pack_offsets` packed, as an array like this one."""
    planes = np.frombuffer(zlib.decompress(base64.b85decode(packed)), np.uint8).reshape(-1, len(like))
    return np.ascontiguousarray(planes.T).view(like.dtype).reshape(like.shape)


def recheck(case: Case, seed: int, sha256: str, packed: str | None) -> bool:
    """Whether the emulator still computes what the device answered."""
    results = text.expected(case, text.operands(case, seed))
    if packed is not None:
        offsets = unpack_offsets(packed, results[0])
        device = (results[0] + offsets).astype(results[0].dtype)  # type: ignore[operator]
        agrees, _ = text.agreement(case, case.targets[0], device, results[0])
        return bool(agrees.all()) and digest(case, [device]) == sha256
    return digest(case, results) == sha256
