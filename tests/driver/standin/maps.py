"""Tensor maps of the stand-in driver: what was asked, as text, in 128 bytes."""

from __future__ import annotations

import ctypes
import enum
from typing import Any

from standin import CUresult, Standin


class CUtensorMapDataType(enum.IntEnum):
    """The driver's numbers of element types."""

    UINT8, UINT16, UINT32, INT32, UINT64, INT64 = range(6)
    FLOAT16, FLOAT32, FLOAT64, BFLOAT16, FLOAT32_FTZ, TFLOAT32, TFLOAT32_FTZ = range(6, 13)


def _named(kind: str, *names: str) -> Any:
    return enum.IntEnum(f"CUtensorMap{kind}", {f"CU_TENSOR_MAP_{name}": i for i, name in enumerate(names)})


CUtensorMapInterleave = _named("Interleave", "INTERLEAVE_NONE", "INTERLEAVE_16B", "INTERLEAVE_32B")
CUtensorMapSwizzle = _named("Swizzle", "SWIZZLE_NONE", "SWIZZLE_32B", "SWIZZLE_64B", "SWIZZLE_128B")
CUtensorMapL2promotion = _named(
    "L2promotion",
    "L2_PROMOTION_NONE",
    "L2_PROMOTION_L2_64B",
    "L2_PROMOTION_L2_128B",
    "L2_PROMOTION_L2_256B",
)
CUtensorMapFloatOOBfill = _named("FloatOOBfill", "FLOAT_OOB_FILL_NONE", "FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA")


class Encoded:
    """A CUtensorMap."""

    def __init__(self, text: str) -> None:
        self.buffer = ctypes.create_string_buffer(text.encode()[:128].ljust(128, b"\0"), 128)

    def getPtr(self) -> int:
        return ctypes.addressof(self.buffer)


def words(arguments: tuple[Any, ...]) -> str:
    """The arguments as text: numbers, lists of numbers, names without what all share."""
    made = []
    for argument in arguments:
        if isinstance(argument, enum.IntEnum):
            made.append(argument.name.removeprefix("CU_TENSOR_MAP_"))
        elif isinstance(argument, list):
            made.append(":".join(str(int(getattr(each, "value", each))) for each in argument))
        else:
            made.append(str(int(argument)))
    return " ".join(made)


class MapStandin(Standin):
    """The stand-in with the two encoders."""

    CUtensorMapDataType = CUtensorMapDataType
    CUtensorMapInterleave, CUtensorMapSwizzle = CUtensorMapInterleave, CUtensorMapSwizzle
    CUtensorMapL2promotion, CUtensorMapFloatOOBfill = CUtensorMapL2promotion, CUtensorMapFloatOOBfill
    cuuint32_t, cuuint64_t = ctypes.c_uint32, ctypes.c_uint64

    def cuTensorMapEncodeTiled(self, *arguments: Any) -> tuple[CUresult, Encoded]:
        return self._encode("cuTensorMapEncodeTiled", arguments)

    def cuTensorMapEncodeIm2col(self, *arguments: Any) -> tuple[CUresult, Encoded]:
        return self._encode("cuTensorMapEncodeIm2col", arguments)

    def _encode(self, entry: str, arguments: tuple[Any, ...]) -> tuple[CUresult, Encoded]:
        text = words(arguments)
        return self._enter(entry, text), Encoded(text)
