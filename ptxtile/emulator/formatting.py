"""C's printf as devices have it: a format taken apart, and values put into it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

_CONVERSION = re.compile(r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d*))?(hh|h|ll|l|j|z|t|L)?([a-zA-Z%])")
_WIDE = ("l", "ll", "j", "z", "t")
_SIGNED, _FLOATS = "di", "eEfFgGaA"


@dataclass(frozen=True, slots=True)
class Conversion:
    """One conversion, or text between two.

    text    what stands there where `letter` is empty
    stars   int arguments that come before its own: for a width, for a precision
    size    bytes of its own argument: 4 or 8, at a multiple of that in the buffer
    """

    text: str
    flags: str = ""
    width: str = ""
    precision: str | None = None
    length: str = ""
    letter: str = ""

    @property
    def stars(self) -> int:
        """How many arguments of its own the width and the precision take."""
        return (self.width == "*") + (self.precision == "*")

    @property
    def size(self) -> int:
        """Bytes of the argument in the buffer."""
        return 8 if self.letter in _FLOATS + "sp" or self.length in _WIDE else 4


def parse(text: str) -> list[Conversion]:
    """A format as text and conversions; what C does not know stays text."""
    found: list[Conversion] = []
    end = 0
    for match in _CONVERSION.finditer(text):
        flags, width, precision, length, letter = match.groups()
        known = letter in "diouxXcsp" + _FLOATS
        plain = text[end : match.start()] + ("" if known else "%" if letter == "%" else match.group())
        if plain:
            found.append(Conversion(plain))
        if known:
            found.append(Conversion(match.group(), flags, width or "", precision, length or "", letter))
        end = match.end()
    return [*found, Conversion(text[end:])] if end < len(text) else found


def render(conversion: Conversion, value: int | float | str, stars: list[int]) -> str:
    """One value in its place. An integer comes as the bits of its argument."""
    flags, rest = conversion.flags, list(stars)
    width = rest.pop(0) if conversion.width == "*" else int(conversion.width or 0)
    if width < 0:
        flags, width = flags + "-", -width
    precision: int | None = None
    if conversion.precision is not None:
        precision = rest.pop(0) if conversion.precision == "*" else int(conversion.precision or 0)
        if precision < 0:
            precision = None
    if isinstance(value, str):
        body = value if precision is None else value[:precision]
    elif conversion.letter in _FLOATS:
        body = _float(float(value), conversion.letter, flags, precision)
    elif conversion.letter == "c":
        body = chr(int(value) & 0xFF)
    elif conversion.letter == "p":
        body = f"{int(value):#x}"
    else:
        body = _integer(int(value), conversion, flags, precision)
    zeros = "0" in flags and conversion.letter in "diouxX" + _FLOATS
    if "-" in flags:
        return body.ljust(width)
    if zeros and not (precision is not None and conversion.letter in "diouxX"):
        return _zeros(body, width)
    return body.rjust(width)


def _zeros(body: str, width: int) -> str:
    """Zeros between a sign or 0x and the digits; infinities and NaN get blanks."""
    if "inf" in body.lower() or "nan" in body.lower():
        return body.rjust(width)
    head = re.match(r"[-+ ]?(0[xX])?", body)
    cut = head.end() if head is not None else 0
    return body[:cut] + body[cut:].rjust(width - cut, "0")


def _sign(negative: bool, flags: str) -> str:
    return "-" if negative else "+" if "+" in flags else " " if " " in flags else ""


def _integer(bits: int, conversion: Conversion, flags: str, precision: int | None) -> str:
    size = {"hh": 8, "h": 16}.get(conversion.length, 8 * conversion.size)
    value = bits & ((1 << size) - 1)
    letter = conversion.letter
    if letter in _SIGNED:
        value -= (value >> (size - 1)) << size
    digits = format(abs(value), {"o": "o", "x": "x", "X": "X"}.get(letter, "d"))
    if precision is not None:
        digits = digits.rjust(precision, "0") if value or precision else ""
    if "#" in flags and letter == "o" and not digits.startswith("0"):
        digits = "0" + digits
    if "#" in flags and letter in "xX" and value:
        digits = f"0{letter}{digits}"
    return (_sign(value < 0, flags) if letter in _SIGNED else "") + digits


def _float(value: float, letter: str, flags: str, precision: int | None) -> str:
    sign = _sign(math.copysign(1.0, value) < 0, flags)
    if math.isnan(value) or math.isinf(value):
        word = "nan" if math.isnan(value) else "inf"
        return sign + (word.upper() if letter.isupper() else word)
    if letter in "aA":
        text = _hexadecimal(abs(value), precision)
    else:
        alternate = "#" if "#" in flags else ""
        text = f"%{alternate}.{6 if precision is None else precision}{letter.lower()}" % abs(value)
    return sign + (text.upper() if letter.isupper() else text)


def _hexadecimal(value: float, precision: int | None) -> str:
    """%a as glibc writes it: one digit before the point, as many behind as are needed or asked for."""
    if value == 0:
        return "0x0" + ("." + "0" * precision if precision else "") + "p+0"
    _, exponent = math.frexp(value)
    power = max(exponent - 1, -1022)
    digits = int(math.ldexp(value, 52 - power))
    if precision is not None and precision < 13:
        shift = 4 * (13 - precision)
        half = 1 << (shift - 1)
        kept, lost = digits >> shift, digits & ((1 << shift) - 1)
        digits = (kept + (lost > half or (lost == half and kept & 1))) << shift
    head, tail = digits >> 52, f"{digits & ((1 << 52) - 1):013x}"
    tail = tail.rstrip("0") if precision is None else tail.ljust(precision, "0")[:precision]
    return f"0x{head}{'.' if tail else ''}{tail}p{power:+d}"
