"""Small tables for the tests, made from text."""

from __future__ import annotations

from ptxtile.isa import match, notation, signature
from ptxtile.isa.form import Form
from ptxtile.isa.line import Line, lines_of
from ptxtile.isa.match import Opcode, Reading


def lines(text: str) -> list[Line]:
    return [line for record in notation.parse(text, "chapter", "t.isa") for line in lines_of(record, "t.isa")]


def opcode(text: str) -> Opcode:
    found = lines(text)
    return Opcode(found[0].opcode, found)


def read(text: str, spelling: str) -> list[Reading]:
    return match.readings(opcode(text), ["." + word for word in spelling.split(".")[1:]])


def form(text: str, spelling: str) -> Form:
    return signature.form(spelling, read(text, spelling))
